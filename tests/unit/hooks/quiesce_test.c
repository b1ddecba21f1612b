/* SPDX-License-Identifier: MIT */
/* Hooks are installed and removed while other threads run the functions.  No call returns a wrong
 * result or is lost, and threads that block every signal are stopped too. */
#include "row.h"
#include "targets.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    THREADS = 2,
    FUNCTIONS = 4,
    CODE_BYTES = 4096,
    EXACT_CALLS = 200000
};

/* xchg edi, esi (twice); mov eax, edi; add eax, esi; ret */
static const uint8_t exchanges[] =
    TARGET_BYTES((0x87, 0xfe, 0x87, 0xfe, 0x89, 0xf8, 0x01, 0xf0, 0xc3),
                 (0x87, 0xd1, 0x87, 0xd1, 0x89, 0xc8, 0x01, 0xd0, 0xc3));
/* lea eax, [rdi + rsi]; ret: patched by a short jump to the padding after it */
static const uint8_t short_function[] =
    TARGET_BYTES((0x8d, 0x04, 0x37, 0xc3), (0x8d, 0x04, 0x11, 0xc3));

/* HOTFN_ROUNDS sets the number [3000, 32-bit programs 1000]. */
static int count_rounds(void)
{
    const char *text = getenv("HOTFN_ROUNDS");

    return text ? atoi(text) : sizeof(void *) == 8 ? 3000 : 1000;
}

typedef struct fixture {
    target_code code;
    uint32_t rva[FUNCTIONS];
    hotfn_plan *plan;
    hotfn_hooks *hooks;
} fixture;

static fixture f;
static _Atomic bool stopping;
static _Atomic uint64_t wrong_results;

static int call(uint32_t index, int x, int y)
{
    int(TARGET_CALL * function)(int, int);
    void *at = target_at(&f.code, f.rva[index]);

    memcpy(&function, &at, sizeof function);
    return function(x, y);
}

static void make_plan(void)
{
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, TARGET_MACHINE, FUNCTIONS);

    f.code = target_code_make(CODE_BYTES);
    f.rva[0] = target_add(&f.code, target_pushes, sizeof target_pushes);
    f.rva[1] = target_add(&f.code, target_nops, sizeof target_nops);
    f.rva[2] = target_add(&f.code, exchanges, sizeof exchanges);
    f.rva[3] = target_add(&f.code, short_function, sizeof short_function);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        hfn_moved moved;
        bool island = i == 3;
        hfn_plan_new_entry source = target_source(&f.code, i, f.rva[i], &moved, island ? 2 : 5);
        if (island) {
            source.strategy = HOTFN_STRATEGY_ISLAND;
            source.original_bytes = moved.original_bytes;
            source.island_rva = f.rva[i] + 10;
            source.island_original = f.code.bytes + source.island_rva;
        }
        CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    }
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &f.plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    target_code_finish(&f.code);
}

static void make_hooks(void)
{
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_row_access access = row_access();

    options.quiesce_ns = UINT64_C(5000000000); /* the machine may be busy with other tests */
    CHECK_EQ_I64(hotfn_hooks_create(&f.hooks, &options, &access, NULL, NULL), HOTFN_OK);
}

static uint32_t commit(void)
{
    static const uint32_t slot_of[FUNCTIONS] = { 0, 1, 2, 3 };
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    uint32_t module;

    CHECK_EQ_I64(hotfn_hooks_add_module(f.hooks, f.plan, (uint64_t)(uintptr_t)f.code.bytes, slot_of,
                                        &module, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_commit(f.hooks, &stats, NULL), HOTFN_OK);
    return stats.hooked;
}

static void finish(void)
{
    hotfn_hooks_destroy(f.hooks);
    hotfn_plan_destroy(f.plan);
}

/* ---- Threads. */

static void *call_for_ever(void *own_slots)
{
    sigset_t all;

    row = own_slots;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (int i = 0; !atomic_load_explicit(&stopping, memory_order_relaxed); i++) {
        for (uint32_t n = 0; n < FUNCTIONS; n++) {
            if (call(n, i, 2 * (int)n) != i + 2 * (int)n) {
                atomic_fetch_add(&wrong_results, 1);
            }
        }
    }
    return NULL;
}

/* Wait until each function was called: on a single processor, it is possible that no other thread
 * runs between the commit and the removal of hooks. */
static void wait_for_calls_of_each(uint64_t (*own_slots)[64])
{
    uint32_t seen = 0;

    while (seen < FUNCTIONS && !check_failures) {
        uint64_t calls = __atomic_load_n(&own_slots[0][seen], __ATOMIC_RELAXED) +
                         __atomic_load_n(&own_slots[1][seen], __ATOMIC_RELAXED);
        if (calls > 0) {
            seen++;
        } else {
            sched_yield();
        }
    }
}

static void hooks_are_added_and_removed_under_running_threads(void)
{
    static uint64_t own_slots[THREADS][64];
    uint8_t before[CODE_BYTES];
    pthread_t threads[THREADS];
    uint32_t incomplete = 0;

    make_plan();
    make_hooks();
    memcpy(before, f.code.bytes, sizeof before);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, call_for_ever, own_slots[i]);
    }
    for (int i = count_rounds(); i > 0 && !check_failures; i--) {
        incomplete += commit() != FUNCTIONS;
        CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    }
    CHECK_MEM(f.code.bytes, before, sizeof before);
    incomplete += commit() != FUNCTIONS;
    wait_for_calls_of_each(own_slots);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    CHECK_EQ_U64(incomplete, 0);
    CHECK_EQ_U64(hotfn_hooks_get_region_count(f.hooks), 1); /* all rounds reuse the same stubs */
    atomic_store(&stopping, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ_U64(wrong_results, 0);
    finish();
}

static void *call_exactly(void *own_slots)
{
    row = own_slots;
    for (int i = 0; i < EXACT_CALLS; i++) {
        for (uint32_t n = 0; n < FUNCTIONS; n++) {
            call(n, i, 1);
        }
    }
    return NULL;
}

static void two_threads_are_counted_exactly(void)
{
    static uint64_t own_slots[THREADS][64];
    pthread_t threads[THREADS];

    make_plan();
    make_hooks();
    CHECK_EQ_U64(commit(), FUNCTIONS);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, call_exactly, own_slots[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t n = 0; n < FUNCTIONS; n++) {
        CHECK_EQ_U64(own_slots[0][n] + own_slots[1][n], THREADS * EXACT_CALLS);
    }
    finish();
}

/* ---- Hooks are installed while a thread is in a signal handler that interrupted it inside the
 * bytes of the patch. */

/* mov eax, [rdi]; nop; nop; nop; ret: it faults at its first byte */
static const uint8_t faults_at_entry[] =
    TARGET_BYTES((0x8b, 0x07, 0x90, 0x90, 0x90, 0xc3), (0x8b, 0x01, 0x90, 0x90, 0x90, 0xc3));

_Static_assert(sizeof faults_at_entry == sizeof target_faulting, "");

typedef struct interrupted {
    const uint8_t *function;
    bool uses_other_stack;
    uint64_t counted; /* counts of the call that began before the hook was installed: 0 or 1 */
} interrupted;

static int *faulty;
static _Atomic bool in_handler, may_return;
static _Thread_local char other_stack[1 << 16];

static void on_fault(int number)
{
    (void)number;
    atomic_store(&in_handler, true);
    while (!atomic_load(&may_return)) {
        sched_yield();
    }
    mprotect(faulty, 4096, PROT_READ | PROT_WRITE);
    *faulty = 42;
}

static intptr_t load_faulty(void)
{
    int(TARGET_CALL * function)(const int *);
    void *at = target_at(&f.code, f.rva[0]);

    memcpy(&function, &at, sizeof function);
    return function(faulty);
}

static void *fault(void *user)
{
    static uint64_t own_slots[64];
    const interrupted *call = user;
    stack_t other = { .ss_sp = other_stack, .ss_size = sizeof other_stack };
    struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK };

    row = own_slots;
    own_slots[0] = 0;
    if (call->uses_other_stack) {
        sigaltstack(&other, NULL);
    }
    sigaction(SIGSEGV, &action, NULL);
    intptr_t first = load_faulty();
    CHECK_EQ_U64(own_slots[0], call->counted);
    intptr_t second = load_faulty();
    CHECK_EQ_U64(own_slots[0], call->counted + 1);
    other.ss_flags = SS_DISABLE;
    sigaltstack(&other, NULL);
    return (void *)(first + second);
}

static void patch_under_handler(interrupted call)
{
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, TARGET_MACHINE, 1);
    hfn_moved moved;
    pthread_t thread;
    void *sum;

    f.code = target_code_make(CODE_BYTES);
    f.rva[0] = target_add(&f.code, call.function, sizeof target_faulting);
    hfn_plan_new_entry source = target_source(&f.code, 0, f.rva[0], &moved, 5);
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &f.plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    target_code_finish(&f.code);
    make_hooks();
    faulty = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    atomic_store(&in_handler, false);
    atomic_store(&may_return, false);
    pthread_create(&thread, NULL, fault, &call);
    while (!atomic_load(&in_handler)) {
        sched_yield();
    }
    CHECK_EQ_U64(commit(), 1);
    atomic_store(&may_return, true);
    pthread_join(thread, &sum);
    CHECK_EQ_I64((intptr_t)sum, 84);
    signal(SIGSEGV, SIG_DFL);
    munmap(faulty, 4096);
    finish();
}

static void a_signal_handler_returns_into_patched_bytes(void)
{
    patch_under_handler((interrupted){ target_faulting, false, 0 });
}

static void a_handler_on_another_stack_returns_into_patched_bytes(void)
{
    patch_under_handler((interrupted){ target_faulting, true, 0 });
}

/* No instruction of the function has run, so the thread continues at the patch and is counted. */
static void a_thread_interrupted_at_the_first_byte_is_counted(void)
{
    patch_under_handler((interrupted){ faults_at_entry, false, 1 });
}

static const check_test tests[] = {
    CHECK_TEST(a_signal_handler_returns_into_patched_bytes),
    CHECK_TEST(a_handler_on_another_stack_returns_into_patched_bytes),
    CHECK_TEST(a_thread_interrupted_at_the_first_byte_is_counted),
    CHECK_TEST(two_threads_are_counted_exactly),
    CHECK_TEST(hooks_are_added_and_removed_under_running_threads),
};
CHECK_MAIN(tests)
