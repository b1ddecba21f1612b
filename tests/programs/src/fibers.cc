// SPDX-License-Identifier: MIT
// Stacks that are switched by hand, as in Boost.Context, and unwound in all ways: exceptions within
// a fiber; fibers that continue in another thread, are never finished, or are so many that their
// stacks are reused; exceptions that are rethrown, nested, or of another language; longjmp out of a
// handler on an alternate stack.  The output must not depend on frames between callers and callees.
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <unwind.h>

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noinline, noclone))
#endif

enum { STACK_BYTES = 32768, FIBERS = 40 };
volatile long zero;

// void switch_stack(void **save, void *to): pushes the callee-saved registers on the old stack,
// saves the stack pointer, and pops them from the new stack.
extern "C" void switch_stack(void **save, void *to);
asm(".text\n"
    ".type switch_stack, @function\n"
    "switch_stack:\n"
#ifdef __i386__
    "    movl 4(%esp), %eax; movl 8(%esp), %edx\n"
    "    pushl %ebp; pushl %ebx; pushl %esi; pushl %edi; pushl $0; pushl $0\n"
    "    movl %esp, (%eax)\n"
    "    movl %edx, %esp\n"
    "    addl $8, %esp; popl %edi; popl %esi; popl %ebx; popl %ebp\n"
#else
    "    pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp\n"
#endif
    "    ret\n"
    ".size switch_stack, . - switch_stack\n");

struct fiber {
    void *own, *back;
    long value, steps;
    bool done;
    alignas(16) char stack[STACK_BYTES];
};

static thread_local fiber *running;

OWN long leaf(long x) { return x * 3 + zero; }
OWN void yield(long value)
{
    fiber *f = running;

    f->value = value;
    switch_stack(&f->own, f->back);
}
// The last two arguments are on the stack.
OWN long waits(long value, long b, long c, long d, long e, long f, long g, long h)
{
    yield(value + b + h);
    return value + c + d + e + f + g;
}
OWN long waits_with_many(long value) { return waits(value, 2, 3, 4, 5, 6, 7, 8) + zero; }
OWN long dive(long depth, long what)
{
    if (depth == 0) {
        if (what % 2)
            throw std::runtime_error("from " + std::to_string(what));
        throw what + waits_with_many(leaf(what));
    }
    long below = dive(depth - 1, what) + zero;
    return below + 1;
}
OWN long survives(long what)
{
    long result;
    try {
        return dive(what % 9 + 1, what);
    } catch (const std::runtime_error &error) {
        return static_cast<long>(std::strlen(error.what())) + leaf(1);
    } catch (long thrown) { // the exception being caught belongs to the thread: no yield here
        result = thrown + leaf(2);
    }
    yield(result);
    return result + 1;
}
OWN void body(fiber *f)
{
    for (long i = 0; i < f->steps; i++)
        yield(survives(i));
    f->done = true;
    yield(-1);
}
extern "C" void begin_fiber() { body(running); std::abort(); }

static void prepare(fiber *f, long steps)
{
    void **top = reinterpret_cast<void **>(f->stack + STACK_BYTES - 64);

    std::memset(top, 0, 64);
    *reinterpret_cast<void (**)()>(top) = begin_fiber; // where switch_stack returns to
    f->own = top - 6;
    f->steps = steps;
    f->done = false;
}
OWN long resume(fiber *f)
{
    running = f;
    switch_stack(&f->back, f->own);
    return f->value;
}

static fiber *fibers;
OWN long round_robin(int first, int end)
{
    long sum = 0;
    for (bool any = true; any;) {
        any = false;
        for (int i = first; i < end; i++) {
            if (fibers[i].done)
                continue;
            sum += resume(&fibers[i]) + leaf(i);
            any = true;
        }
    }
    return sum;
}
static void *other_thread(void *) { return reinterpret_cast<void *>(round_robin(0, FIBERS)); }

OWN long migrating()
{
    pthread_t thread;
    void *sum;
    long before = 0;
    for (int i = 0; i < FIBERS; i++)
        prepare(&fibers[i], 20 + i);
    for (int i = 0; i < FIBERS; i++)
        before += resume(&fibers[i]);
    pthread_create(&thread, nullptr, other_thread, nullptr);
    pthread_join(thread, &sum);
    return before + reinterpret_cast<long>(sum);
}
OWN long abandoned()
{
    long sum = 0;
    for (int i = 0; i < 3000; i++) { // never finished: the stack is reused
        prepare(&fibers[i % 3], 100);
        sum += resume(&fibers[i % 3]) + resume(&fibers[i % 3]);
    }
    return sum;
}

// ---- Exceptions.

struct guard {
    long *at;
    ~guard() { *at += leaf(1); }
};
OWN void throws(long n) { if (n % 3 != 7) throw n; }
OWN long rethrows(long n)
{
    try {
        throws(n);
    } catch (long) {
        if (n % 2)
            throw;
        throw std::string("other");
    }
    return 0;
}
OWN long nested(long n)
{
    long sum = 0;
    guard own{&sum};
    try {
        guard inner{&sum};
        rethrows(n);
    } catch (const std::string &text) {
        try {
            rethrows(n + 1);
        } catch (long again) {
            sum += again + static_cast<long>(text.size());
        }
    } catch (long caught) {
        sum += caught;
    }
    return sum;
}
static void no_cleanup(_Unwind_Reason_Code, _Unwind_Exception *) {}
static _Unwind_Exception foreign;
OWN void raises()
{
    std::memset(&foreign, 0, sizeof foreign);
    std::memcpy(&foreign.exception_class, "HOTFNTST", 8);
    foreign.exception_cleanup = no_cleanup;
    _Unwind_RaiseException(&foreign);
    std::abort();
}
OWN long passes_foreign(long n)
{
    long sum = 0;
    try {
        guard passed{&sum};
        if (n > 0)
            return passes_foreign(n - 1) + 1;
        raises();
    } catch (...) {
        sum += 100;
    }
    return sum;
}

static sigjmp_buf out;
static void on_signal(int) { leaf(1); siglongjmp(out, 3); }
OWN long raises(long depth) { return depth == 0 ? std::raise(SIGUSR1) : raises(depth - 1) + zero; }
OWN long jumps_off_another_stack()
{
    static char stack[65536];
    stack_t alternate = {};
    struct sigaction action = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    long got = sigsetjmp(out, 1);
    return got ? got + leaf(1) : raises(5);
}

OWN void holds(long *sum)
{
    guard own{sum};
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, nullptr);
    for (;;)
        pthread_testcancel();
}
static void *cancelled(void *sum)
{
    holds(static_cast<long *>(sum));
    return nullptr;
}
OWN long cancels()
{
    long sum = 0;
    pthread_t thread;
    pthread_create(&thread, nullptr, cancelled, &sum);
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    return sum;
}

int main()
{
    fibers = static_cast<fiber *>(aligned_alloc(16, FIBERS * sizeof(fiber)));
    long sum = 0;
    std::printf("migrating %ld\n", migrating());
    std::printf("abandoned %ld\n", abandoned());
    for (long i = 0; i < 500; i++)
        sum += nested(i) + passes_foreign(i % 7) + jumps_off_another_stack();
    std::printf("thrown %ld\n", sum);
    for (int i = 0; i < 20; i++)
        cancels(); // not printed: a thread cancelled before it starts adds nothing
    std::printf("migrating again %ld\n", migrating());
    void *frames[8];
    std::printf("traced %d\n", backtrace(frames, 8) > 1);
    std::free(fibers);
    return 0;
}
