/* SPDX-License-Identifier: MIT */
/* `hotfn scan FILE`: prints which functions can be hooked and how, and why the others cannot.  It
 * reads the file only; no process is started. */
#include "cli/column_widths.h"
#include "cli/commands.h"
#include "cli/file_options.h"
#include "cli/listing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STRATEGY_COUNT (HOTFN_STRATEGY_INT3 + 1)
#define REASON_COUNT (HOTFN_REASON_RUNTIME_READS + 1) /* later reasons do not occur in a scan */
#define LOW_COVERAGE 90.0                             /* percent */
#define MAX_NAME_WIDTH 40                             /* columns of --why */
#define TIMING_REASON_COUNT 256 /* the reason is a byte of a verdict's flags */

enum { WHY = 256, INT3, THREADS, TIMED };

static const struct option table[] = {
    { "why", no_argument, NULL, WHY },        { "timed", no_argument, NULL, TIMED },
    { "int3", no_argument, NULL, INT3 },      { "threads", required_argument, NULL, THREADS },
    { "json", no_argument, NULL, FILE_JSON }, FILE_OPTIONS,
};

typedef struct choices {
    file_options common;
    hotfn_verdicts_options verdicts;
    bool why;
} choices;

/* A scanned file.  release_scan also accepts a partly filled one. */
typedef struct scan {
    listing file;
    hotfn_functions *functions;
    hotfn_verdicts *verdicts;
    uint8_t *selected;
    uint32_t count;
} scan;

typedef struct totals {
    uint32_t functions, hookable, refused, fragments;
    uint32_t entries; /* without fragments, linker stubs and the process's entry */
    uint32_t strategies[STRATEGY_COUNT], reasons[REASON_COUNT];
    uint32_t timed, untimed[TIMING_REASON_COUNT]; /* of the hookable functions; with --timed */
    uint64_t code_bytes, known_bytes;
} totals;

static const char usage[] =
    "usage: hotfn scan [options] FILE\n"
    "      --why             list each refused function with its reason\n"
    "      --json            print JSON (schema hotfn.scan/1)\n"
    "  -f, --match GLOB      only functions with a name that matches (may be repeated)\n"
    "  -x, --exclude GLOB    exclude functions that match\n"
    "      --timed           also show which functions `run --mode time` can time, and why not\n"
    "      --int3            allow traps if no cheaper hook fits\n"
    "      --threads N       analyse with N threads [one per CPU]\n" SYMBOL_SOURCE_USAGE;

static hotfn_verdict verdict_at(const scan *s, uint32_t index)
{
    hotfn_verdict v = HOTFN_VERDICT_INIT;

    hotfn_verdicts_get(s->verdicts, index, &v);
    return v;
}

static bool is_timed(const hotfn_verdict *v)
{
    return v->verdict == HOTFN_VERDICT_HOOKABLE && (v->flags & HOTFN_VERDICT_TIMED);
}

/* Why a function is only counted; NONE if it is timed or timing was not requested. */
static uint32_t timing_reason(const hotfn_verdict *v)
{
    return v->verdict == HOTFN_VERDICT_HOOKABLE ? HOTFN_VERDICT_TIMING_REASON(v->flags)
                                                : HOTFN_REASON_NONE;
}

static totals count_selected(const scan *s)
{
    totals t = { 0 };

    for (uint32_t i = 0; i < s->count; i++) {
        if (!s->selected[i]) {
            continue;
        }
        const hotfn_verdict v = verdict_at(s, i);
        t.functions++;
        t.hookable += v.verdict == HOTFN_VERDICT_HOOKABLE;
        t.refused += v.verdict == HOTFN_VERDICT_REFUSED;
        t.fragments += v.verdict == HOTFN_VERDICT_FRAGMENT;
        if (v.verdict == HOTFN_VERDICT_HOOKABLE && v.strategy < STRATEGY_COUNT) {
            t.strategies[v.strategy]++;
        }
        if (v.verdict == HOTFN_VERDICT_REFUSED && v.reason < REASON_COUNT) {
            t.reasons[v.reason]++;
        }
        t.timed += is_timed(&v);
        t.untimed[timing_reason(&v)]++;
    }
    hotfn_functions_get_coverage(s->functions, &t.code_bytes, &t.known_bytes);
    t.entries =
        t.functions - t.fragments - t.reasons[HOTFN_REASON_PLT] - t.reasons[HOTFN_REASON_GLUE];
    return t;
}

static double get_percentage(uint32_t part, uint32_t whole)
{
    return whole ? 100.0 * part / whole : 0.0;
}

static void print_summary(const scan *s, const totals *t)
{
    printf("%s: %" PRIu32 " %s of functions (not included: %" PRIu32
           " fragment%s, which are parts of other functions, %" PRIu32 " linker stub%s, %" PRIu32
           " process %s)\n",
           s->file.info.path, t->entries, t->entries == 1 ? "entry" : "entries", t->fragments,
           cli_plural(t->fragments), t->reasons[HOTFN_REASON_PLT],
           cli_plural(t->reasons[HOTFN_REASON_PLT]), t->reasons[HOTFN_REASON_GLUE],
           t->reasons[HOTFN_REASON_GLUE] == 1 ? "entry" : "entries");
    printf("  %-18s %8" PRIu32 "  %6.2f %%\n", "hookable", t->hookable,
           get_percentage(t->hookable, t->entries));
    for (uint32_t i = 1; i < STRATEGY_COUNT; i++) {
        if (t->strategies[i]) {
            printf("    %-16s %8" PRIu32 "  %6.2f %%\n", hotfn_strategy_get_name(i),
                   t->strategies[i], get_percentage(t->strategies[i], t->entries));
        }
    }
    uint32_t refused = t->entries - t->hookable;
    printf("  %-18s %8" PRIu32 "  %6.2f %%\n", "refused", refused,
           get_percentage(refused, t->entries));
    for (uint32_t i = 1; i < REASON_COUNT; i++) {
        if (t->reasons[i] && i != HOTFN_REASON_PLT && i != HOTFN_REASON_GLUE) {
            printf("    %-16s %8" PRIu32 "  %6.2f %%  %s\n", hotfn_reason_get_name(i),
                   t->reasons[i], get_percentage(t->reasons[i], t->entries),
                   hotfn_reason_get_text(i));
        }
    }
}

static void print_coverage(const totals *t)
{
    double share = t->code_bytes ? 100.0 * (double)t->known_bytes / (double)t->code_bytes : 0;

    printf("  known functions contain %.1f %% of the code%s\n", share,
           share < LOW_COVERAGE
               ? "; the others have neither a symbol nor unwind data: a debug file "
                 "(--symbol-dir) or a linker map (--map) names them"
               : "");
}

static void print_timing(const totals *t)
{
    printf("  %-18s %8" PRIu32 "  %6.2f %%\n", "timed", t->timed,
           get_percentage(t->timed, t->hookable));
    for (uint32_t i = 1; i < TIMING_REASON_COUNT; i++) {
        if (t->untimed[i]) {
            printf("    %-16s %8" PRIu32 "  %6.2f %%  %s\n", hotfn_reason_get_name(i),
                   t->untimed[i], get_percentage(t->untimed[i], t->hookable),
                   hotfn_reason_get_text(i));
        }
    }
}

/* Go over the functions that --why lists and print them if `print` is set.  Returns the width of
 * the longest name; names longer than MAX_NAME_WIDTH do not count and break the alignment. */
static int list_reasons(const scan *s, bool print, int width)
{
    char text[16384];
    int widest = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const hotfn_verdict v = verdict_at(s, i);
        hotfn_function f = HOTFN_FUNCTION_INIT;
        uint32_t untimed = timing_reason(&v);
        if (!s->selected[i] ||
            (v.verdict != HOTFN_VERDICT_REFUSED && untimed == HOTFN_REASON_NONE)) {
            continue;
        }
        hotfn_functions_get(s->functions, i, &f);
        const char *name = listing_display(&s->file, f.name, text, sizeof text);
        int length = (int)strlen(name);
        widest = length > widest && length <= MAX_NAME_WIDTH ? length : widest;
        if (print && untimed == HOTFN_REASON_NONE) {
            printf("%#12" PRIx64 "  %-*s  %s at byte %" PRIu32 ": %s\n", f.rva, width, name,
                   hotfn_reason_get_name(v.reason), v.offset, hotfn_reason_get_text(v.reason));
        } else if (print) {
            printf("%#12" PRIx64 "  %-*s  counted only, %s: %s\n", f.rva, width, name,
                   hotfn_reason_get_name(untimed), hotfn_reason_get_text(untimed));
        }
    }
    return widest;
}

static void print_reasons(const scan *s)
{
    list_reasons(s, true, list_reasons(s, false, 0));
}

static void add_counts(hotfn_json *object, const char *key, const uint32_t *counts, uint32_t count,
                       const char *(*name_of)(uint32_t))
{
    hotfn_json *o = hotfn_json_create_object();

    for (uint32_t i = 1; i < count; i++) {
        if (counts[i]) {
            json_add_number(o, name_of(i), counts[i]);
        }
    }
    hotfn_json_add(object, key, o);
}

static void add_verdict(hotfn_json *o, const hotfn_verdict *v)
{
    static const char *const names[] = { "refused", "hookable", "refused", "fragment" };
    bool hookable = v->verdict == HOTFN_VERDICT_HOOKABLE;

    json_add_text(o, "verdict", names[v->verdict & 3]);
    json_add_text(o, "strategy", hookable ? hotfn_strategy_get_name(v->strategy) : NULL);
    json_add_text(o, "reason", hookable ? NULL : hotfn_reason_get_name(v->reason));
    json_add_text(o, "reason_text", hookable ? NULL : hotfn_reason_get_text(v->reason));
    if (hookable) {
        json_add_text(o, "offset", NULL);
    } else {
        json_add_number(o, "offset", v->offset);
    }
}

static void add_timing(hotfn_json *o, const scan *s, const hotfn_verdict *v)
{
    static const char *const keys[] = { "timing", "timing_reason", "argument_words", "popped_words",
                                        "ends_at_jump_to" };
    uint32_t reason = timing_reason(v), arguments = HOTFN_VERDICT_ARGUMENTS(v->flags);
    uint32_t popped = HOTFN_VERDICT_POPS(v->flags);
    hotfn_function to = HOTFN_FUNCTION_INIT;

    if (v->verdict != HOTFN_VERDICT_HOOKABLE) {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            json_add_text(o, keys[i], NULL);
        }
        return;
    }
    json_add_text(o, keys[0], is_timed(v) ? "full" : "count-only");
    json_add_text(o, keys[1], reason == HOTFN_REASON_NONE ? NULL : hotfn_reason_get_name(reason));
    json_add_number(o, keys[2], arguments);
    json_add_number(o, keys[3], popped == HOTFN_POPS_ALL ? arguments : popped);
    if (v->tail_target == 0 ||
        hotfn_functions_get(s->functions, v->tail_target - 1, &to) != HOTFN_OK) {
        json_add_text(o, keys[4], NULL);
    } else {
        json_add_number(o, keys[4], to.rva);
    }
}

static const char *get_evidence(uint32_t flags)
{
    return flags & HOTFN_FUNCTION_FOUND_CALL      ? "call"
           : flags & HOTFN_FUNCTION_FOUND_POINTER ? "pointer"
           : flags & HOTFN_FUNCTION_HAS_SYMBOL    ? "symbol"
                                                  : "unwind-data";
}

static hotfn_json *create_function(const scan *s, bool timed, uint32_t index)
{
    const hotfn_verdict v = verdict_at(s, index);
    hotfn_json *o = hotfn_json_create_object(), *names = hotfn_json_create_array();
    hotfn_function f = HOTFN_FUNCTION_INIT;
    char text[16384];
    const char *name;

    hotfn_functions_get(s->functions, index, &f);
    json_add_number(o, "rva", f.rva);
    json_add_number(o, "size", f.byte_count);
    json_add_text(o, "name", f.name);
    json_add_text(o, "display", listing_display(&s->file, f.name, text, sizeof text));
    for (uint32_t i = 0; (name = hotfn_functions_get_name(s->functions, index, i)) != NULL; i++) {
        json_add_text(names, NULL, name);
    }
    hotfn_json_add(o, "names", names);
    json_add_text(o, "found_by", get_evidence(f.flags));
    add_verdict(o, &v);
    if (timed) {
        add_timing(o, s, &v);
    }
    return o;
}

static hotfn_json *create_summary(const totals *t, bool timed)
{
    hotfn_json *o = hotfn_json_create_object();

    json_add_number(o, "functions", t->functions);
    json_add_number(o, "entries", t->entries);
    json_add_number(o, "hookable", t->hookable);
    json_add_number(o, "refused", t->refused);
    json_add_number(o, "fragments", t->fragments);
    json_add_number(o, "code_bytes", t->code_bytes);
    json_add_number(o, "known_bytes", t->known_bytes);
    add_counts(o, "strategies", t->strategies, STRATEGY_COUNT, hotfn_strategy_get_name);
    add_counts(o, "reasons", t->reasons, REASON_COUNT, hotfn_reason_get_name);
    if (timed) {
        json_add_number(o, "timed", t->timed);
        add_counts(o, "timing_reasons", t->untimed, TIMING_REASON_COUNT, hotfn_reason_get_name);
    }
    return o;
}

static void print_json(const scan *s, bool timed, const totals *t)
{
    hotfn_json_writer *out = json_open(stdout);

    hotfn_json_begin_object(out, NULL);
    listing_write_head(out, &s->file, "hotfn.scan/1");
    hotfn_json_write(out, "summary", create_summary(t, timed));
    hotfn_json_begin_array(out, "functions");
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->selected[i]) {
            hotfn_json_write(out, NULL, create_function(s, timed, i));
        }
    }
    hotfn_json_end(out);
    hotfn_json_end(out);
    json_close(out);
}

static bool judge_functions(scan *s, const choices *c, const char **unmatched, hotfn_error *err)
{
    const hotfn_env *env = &s->file.env;

    if (hotfn_functions_build(&s->functions, s->file.image, s->file.symbols, env, err) !=
        HOTFN_OK) {
        return false;
    }
    if (hotfn_verdicts_find_functions(s->functions, s->file.image, c->verdicts.threads, env, err) !=
        HOTFN_OK) {
        return false;
    }
    s->count = hotfn_functions_get_count(s->functions);
    s->selected = calloc(s->count ? s->count : 1, 1);
    return s->selected &&
           hotfn_functions_select(s->functions, &c->common.selection, s->selected, unmatched,
                                  err) == HOTFN_OK &&
           hotfn_verdicts_create(&s->verdicts, s->file.image, s->functions, &c->verdicts, env,
                                 err) == HOTFN_OK;
}

static void release_scan(scan *s)
{
    free(s->selected);
    hotfn_verdicts_destroy(s->verdicts);
    hotfn_functions_destroy(s->functions);
    listing_close(&s->file);
}

static void print_scan(const choices *c, const scan *s)
{
    const totals t = count_selected(s);
    bool timed = c->verdicts.flags & HOTFN_VERDICTS_TIMING;

    if (c->common.json) {
        print_json(s, timed, &t);
        return;
    }
    fit_begin();
    if (c->why) {
        print_reasons(s);
    } else {
        print_summary(s, &t);
        print_coverage(&t);
        if (timed) {
            print_timing(&t);
        }
    }
    fit_end(0);
}

static int scan_file(const choices *c)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    const char *unmatched = NULL;
    scan s = { 0 };
    int status = TOOL_OK;

    if (!listing_open(&s.file, c->common.file, &c->common.sources, &err)) {
        return hotfn_tool_fail("scan", &err);
    }
    if (!judge_functions(&s, c, &unmatched, &err)) {
        status = hotfn_tool_fail("scan", &err);
    } else if (file_options_check_matches("scan", &c->common, unmatched, s.selected, s.count)) {
        print_scan(c, &s);
    } else {
        status = TOOL_FAILED;
    }
    release_scan(&s);
    return status;
}

static const char *read_option(void *user, int option, const char *argument)
{
    choices *c = user;

    switch (option) {
    case WHY: c->why = true; return NULL;
    case TIMED: c->verdicts.flags |= HOTFN_VERDICTS_TIMING; return NULL;
    case INT3: c->verdicts.flags |= HOTFN_VERDICTS_ALLOW_INT3; return NULL;
    default:
        return cli_parse_u32(argument, 1, 64, &c->verdicts.threads) ? NULL
                                                                    : "a number from 1 to 64";
    }
}

int hotfn_command_scan(int argc, char **argv)
{
    choices c = { .verdicts = HOTFN_VERDICTS_OPTIONS_INIT };
    const cli_options own = { usage, "f:x:", table, read_option, &c, 1, 1 };
    int status = file_options_read(&c.common, &own, argc, argv);

    if (status < 0) {
        status = scan_file(&c);
    }
    file_options_free(&c.common);
    return status;
}
