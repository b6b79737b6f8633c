/* Reads a digit: a bar in the middle of the image, which is a one. */
#include <stdio.h>

#include "libdigits.h"

int main(void) {
    static float image[8][8], logits[10], probabilities[10];
    for (int row = 1; row < 7; row++) image[row][3] = image[row][4] = 1;
    const void *inputs[] = {image};
    void *outputs[] = {logits, probabilities};
    int result = digits_run(inputs, outputs, NULL);
    if (result != 0) {
        const char *message = digits_message(result);
        fprintf(stderr, "%s\n", message != NULL ? message : "no memory");
        return 1;
    }
    int best = 0;
    for (int digit = 0; digit < 10; digit++) {
        if (probabilities[digit] > probabilities[best]) best = digit;
    }
    printf("a bar is a %d\n", best);
    return 0;
}
