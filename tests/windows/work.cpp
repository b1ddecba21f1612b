// SPDX-License-Identifier: MIT
// A program with exceptions, threads, recursion, a jump table and early initialisers.  It is
// counted by hooks, and by itself (-finstrument-functions with -DINSTRUMENTED).  No function is
// inlined, so both count each call.
#include <windows.h>

#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#define OWN extern "C" __attribute__((noinline, noclone))
#define OFF __attribute__((no_instrument_function))
#define KEPT __asm__ volatile("") // keeps calls of empty functions

#ifdef __x86_64__
#define R8_TO_R11 "r8", "r9", "r10", "r11",
#define CONTEXT_CX Rcx
#define CONTEXT_SP Rsp
#define STACK "%%rsp"
#define PUSH_FLAGS "pushfq"
#define POP_FLAGS "popfq"
#else
#define R8_TO_R11
#define CONTEXT_CX Ecx
#define CONTEXT_SP Esp
#define STACK "%%esp"
#define PUSH_FLAGS "pushfl"
#define POP_FLAGS "popfl"
#endif

OWN long work_fib(long n)
{
    return n < 2 ? n : work_fib(n - 1) + work_fib(n - 2);
}

struct cleaner {
    int &count;
    explicit cleaner(int &c) : count(c)
    {
    }
    ~cleaner()
    {
        count++;
    }
};

OWN int work_thrower(int n, int *cleaned)
{
    cleaner guard(*cleaned);
    if (n % 3 == 0) {
        throw std::runtime_error("three");
    }
    if (n % 7 == 0) {
        throw n;
    }
    return n;
}

// Keeps values in non-volatile registers, which a wrong unwind table would lose.
OWN long work_catcher(int n, int *cleaned, long a, long b)
{
    long c = a * 3 + b, d = a - b * 5;
    try {
        c += work_thrower(n, cleaned);
    } catch (const std::runtime_error &) {
        d -= 1;
    } catch (int seven) {
        d += seven;
    }
    return a * 1000003 + b * 1009 + c * 31 + d;
}

OWN int work_choose(int n, int x)
{
    switch (n) {
    case 0: return x + 1;
    case 1: return x * 3;
    case 2: return x - 7;
    case 3: return x ^ 21;
    case 4: return x / 3;
    case 5: return x & 0xff;
    default: return -x;
    }
}

OWN void work_empty()
{
    KEPT;
}

static jmp_buf back;

OWN void work_leap(int depth)
{
    if (depth == 0) {
        longjmp(back, 1);
    }
    work_leap(depth - 1);
    KEPT;
}

OWN int work_land(int depth)
{
    if (setjmp(back) == 0) {
        work_leap(depth);
    }
    return depth;
}

// The instruction that faults is the first one of the function, so a hook moves it.
OWN void work_fault(int *at)
{
    __asm__ volatile("movl $1, (%0)" : : "c"(at) : "memory");
}

static LONG CALLBACK handle_fault(EXCEPTION_POINTERS *info)
{
    static int room;
    if (info->ExceptionRecord->ExceptionCode != EXCEPTION_ACCESS_VIOLATION) {
        return EXCEPTION_CONTINUE_SEARCH;
    }
    info->ContextRecord->CONTEXT_CX = reinterpret_cast<ULONG_PTR>(&room);
    return EXCEPTION_CONTINUE_EXECUTION;
}

extern "C" IMAGE_DOS_HEADER __ImageBase;

// The number of return addresses in this program; the stack also has those of timed stubs.  A
// trace on x86 needs frame pointers, which optimised code has not.
OFF static int count_own_frames()
{
#ifdef __x86_64__
    void *frames[62];
    int own = 0;
    for (int left = RtlCaptureStackBackTrace(0, 62, frames, nullptr); left-- > 0;) {
        DWORD64 base = 0;
        RtlLookupFunctionEntry(reinterpret_cast<DWORD64>(frames[left]), &base, nullptr);
        own += base == reinterpret_cast<DWORD64>(&__ImageBase);
    }
    return own;
#else
    return 0;
#endif
}

OWN int work_trace(int depth)
{
    int count = depth > 0 ? work_trace(depth - 1) : count_own_frames();
    KEPT;
    return count;
}

// Arguments on the stack, above the home space.
OWN long work_seven(long a, long b, long c, long d, long e, long f, long g)
{
    return a + 2 * b + 3 * c + 5 * d + 7 * e + 11 * f + 13 * g;
}

// It may read any argument of its caller, so it cannot run below a stub's frame.
OWN long work_variable(int count, ...)
{
    va_list list;
    long sum = 0;
    va_start(list, count);
    while (count-- > 0) {
        sum += va_arg(list, int);
    }
    va_end(list);
    return sum;
}

// work_flags returns whether the carry flag is set at its entry.  work_tail ends with a jump to
// work_variable.
extern "C" long work_carry(int n);
extern "C" long work_tail(int count, int first, int second);
#ifdef __x86_64__
__asm__("    .text\n"
        "    .globl  work_flags, work_carry, work_tail\n"
        "    .p2align 4\n"
        "work_flags:\n"
        "    sbbl    %eax, %eax\n"
        "    negl    %eax\n"
        "    andl    $255, %eax\n"
        "    ret\n"
        "    .p2align 4\n"
        "    .seh_proc work_carry\n"
        "work_carry:\n"
        "    subq    $40, %rsp\n"
        "    .seh_stackalloc 40\n"
        "    .seh_endprologue\n"
        "    cmpl    $7, %ecx\n"
        "    call    work_flags\n"
        "    addq    $40, %rsp\n"
        "    ret\n"
        "    .seh_endproc\n"
        "    .p2align 4\n"
        "work_tail:\n"
        "    addl    $1, %edx\n"
        "    movl    %edx, %eax\n"
        "    testl   %ecx, %ecx\n"
        "    jnz     work_variable\n"
        "    ret\n");
#else
__asm__("    .text\n"
        "    .globl  _work_flags, _work_carry, _work_tail\n"
        "    .p2align 4\n"
        "_work_flags:\n"
        "    sbbl    %eax, %eax\n"
        "    negl    %eax\n"
        "    andl    $255, %eax\n"
        "    ret\n"
        "    .p2align 4\n"
        "_work_carry:\n"
        "    cmpl    $7, 4(%esp)\n"
        "    call    _work_flags\n"
        "    ret\n"
        "    .p2align 4\n"
        "_work_tail:\n"
        "    addl    $1, 8(%esp)\n"
        "    cmpl    $0, 4(%esp)\n"
        "    jnz     _work_variable\n"
        "    movl    8(%esp), %eax\n"
        "    ret\n");
#endif

// Makes calls through stubs of every kind, and few enough calls to be single-stepped.
static unsigned long call_each_kind(int cleaned)
{
    unsigned long sum = 0;
    for (int i = 0; i < 3; i++) {
        sum = sum * 31 + work_fib(i) + work_choose(i, 7) + work_carry(6 + i) + work_seven(1, 2, 3, 4, 5, 6, i);
        sum = sum * 31 + work_tail(i, 3, 4) + work_catcher(i + 22 - 2 * (i == 2), &cleaned, i, 7);
        work_empty();
    }
    return sum + cleaned;
}

// The first counted call of a thread must keep the vector registers of its caller.  Only
// work_choose is counted; it returns something for any arguments.
extern "C" OFF __attribute__((noinline)) DWORD WINAPI start_with_vectors(void *)
{
    unsigned char before[8][32], after[8][32];
    long double pi = 0;
    for (int i = 0; i < 8 * 32; i++) {
        before[i / 32][i % 32] = static_cast<unsigned char>(7 * i + 1);
        after[i / 32][i % 32] = 0;
    }
#define EACH_REGISTER(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7)
#define LOAD(i) "vmovups " #i "*32(%1), %%ymm" #i "\n"
#define STORE(i) "vmovups %%ymm" #i ", " #i "*32(%2)\n"
    __asm__ volatile("fldpi\n" EACH_REGISTER(LOAD) "call %P3\n" EACH_REGISTER(STORE) "fstpt %0\nvzeroupper"
                     : "=m"(pi)
                     : "b"(before), "S"(after), "i"(work_choose)
                     : "memory", "cc", "eax", "ecx", "edx", R8_TO_R11 "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    return memcmp(before, after, sizeof before) == 0 && pi > 3.14159L && pi < 3.1416L;
}

static int check_vectors()
{
    DWORD kept = 0;
    if (!__builtin_cpu_supports("avx")) {
        return 77;
    }
    HANDLE thread = CreateThread(nullptr, 0, start_with_vectors, nullptr, 0, nullptr);
    WaitForSingleObject(thread, INFINITE);
    GetExitCodeThread(thread, &kept);
    CloseHandle(thread);
    return kept ? 5 : 1;
}

static volatile bool is_stepping;

// The kernel may overwrite memory below the stack pointer between any two instructions; do so here.
static LONG CALLBACK poison_stack(EXCEPTION_POINTERS *info)
{
    if (info->ExceptionRecord->ExceptionCode != EXCEPTION_SINGLE_STEP) {
        return EXCEPTION_CONTINUE_SEARCH;
    }
    if (is_stepping) {
        memset(reinterpret_cast<char *>(info->ContextRecord->CONTEXT_SP) - 128, 0xa5, 128);
        info->ContextRecord->EFlags |= 0x100; // the trap flag
    }
    return EXCEPTION_CONTINUE_EXECUTION;
}

static bool is_poisoned;

static DWORD WINAPI step_through(void *)
{
    unsigned long sum;
    size_t below;
    is_stepping = true;
    __asm__ volatile(PUSH_FLAGS "; orl $0x100, (" STACK "); " POP_FLAGS : : : "memory", "cc");
    __asm__ volatile("mov $7, %0; mov %0, -8(" STACK "); nop; mov -8(" STACK "), %0" : "=&r"(below) : : "memory");
    sum = call_each_kind(0);
    is_stepping = false;
    is_poisoned = below != 7; // the value below the stack pointer was overwritten
    return sum;
}

static int run_poisoned()
{
    AddVectoredExceptionHandler(1, poison_stack);
    for (int i = 0; i < 2; i++) { // the second thread reuses the row of the first one
        DWORD sum;
        HANDLE thread = CreateThread(nullptr, 0, step_through, nullptr, 0, nullptr);
        WaitForSingleObject(thread, INFINITE);
        GetExitCodeThread(thread, &sum);
        CloseHandle(thread);
        printf("%lu %d\n", sum, is_poisoned);
    }
    return 0;
}

static DWORD WINAPI run_thread(void *)
{
    int cleaned = 0;
    long sum = static_cast<long>(call_each_kind(0));
    for (int i = 1; i <= 3000; i++) {
        sum += work_catcher(i, &cleaned, i, 7 * i) % 10007 + work_choose(i % 8, i);
        work_empty();
    }
    return static_cast<DWORD>(sum + cleaned + work_fib(15));
}

OWN int work_before_main()
{
    return 5;
}

static int early = work_before_main();

#ifdef INSTRUMENTED
static struct {
    void *function;
    volatile LONG64 count;
} seen[1024];

extern "C" OFF void __cyg_profile_func_enter(void *function, void *)
{
    size_t at = reinterpret_cast<size_t>(function) / 4 % 1024;
    for (;; at = (at + 1) % 1024) {
        void *there = InterlockedCompareExchangePointer(&seen[at].function, function, nullptr);
        if (!there || there == function) {
            break;
        }
    }
    InterlockedIncrement64(&seen[at].count);
}
extern "C" OFF void __cyg_profile_func_exit(void *, void *)
{
}

OFF static void print_counts(const char *path)
{
    FILE *out = fopen(path, "w");
    for (auto &s : seen) {
        if (s.function) {
            fprintf(out, "%llx %lld\n",
                    static_cast<unsigned long long>(reinterpret_cast<char *>(s.function) -
                                                    reinterpret_cast<char *>(GetModuleHandleW(nullptr))),
                    static_cast<long long>(s.count));
        }
    }
    fclose(out);
}
#endif

int main(int argc, char **argv)
{
    enum { THREADS = 4 };
    HANDLE threads[THREADS];
    unsigned long total = static_cast<unsigned long>(early);
    if (argc > 1 && strcmp(argv[1], "poison") == 0) {
        return run_poisoned();
    }
    if (argc > 1 && strcmp(argv[1], "vectors") == 0) {
        return check_vectors();
    }
    for (auto &thread : threads) {
        thread = CreateThread(nullptr, 0, run_thread, nullptr, 0, nullptr);
    }
    AddVectoredExceptionHandler(1, handle_fault);
    for (int i = 0; i < 200; i++) {
        total += static_cast<unsigned long>(work_land(i % 9)) + work_trace(5);
        work_fault(nullptr);
    }
    for (auto &thread : threads) {
        DWORD code;
        WaitForSingleObject(thread, INFINITE);
        GetExitCodeThread(thread, &code);
        total = total * 31 + code;
    }
    printf("%lu\n", total);
    fflush(stdout);
    if (argc > 2 && strcmp(argv[1], "die") == 0) {
        TerminateProcess(GetCurrentProcess(), static_cast<UINT>(atoi(argv[2])));
    }
    if (argc > 1 && strcmp(argv[1], "fault") == 0) {
        RaiseException(0xc0000094, EXCEPTION_NONCONTINUABLE, 0, nullptr);
    }
#ifdef INSTRUMENTED
    print_counts(argv[1]);
#endif
    return argc > 2 ? atoi(argv[2]) : 0;
}
