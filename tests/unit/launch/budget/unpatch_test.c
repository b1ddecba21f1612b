/* SPDX-License-Identifier: MIT */
/* Hooks of a running process are unpatched and repatched thousands of times: each call of its
 * threads returns the right result, and no hook is installed where a thread, or the code that its
 * signal handler interrupted, will resume. */
#include "base/memory.h"
#include "launch/budget/budget.h"

#include "hooks/row.h"
#include "hooks/targets.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, FUNCTIONS = 3, CODE_BYTES = 4096, SKIPPED = 77 };
enum { ROUNDS = 600, MAX_ROUNDS = 100 * ROUNDS, CALLS_A_ROUND = 256 };
#define TIMEOUT_NS UINT64_C(5000000000)

/* Memory shared by both processes. */
typedef struct shared {
    _Atomic bool is_ready, stopping, in_handler, may_return;
    _Atomic uint64_t rounds, wrong_answers;
    uint64_t slots[THREADS][64];
} shared;

static shared *s;
static target_code code;
static uint32_t rva[FUNCTIONS];
static hotfn_plan *plan;
static hotfn_hooks *hooks;
static hfn_unpatch_record *records[FUNCTIONS];
static hfn_remote remote;
static hfn_target_pages pages = { .remote = &remote };
static hotfn_env env;

static void make_hooks(void)
{
    static const uint32_t slot_of[FUNCTIONS] = { 0, 1, 2 };
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, TARGET_MACHINE, FUNCTIONS);
    hotfn_row_access access = row_access();
    uint32_t module;

    code = target_code_make(CODE_BYTES);
    rva[0] = target_add(&code, target_pushes, sizeof target_pushes);
    rva[1] = target_add(&code, target_nops, sizeof target_nops);
    rva[2] = target_add(&code, target_faulting, sizeof target_faulting);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        hfn_moved moved;
        hfn_plan_new_entry source = target_source(&code, i, rva[i], &moved, 5);
        CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    }
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    target_code_finish(&code);
    CHECK_EQ_I64(hotfn_hooks_create(&hooks, NULL, &access, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_add_module(hooks, plan, (uint64_t)(uintptr_t)code.bytes, slot_of,
                                        &module, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_commit(hooks, NULL, NULL), HOTFN_OK);
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    env = hfn_env_fill(NULL);
}

/* ---- The target process. */

static int call(uint32_t index, int x, int y)
{
    int(TARGET_CALL * function)(int, int);
    void *at = target_at(&code, rva[index]);

    memcpy(&function, &at, sizeof function);
    return function(x, y);
}

/* A thread is mostly stopped just after a slow instruction.  The shared counter is written rarely,
 * so that threads are also stopped inside the hooked functions. */
static void *call_for_ever(void *own_slots)
{
    uint64_t wrong = 0;

    row = own_slots;
    while (!atomic_load_explicit(&s->stopping, memory_order_relaxed)) {
        for (int i = 0; i < CALLS_A_ROUND; i++) {
            for (int n = 0; n < 2; n++) {
                wrong += call((uint32_t)n, i, 2 * n) != i + 2 * n;
            }
        }
        atomic_fetch_add_explicit(&s->rounds, 1, memory_order_relaxed);
    }
    atomic_fetch_add(&s->wrong_answers, wrong);
    return NULL;
}

static pid_t start_callers(void)
{
    pthread_t threads[THREADS];
    pid_t pid = fork();

    if (pid != 0) {
        return pid;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, call_for_ever, s->slots[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    _exit(0);
}

/* ---- The test process. */

static bool make_records(void)
{
    hfn_patched_module module = { .plan = plan, .base = (uint64_t)(uintptr_t)code.bytes };
    bool all = true;

    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        records[i] = hfn_unpatch_create_record(&module, i, &pages, &env);
        all = all && records[i];
    }
    hfn_target_pages_write_back(&pages);
    hfn_free_memory(&env, module.site_ends, (FUNCTIONS + 1) * sizeof *module.site_ends);
    hfn_free_memory(&env, module.site_fields, sizeof *module.site_fields);
    return all;
}

static bool begin(pid_t pid)
{
    remote = (hfn_remote){ .env = env, .pid = (uint32_t)pid, .memory = HFN_OS_NO_FILE };
    if (hfn_os_remote_open(&remote) != 0 || hfn_os_remote_stop(&remote, TIMEOUT_NS) != 0) {
        kill(pid, SIGKILL);
        printf("1..0 # SKIP this system lets no process change another\n");
        exit(SKIPPED);
    }
    hfn_os_remote_resume(&remote);
    return CHECK(make_records());
}

static void end(pid_t pid)
{
    int status = -1;

    hfn_os_remote_finish(&remote);
    waitpid(pid, &status, 0);
    CHECK_EQ_I64(status, 0);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        hfn_unpatch_free_record(records[i], &env);
    }
    hotfn_hooks_destroy(hooks);
    hotfn_plan_destroy(plan);
}

static bool stop(void)
{
    return CHECK_EQ_I64(hfn_os_remote_stop(&remote, TIMEOUT_NS), 0);
}

/* Write back all pages and resume, as the budget does. */
static void resume_target(void)
{
    hfn_target_pages_write_back(&pages);
    while (!hfn_os_remote_resume(&remote)) {
        sched_yield();
    }
}

static bool is_thread_in_range(void)
{
    hfn_remote_range ranges[FUNCTIONS];

    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        CHECK_EQ_U64(hfn_unpatch_get_range(records[i], &ranges[i]), 1);
    }
    return hfn_os_remote_is_inside(&remote, ranges, FUNCTIONS);
}

/* Wait until the calling threads have made progress. */
static bool wait_for_progress(pid_t pid)
{
    uint64_t seen = atomic_load(&s->rounds);

    while (atomic_load(&s->rounds) == seen) {
        if (!CHECK_EQ_I64(waitpid(pid, NULL, WNOHANG), 0)) { /* not ended */
            return false;
        }
        sched_yield();
    }
    return true;
}

static void hooks_change_under_running_threads(void)
{
    uint64_t occupied = 0;
    pid_t pid;

    make_hooks();
    pid = start_callers();
    begin(pid);
    /* On a busy machine the threads rarely run: continue until a thread was stopped inside the
     * range of a hook. */
    for (uint32_t i = 0; i < (occupied ? ROUNDS : MAX_ROUNDS) && !check_failures; i++) {
        bool is_repatched = false;
        if (!stop()) {
            break;
        }
        for (uint32_t n = 0; n < FUNCTIONS; n++) {
            CHECK(hfn_unpatch_function(records[n], &pages));
        }
        resume_target();
        if (occupied == 0 && !wait_for_progress(pid)) {
            break;
        }
        while (!is_repatched && stop()) {
            is_repatched = !is_thread_in_range();
            for (uint32_t n = 0; is_repatched && n < FUNCTIONS; n++) {
                CHECK(hfn_repatch_function(records[n], &pages));
            }
            occupied += !is_repatched;
            resume_target();
        }
        if ((i % 64 == 0 || i > ROUNDS) && !wait_for_progress(pid)) {
            break;
        }
    }
    CHECK(occupied > 0);
    atomic_store(&s->stopping, true);
    end(pid);
    CHECK_EQ_U64(s->wrong_answers, 0);
    CHECK(s->slots[0][0] > 0 && s->slots[1][1] > 0);
}

/* ---- A signal handler that interrupted the bytes of a hook. */

/* Unpatch one function and write it back. */
static bool unpatch_one(uint32_t index)
{
    bool done = hfn_unpatch_function(records[index], &pages);

    hfn_target_pages_write_back(&pages);
    return done;
}

static bool repatch_one(uint32_t index)
{
    bool done = hfn_repatch_function(records[index], &pages);

    hfn_target_pages_write_back(&pages);
    return done;
}

static int *faulty;
static char other_stack[1 << 16];

static void on_fault(int number)
{
    (void)number;
    atomic_store(&s->in_handler, true);
    while (!atomic_load(&s->may_return)) {
        sched_yield();
    }
    mprotect(faulty, 4096, PROT_READ | PROT_WRITE);
    *faulty = 42;
}

static pid_t start_faulting(bool uses_other_stack)
{
    stack_t other = { .ss_sp = other_stack, .ss_size = sizeof other_stack };
    struct sigaction action = { .sa_handler = on_fault,
                                .sa_flags = uses_other_stack ? SA_ONSTACK : 0 };
    int(TARGET_CALL * function)(const int *);
    void *at = target_at(&code, rva[2]);
    pid_t pid = fork();

    if (pid != 0) {
        return pid;
    }
    row = s->slots[0];
    sigaltstack(&other, NULL);
    sigaction(SIGSEGV, &action, NULL);
    memcpy(&function, &at, sizeof function);
    atomic_store(&s->is_ready, true);
    while (!atomic_load(&s->stopping)) { /* until the function is unhooked */
        sched_yield();
    }
    _exit(function(faulty) == 42 ? 0 : 1);
}

static void check_return_address_of_handler(bool uses_other_stack)
{
    pid_t pid;

    make_hooks();
    faulty = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid = start_faulting(uses_other_stack);
    /* The frames of fork() may hold stale words of the test's stack that point into a range. */
    while (!atomic_load(&s->is_ready)) {
        sched_yield();
    }
    if (begin(pid) && stop()) {
        CHECK(!is_thread_in_range());
        CHECK(unpatch_one(2));
        resume_target();
        atomic_store(&s->stopping, true);
        while (!atomic_load(&s->in_handler)) {
            sched_yield();
        }
        if (stop()) {
            CHECK(is_thread_in_range());
        }
        resume_target();
        atomic_store(&s->may_return, true);
    }
    end(pid);
}

static void no_hook_is_installed_where_a_handler_returns(void)
{
    check_return_address_of_handler(false);
}

static void no_hook_is_installed_where_an_alternate_stack_handler_returns(void)
{
    check_return_address_of_handler(true);
}

/* ---- Bytes changed by others. */

static void bytes_changed_by_others_are_left_alone(void)
{
    uint8_t now, int3 = 0xcc;
    pid_t pid;

    make_hooks();
    pid = start_callers();
    if (begin(pid) && stop()) {
        uint64_t at = (uint64_t)(uintptr_t)code.bytes + rva[2];
        CHECK(hfn_os_remote_write(&remote, at, &int3, 1)); /* a debugger's breakpoint */
        CHECK(!unpatch_one(2));
        CHECK(hfn_os_remote_read(&remote, at, &now, 1) && now == int3);
        CHECK(unpatch_one(0));
        CHECK(hfn_os_remote_write(&remote, records[0]->stub, &int3,
                                  1)); /* the stub's bytes differ now */
        CHECK(!repatch_one(0));
        CHECK(hfn_os_remote_write(&remote, records[0]->stub, records[0]->stub_bytes, 1));
        CHECK(repatch_one(0));
    }
    resume_target();
    atomic_store(&s->stopping, true);
    end(pid);
}

static void ended_process_is_an_error(void)
{
    hfn_remote gone = { .pid = 0x0fffffff, .memory = HFN_OS_NO_FILE };

    gone.env = hfn_env_fill(NULL);
    CHECK(hfn_os_remote_open(&gone) != 0);
    CHECK(hfn_os_remote_stop(&gone, 1000000) != 0);
    CHECK(hfn_os_remote_resume(&gone));
    CHECK_EQ_U64(hfn_os_get_process_cpu_ns(0x0fffffff), 0);
    hfn_os_remote_finish(&gone);
}

static const check_test tests[] = {
    CHECK_TEST(hooks_change_under_running_threads),
    CHECK_TEST(no_hook_is_installed_where_a_handler_returns),
    CHECK_TEST(no_hook_is_installed_where_an_alternate_stack_handler_returns),
    CHECK_TEST(bytes_changed_by_others_are_left_alone),
    CHECK_TEST(ended_process_is_an_error),
};
CHECK_MAIN(tests)
