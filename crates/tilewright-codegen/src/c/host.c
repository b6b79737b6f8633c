/* What all models have: files, memory of the device, kernels.

   Functions that may fail return 0, or a number below zero: OpenCL's own, or NO_FILES. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns from a function on failure. */
#define TRY(call)                       \
    do {                                \
        int failed = (call);            \
        if (failed != 0) return failed; \
    } while (0)

enum { WORDS = 9 }; /* what an assertion that fails leaves: its number, and values */

/* Reads a file of a folder, and puts a zero behind it. */
static int read_file(const char *folder, const char *name, char **content, size_t *bytes) {
    char *path = malloc(strlen(folder) + strlen(name) + 2);
    if (path == NULL) return CL_OUT_OF_HOST_MEMORY;
    sprintf(path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    free(path);
    if (file == NULL) return NO_FILES;
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    int result = size >= 0 && fseek(file, 0, SEEK_SET) == 0 ? 0 : NO_FILES;
    *content = result == 0 ? malloc((size_t)size + 1) : NULL;
    if (result == 0 && *content == NULL) result = CL_OUT_OF_HOST_MEMORY;
    if (result == 0 && fread(*content, 1, (size_t)size, file) != (size_t)size) {
        free(*content);
        result = NO_FILES;
    }
    fclose(file);
    if (result != 0) return result;
    (*content)[size] = 0;
    *bytes = (size_t)size;
    return 0;
}

/* Compiles the kernels; what the compiler says is kept where it fails. */
static int build(program *p, const char *folder) {
    char *text;
    size_t bytes;
    TRY(read_file(folder, KERNEL_FILE, &text, &bytes));
    cl_int result;
    p->built = clCreateProgramWithSource(p->context, 1, (const char **)&text, &bytes, &result);
    free(text);
    TRY(result);
    cl_device_fp_config floats = 0;
    TRY(clGetDeviceInfo(p->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof floats, &floats, NULL));
    const char *options = (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0
                              ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt"
                              : "-cl-std=CL1.2";
    result = clBuildProgram(p->built, 1, &p->device, options, NULL, NULL);
    if (result != 0 && clGetProgramBuildInfo(p->built, p->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) == 0) {
        p->log = calloc(bytes + 1, 1);
        if (p->log != NULL) {
            clGetProgramBuildInfo(p->built, p->device, CL_PROGRAM_BUILD_LOG, bytes, p->log, NULL);
        }
    }
    TRY(result);
    for (int k = 0; k < KERNELS; k++) {
        p->kernels[k] = clCreateKernel(p->built, kernel_names[k], &result);
        TRY(result);
    }
    return 0;
}

/* Memory of the device, with a copy of some bytes in it or none. */
static int memory(program *p, size_t bytes, const void *content, cl_mem *to) {
    cl_int result;
    cl_mem_flags flags = CL_MEM_READ_WRITE | (content != NULL ? CL_MEM_COPY_HOST_PTR : 0);
    *to = clCreateBuffer(p->context, flags, bytes > 0 ? bytes : 1, (void *)content, &result);
    return result;
}

static int put_constants(program *p, const char *folder) {
    char *all;
    size_t bytes;
    if (CONSTANTS == 0) return 0;
    TRY(read_file(folder, CONSTANT_FILE, &all, &bytes));
    int result = bytes == CONSTANT_BYTES ? 0 : NO_FILES;
    for (int k = 0; result == 0 && k < CONSTANTS; k++) {
        if (constants[k].bytes == 0) result = memory(p, 0, NULL, &p->constants[k]);
        else result = memory(p, constants[k].bytes, all + constants[k].at, &p->constants[k]);
    }
    free(all);
    return result;
}

static int make_images(program *p) {
    for (int k = 0; k < IMAGES; k++) {
        cl_image_format format = {CL_RGBA, images[k].is_half ? CL_HALF_FLOAT : CL_FLOAT};
        cl_image_desc image;
        memset(&image, 0, sizeof image);
        image.image_type = CL_MEM_OBJECT_IMAGE2D;
        image.image_width = images[k].columns;
        image.image_height = images[k].rows;
        cl_int result;
        p->images[k] = clCreateImage(p->context, CL_MEM_READ_WRITE, &format, &image, NULL, &result);
        TRY(result);
    }
    return 0;
}

/* Memory where assertions leave what failed: zero, as long as none did. */
static int make_failures(program *p) {
    static const cl_long none[WORDS];
    for (int k = 0; k < FAILURES; k++) TRY(memory(p, sizeof none, none, &p->failures[k]));
    return memory(p, SCRATCH_BYTES, NULL, &p->scratch);
}

static int open_all(program *p, const char *folder) {
    TRY(build(p, folder));
    TRY(put_constants(p, folder));
    TRY(make_images(p));
    return make_failures(p);
}

static void release(cl_mem *all, int count) {
    for (int k = 0; k < count; k++) {
        if (all[k] != NULL) clReleaseMemObject(all[k]);
    }
}

static void close_all(program *p) {
    for (int k = 0; k < KERNELS; k++) {
        if (p->kernels[k] != NULL) clReleaseKernel(p->kernels[k]);
    }
    release(p->constants, CONSTANTS);
    release(p->images, IMAGES);
    release(p->failures, FAILURES);
    release(&p->scratch, 1);
    release(&p->arena.memory, 1);
    for (int k = 0; k < INPUTS; k++) release(&p->inputs[k].memory, 1);
    for (int k = 0; k < OUTPUTS; k++) release(&p->outputs[k].memory, 1);
    if (p->built != NULL) clReleaseProgram(p->built);
    clReleaseContext(p->context);
    free(p->log);
    free(p);
}

/* Memory of at least so many bytes. */
static int grow(program *p, room *room, size_t bytes) {
    if (room->memory != NULL && room->bytes >= bytes) return 0;
    release(&room->memory, 1);
    room->memory = NULL;
    TRY(memory(p, bytes, NULL, &room->memory));
    room->bytes = bytes;
    return 0;
}

/* Sets two arguments of a kernel: memory, and where in it something begins. */
static inline int set_memory(cl_kernel kernel, int k, cl_mem memory, size_t at) {
    cl_ulong byte = at;
    TRY(clSetKernelArg(kernel, (cl_uint)k, sizeof memory, &memory));
    return clSetKernelArg(kernel, (cl_uint)k + 1, sizeof byte, &byte);
}

static inline int set_object(cl_kernel kernel, int k, cl_mem object) {
    return clSetKernelArg(kernel, (cl_uint)k, sizeof object, &object);
}

/* Puts a kernel into the queue, unless it has nothing to do. Without a group the items share iterations, and may be
   fewer: a processor gets a few for each core. */
static inline int launch(cl_command_queue queue, cl_kernel kernel, const int64_t *items, const size_t *group) {
    static const size_t alone[3] = {1, 1, 1};
    size_t global[3];
    for (int k = 0; k < 3; k++) {
        if (items[k] <= 0) return 0;
        global[k] = (size_t)items[k] * (group != NULL ? group[k] : 1);
    }
    if (group == NULL) {
        cl_device_id device;
        cl_device_type type = 0;
        cl_uint units = 1;
        TRY(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL));
        TRY(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL));
        TRY(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL));
        if ((type & CL_DEVICE_TYPE_CPU) != 0) {
            group = alone;
            if (global[0] > 8 * (size_t)units) global[0] = 8 * (size_t)units;
        }
    }
    return clEnqueueNDRangeKernel(queue, kernel, 3, NULL, global, group, 0, NULL, NULL);
}

/* Copies memory to an image, row by row, or back. */
static inline int copy_image(program *p, cl_command_queue queue, int image, argument memory, int to_image) {
    const size_t origin[3] = {0, 0, 0}, size[3] = {images[image].columns, images[image].rows, 1};
    if (to_image) {
        return clEnqueueCopyBufferToImage(queue, memory.memory, p->images[image], memory.at, origin, size, 0,
                                          NULL, NULL);
    }
    return clEnqueueCopyImageToBuffer(queue, p->images[image], memory.memory, origin, size, memory.at, 0, NULL,
                                      NULL);
}

/* Waits, and gives the first assertion that failed. */
static int finish(program *p, cl_command_queue queue) {
    static const cl_long none[WORDS];
    int result = 0;
    for (int k = 0; k < FAILURES; k++) {
        cl_long code;
        TRY(clEnqueueReadBuffer(queue, p->failures[k], CL_TRUE, 0, sizeof code, &code, 0, NULL, NULL));
        if (code == 0) continue;
        TRY(clEnqueueWriteBuffer(queue, p->failures[k], CL_TRUE, 0, sizeof none, none, 0, NULL, NULL));
        if (result == 0) result = failure_bases[k] + (int)code;
    }
    TRY(clFinish(queue));
    return result;
}

/* Runs the model on memory of the host. */
static int run(program *p, cl_command_queue queue, const int64_t *shapes, const void *const *inputs,
               void *const *outputs) {
    cl_mem from[INPUTS + 1], to[OUTPUTS + 1];
    for (int k = 0; k < INPUTS; k++) {
        size_t bytes = input_bytes(shapes, k);
        TRY(grow(p, &p->inputs[k], bytes));
        from[k] = p->inputs[k].memory;
        if (bytes == 0) continue;
        TRY(clEnqueueWriteBuffer(queue, from[k], CL_FALSE, 0, bytes, inputs[k], 0, NULL, NULL));
    }
    for (int k = 0; k < OUTPUTS; k++) {
        TRY(grow(p, &p->outputs[k], output_bytes(shapes, k)));
        to[k] = p->outputs[k].memory;
    }
    int result = enqueue(p, queue, shapes, from, to);
    if (result == 0) result = finish(p, queue);
    for (int k = 0; result == 0 && k < OUTPUTS; k++) {
        size_t bytes = output_bytes(shapes, k);
        if (bytes == 0) continue;
        result = clEnqueueReadBuffer(queue, to[k], CL_TRUE, 0, bytes, outputs[k], 0, NULL, NULL);
    }
    if (result < 0) clFinish(queue);
    return result;
}
