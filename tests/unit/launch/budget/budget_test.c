/* SPDX-License-Identifier: MIT */
/* What a budget does to a target: who is too dear goes, who has cooled down comes back, and where nothing
 * may be changed the record says why and only what needs no change is done. */
#include "launch/budget/budget_scene.h"

#include "../../../forbid_call.h"

#include <sys/ptrace.h>
#include <sys/resource.h>

enum { SKIPPED = 77 };
#define MANY UINT64_C(1000000000000) /* calls that no budget pays for */
#define FIFTH 200000u                /* a share of 20 %: it soon pays for a try */

static hotfn_budget *budget_of(budget_scene *s)
{
    hotfn_budget *b = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK_EQ_I64(hotfn_budget_create(&b, s->live, s->handover, NULL, &err), HOTFN_OK);
    return b;
}

static const hfn_book *book(const hotfn_budget *b, const budget_scene *s, uint32_t index)
{
    return &b->books[hotfn_live_slots(s->live, 0)[index]];
}

/* In code like a program's a hook is not for nothing, and a call that is passed over is no cheaper by much. */
static void the_cost_of_a_hook_is_measured(void)
{
    double counted = hfn_budget_measure(false), passed = hfn_budget_measure(true);

    CHECK(counted > 0 && counted < 1000);
    CHECK(passed > 0 && passed < 1000);
}

/* One measurement while the target runs moves what is known by a quarter, of twice or half of it at most. */
static void the_cost_of_a_hook_is_measured_again(void)
{
    CHECK_EQ_U64((uint64_t)hfn_budget_measure_again(false, 4000), 3500);
    CHECK_EQ_U64((uint64_t)hfn_budget_measure_again(true, 4000), 3500);
    CHECK_EQ_U64((uint64_t)(hfn_budget_measure_again(true, 0.004) * 1e6 + 0.5), 5000);
}

/* Looks, each after some work of the target of which calls of the first function took such a share, until
 * that function is at the level. */
static bool reaches(hotfn_budget *b, budget_scene *s, double share, uint32_t level)
{
    for (int i = 0; i < 400 && scene_use(s, 10 * SCENE_MS); i++) {
        uint64_t used = hfn_os_get_process_cpu_ns((uint32_t)s->pid) - b->cpu_ns;
        if (b->book_count == 0 || book(b, s, 0)->level != HOTFN_BUDGET_UNHOOKED) {
            scene_add_calls(s, 0, (uint64_t)(share * (double)used / b->count_ns));
        }
        scene_look(s, b);
        if (b->book_count > 0 && book(b, s, 0)->level == level) {
            return true;
        }
    }
    printf("#   stays at level %u\n", b->book_count > 0 ? book(b, s, 0)->level : 0);
    return false;
}

static void look_once(hotfn_budget *b, budget_scene *s)
{
    scene_use(s, 10 * SCENE_MS);
    scene_look(s, b);
}

static void who_is_too_dear_goes_and_comes_back_when_cool(void)
{
    budget_scene s = scene_begin(FIFTH, 0);
    hotfn_budget *b = budget_of(&s);

    scene_counts(&s);
    CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED));
    CHECK(scene_stands(&s, 0, s.bare[0]));
    CHECK(scene_stands(&s, 1, s.hooked[1]));
    CHECK_EQ_U64(hfn_live_budget(s.live)->change_count, 1);
    CHECK(reaches(b, &s, 0, HOTFN_BUDGET_COUNTED));
    CHECK(scene_stands(&s, 0, s.hooked[0]));
    CHECK_STR(hfn_live_budget(s.live)->note, "");
    hotfn_budget_destroy(b);
    scene_end(&s);
}

/* Its plan is there before the target has said where it stands: nobody may write to address 0 and on. */
static void a_module_that_is_not_loaded_yet_is_waited_for(void)
{
    budget_scene s = scene_begin(FIFTH, 0);
    hotfn_budget *b = budget_of(&s);

    uint32_t first, count;
    uint8_t *entry;

    CHECK(hfn_live_module(s.live, 0, &entry, &first, &count));
    hfn_shared_put64(entry + HFN_MODULE_LOAD_BASE, 0);
    scene_counts(&s);
    scene_add_calls(&s, 0, MANY);
    look_once(b, &s);
    CHECK_EQ_U64(hfn_live_budget(s.live)->stops, 0);
    CHECK(!book(b, &s, 0)->is_fixed);
    CHECK_EQ_I64(hotfn_live_set_module(s.live, 0, 0, (uint64_t)(uintptr_t)s.code.bytes, NULL),
                 HOTFN_OK);
    CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED));
    CHECK(scene_stands(&s, 0, s.bare[0]));
    hotfn_budget_destroy(b);
    scene_end(&s);
}

/* Calls between a look and the stop that follows say nothing; later ones do: its module came again. */
static void who_was_called_until_it_went_is_not_hooked_again(void)
{
    budget_scene s = scene_begin(FIFTH, 0);
    hotfn_budget *b = budget_of(&s);

    scene_counts(&s);
    CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED));
    b->books[hotfn_live_slots(s.live, 0)[0]].back_ns = UINT64_MAX; /* it is not tried meanwhile */
    scene_add_calls(&s, 0, 1000);
    look_once(b, &s);
    CHECK_EQ_U64(book(b, &s, 0)->level, HOTFN_BUDGET_UNHOOKED);
    CHECK(scene_stands(&s, 0, s.bare[0]));
    scene_add_calls(&s, 0, 1000);
    look_once(b, &s);
    CHECK_EQ_U64(book(b, &s, 0)->level, HOTFN_BUDGET_COUNTED);
    hotfn_budget_destroy(b);
    scene_end(&s);
}

/* Twice as long each time, as long as it does not stay cool for a second. */
static void who_is_dear_again_waits_twice_as_long(void)
{
    budget_scene s = scene_begin(FIFTH, 0);
    hotfn_budget *b = budget_of(&s);
    uint64_t first;

    scene_counts(&s);
    CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED));
    first = book(b, &s, 0)->wait_ns;
    CHECK(reaches(b, &s, 0, HOTFN_BUDGET_COUNTED));
    CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED));
    CHECK_EQ_U64(book(b, &s, 0)->wait_ns, 2 * first);
    CHECK(book(b, &s, 0)->back_ns >= hfn_live_budget(s.live)->cpu_ns + first);
    hotfn_budget_destroy(b);
    scene_end(&s);
}

/* A word is enough for what is timed: nothing of the target's text is touched until it must be. */
static void what_is_timed_falls_by_a_word(void)
{
    budget_scene s = scene_begin(50000, HOTFN_TIMING_TIMES | HOTFN_TIMING_SAMPLED);
    hotfn_budget *b = budget_of(&s);
    hfn_time_header *h = hfn_live_time_header(s.live);
    uint32_t slot = hotfn_live_slots(s.live, 0)[0];

    h->ticks_per_second = 1000000000;
    h->cost_inside_ticks = h->cost_outside_ticks = 100 * 1000 * 256; /* 200 us a timed call */
    scene_counts(&s);
    scene_use(&s, 10 * SCENE_MS);
    scene_add_calls(&s, 0, 2000); /* 400 ms timed; counted nearly nothing */
    scene_look(&s, b);
    CHECK(book(b, &s, 0)->level > HOTFN_BUDGET_TIMED &&
          book(b, &s, 0)->level < HOTFN_BUDGET_UNHOOKED);
    CHECK(b->means[slot] >= 64);
    CHECK_EQ_U64(hfn_live_budget(s.live)->stops, 0);
    CHECK(scene_stands(&s, 0, s.hooked[0]));
    *hfn_live_skip(s.live, 0, slot) = 12345;      /* the target passes over so many */
    CHECK(reaches(b, &s, 0, HOTFN_BUDGET_TIMED)); /* nobody calls it any more */
    CHECK_EQ_U64(b->means[slot], 1);
    CHECK_EQ_U64(*hfn_live_skip(s.live, 0, slot), 0);
    hotfn_budget_destroy(b);
    scene_end(&s);
}

/* What the target took to begin is told once, and is part of what hooks took; another process's is none of it. */
static void what_the_start_took_is_part_of_the_cost(void)
{
    budget_scene s = scene_begin(50000, 0);
    hotfn_budget *b = budget_of(&s);
    hfn_budget_header *h = hfn_live_budget(s.live);
    hfn_handover_link link = { 0 };
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", hotfn_handover_fd(s.handover));
    CHECK_EQ_I64(hfn_handover_join(&link, path, NULL), HOTFN_OK);
    scene_counts(&s);
    hfn_handover_tell_start(&link, (uint32_t)s.pid + 1, 3000000);
    look_once(b, &s);
    CHECK_EQ_U64(h->start_ns, 0);
    hfn_handover_tell_start(&link, (uint32_t)s.pid, 2000000);
    look_once(b, &s);
    look_once(b, &s);
    CHECK_EQ_U64(h->start_ns, 2000000);
    CHECK_EQ_U64(h->cost_ns, 2000000); /* nothing was called */
    hfn_handover_leave(&link);
    hotfn_budget_destroy(b);
    scene_end(&s);
}

/* ---- Where nothing may be changed. */

static void check_refused(hotfn_budget *b, budget_scene *s, const char *what, int error)
{
    hfn_budget_header *h = hfn_live_budget(s->live);
    char note[128];

    snprintf(note, sizeof note, "%s: %s", what, strerror(error));
    CHECK_STR(h->note, note);
    CHECK(scene_stands(s, 0, s->hooked[0]));
    CHECK_EQ_U64(book(b, s, 0)->level, HOTFN_BUDGET_COUNTED);
    CHECK_EQ_U64(h->change_count, 0);
    uint32_t stops = h->stops;
    scene_add_calls(s, 0, MANY);
    look_once(b, s); /* it is not tried for ever */
    CHECK_EQ_U64(h->stops, stops);
    CHECK_STR(h->note, note);
    CHECK(h->cost_ns > 0);
}

/* A debugger of the target: the answer is when it has it. */
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

static void a_target_that_a_debugger_holds_is_left_alone(void)
{
    budget_scene s = scene_begin(50000, 0);
    pid_t tracer = start_tracer(s.pid);
    hotfn_budget *b = budget_of(&s);

    scene_counts(&s);
    scene_add_calls(&s, 0, MANY);
    look_once(b, &s);
    CHECK_EQ_U64(hfn_live_budget(s.live)->failed_stops, 1);
    check_refused(b, &s, "the target cannot be stopped for a change", EPERM);
    kill(tracer, SIGKILL);
    waitpid(tracer, NULL, 0);
    hotfn_budget_destroy(b);
    scene_end(&s);
}

/* No file can be opened any more: as where /proc/PID/mem is forbidden. */
static void memory_that_cannot_be_opened_is_said(void)
{
    budget_scene s = scene_begin(50000, 0);
    hotfn_budget *b = budget_of(&s);
    struct rlimit old, none;
    int next = dup(0);

    scene_counts(&s);
    scene_add_calls(&s, 0, MANY);
    scene_use(&s, 10 * SCENE_MS);
    CHECK_EQ_I64(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){ (rlim_t)next, old.rlim_max };
    close(next);
    CHECK_EQ_I64(setrlimit(RLIMIT_NOFILE, &none), 0);
    scene_look(&s, b);
    CHECK_EQ_I64(setrlimit(RLIMIT_NOFILE, &old), 0);
    check_refused(b, &s, "the target's memory cannot be changed", EMFILE);
    hotfn_budget_destroy(b);
    scene_end(&s);
}

/* What needs no change of the target's text is done all the same. */
static void a_target_that_cannot_be_changed_is_timed_less(void)
{
    budget_scene s = scene_begin(50000, HOTFN_TIMING_TIMES | HOTFN_TIMING_SAMPLED);
    pid_t tracer = start_tracer(s.pid);
    hotfn_budget *b = budget_of(&s);

    hfn_live_time_header(s.live)->cost_inside_ticks = 100 * 256;
    scene_counts(&s);
    scene_add_calls(&s, 0, MANY);
    look_once(b, &s); /* wants it unhooked, and is refused */
    CHECK(hfn_live_budget(s.live)->note[0] != 0);
    scene_add_calls(&s, 0, MANY);
    look_once(b, &s);
    CHECK_EQ_U64(book(b, &s, 0)->level, HOTFN_BUDGET_COUNTED);
    CHECK(b->means[hotfn_live_slots(s.live, 0)[0]] >= 1000000);
    CHECK(scene_stands(&s, 0, s.hooked[0]));
    kill(tracer, SIGKILL);
    waitpid(tracer, NULL, 0);
    hotfn_budget_destroy(b);
    scene_end(&s);
}

static void nothing_comes_back_where_no_stack_can_be_read(void)
{
    int status = -1;
    pid_t pid;

    fflush(stdout);
    pid = fork(); /* a filter cannot be taken off */
    if (pid == 0) {
        budget_scene s = scene_begin(FIFTH, 0);
        hotfn_budget *b = budget_of(&s);
        scene_counts(&s);
        if (CHECK(forbid_call(SYS_process_vm_readv)) &&
            CHECK(reaches(b, &s, 0.5, HOTFN_BUDGET_UNHOOKED))) {
            for (int i = 0; i < 400 && hfn_live_budget(s.live)->stops < 3; i++) {
                look_once(b, &s);
            }
            CHECK(hfn_live_budget(s.live)->stops >= 3); /* it was tried */
            CHECK_EQ_U64(book(b, &s, 0)->level, HOTFN_BUDGET_UNHOOKED);
            CHECK(scene_stands(&s, 0, s.bare[0]));
        }
        hotfn_budget_destroy(b);
        scene_end(&s);
        fflush(stdout);
        _exit(check_failures != 0);
    }
    waitpid(pid, &status, 0);
    CHECK_EQ_I64(status, 0);
}

/* ---- What is not as it was. */

static void bytes_that_others_changed_are_left_alone(void)
{
    static const uint8_t breakpoint[SCENE_BYTES] = { 0xcc };
    budget_scene s = scene_begin(50000, 0);
    hotfn_budget *b = budget_of(&s);
    uint8_t now[SCENE_BYTES];

    atomic_store(&s.shared->stopping, true); /* nobody runs into it */
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
    scene_counts(&s);
    scene_add_calls(&s, 0, MANY);
    look_once(b, &s);
    CHECK(book(b, &s, 0)->is_fixed);
    CHECK(scene_stands(&s, 0, now));
    CHECK_EQ_U64(hfn_live_budget(s.live)->change_count, 0);
    CHECK(scene_write(&s, 0, s.hooked[0], 1));
    hotfn_budget_destroy(b);
    scene_end(&s);
}

static void a_target_that_has_ended_is_told_by_nothing(void)
{
    budget_scene s = scene_begin(50000, 0);
    hotfn_budget *b = budget_of(&s);

    CHECK_EQ_U64(hotfn_budget_step(b, (uint32_t)s.pid), HFN_BUDGET_SOON_NS); /* nobody counts */
    scene_counts(&s);
    scene_add_calls(&s, 0, MANY);
    atomic_store(&s.shared->stopping, true);
    CHECK_EQ_I64(waitpid(s.pid, NULL, 0), s.pid);
    CHECK_EQ_U64(hotfn_budget_step(b, (uint32_t)s.pid), HFN_BUDGET_SOON_NS);
    CHECK_EQ_U64(hfn_live_budget(s.live)->stops, 0);
    CHECK_STR(hfn_live_budget(s.live)->note, "");
    hotfn_budget_destroy(b);
    s.pid = fork(); /* for scene_end */
    if (s.pid == 0) {
        _exit(0);
    }
    scene_end(&s);
}

static void a_record_without_a_budget_is_refused(void)
{
    budget_scene s = scene_begin(0, 0);
    hotfn_budget *b = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK_EQ_I64(hotfn_budget_create(&b, s.live, s.handover, NULL, &err), HOTFN_E_OPTION);
    CHECK_STR(err.text, "the record was made without a budget");
    CHECK(b == NULL);
    hotfn_budget_destroy(NULL);
    scene_end(&s);
}

static const check_test tests[] = {
    CHECK_TEST(the_cost_of_a_hook_is_measured),
    CHECK_TEST(the_cost_of_a_hook_is_measured_again),
    CHECK_TEST(who_is_too_dear_goes_and_comes_back_when_cool),
    CHECK_TEST(a_module_that_is_not_loaded_yet_is_waited_for),
    CHECK_TEST(who_was_called_until_it_went_is_not_hooked_again),
    CHECK_TEST(who_is_dear_again_waits_twice_as_long),
    CHECK_TEST(what_is_timed_falls_by_a_word),
    CHECK_TEST(what_the_start_took_is_part_of_the_cost),
    CHECK_TEST(a_target_that_a_debugger_holds_is_left_alone),
    CHECK_TEST(memory_that_cannot_be_opened_is_said),
    CHECK_TEST(a_target_that_cannot_be_changed_is_timed_less),
    CHECK_TEST(nothing_comes_back_where_no_stack_can_be_read),
    CHECK_TEST(bytes_that_others_changed_are_left_alone),
    CHECK_TEST(a_target_that_has_ended_is_told_by_nothing),
    CHECK_TEST(a_record_without_a_budget_is_refused),
};

int main(int argc, char **argv)
{
    if (!scene_may_change()) {
        printf("1..0 # SKIP this system lets no process change another\n");
        return SKIPPED;
    }
    return check_run(tests, sizeof tests / sizeof *tests, argc > 1 ? argv[1] : NULL);
}
