/* SPDX-License-Identifier: MIT */
/* The budget's effect on a target: a function that is over budget is unhooked, and rehooked when it
 * is called less.  If the target cannot be changed, the record has the reason and only timing is
 * reduced. */
#include "launch/budget/budget_scene.h"

#include "../../../forbid_call.h"

#include <sys/ptrace.h>
#include <sys/resource.h>

enum { SKIPPED = 77 };
#define MANY UINT64_C(1000000000000) /* calls above any budget */
#define FIFTH 200000u                /* a share of 20 %, which soon pays for a trial */

static hfn_budget *budget_of(budget_scene *s)
{
    hfn_budget *b = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK_EQ_I64(hfn_budget_create(&b, s->live, s->channel, NULL, &err), HOTFN_OK);
    return b;
}

static const hfn_function_budget *get_function(const hfn_budget *b, const budget_scene *s,
                                               uint32_t index)
{
    return &b->functions[hfn_live_get_slots(s->live, 0)[index]];
}

/* In code that resembles a program, both a counted and a skipped call have a measurable cost. */
static void cost_of_a_hook_is_measured(void)
{
    double counted = hfn_budget_measure(false), skipped = hfn_budget_measure(true);

    CHECK(counted > 0 && counted < 1000);
    CHECK(skipped > 0 && skipped < 1000);
}

/* A new measurement is clamped to half and twice the mean, and enters it with a weight of 1/4. */
static void cost_of_a_hook_is_a_moving_mean(void)
{
    CHECK_EQ_U64((uint64_t)hfn_budget_measure_again(false, 4000), 3500);
    CHECK_EQ_U64((uint64_t)hfn_budget_measure_again(true, 4000), 3500);
    CHECK_EQ_U64((uint64_t)(hfn_budget_measure_again(true, 0.004) * 1e6 + 0.5), 5000);
}

/* Run steps until the first function is at the level.  Before each one the target works, and the
 * function's calls cost `share` of that time. */
static bool reaches(hfn_budget *b, budget_scene *s, double share, uint32_t level)
{
    for (int i = 0; i < 400 && scene_use_cpu(s, 10 * SCENE_MS); i++) {
        uint64_t used = hfn_os_get_process_cpu_ns((uint32_t)s->pid) - b->cpu_ns;
        if (b->function_count == 0 || get_function(b, s, 0)->level != HOTFN_BUDGET_UNHOOKED) {
            scene_add_calls(s, 0, (uint64_t)(share * (double)used / b->count_ns));
        }
        scene_step(s, b);
        if (b->function_count > 0 && get_function(b, s, 0)->level == level) {
            return true;
        }
    }
    printf("#   stays at level %u\n", b->function_count > 0 ? get_function(b, s, 0)->level : 0);
    return false;
}

static void step_once(hfn_budget *b, budget_scene *s)
{
    scene_use_cpu(s, 10 * SCENE_MS);
    scene_step(s, b);
}

static void function_over_budget_is_unhooked_and_later_rehooked(void)
{
    budget_scene s = scene_begin(FIFTH, 0);
    hfn_budget *b = budget_of(&s);

    scene_start_counting(&s);
    CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED));
    CHECK(scene_has_bytes(&s, 0, s.unhooked[0]));
    CHECK(scene_has_bytes(&s, 1, s.hooked[1]));
    CHECK_EQ_U64(hfn_live_get_budget(s.live)->change_count, 1);
    CHECK(reaches(b, &s, 0, HOTFN_BUDGET_COUNTED));
    CHECK(scene_has_bytes(&s, 0, s.hooked[0]));
    CHECK_STR(hfn_live_get_budget(s.live)->note, "");
    hfn_budget_destroy(b);
    scene_end(&s);
}

/* While the module's load address is not known yet, no byte near address 0 may be written. */
static void module_without_load_address_is_left_alone(void)
{
    budget_scene s = scene_begin(FIFTH, 0);
    hfn_budget *b = budget_of(&s);

    uint32_t first, count;
    uint8_t *entry;

    CHECK(hfn_live_find_module(s.live, 0, &entry, &first, &count));
    hfn_shared_put64(entry + HFN_MODULE_LOAD_BASE, 0);
    scene_start_counting(&s);
    scene_add_calls(&s, 0, MANY);
    step_once(b, &s);
    CHECK_EQ_U64(hfn_live_get_budget(s.live)->stops, 0);
    CHECK(!get_function(b, &s, 0)->is_fixed);
    CHECK_EQ_I64(hfn_live_set_module(s.live, 0, 0, (uint64_t)(uintptr_t)s.code.bytes, NULL),
                 HOTFN_OK);
    CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED));
    CHECK(scene_has_bytes(&s, 0, s.unhooked[0]));
    hfn_budget_destroy(b);
    scene_end(&s);
}

/* Calls after a step has read the counts and before it stops the target are late, and are expected.
 * Later calls prove that the module was reloaded. */
static void late_calls_do_not_mark_a_function_as_rehooked(void)
{
    budget_scene s = scene_begin(FIFTH, 0);
    hfn_budget *b = budget_of(&s);

    scene_start_counting(&s);
    CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED));
    b->functions[hfn_live_get_slots(s.live, 0)[0]].retry_ns = UINT64_MAX; /* no trial in between */
    scene_add_calls(&s, 0, 1000);
    step_once(b, &s);
    CHECK_EQ_U64(get_function(b, &s, 0)->level, HOTFN_BUDGET_UNHOOKED);
    CHECK(scene_has_bytes(&s, 0, s.unhooked[0]));
    scene_add_calls(&s, 0, 1000);
    step_once(b, &s);
    CHECK_EQ_U64(get_function(b, &s, 0)->level, HOTFN_BUDGET_COUNTED);
    hfn_budget_destroy(b);
    scene_end(&s);
}

/* The wait doubles each time, unless the function stayed hooked for a second. */
static void wait_doubles_when_a_function_is_over_budget_again(void)
{
    budget_scene s = scene_begin(FIFTH, 0);
    hfn_budget *b = budget_of(&s);
    uint64_t first;

    scene_start_counting(&s);
    CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED));
    first = get_function(b, &s, 0)->wait_ns;
    CHECK(reaches(b, &s, 0, HOTFN_BUDGET_COUNTED));
    CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED));
    CHECK_EQ_U64(get_function(b, &s, 0)->wait_ns, 2 * first);
    CHECK(get_function(b, &s, 0)->retry_ns >= hfn_live_get_budget(s.live)->cpu_ns + first);
    hfn_budget_destroy(b);
    scene_end(&s);
}

/* Timing is reduced by a word in shared memory; the target's code is not changed for it. */
static void timing_is_reduced_without_a_stop(void)
{
    budget_scene s = scene_begin(50000, HOTFN_TIMING_TIMES | HOTFN_TIMING_SAMPLED);
    hfn_budget *b = budget_of(&s);
    hfn_time_header *h = hfn_live_time_header(s.live);
    uint32_t slot = hfn_live_get_slots(s.live, 0)[0];

    h->ticks_per_second = 1000000000;
    h->cost_inside_ticks = h->cost_outside_ticks = 100 * 1000 * 256; /* 200 us a timed call */
    scene_start_counting(&s);
    scene_use_cpu(&s, 10 * SCENE_MS);
    scene_add_calls(&s, 0, 2000); /* 400 ms if timed, nearly 0 if counted */
    scene_step(&s, b);
    CHECK(get_function(b, &s, 0)->level > HOTFN_BUDGET_TIMED &&
          get_function(b, &s, 0)->level < HOTFN_BUDGET_UNHOOKED);
    CHECK(b->means[slot] >= 64);
    CHECK_EQ_U64(hfn_live_get_budget(s.live)->stops, 0);
    CHECK(scene_has_bytes(&s, 0, s.hooked[0]));
    CHECK(reaches(b, &s, 0, HOTFN_BUDGET_TIMED)); /* no more calls */
    CHECK_EQ_U64(b->means[slot], 1);
    hfn_budget_destroy(b);
    scene_end(&s);
}

/* The duration of the target's start is added to the cost once; that of another process is not. */
static void start_of_the_target_is_part_of_the_cost(void)
{
    budget_scene s = scene_begin(50000, 0);
    hfn_budget *b = budget_of(&s);
    hfn_budget_header *h = hfn_live_get_budget(s.live);
    hfn_plan_client client = { 0 };
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", hfn_plan_channel_get_fd(s.channel));
    CHECK_EQ_I64(hfn_plan_client_join(&client, path, NULL), HOTFN_OK);
    scene_start_counting(&s);
    hfn_plan_client_report_start(&client, (uint32_t)s.pid + 1, 3000000);
    step_once(b, &s);
    CHECK_EQ_U64(h->start_ns, 0);
    hfn_plan_client_report_start(&client, (uint32_t)s.pid, 2000000);
    step_once(b, &s);
    step_once(b, &s);
    CHECK_EQ_U64(h->start_ns, 2000000);
    CHECK_EQ_U64(h->cost_ns, 2000000); /* nothing was called */
    hfn_plan_client_leave(&client);
    hfn_budget_destroy(b);
    scene_end(&s);
}

/* ---- Targets that cannot be changed. */

static void check_refused(hfn_budget *b, budget_scene *s, const char *problem, int error)
{
    hfn_budget_header *h = hfn_live_get_budget(s->live);
    char note[128];

    snprintf(note, sizeof note, "%s: %s", problem, strerror(error));
    CHECK_STR(h->note, note);
    CHECK(scene_has_bytes(s, 0, s->hooked[0]));
    CHECK_EQ_U64(get_function(b, s, 0)->level, HOTFN_BUDGET_COUNTED);
    CHECK_EQ_U64(h->change_count, 0);
    uint32_t stops = h->stops;
    scene_add_calls(s, 0, MANY);
    step_once(b, s); /* the budget does not try again */
    CHECK_EQ_U64(h->stops, stops);
    CHECK_STR(h->note, note);
    CHECK(h->cost_ns > 0);
}

/* Start a debugger of the target; returns once it is attached. */
static pid_t start_tracer(pid_t target)
{
    int ends[2];
    char answer = 0;
    pid_t pid;

    CHECK_EQ_I64(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        answer = ptrace(PTRACE_SEIZE, target, NULL, NULL) == 0 ? 'y' : 'n';
        (void)!write(ends[1], &answer, 1);
        for (;;) {
            pause();
        }
    }
    CHECK_EQ_I64(read(ends[0], &answer, 1), 1);
    CHECK_EQ_I64(answer, 'y');
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void target_with_a_debugger_is_left_alone(void)
{
    budget_scene s = scene_begin(50000, 0);
    pid_t tracer = start_tracer(s.pid);
    hfn_budget *b = budget_of(&s);

    scene_start_counting(&s);
    scene_add_calls(&s, 0, MANY);
    step_once(b, &s);
    CHECK_EQ_U64(hfn_live_get_budget(s.live)->failed_stops, 1);
    check_refused(b, &s, "the target cannot be stopped for a change", EPERM);
    kill(tracer, SIGKILL);
    waitpid(tracer, NULL, 0);
    hfn_budget_destroy(b);
    scene_end(&s);
}

/* No file can be opened any more, as if /proc/PID/mem were forbidden. */
static void inaccessible_memory_is_reported(void)
{
    budget_scene s = scene_begin(50000, 0);
    hfn_budget *b = budget_of(&s);
    struct rlimit old, none;
    int next = dup(0);

    scene_start_counting(&s);
    scene_add_calls(&s, 0, MANY);
    scene_use_cpu(&s, 10 * SCENE_MS);
    CHECK_EQ_I64(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){ (rlim_t)next, old.rlim_max };
    close(next);
    CHECK_EQ_I64(setrlimit(RLIMIT_NOFILE, &none), 0);
    scene_step(&s, b);
    CHECK_EQ_I64(setrlimit(RLIMIT_NOFILE, &old), 0);
    check_refused(b, &s, "the target's memory cannot be changed", EMFILE);
    hfn_budget_destroy(b);
    scene_end(&s);
}

/* Timing is still reduced, which needs no change of the target's code. */
static void timing_is_reduced_in_an_unchangeable_target(void)
{
    budget_scene s = scene_begin(50000, HOTFN_TIMING_TIMES | HOTFN_TIMING_SAMPLED);
    pid_t tracer = start_tracer(s.pid);
    hfn_budget *b = budget_of(&s);

    hfn_live_time_header(s.live)->cost_inside_ticks = 100 * 256;
    scene_start_counting(&s);
    scene_add_calls(&s, 0, MANY);
    step_once(b, &s); /* tries to unhook it, and fails */
    CHECK(hfn_live_get_budget(s.live)->note[0] != 0);
    scene_add_calls(&s, 0, MANY);
    step_once(b, &s);
    CHECK_EQ_U64(get_function(b, &s, 0)->level, HOTFN_BUDGET_COUNTED);
    CHECK(b->means[hfn_live_get_slots(s.live, 0)[0]] >= 1000000);
    CHECK(scene_has_bytes(&s, 0, s.hooked[0]));
    kill(tracer, SIGKILL);
    waitpid(tracer, NULL, 0);
    hfn_budget_destroy(b);
    scene_end(&s);
}

static void functions_are_not_rehooked_without_stack_access(void)
{
    int status = -1;
    pid_t pid;

    fflush(stdout);
    pid = fork(); /* a seccomp filter cannot be removed */
    if (pid == 0) {
        budget_scene s = scene_begin(FIFTH, 0);
        hfn_budget *b = budget_of(&s);
        scene_start_counting(&s);
        if (CHECK(forbid_call(SYS_process_vm_readv)) &&
            CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED))) {
            for (int i = 0; i < 400 && hfn_live_get_budget(s.live)->stops < 3; i++) {
                step_once(b, &s);
            }
            CHECK(hfn_live_get_budget(s.live)->stops >= 3); /* after several attempts */
            CHECK_EQ_U64(get_function(b, &s, 0)->level, HOTFN_BUDGET_UNHOOKED);
            CHECK(scene_has_bytes(&s, 0, s.unhooked[0]));
        }
        hfn_budget_destroy(b);
        scene_end(&s);
        fflush(stdout);
        _exit(check_failures != 0);
    }
    waitpid(pid, &status, 0);
    CHECK_EQ_I64(status, 0);
}

/* ---- Unexpected states of the target. */

static void bytes_changed_by_others_are_left_alone(void)
{
    static const uint8_t breakpoint[SCENE_BYTES] = { 0xcc };
    budget_scene s = scene_begin(50000, 0);
    hfn_budget *b = budget_of(&s);
    uint8_t now[SCENE_BYTES];

    atomic_store(&s.shared->stopping, true); /* no thread runs into the breakpoint */
    waitpid(s.pid, NULL, 0);
    atomic_store(&s.shared->stopping, false);
    memcpy(now, s.hooked[0], sizeof now);
    now[0] = breakpoint[0];
    s.pid = fork();
    if (s.pid == 0) {
        for (;;) { /* uses time, calls nothing */
            if (atomic_load_explicit(&s.shared->stopping, memory_order_relaxed)) {
                _exit(0);
            }
        }
    }
    CHECK(scene_write(&s, 0, now, 1));
    scene_start_counting(&s);
    scene_add_calls(&s, 0, MANY);
    step_once(b, &s);
    CHECK(get_function(b, &s, 0)->is_fixed);
    CHECK(scene_has_bytes(&s, 0, now));
    CHECK_EQ_U64(hfn_live_get_budget(s.live)->change_count, 0);
    CHECK(scene_write(&s, 0, s.hooked[0], 1));
    hfn_budget_destroy(b);
    scene_end(&s);
}

static void ended_target_is_no_error(void)
{
    budget_scene s = scene_begin(50000, 0);
    hfn_budget *b = budget_of(&s);

    CHECK_EQ_U64(hfn_budget_step(b, (uint32_t)s.pid), HFN_BUDGET_SHORT_STEP_NS); /* no row yet */
    scene_start_counting(&s);
    scene_add_calls(&s, 0, MANY);
    atomic_store(&s.shared->stopping, true);
    CHECK_EQ_I64(waitpid(s.pid, NULL, 0), s.pid);
    CHECK_EQ_U64(hfn_budget_step(b, (uint32_t)s.pid), HFN_BUDGET_SHORT_STEP_NS);
    CHECK_EQ_U64(hfn_live_get_budget(s.live)->stops, 0);
    CHECK_STR(hfn_live_get_budget(s.live)->note, "");
    hfn_budget_destroy(b);
    s.pid = fork(); /* for scene_end */
    if (s.pid == 0) {
        _exit(0);
    }
    scene_end(&s);
}

static void record_without_a_budget_is_refused(void)
{
    budget_scene s = scene_begin(0, 0);
    hfn_budget *b = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK_EQ_I64(hfn_budget_create(&b, s.live, s.channel, NULL, &err), HOTFN_E_OPTION);
    CHECK_STR(err.text, "the record was made without a budget");
    CHECK(b == NULL);
    hfn_budget_destroy(NULL);
    scene_end(&s);
}

static const check_test tests[] = {
    CHECK_TEST(cost_of_a_hook_is_measured),
    CHECK_TEST(cost_of_a_hook_is_a_moving_mean),
    CHECK_TEST(function_over_budget_is_unhooked_and_later_rehooked),
    CHECK_TEST(module_without_load_address_is_left_alone),
    CHECK_TEST(late_calls_do_not_mark_a_function_as_rehooked),
    CHECK_TEST(wait_doubles_when_a_function_is_over_budget_again),
    CHECK_TEST(timing_is_reduced_without_a_stop),
    CHECK_TEST(start_of_the_target_is_part_of_the_cost),
    CHECK_TEST(target_with_a_debugger_is_left_alone),
    CHECK_TEST(inaccessible_memory_is_reported),
    CHECK_TEST(timing_is_reduced_in_an_unchangeable_target),
    CHECK_TEST(functions_are_not_rehooked_without_stack_access),
    CHECK_TEST(bytes_changed_by_others_are_left_alone),
    CHECK_TEST(ended_target_is_no_error),
    CHECK_TEST(record_without_a_budget_is_refused),
};

int main(int argc, char **argv)
{
    if (!scene_can_change_others()) {
        printf("1..0 # SKIP this system lets no process change another\n");
        return SKIPPED;
    }
    return check_run(tests, sizeof tests / sizeof *tests, argc > 1 ? argv[1] : NULL);
}
