/* SPDX-License-Identifier: MIT */
/* A budget whose allocations fail: no change of the target is left half done, a change that
 * failed is made in a later update, and all memory is freed. */
#include "each_failure.h"
#include "launch/budget/budget_scene.h"

enum { UPDATES = 6, SKIPPED = 77 };

static budget_scene s;

/* Update the budget while calls of the first function take half of the time, until it is unhooked.
 * Returns the function's level. */
static uint32_t update_budget(hfn_budget *b)
{
    const hfn_function_budget *first = NULL;

    for (int i = 0; i < UPDATES && scene_use_cpu(&s, 5 * SCENE_MS); i++) {
        uint64_t used = hfn_os_get_process_cpu_ns((uint32_t)s.pid) - b->cpu_ns;
        scene_add_calls(&s, 0, (uint64_t)((double)used / 2 / b->count_ns));
        scene_step(&s, b);
        first = b->function_count > 0 ? &b->functions[hfn_live_get_slots(s.live, 0)[0]] : NULL;
        if (first && (first->level == HOTFN_BUDGET_UNHOOKED || first->is_fixed)) {
            break;
        }
    }
    return first ? first->level : 0;
}

/* Whether the budget unhooked the first function; false also if the budget could not be created. */
static bool run_budget(counting *c, const hotfn_env *env)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_budget *b = NULL;
    hotfn_status status = hfn_budget_create(&b, s.live, s.channel, env, &err);
    bool unhooked;

    CHECK(status == HOTFN_OK || status == HOTFN_E_NO_MEMORY);
    CHECK((b != NULL) == (status == HOTFN_OK));
    unhooked = b && update_budget(b) == HOTFN_BUDGET_UNHOOKED;
    CHECK(scene_has_bytes(&s, 0, unhooked ? s.unhooked[0] : s.hooked[0]));
    CHECK(scene_has_bytes(&s, 1, s.hooked[1]));
    hfn_budget_destroy(b);
    CHECK_EQ_U64(c->live_bytes, 0);
    CHECK_EQ_I64(c->size_mismatches, 0);
    return unhooked;
}

/* Hook the first function as the budget does: while the target is stopped and no thread is inside
 * the patched bytes. */
static void hook_again(void)
{
    hfn_remote remote = { .env = hfn_env_fill(NULL),
                          .pid = (uint32_t)s.pid,
                          .is_child = true,
                          .memory = HFN_OS_NO_FILE };
    uint64_t at = (uint64_t)(uintptr_t)s.code.bytes + s.rva[0];
    hfn_remote_range range = { at + 1, at + SCENE_BYTES };
    bool hooked = false;

    CHECK_EQ_I64(hfn_os_remote_open(&remote), 0);
    while (!hooked && CHECK_EQ_I64(hfn_os_remote_stop(&remote, 60000 * SCENE_MS), 0)) {
        hooked = !hfn_os_remote_is_inside(&remote, &range, 1) &&
                 CHECK(hfn_os_remote_write(&remote, at, s.hooked[0], SCENE_BYTES));
        while (!hfn_os_remote_resume(&remote)) {
            sched_yield();
        }
    }
    hfn_os_remote_finish(&remote);
}

static void fail_each(bool once)
{
    size_t requests = SIZE_MAX;
    bool unhooked = false;

    for (size_t n = 1; requests >= n - 1 && !check_failures; n++) {
        counting c;
        hotfn_env env = counting_env(&c);
        c.fail_at = n;
        c.fail_once = once;
        unhooked = run_budget(&c, &env);
        requests = c.requests;
        if (check_failures) {
            printf("#   where request %zu failed\n", n);
        }
        if (unhooked) {
            hook_again();
        }
    }
    CHECK(unhooked);
    CHECK(requests > 6);
}

static void budgets_survive_failures_from_each_request_on(void)
{
    fail_each(false);
}

static void budgets_survive_each_single_failure(void)
{
    fail_each(true);
}

static const check_test tests[] = {
    CHECK_TEST(budgets_survive_failures_from_each_request_on),
    CHECK_TEST(budgets_survive_each_single_failure),
};

int main(int argc, char **argv)
{
    int failed;

    if (!scene_can_change_others()) {
        printf("1..0 # SKIP this system lets no process change another\n");
        return SKIPPED;
    }
    s = scene_begin(50000, 0);
    scene_start_counting(&s);
    failed = check_run(tests, sizeof tests / sizeof *tests, argc > 1 ? argv[1] : NULL);
    scene_end(&s);
    return failed || check_failures;
}
