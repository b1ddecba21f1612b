/* SPDX-License-Identifier: MIT */
/* A target for the budget: a child process that calls its two hooked functions until the test stops
 * it, a live record whose counts the test writes, and a plan in the plan channel.  The budget's
 * decisions thereby do not depend on the speed of the machine. */
#ifndef HFN_TESTS_BUDGET_SCENE_H
#define HFN_TESTS_BUDGET_SCENE_H

#include "base/memory.h"
#include "launch/budget/budget.h"
#include "live/live.h"
#include "live/plan_channel.h"
#include "os/os.h"

#include "hooks/row.h"
#include "hooks/targets.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SCENE_FUNCTIONS = 2, SCENE_CODE_BYTES = 4096, SCENE_BYTES = 5 };
#define SCENE_MS UINT64_C(1000000)

typedef struct scene_shared {
    _Atomic bool stopping;
    _Atomic uint64_t wrong_answers;
} scene_shared;

typedef struct budget_scene {
    scene_shared *shared;
    target_code code;
    uint32_t rva[SCENE_FUNCTIONS];
    uint8_t unhooked[SCENE_FUNCTIONS][SCENE_BYTES], hooked[SCENE_FUNCTIONS][SCENE_BYTES];
    hotfn_plan *plan;
    hotfn_hooks *hooks;
    hfn_live *live;
    hfn_plan_channel *channel;
    pid_t pid;
} budget_scene;

static inline int scene_call(const budget_scene *s, uint32_t index, int x, int y)
{
    int(TARGET_CALL * function)(int, int);
    void *at = target_at(&s->code, s->rva[index]);

    memcpy(&function, &at, sizeof function);
    return function(x, y);
}

static inline void scene_run(const budget_scene *s)
{
    for (int i = 0; !atomic_load_explicit(&s->shared->stopping, memory_order_relaxed); i++) {
        for (uint32_t n = 0; n < SCENE_FUNCTIONS; n++) {
            if (scene_call(s, n, i, 3) != i + 3) {
                atomic_fetch_add(&s->shared->wrong_answers, 1);
            }
        }
    }
    _exit(0);
}

static inline void scene_make_code(budget_scene *s)
{
    static const uint32_t slot_of[SCENE_FUNCTIONS] = { 0, 1 };
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, TARGET_MACHINE, SCENE_FUNCTIONS);
    hotfn_row_access access = row_access();
    uint32_t module;

    s->code = target_code_make(SCENE_CODE_BYTES);
    for (uint32_t i = 0; i < SCENE_FUNCTIONS; i++) {
        hfn_moved moved;
        s->rva[i] = target_add(&s->code, target_nops, sizeof target_nops);
        hfn_plan_new_entry source = target_source(&s->code, i, s->rva[i], &moved, SCENE_BYTES);
        CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
        memcpy(s->unhooked[i], target_at(&s->code, s->rva[i]), SCENE_BYTES);
    }
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &s->plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    target_code_finish(&s->code);
    CHECK_EQ_I64(hotfn_hooks_create(&s->hooks, NULL, &access, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_add_module(s->hooks, s->plan, (uint64_t)(uintptr_t)s->code.bytes,
                                        slot_of, &module, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_commit(s->hooks, NULL, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < SCENE_FUNCTIONS; i++) {
        memcpy(s->hooked[i], target_at(&s->code, s->rva[i]), SCENE_BYTES);
    }
}

/* timing: HOTFN_TIMING_*; if it is not 0, both functions are timed. */
static inline void scene_make_record(budget_scene *s, uint32_t ppm, uint32_t timing)
{
    hfn_live_options o = { 0 };
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_function f[SCENE_FUNCTIONS] = { HOTFN_RECORD_FUNCTION_INIT,
                                                 HOTFN_RECORD_FUNCTION_INIT };
    uint32_t module = 0;

    o.slot_capacity = 16;
    o.thread_capacity = 2;
    o.string_bytes = 1 << 16;
    o.budget_ppm = ppm;
    o.timing = timing;
    o.sample_mean = timing & HOTFN_TIMING_SAMPLED ? 1 : 0;
    CHECK_EQ_I64(hfn_live_create(&s->live, &o, NULL, NULL), HOTFN_OK);
    m.function_count = SCENE_FUNCTIONS;
    m.path = "/x/game";
    m.load_base = (uint64_t)(uintptr_t)s->code.bytes;
    for (uint32_t i = 0; i < SCENE_FUNCTIONS; i++) {
        f[i].state = HOTFN_STATE_HOOKED;
        f[i].name = i == 0 ? "first" : "second";
        f[i].rva = s->rva[i];
        f[i].flags = timing ? HOTFN_VERDICT_TIMED : 0;
    }
    CHECK_EQ_I64(hfn_live_add_module(s->live, &m, f, &module, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_plan_channel_create(&s->channel, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(
        hfn_plan_channel_add(s->channel, module, s->plan->bytes, s->plan->byte_count, NULL),
        HOTFN_OK);
}

/* The target runs, but no row counts its calls yet. */
static inline budget_scene scene_begin(uint32_t ppm, uint32_t timing)
{
    budget_scene s = { .pid = -1 };

    s.shared =
        mmap(NULL, sizeof *s.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    scene_make_code(&s);
    scene_make_record(&s, ppm, timing);
    s.pid = fork();
    if (s.pid == 0) {
        scene_run(&s);
    }
    return s;
}

static inline void scene_start_counting(budget_scene *s)
{
    hfn_live_cells(s->live)[0].pid = (uint32_t)s->pid;
    hfn_live_cells(s->live)[0].tid = (uint32_t)s->pid;
    hfn_live_cell_header(s->live)->cells_used = 1;
}

static inline void scene_add_calls(budget_scene *s, uint32_t index, uint64_t calls)
{
    ((uint64_t *)(void *)s->live->rows)[hfn_live_get_slots(s->live, 0)[index]] += calls;
}

/* Wait until the target has used cpu_ns more processor time; false after a minute. */
static inline bool scene_use_cpu(const budget_scene *s, uint64_t cpu_ns)
{
    uint64_t until = hfn_os_get_process_cpu_ns((uint32_t)s->pid) + cpu_ns;
    uint64_t deadline = hfn_os_monotonic_ns() + 60000 * SCENE_MS;

    while (hfn_os_get_process_cpu_ns((uint32_t)s->pid) < until &&
           hfn_os_monotonic_ns() < deadline) {
        usleep(500);
    }
    return CHECK(hfn_os_get_process_cpu_ns((uint32_t)s->pid) >= until);
}

/* Run one step, and further steps while a thread that did not stop in time is still attached. */
static inline void scene_step(const budget_scene *s, hfn_budget *b)
{
    do {
        hfn_budget_step(b, (uint32_t)s->pid);
    } while (b->is_held && sched_yield() == 0);
}

/* Compare the bytes at a function's entry in the target, read through /proc. */
static inline bool scene_has_bytes(const budget_scene *s, uint32_t index, const uint8_t *bytes)
{
    hfn_remote remote = { .pid = (uint32_t)s->pid, .memory = HFN_OS_NO_FILE };
    uint8_t now[SCENE_BYTES] = { 0 };
    uint64_t at = (uint64_t)(uintptr_t)s->code.bytes + s->rva[index];
    bool read =
        hfn_os_remote_open(&remote) == 0 && hfn_os_remote_read(&remote, at, now, sizeof now);

    hfn_os_remote_close(&remote);
    return CHECK(read) && memcmp(now, bytes, sizeof now) == 0;
}

static inline bool scene_write(const budget_scene *s, uint32_t index, const uint8_t *bytes,
                               uint32_t count)
{
    hfn_remote remote = { .pid = (uint32_t)s->pid, .memory = HFN_OS_NO_FILE };
    bool written = hfn_os_remote_open(&remote) == 0 &&
                   hfn_os_remote_write(&remote, (uint64_t)(uintptr_t)s->code.bytes + s->rva[index],
                                       bytes, count);

    hfn_os_remote_close(&remote);
    return written;
}

static inline void scene_end(budget_scene *s)
{
    int status = -1;

    atomic_store(&s->shared->stopping, true);
    waitpid(s->pid, &status, 0);
    CHECK_EQ_I64(status, 0);
    CHECK_EQ_U64(atomic_load(&s->shared->wrong_answers), 0);
    hfn_plan_channel_destroy(s->channel);
    hfn_live_close(s->live);
    hotfn_hooks_destroy(s->hooks);
    hotfn_plan_destroy(s->plan);
    munmap(s->shared, sizeof *s->shared);
    munmap(s->code.bytes, s->code.byte_count);
}

/* May this process change another one?  If not, the tests that need it are skipped. */
static inline bool scene_can_change_others(void)
{
    pid_t pid = fork();
    hfn_remote remote = { .env = hfn_env_fill(NULL),
                          .pid = (uint32_t)pid,
                          .memory = HFN_OS_NO_FILE };
    bool may;

    if (pid == 0) {
        for (;;) {
            pause();
        }
    }
    may = hfn_os_can_change_others() && hfn_os_remote_open(&remote) == 0 &&
          hfn_os_remote_stop(&remote, 5000 * SCENE_MS) == 0;
    while (!hfn_os_remote_resume(&remote)) {
        sched_yield();
    }
    hfn_os_remote_finish(&remote);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return may;
}

#endif
