// SPDX-License-Identifier: MIT
// Exceptions, threads, recursion, a jump table, early initialisers: counted by hooks, and by the
// program itself (-finstrument-functions with -DINSTRUMENTED).  No function is inlined, so that
// both count each call.
#include <windows.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#define OWN extern "C" __attribute__((noinline, noclone))
#define OFF __attribute__((no_instrument_function))
#define KEPT __asm__ volatile("") // keeps calls of empty functions

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
    info->ContextRecord->Rcx = reinterpret_cast<DWORD64>(&room);
    return EXCEPTION_CONTINUE_EXECUTION;
}

OWN USHORT work_trace(int depth)
{
    void *frames[62];
    USHORT count = depth > 0 ? work_trace(depth - 1) : RtlCaptureStackBackTrace(0, 62, frames, nullptr);
    KEPT;
    return count;
}

static DWORD WINAPI run_thread(void *)
{
    int cleaned = 0;
    long sum = 0;
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
