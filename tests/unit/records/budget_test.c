/* SPDX-License-Identifier: MIT */
/* The budget in a record: changes that the launcher notes are in the live, the finished, the
 * repaired and the merged record, and changes without room are counted. */
#include "live/live.h"
#include "records/sample.h"

#include <hotfn/lowlevel/budget.h>
#include <unistd.h>

static hfn_live *create_live_with_budget(uint32_t ppm)
{
    hfn_live_options o = { 0 };
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_function f[3] = { HOTFN_RECORD_FUNCTION_INIT, HOTFN_RECORD_FUNCTION_INIT,
                                   HOTFN_RECORD_FUNCTION_INIT };
    hfn_live *live = NULL;
    uint32_t module;

    o.slot_capacity = 10;
    o.thread_capacity = 2;
    o.string_bytes = 1 << 16;
    o.budget_ppm = ppm;
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    m.function_count = 3;
    m.path = "/x/game";
    for (uint32_t i = 0; i < 3; i++) {
        f[i].state = HOTFN_STATE_HOOKED;
        f[i].name = i == 0 ? "first" : i == 1 ? "second" : "third";
        f[i].rva = 16 * i;
    }
    CHECK_EQ_I64(hfn_live_add_module(live, &m, f, &module, NULL), HOTFN_OK);
    return live;
}

static void note_change(hfn_live *live, uint32_t function, uint32_t from, uint32_t to,
                        uint64_t at_ns)
{
    hfn_budget_change change = { .at_ns = at_ns,
                                 .calls_per_second = 1000,
                                 .cost_ppm = 60000,
                                 .function = function,
                                 .from = from,
                                 .to = to,
                                 .why = to > from ? HOTFN_BUDGET_OVER_BUDGET : HOTFN_BUDGET_TRY };

    hfn_live_add_change(live, &change);
}

static void check_record(const char *path)
{
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    hotfn_record_change c = HOTFN_RECORD_CHANGE_INIT;
    hotfn_record *r = NULL;

    if (!CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK)) {
        return;
    }
    CHECK_EQ_I64(hotfn_record_get_budget(r, &b), HOTFN_OK);
    CHECK_EQ_U64(b.share_ppm, 50000);
    CHECK_EQ_U64(b.change_count, 3);
    CHECK_EQ_U64(b.changes_lost, 0);
    CHECK_EQ_U64(b.cost_ns, 77);
    CHECK_STR(b.note, "why");
    CHECK_EQ_I64(hotfn_record_get_change(r, 2, &c), HOTFN_OK);
    CHECK_EQ_U64(c.function, 2);
    CHECK_EQ_U64(c.at_ns, 300);
    CHECK_EQ_U64(c.to, HOTFN_BUDGET_COUNTED);
    CHECK_EQ_U64(c.why, HOTFN_BUDGET_OVER_BUDGET);
    CHECK_EQ_I64(hotfn_record_get_change(r, 3, &c), HOTFN_E_NOT_FOUND);
    CHECK_EQ_U64(hotfn_record_get_budget_state(r, 0), 0);
    /* it was hooked again; its count stays a lower bound */
    CHECK_EQ_U64(hotfn_record_get_budget_state(r, 1),
                 HOTFN_BUDGET_COUNTED | HOTFN_BUDGET_LOWER_BOUND);
    CHECK_EQ_U64(hotfn_record_get_budget_state(r, 2), HOTFN_BUDGET_COUNTED | HOTFN_BUDGET_REDUCED);
    CHECK_EQ_U64(hotfn_record_get_budget_state(r, UINT32_MAX), 0);
    hotfn_record_close(r);
}

/* A count that is a lower bound in one run is a lower bound in the sum. */
static void check_merged(void)
{
    static const char *const paths[] = { "budget.hfr", "budget2.hfr" };
    hotfn_record *r = NULL;

    CHECK_EQ_I64(hotfn_record_merge(paths, 2, "budget3.hfr", HOTFN_MERGE_SUM, NULL, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_open(&r, "budget3.hfr", NULL, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < 3; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_get_function(r, i, &f);
        CHECK_EQ_U64(!!(hotfn_record_get_budget_state(r, i) & HOTFN_BUDGET_LOWER_BOUND),
                     strcmp(f.name, "second") == 0);
    }
    hotfn_record_close(r);
    unlink("budget3.hfr");
}

static void noted_changes_are_in_every_kind_of_record(void)
{
    hfn_live *live = create_live_with_budget(50000);
    char path[64], text[100];

    sample_path(""); /* makes the folder */
    CHECK_EQ_I64(chdir(sample_folder), 0);

    note_change(live, 1, HOTFN_BUDGET_COUNTED, HOTFN_BUDGET_UNHOOKED, 100);
    note_change(live, 1, HOTFN_BUDGET_UNHOOKED, HOTFN_BUDGET_COUNTED, 200);
    note_change(live, 2, HOTFN_BUDGET_TIMED, HOTFN_BUDGET_COUNTED, 300);
    hfn_live_get_budget(live)->cost_ns = 77;
    strcpy(hfn_live_get_budget(live)->note, "why");
    snprintf(path, sizeof path, "/proc/self/fd/%d", hfn_live_get_fd(live));
    check_record(path);
    CHECK_EQ_I64(hfn_live_finish(live, "budget.hfr", HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL),
                 HOTFN_OK);
    check_record("budget.hfr");
    CHECK_EQ_I64(hotfn_record_repair("budget.hfr", "budget2.hfr", text, sizeof text, NULL, NULL),
                 HOTFN_OK);
    check_record("budget2.hfr");
    check_merged();
    unlink("budget.hfr");
    unlink("budget2.hfr");
    hfn_live_close(live);
}

static void changes_without_room_are_counted_and_set_states(void)
{
    hfn_live *live = create_live_with_budget(1000);
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    hotfn_record *r = NULL;
    char path[64];

    for (uint32_t i = 0; i < HFN_BUDGET_CHANGES; i++) {
        note_change(live, 0, HOTFN_BUDGET_TIMED, HOTFN_BUDGET_SAMPLED, i);
    }
    note_change(live, 1, HOTFN_BUDGET_COUNTED, HOTFN_BUDGET_UNHOOKED, 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", hfn_live_get_fd(live));
    CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK);
    hotfn_record_get_budget(r, &b);
    CHECK_EQ_U64(b.change_count, HFN_BUDGET_CHANGES);
    CHECK_EQ_U64(b.changes_lost, 1);
    CHECK_EQ_U64(hotfn_record_get_budget_state(r, 1),
                 HOTFN_BUDGET_UNHOOKED | HOTFN_BUDGET_LOWER_BOUND);
    hotfn_record_close(r);
    hfn_live_close(live);
}

static void a_run_without_a_budget_has_none(void)
{
    hfn_live *live = create_live_with_budget(0);
    hotfn_record_budget b = HOTFN_RECORD_BUDGET_INIT;
    hotfn_record *r = NULL;
    char path[64];

    CHECK(hfn_live_get_budget(live) == NULL);
    snprintf(path, sizeof path, "/proc/self/fd/%d", hfn_live_get_fd(live));
    CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_get_budget(r, &b), HOTFN_OK);
    CHECK_EQ_U64(b.share_ppm, 0);
    CHECK_STR(b.note, "");
    CHECK_EQ_U64(hotfn_record_get_budget_state(r, 0), 0);
    hotfn_record_close(r);
    hfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(noted_changes_are_in_every_kind_of_record),
    CHECK_TEST(changes_without_room_are_counted_and_set_states),
    CHECK_TEST(a_run_without_a_budget_has_none),
};
CHECK_MAIN(tests)
