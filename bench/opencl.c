/* A product on a device: the kernels that Tilewright made, and SGEMM of CLBlast on the same memory, in turns.
   Arguments: folder of the kernels, rows, columns, inner, rounds. Prints the shortest times in microseconds, and
   the largest difference of the results. */

#include <clblast_c.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "product.h"

#define OK(call)                                                \
    do {                                                        \
        const int code = (int)(call);                           \
        if (code != 0) {                                        \
            fprintf(stderr, "%s: %d\n", #call, code);           \
            return 1;                                           \
        }                                                       \
    } while (0)

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static cl_mem filled(cl_context context, cl_command_queue queue, size_t count, float *values) {
    for (size_t k = 0; k < count; k++) values[k] = (float)rand() / (float)RAND_MAX - 0.5f;
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, count * sizeof(float), NULL, NULL);
    clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, count * sizeof(float), values, 0, NULL, NULL);
    return memory;
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    const size_t m = strtoul(argv[2], NULL, 10), n = strtoul(argv[3], NULL, 10), k = strtoul(argv[4], NULL, 10);
    const int rounds = atoi(argv[5]);
    cl_platform_id platform;
    cl_device_id device;
    OK(clGetPlatformIDs(1, &platform, NULL));
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    const size_t most = m * k + k * n + m * n;
    float *values = malloc(most * sizeof(float)), *other = malloc(m * n * sizeof(float));
    cl_mem inputs[2] = {filled(context, queue, m * k, values), filled(context, queue, k * n, values)};
    cl_mem own[1] = {filled(context, queue, m * n, values)}, theirs = filled(context, queue, m * n, values);
    product_program *program;
    OK(product_open(context, device, argv[1], &program));
    double best[2] = {INFINITY, INFINITY};
    for (int round = 0; round < rounds; round++) {
        double start = now();
        OK(product_enqueue(program, queue, inputs, own));
        OK(product_finish(program, queue));
        best[0] = fmin(best[0], now() - start);
        start = now();
        OK(CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, m, n, k, 1.0f, inputs[0], 0,
                        k, inputs[1], 0, n, 0.0f, theirs, 0, n, &queue, NULL));
        OK(clFinish(queue));
        best[1] = fmin(best[1], now() - start);
    }
    OK(clEnqueueReadBuffer(queue, own[0], CL_TRUE, 0, m * n * sizeof(float), values, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, theirs, CL_TRUE, 0, m * n * sizeof(float), other, 0, NULL, NULL));
    double far = 0;
    for (size_t at = 0; at < m * n; at++) far = fmax(far, fabs((double)values[at] - other[at]));
    printf("%f %f %g\n", best[0], best[1], far);
    return 0;
}
