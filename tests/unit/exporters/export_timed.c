/* SPDX-License-Identifier: MIT */
/* Writes records of made-up timed runs, to check the exporters with other programs:
 *
 *   export_timed story FILE           a small program whose times are known
 *   export_timed costly FILE          the same, but the hooks cost more than the program
 *   export_timed large FILE COUNT     COUNT functions, to check that pages stay usable
 *   export_timed counted FILE         the story, counted only
 *   export_timed recursive FILE       two merged samples; the error of beta's total is unknown
 *   export_timed budgeted FILE        a run whose budget unhooked a function and rehooked it */
#include "live/live.h"
#include "profile/timed.h"

static void fill_function(hotfn_record_function *f, char *name, size_t bytes, uint32_t i)
{
    snprintf(name, bytes, "_ZN4game6entity%uupdateEv", i); /* no valid one, so shown as it is */
    if (i % 7 == 0) {
        snprintf(name, bytes, "</script><img src=x onerror=alert(%u)>", i);
    }
    if (i % 11 == 0) {
        snprintf(name, bytes, "caf\xc3\xa9\x7f%u::\xe2\x82\xac\xe2\x82\xac", i);
    }
    *f = sample_function(name, 0x1000 + (uint64_t)i * 16, HOTFN_STATE_HOOKED);
}

static int write_large(const char *path, uint32_t count)
{
    hfn_live_options o = { 0 };
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_function *f = calloc(count, sizeof *f);
    char(*names)[64] = calloc(count, sizeof *names);
    hfn_live *live = NULL;
    uint32_t index;

    o.slot_capacity = count;
    o.thread_capacity = 2;
    o.command = "./large <b>";
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < count; i++) {
        fill_function(&f[i], names[i], sizeof names[i], i);
    }
    m.path = "/opt/large";
    m.function_count = count;
    hfn_live_add_module(live, &m, f, &index, NULL);
    hfn_live_set_module(live, 0, HOTFN_MODULE_LOADED | HOTFN_MODULE_MAIN, 0x400000, NULL);
    for (uint32_t i = 0; i < count; i++) {
        sample_count(live, 0, 7, 7, i, i + 1);
    }
    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    hfn_live_close(live);
    free(names);
    free(f);
    return check_failures;
}

static void note(hfn_live *live, uint64_t at_ns, uint32_t from, uint32_t to)
{
    hfn_budget_change c = { .at_ns = at_ns,
                            .calls_per_second = 123000000,
                            .cost_ppm = 345000,
                            .function = 0,
                            .from = from,
                            .to = to,
                            .why = to > from ? HOTFN_BUDGET_OVER_BUDGET : HOTFN_BUDGET_TRY };

    hfn_live_add_change(live, &c);
}

static int write_budgeted(const char *path)
{
    hfn_live_options o = { 0 };
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_function f[2];
    hfn_budget_header *h;
    hfn_live *live = NULL;
    uint32_t index;

    o.slot_capacity = 8;
    o.thread_capacity = 2;
    o.budget_ppm = 50000;
    o.command = "./budgeted";
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    m.path = "/opt/budgeted";
    m.function_count = 2;
    f[0] = sample_function("<tiny>", 0x1000, HOTFN_STATE_HOOKED);
    f[1] = sample_function("calm", 0x1010, HOTFN_STATE_HOOKED);
    hfn_live_add_module(live, &m, f, &index, NULL);
    hfn_live_set_module(live, 0, HOTFN_MODULE_LOADED | HOTFN_MODULE_MAIN, 0x400000, NULL);
    sample_count(live, 0, 7, 7, 0, 5000);
    sample_count(live, 0, 7, 7, 1, 20);
    note(live, 1500000000, HOTFN_BUDGET_COUNTED, HOTFN_BUDGET_UNHOOKED);
    note(live, 2500000000, HOTFN_BUDGET_UNHOOKED, HOTFN_BUDGET_COUNTED);
    note(live, 2600000000, HOTFN_BUDGET_COUNTED, HOTFN_BUDGET_UNHOOKED);
    h = hfn_live_get_budget(live);
    h->cpu_ns = 4000000000;
    h->cost_ns = 125000000;
    h->stopped_ns = 6000000;
    h->stops = 3;
    h->count_cost_ps = 1250;
    strcpy(h->note, "a <note>");
    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    hfn_live_close(live);
    return check_failures;
}

static int write_recursive(const char *path)
{
    hotfn_record *r = NULL;
    hfn_part *states;

    free(timed_write(path, 20, 10));
    CHECK_EQ_I64(hotfn_record_open(&r, path, NULL, NULL), HOTFN_OK);
    r->times.header.flags |= HOTFN_TIMING_SAMPLED | HOTFN_TIMING_ERRORS;
    states = &r->parts[HFN_SECTION_TIMING_STATES];
    states->byte_count = (uint64_t)r->function_count * sizeof(uint32_t);
    states->bytes = hfn_allocate_zeroed(&r->env, states->byte_count + 2);
    for (uint32_t i = 0; i < r->function_count; i++) {
        hfn_write_le32(states->bytes + 4 * i, HOTFN_TIMING_SAMPLE);
    }
    for (size_t i = 0; i < r->times.entry_count; i++) {
        r->times.entries[i].cell.callee_timed =
            r->times.entries[i].slot == 1 ? HOTFN_ERROR_UNKNOWN : 1000;
        r->times.entries[i].cell.within_timed = 2000;
    }
    CHECK_EQ_I64(hfn_record_write(r, path, NULL), HOTFN_OK);
    hotfn_record_close(r);
    return check_failures;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "large") == 0) {
        return write_large(argv[2], (uint32_t)atoi(argv[3]));
    }
    if (argc == 3 && strcmp(argv[1], "story") == 0) {
        free(timed_write(argv[2], 20, 10));
        return check_failures;
    }
    if (argc == 3 && strcmp(argv[1], "costly") == 0) {
        free(timed_write(argv[2], 20000, 30000));
        return check_failures;
    }
    if (argc == 3 && strcmp(argv[1], "recursive") == 0) {
        return write_recursive(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "budgeted") == 0) {
        return write_budgeted(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "counted") == 0) {
        timed_model *m = calloc(1, sizeof *m);

        timed_story(m);
        timed_write_counts(argv[2], m, 2);
        free(m);
        return check_failures;
    }
    return 2;
}
