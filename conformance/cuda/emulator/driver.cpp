// NVIDIA's driver and compiler as far as Tilewright calls them, on the CPU: for TILEWRIGHT_CUDA and TILEWRIGHT_NVRTC.
//
// "Machine code" is a shared library of the host, which compile.py makes of the text; kernels run in machine.hpp.
// Addresses of the device are addresses of the host that only the driver is told.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

constexpr char MAGIC[8] = {'e', 'm', 'u', 'l', 'a', 't', 'e', 'd'};
enum { INVALID = 1, OUT_OF_MEMORY = 2, BAD_IMAGE = 200, NO_CONTEXT = 201, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

struct Program {
    std::string text, log, code;
};
struct Function {
    void (*thunk)(void **);
    void (*launch)(void (*)(void **), void **, const unsigned *, bool);
    bool waits;
};
struct Module {
    void *library;
    std::map<std::string, Function> functions;
};

std::mutex memory_lock, run_lock;
std::map<unsigned long, size_t> memory;
thread_local bool has_context = false;

// Whether some bytes lie in one allocation.
bool is_memory(unsigned long at, size_t bytes)
{
    std::lock_guard<std::mutex> held(memory_lock);
    auto after = memory.upper_bound(at);
    if (after == memory.begin())
        return false;
    auto own = std::prev(after);
    return at - own->first <= own->second && bytes <= own->second - (at - own->first);
}

// Where compile.py is.
std::string folder()
{
    const char *given = std::getenv("EMULATOR_FOLDER");
    return given ? given : ".";
}

std::string temporary(const char *ending)
{
    const char *place = std::getenv("TMPDIR");
    std::string name = std::string(place ? place : P_tmpdir) + "/emulated-XXXXXX" + ending;
    int file = mkstemps(name.data(), static_cast<int>(std::strlen(ending)));
    if (file >= 0)
        close(file);
    return name;
}

std::string contents(const std::string &file)
{
    std::ifstream in(file, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
}

} // namespace

extern "C" {

int nvrtcVersion(int *major, int *minor)
{
    *major = 12, *minor = 0;
    return 0;
}
int nvrtcCreateProgram(Program **made, const char *text, const char *, int, const char *const *, const char *const *)
{
    *made = new Program{text, "", ""};
    return 0;
}
int nvrtcDestroyProgram(Program **program)
{
    delete *program;
    *program = nullptr;
    return 0;
}
int nvrtcCompileProgram(Program *program, int, const char *const *)
{
    std::string source = temporary(".cu"), library = temporary(".so"), log = temporary(".log");
    std::ofstream(source) << program->text;
    std::string command = "python3 '" + folder() + "/compile.py' " + source + " " + library + " > " + log + " 2>&1";
    int code = std::system(command.c_str());
    program->log = contents(log);
    std::string body = contents(library);
    size_t length = body.size();
    program->code = std::string(MAGIC, 8) + std::string(reinterpret_cast<char *>(&length), 8) + body;
    for (const std::string &file : {source, library, log})
        unlink(file.c_str());
    return code == 0 ? 0 : 6;
}
int nvrtcGetPTXSize(Program *, size_t *) { return INVALID; }
int nvrtcGetPTX(Program *, char *) { return INVALID; }
int nvrtcGetCUBINSize(Program *program, size_t *size)
{
    *size = program->code.size();
    return 0;
}
int nvrtcGetCUBIN(Program *program, char *to)
{
    std::memcpy(to, program->code.data(), program->code.size());
    return 0;
}
int nvrtcGetProgramLogSize(Program *program, size_t *size)
{
    *size = program->log.size() + 1;
    return 0;
}
int nvrtcGetProgramLog(Program *program, char *to)
{
    std::memcpy(to, program->log.c_str(), program->log.size() + 1);
    return 0;
}

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int *version)
{
    *version = 12000;
    return 0;
}
int cuGetErrorString(int code, const char **text)
{
    switch (code) {
    case INVALID: *text = "invalid argument"; return 0;
    case OUT_OF_MEMORY: *text = "out of memory"; return 0;
    case BAD_IMAGE: *text = "device kernel image is invalid"; return 0;
    case NO_CONTEXT: *text = "invalid device context"; return 0;
    case NOT_FOUND: *text = "named symbol not found"; return 0;
    case ILLEGAL_ADDRESS: *text = "an illegal memory access was encountered"; return 0;
    default: return INVALID;
    }
}
int cuDeviceGetCount(int *count)
{
    *count = 1;
    return 0;
}
int cuDeviceGet(int *device, int number)
{
    *device = number;
    return number == 0 ? 0 : INVALID;
}
int cuDeviceGetName(char *to, int room, int)
{
    std::snprintf(to, room, "emulated GPU");
    return 0;
}
int cuDeviceGetAttribute(int *value, int which, int)
{
    const std::map<int, int> known = {{1, 1024}, {8, 48 << 10}, {16, 1}, {75, 9}, {76, 0}};
    auto found = known.find(which);
    if (found == known.end())
        return INVALID;
    *value = found->second;
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int)
{
    *bytes = size_t(1) << 32;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int)
{
    *context = &memory;
    return 0;
}
int cuCtxSetCurrent(void *context)
{
    has_context = context == &memory;
    return has_context ? 0 : NO_CONTEXT;
}
int cuStreamCreate(void **stream, unsigned)
{
    *stream = &run_lock;
    return has_context ? 0 : NO_CONTEXT;
}
int cuStreamSynchronize(void *stream) { return !has_context ? NO_CONTEXT : stream == &run_lock ? 0 : INVALID; }
int cuMemAlloc_v2(unsigned long *address, size_t bytes)
{
    if (!has_context || bytes == 0)
        return has_context ? INVALID : NO_CONTEXT;
    void *at = nullptr;
    if (posix_memalign(&at, 256, bytes + 256) != 0)
        return OUT_OF_MEMORY;
    // NaN in every type: what is read before it is written shows.
    std::memset(at, 0xff, bytes + 256);
    *address = reinterpret_cast<unsigned long>(at);
    std::lock_guard<std::mutex> held(memory_lock);
    memory[*address] = bytes;
    return 0;
}
int cuMemFree_v2(unsigned long address)
{
    {
        std::lock_guard<std::mutex> held(memory_lock);
        auto own = memory.find(address);
        if (own == memory.end())
            return INVALID;
        const unsigned char *behind = reinterpret_cast<unsigned char *>(address + own->second);
        for (int k = 0; k < 256; ++k)
            if (behind[k] != 0xff) {
                std::fprintf(stderr, "emulated GPU: a kernel wrote behind its memory\n");
                std::abort();
            }
        memory.erase(own);
    }
    std::free(reinterpret_cast<void *>(address));
    return 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long to, const void *from, size_t bytes, void *)
{
    if (!is_memory(to, bytes))
        return INVALID;
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, unsigned long from, size_t bytes, void *)
{
    if (!is_memory(from, bytes))
        return INVALID;
    std::memcpy(to, reinterpret_cast<void *>(from), bytes);
    return 0;
}
int cuMemcpyDtoDAsync_v2(unsigned long to, unsigned long from, size_t bytes, void *)
{
    if (!is_memory(from, bytes) || !is_memory(to, bytes))
        return INVALID;
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    return 0;
}
int cuMemsetD8Async(unsigned long to, unsigned char byte, size_t bytes, void *)
{
    if (!is_memory(to, bytes))
        return INVALID;
    std::memset(reinterpret_cast<void *>(to), byte, bytes);
    return 0;
}
int cuModuleLoadData(Module **made, const char *image)
{
    if (std::memcmp(image, MAGIC, 8) != 0)
        return BAD_IMAGE;
    size_t length;
    std::memcpy(&length, image + 8, 8);
    std::string file = temporary(".so");
    std::ofstream(file, std::ios::binary).write(image + 16, static_cast<std::streamsize>(length));
    void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    unlink(file.c_str());
    if (library == nullptr)
        return BAD_IMAGE;
    *made = new Module{library, {}};
    return 0;
}
int cuModuleUnload(Module *module)
{
    dlclose(module->library);
    delete module;
    return 0;
}
int cuModuleGetFunction(Function **found, Module *module, const char *name)
{
    auto thunk = dlsym(module->library, (std::string(name) + "_thunk").c_str());
    auto launch = dlsym(module->library, "emulated_launch");
    auto waits = static_cast<bool *>(dlsym(module->library, (std::string(name) + "_waits").c_str()));
    if (thunk == nullptr || launch == nullptr || waits == nullptr)
        return NOT_FOUND;
    Function &function = module->functions[name];
    function.thunk = reinterpret_cast<void (*)(void **)>(thunk);
    function.launch = reinterpret_cast<void (*)(void (*)(void **), void **, const unsigned *, bool)>(launch);
    function.waits = *waits;
    *found = &function;
    return 0;
}
int cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned, void *stream, void **arguments, void **)
{
    if (stream != &run_lock || !has_context || gx * gy * gz == 0 || bx * by * bz == 0 || bx * by * bz > 1024 ||
        gy > 65535 || gz > 65535)
        return INVALID;
    std::lock_guard<std::mutex> held(run_lock);
    const unsigned sizes[6] = {gx, gy, gz, bx, by, bz};
    function->launch(function->thunk, arguments, sizes, function->waits);
    return 0;
}
int cuEventCreate(void **event, unsigned)
{
    *event = new double(0);
    return 0;
}
int cuEventRecord(double *event, void *)
{
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    *event = std::chrono::duration<double, std::milli>(now).count();
    return 0;
}
int cuEventSynchronize(void *) { return 0; }
int cuEventElapsedTime(float *milliseconds, double *before, double *after)
{
    *milliseconds = static_cast<float>(*after - *before);
    return 0;
}
int cuEventDestroy_v2(double *event)
{
    delete event;
    return 0;
}

} // extern "C"
