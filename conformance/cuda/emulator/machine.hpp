// A GPU of one multiprocessor on the CPU: what stands before the text of kernels in CUDA C++.
//
// The groups of a launch run one after the other. The threads of a group are contexts of their own; each runs until
// it waits for its group (__syncthreads) or for its warp (an instruction of all lanes), and then the next one does.
// A wait that not all threads come to ends the program, and so does an instruction of PTX that is not known here.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <ucontext.h>
#include <sys/mman.h>
#include <utility>
#include <vector>

struct Dim3 { unsigned x, y, z; };
static Dim3 threadIdx, blockIdx, blockDim, gridDim;

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };

#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)

namespace emulated {

[[noreturn]] inline void fail(const char *what)
{
    std::fprintf(stderr, "emulated GPU: %s\n", what);
    std::abort();
}

enum State { Runs, WaitsForGroup, WaitsForWarp, Done };
constexpr std::size_t STACK = 1 << 20;
constexpr int LANES = 32;
constexpr int WORDS = 64;

struct Thread {
    ucontext_t context;
    State state;
    void *stack;
};

inline std::vector<Thread> threads;
inline ucontext_t scheduler;
inline int now = -1;
// What the lanes of each warp hand over to one another.
inline std::vector<std::vector<uint32_t>> handed;
inline void (*kernel)(void **);
inline void **arguments;

inline void wait(State state)
{
    if (now < 0)
        fail("threads wait in a kernel that was run without contexts");
    Thread &own = threads[now];
    own.state = state;
    swapcontext(&own.context, &scheduler);
}

inline void place(int thread)
{
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}

inline void enter()
{
    kernel(arguments);
    threads[now].state = Done;
    swapcontext(&threads[now].context, &scheduler);
}

// Lets all threads go on that wait for what has come.
inline bool release(int count)
{
    bool any = false;
    for (int warp = 0; warp < count; warp += LANES) {
        int end = warp + LANES < count ? warp + LANES : count, waiting = 0, done = 0;
        for (int t = warp; t < end; ++t) {
            waiting += threads[t].state == WaitsForWarp;
            done += threads[t].state == Done;
        }
        if (waiting > 0 && waiting + done == end - warp) {
            if (done > 0)
                fail("an instruction of a warp that not all of its lanes come to");
            for (int t = warp; t < end; ++t)
                threads[t].state = Runs;
            any = true;
        }
    }
    int waiting = 0;
    for (int t = 0; t < count; ++t)
        waiting += threads[t].state == WaitsForGroup;
    if (waiting == count) {
        for (int t = 0; t < count; ++t)
            threads[t].state = Runs;
        any = true;
    }
    return any;
}

inline void run_group(int count)
{
    for (int t = 0; t < count; ++t) {
        Thread &thread = threads[t];
        thread.state = Runs;
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack;
        thread.context.uc_stack.ss_size = STACK;
        thread.context.uc_link = nullptr;
        makecontext(&thread.context, enter, 0);
    }
    for (;;) {
        int done = 0;
        for (int t = 0; t < count; ++t) {
            if (threads[t].state == Runs) {
                now = t;
                place(t);
                swapcontext(&scheduler, &threads[t].context);
                now = -1;
            }
            done += threads[t].state == Done;
        }
        if (done == count)
            return;
        if (!release(count))
            fail("a barrier that not all threads come to");
    }
}

inline int lane() { return now % LANES; }
inline std::vector<uint32_t> &own_words() { return handed[now]; }
inline std::vector<uint32_t> &words_of(int other) { return handed[now - lane() + other]; }

// Calls a function with the parameters of a launch.
template <class... A, std::size_t... I>
void call(void (*f)(A...), void **given, std::index_sequence<I...>)
{
    f(*static_cast<A *>(given[I])...);
}
template <class... A>
void call(void (*f)(A...), void **given)
{
    call(f, given, std::index_sequence_for<A...>());
}

// An operand of inline PTX.
struct Operand {
    char kind;
    uint64_t bits;
    void *to;
};
template <class T>
Operand in(char kind, T value)
{
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return {kind, bits, nullptr};
}
template <class T>
Operand out(char kind, T &value)
{
    Operand made = in(kind, value);
    made.to = &value;
    return made;
}
inline void give(const Operand &o, uint64_t bits)
{
    std::memcpy(o.to, &bits, o.kind == 'h' ? 2 : o.kind == 'l' || o.kind == 'd' ? 8 : 4);
}

inline float to_float(uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}
inline uint32_t to_bits(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}
inline float from_half(uint16_t bits)
{
    _Float16 value;
    std::memcpy(&value, &bits, 2);
    return static_cast<float>(value);
}
inline uint16_t to_half(float value)
{
    _Float16 rounded = static_cast<_Float16>(value);
    uint16_t bits;
    std::memcpy(&bits, &rounded, 2);
    return value != value ? 0x7fff : bits;
}
inline uint16_t to_bfloat(float value)
{
    uint32_t bits = to_bits(value);
    if (value != value)
        return 0x7fff;
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline uint32_t to_tf32(float value)
{
    uint32_t bits = to_bits(value);
    return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & ~0x1fffu;
}

// mma.sync: rows and columns of each lane's registers as the tables of the PTX ISA have them.
inline void multiply(const char *name, const std::vector<Operand> &all)
{
    int m, n, k;
    if (std::sscanf(name, "mma.sync.aligned.m%dn%dk%d.row.col.", &m, &n, &k) != 3 || m != 16 || n != 8)
        fail(name);
    char total[8], left[8], right[8];
    if (std::sscanf(std::strstr(name, "row.col.") + 8, "%7[^.].%7[^.].%7[^.].", total, left, right) != 3)
        fail(name);
    const int bits = std::strchr("su", left[0]) ? 8 : std::strcmp(left, "tf32") == 0 ? 32 : 16;
    const int each = 32 / bits, words_a = m * k / LANES / each, words_b = n * k / LANES / each;
    const bool integer = total[0] == 's';
    auto &own = own_words();
    own.clear();
    for (const Operand &o : all)
        own.push_back(static_cast<uint32_t>(o.bits));
    wait(WaitsForWarp);
    auto value = [&](uint32_t word, int part, const char *type) -> double {
        uint32_t cell = bits == 32 ? word : word >> (part * bits) & ((1u << bits) - 1);
        if (!std::strcmp(type, "s8"))
            return static_cast<int8_t>(cell);
        if (!std::strcmp(type, "u8"))
            return static_cast<uint8_t>(cell);
        if (!std::strcmp(type, "f16"))
            return from_half(static_cast<uint16_t>(cell));
        if (!std::strcmp(type, "bf16"))
            return to_float(cell << 16);
        return to_float(cell & ~0x1fffu);
    };
    auto a_of = [&](int row, int column) {
        const int half = k / (words_a / 2), word = row / 8 + 2 * (column / half);
        const int from = row % 8 * 4 + column % half / each;
        return value(words_of(from)[4 + word], column % each, left);
    };
    auto b_of = [&](int row, int column) {
        const int half = k / words_b;
        const int from = column * 4 + row % half / each;
        return value(words_of(from)[4 + words_a + row / half], row % each, right);
    };
    uint32_t sums[4];
    for (int c = 0; c < 4; ++c) {
        const int row = lane() / 4 + 8 * (c / 2), column = lane() % 4 * 2 + c % 2;
        double sum = 0;
        for (int step = 0; step < k; ++step)
            sum += a_of(row, step) * b_of(step, column);
        const uint32_t before = static_cast<uint32_t>(all[c].bits);
        sums[c] = integer ? before + static_cast<uint32_t>(static_cast<int64_t>(sum))
                          : to_bits(static_cast<float>(to_float(before) + sum));
    }
    wait(WaitsForWarp);
    for (int c = 0; c < 4; ++c)
        give(all[c], sums[c]);
}

inline char base;
inline char *shared(uint64_t address) { return &base + static_cast<int32_t>(static_cast<uint32_t>(address)); }

// ldmatrix: rows of eight 16-bit cells, whose addresses the lanes give.
inline void load_matrix(const char *name, const std::vector<Operand> &all)
{
    const int count = std::strstr(name, ".x4") ? 4 : std::strstr(name, ".x2") ? 2 : 1;
    const bool across = std::strstr(name, ".trans");
    own_words().assign(1, static_cast<uint32_t>(all[count].bits));
    wait(WaitsForWarp);
    uint32_t loaded[4] = {};
    for (int k = 0; k < count; ++k) {
        uint16_t cells[2];
        for (int e = 0; e < 2; ++e) {
            int row = lane() / 4, column = lane() % 4 * 2 + e;
            if (across)
                std::swap(row, column);
            const char *from = shared(words_of(8 * k + row)[0]);
            if (reinterpret_cast<uintptr_t>(from) % 16 != 0)
                fail("ldmatrix of a row that does not begin at a multiple of 16 bytes");
            std::memcpy(&cells[e], from + 2 * column, 2);
        }
        loaded[k] = cells[0] | static_cast<uint32_t>(cells[1]) << 16;
    }
    wait(WaitsForWarp);
    for (int k = 0; k < count; ++k)
        give(all[k], loaded[k]);
}

// Copies that are under way until their thread waits for them.
struct Copy {
    char *to;
    const char *from;
    unsigned bytes, there;
};
inline std::vector<std::vector<Copy>> copies;

inline bool starts(const char *text, const char *with) { return std::strncmp(text, with, std::strlen(with)) == 0; }

inline void copy_later(const char *text, const std::vector<Operand> &all)
{
    unsigned bytes = 0;
    const char *comma = std::strrchr(text, ']');
    if (comma == nullptr || std::sscanf(comma, "], %u", &bytes) != 1)
        fail(text);
    unsigned there = all.size() > 2 ? static_cast<unsigned>(all[2].bits) : bytes;
    const char *from = reinterpret_cast<const char *>(all[1].bits);
    char *to = shared(all[0].bits);
    if (reinterpret_cast<uintptr_t>(to) % bytes != 0 || (there != 0 && reinterpret_cast<uintptr_t>(from) % bytes != 0))
        fail("cp.async of bytes that do not begin at a multiple of their number");
    copies[now].push_back({to, from, bytes, there});
}

// One conversion: what it makes of the bits of its operands.
inline uint64_t converted(const char *text, uint64_t x, uint64_t y)
{
    const float f = to_float(static_cast<uint32_t>(x)), g = to_float(static_cast<uint32_t>(y));
    if (starts(text, "cvt.rna.tf32.f32"))
        return to_tf32(f);
    if (starts(text, "cvt.f32.f16"))
        return to_bits(from_half(static_cast<uint16_t>(x)));
    if (starts(text, "cvt.f32.bf16"))
        return x << 16 & 0xffffffff;
    if (starts(text, "cvt.rn.f16.f32"))
        return to_half(f);
    if (starts(text, "cvt.rn.bf16.f32"))
        return to_bfloat(f);
    if (starts(text, "cvt.rn.f16x2.f32"))
        return to_half(g) | static_cast<uint32_t>(to_half(f)) << 16;
    if (starts(text, "cvt.rn.bf16x2.f32"))
        return to_bfloat(g) | static_cast<uint32_t>(to_bfloat(f)) << 16;
    fail(text);
}

// Conversions, one or several in braces with registers between them: `{.reg .b16 h; cvt.. h, %1; cvt.. %0, h;}`.
inline void convert(const char *text, std::vector<Operand> &all)
{
    std::map<std::string, uint64_t> registers;
    auto read = [&](const std::string &name) {
        return name[0] == '%' ? all.at(std::atoi(name.c_str() + 1)).bits : registers.at(name);
    };
    std::string rest = text;
    for (char &c : rest)
        c = std::strchr("{};,", c) ? (c == ';' ? '\n' : ' ') : c;
    std::stringstream lines(rest);
    for (std::string line; std::getline(lines, line);) {
        std::stringstream words(line);
        std::string name, to, first, second;
        words >> name >> to >> first >> second;
        if (name.empty() || name == ".reg")
            continue;
        const uint64_t made = converted(name.c_str(), read(first), second.empty() ? 0 : read(second));
        if (to[0] == '%')
            give(all.at(std::atoi(to.c_str() + 1)), made);
        else
            registers[to] = made;
    }
}

inline void ptx(const char *text, std::vector<Operand> all)
{
    if (starts(text, "mma.sync"))
        return multiply(text, all);
    if (starts(text, "ldmatrix.sync"))
        return load_matrix(text, all);
    if (starts(text, "cp.async.cg.shared.global") || starts(text, "cp.async.ca.shared.global"))
        return copy_later(text, all);
    if (starts(text, "cp.async.commit_group"))
        return;
    if (starts(text, "cp.async.wait_group") || starts(text, "cp.async.wait_all")) {
        for (const Copy &c : copies[now]) {
            std::memset(c.to, 0, c.bytes);
            std::memcpy(c.to, c.from, c.there);
        }
        return copies[now].clear();
    }
    convert(text, all);
}

// What another lane of the warp has.
template <class T>
T from_lane(T value, int other)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    auto &own = own_words();
    own.assign(2, 0);
    std::memcpy(own.data(), &value, sizeof value);
    wait(WaitsForWarp);
    T got;
    std::memcpy(&got, words_of(other).data(), sizeof got);
    wait(WaitsForWarp);
    return got;
}

} // namespace emulated

#define __syncthreads() emulated::wait(emulated::WaitsForGroup)
#define __syncwarp(...) emulated::wait(emulated::WaitsForWarp)
#define __shfl_xor_sync(mask, value, by) emulated::from_lane(value, emulated::lane() ^ (by))
#define __shfl_sync(mask, value, from) emulated::from_lane(value, (from) % emulated::LANES)
#define __shfl_down_sync(mask, value, by) \
    emulated::from_lane(value, emulated::lane() + (by) < emulated::LANES ? emulated::lane() + (by) : emulated::lane())
#define __cvta_generic_to_shared(p) (static_cast<uint32_t>(reinterpret_cast<const char *>(p) - &emulated::base))

template <class To, class From>
static inline To emulated_bits(From x)
{
    To y;
    static_assert(sizeof x == sizeof y);
    std::memcpy(&y, &x, sizeof y);
    return y;
}
#define __int_as_float(x) emulated_bits<float>((int)(x))
#define __float_as_int(x) emulated_bits<int>((float)(x))
#define __float_as_uint(x) emulated_bits<unsigned>((float)(x))
#define __double_as_longlong(x) ((long)emulated_bits<long>((double)(x)))
#define __longlong_as_double(x) emulated_bits<double>((long)(x))
#define __popc(x) __builtin_popcount(x)
#define __popcll(x) __builtin_popcountll(x)
#define __clz(x) ((x) == 0 ? 32 : __builtin_clz((unsigned)(x)))
#define __clzll(x) ((x) == 0 ? 64 : __builtin_clzll((unsigned long long)(x)))
static inline int atomicCAS(int *at, int old, int value)
{
    int was = *at;
    if (was == old)
        *at = value;
    return was;
}
using namespace std;

extern "C" void emulated_launch(void (*kernel)(void **), void **arguments, const unsigned *sizes, bool waits)
{
    using namespace emulated;
    gridDim = {sizes[0], sizes[1], sizes[2]};
    blockDim = {sizes[3], sizes[4], sizes[5]};
    emulated::kernel = kernel;
    emulated::arguments = arguments;
    const int count = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
    while (waits && static_cast<int>(threads.size()) < count) {
        void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED)
            fail("no memory for threads");
        threads.push_back({{}, Done, stack});
        handed.emplace_back();
        copies.emplace_back();
    }
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
                if (waits) {
                    run_group(count);
                    continue;
                }
                for (int t = 0; t < count; ++t) {
                    place(t);
                    kernel(arguments);
                }
            }
}
