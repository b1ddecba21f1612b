/* SPDX-License-Identifier: MIT */
/* `hotfn bisect` finds the function whose hook changes the outcome of a command.  It runs the
 * command twice without hooks ("bare"), to check that the outcome is stable; then with all
 * functions hooked; then with fewer and fewer, down to a smallest set that changes the outcome.  A
 * hang counts as an outcome. */
#include "bisect.h"
#include "cli/cli_options.h"
#include "cli/commands.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CULPRITS 8

typedef struct candidate {
    char *module; /* path */
    char *name;
    char *strategy;
    uint64_t rva;
} candidate;

typedef struct bisection {
    bisect_setup setup;
    bisect_outcome bare, last;
    candidate *candidates;
    uint32_t candidate_count;
    uint32_t trials;
    bool failed;
} bisection;

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* ---- Candidates: functions that the run with all hooks has patched, or would have patched if
 * their module had been loaded. */

static bool was_tried(const hotfn_record_function *f)
{
    return f->strategy[0] && (f->state == HOTFN_STATE_HOOKED || f->state == HOTFN_STATE_WAITING ||
                              strcmp(f->reason, "not-loaded") == 0);
}

static bool add_candidate(bisection *b, const hotfn_record_function *f, const char *module)
{
    candidate *c = &b->candidates[b->candidate_count];

    *c = (candidate){ strdup(module), strdup(f->name), strdup(f->strategy), f->rva };
    b->candidate_count++;
    return c->module && c->name && c->strategy;
}

static bool collect_candidates(bisection *b)
{
    char path[PATH_MAX];
    hotfn_record *record;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    bool ok = true;

    snprintf(path, sizeof path, "%s/record.hfr", b->setup.folder);
    if (hotfn_record_open(&record, path, NULL, &err) != HOTFN_OK) {
        return hotfn_tool_fail("bisect", &err), false;
    }
    hotfn_record_get_info(record, &info);
    b->candidates = calloc(info.function_count + 1, sizeof *b->candidates);
    for (uint32_t i = 0; ok && b->candidates && i < info.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_record_get_function(record, i, &f);
        hotfn_record_get_module(record, f.module, &m);
        ok = !was_tried(&f) || add_candidate(b, &f, m.path);
    }
    hotfn_record_close(record);
    return ok && b->candidates;
}

static void free_candidates(bisection *b)
{
    for (uint32_t i = 0; i < b->candidate_count; i++) {
        free(b->candidates[i].module);
        free(b->candidates[i].name);
        free(b->candidates[i].strategy);
    }
    free(b->candidates);
}

/* ---- One trial with a set of functions. */

static bool write_list(const bisection *b, const char *path, const uint32_t *chosen, uint32_t count)
{
    FILE *list = fopen(path, "we");

    if (!list) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const candidate *c = &b->candidates[chosen[i]];
        fprintf(list, "%s+0x%llx\n", file_name(c->module), (unsigned long long)c->rva);
    }
    fputs("# end of the list\n", list); /* so that the list is never empty */
    return fclose(list) == 0;
}

static bool changes_outcome(void *user, const uint32_t *chosen, uint32_t count)
{
    bisection *b = user;
    char list[PATH_MAX], outcome[64];

    snprintf(list, sizeof list, "%s/list", b->setup.folder);
    if (b->failed || !write_list(b, list, chosen, count) ||
        !bisect_trial(&b->setup, list, "trial", &b->last)) {
        b->failed = true;
        return false;
    }
    b->trials++;
    bool bad = bisect_differs(&b->setup, &b->bare, &b->last);
    bisect_format_outcome(&b->last, outcome, sizeof outcome);
    fprintf(stderr, "hotfn bisect: %u function%s: %s, %s\n", count, cli_plural(count), outcome,
            bad ? "differs" : "the same");
    return bad;
}

/* ---- Before the search. */

/* True if two bare runs have the same outcome. */
static bool check_bare_runs(bisection *b)
{
    bisect_outcome again;
    char text[64];

    if (!bisect_trial(&b->setup, NULL, "bare", &b->bare) ||
        !bisect_trial(&b->setup, NULL, "bare-too", &again)) {
        return false;
    }
    bisect_format_outcome(&b->bare, text, sizeof text);
    fprintf(stderr, "hotfn bisect: bare: %s\n", text);
    if (b->setup.by == BISECT_BY_COMMAND && bisect_differs(&b->setup, &b->bare, &b->bare)) {
        fprintf(stderr,
                "hotfn bisect: --check COMMAND must exit with 0 for the bare program, but fails\n");
        return false;
    }
    if (bisect_differs(&b->setup, &b->bare, &again)) {
        fprintf(stderr, "hotfn bisect: two bare runs differ: make the program deterministic, or "
                        "compare less of its outcome (--by exit, --check COMMAND)\n");
        return false;
    }
    /* The first hooked run also scans, so it may take longer, but not for ever. */
    if (b->setup.timeout_ns == 0) {
        b->setup.timeout_ns = 60000000000u + 20 * b->bare.time_ns;
    }
    return true;
}

/* ---- The result. */

static void print_bytes(const candidate *c)
{
    uint64_t there = 0;
    hotfn_image *image;

    if (hotfn_image_open(&image, c->module, NULL, NULL) != HOTFN_OK) {
        return;
    }
    const uint8_t *bytes = hotfn_image_get_bytes(image, c->rva, &there);
    for (uint64_t i = 0; bytes && i < there && i < 16; i++) {
        printf(" %02x", bytes[i]);
    }
    hotfn_image_close(image);
}

static void print_culprit(const candidate *c)
{
    char readable[512];
    hotfn_env env = hotfn_tool_env();
    size_t length = env.demangle_fn
                        ? env.demangle_fn(env.demangle_user, c->name, readable, sizeof readable)
                        : 0;

    printf("function  %s\n", length ? readable : c->name);
    printf("module    %s+0x%llx\n", c->module, (unsigned long long)c->rva);
    printf("strategy  %s\n", c->strategy);
    printf("bytes    ");
    print_bytes(c);
    printf("\nwithout   hotfn run -x '%s' ...\n\n", c->name);
}

static uint32_t remove_item(uint32_t item, uint32_t *remaining, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (remaining[i] != item) {
            remaining[kept++] = remaining[i];
        }
    }
    return kept;
}

static void print_culprits(const bisection *b, const uint32_t *items, uint32_t culprit_count)
{
    printf(culprit_count == 1 ? "The hook of this function changes the outcome:\n\n"
                              : "The hooks of these %u functions together change the outcome:\n\n",
           culprit_count);
    for (uint32_t i = 0; i < culprit_count; i++) {
        print_culprit(&b->candidates[items[i]]);
    }
    fflush(stdout);
}

/* Search, remove the functions found, and search again while the others still change the
 * outcome. */
static int search_all(bisection *b)
{
    uint32_t *remaining = malloc((b->candidate_count + 1) * sizeof *remaining);
    uint32_t *items = malloc((b->candidate_count + 1) * sizeof *items);
    uint32_t count = b->candidate_count, found = 0;

    for (uint32_t i = 0; remaining && i < count; i++) {
        remaining[i] = i;
    }
    while (remaining && items && !b->failed && found < MAX_CULPRITS &&
           changes_outcome(b, remaining, count)) {
        memcpy(items, remaining, count * sizeof *items);
        uint32_t culprit_count = bisect_search(items, count, changes_outcome, b);
        if (b->failed) {
            break;
        }
        print_culprits(b, items, culprit_count);
        for (uint32_t i = 0; i < culprit_count; i++) {
            count = remove_item(items[i], remaining, count);
        }
        found++;
    }
    free(remaining);
    free(items);
    if (b->failed) {
        return TOOL_FAILED;
    }
    fprintf(stderr, "hotfn bisect: %u trial%s%s\n", b->trials, cli_plural(b->trials),
            found == MAX_CULPRITS ? "; there may be more" : "");
    if (found == 0) {
        fprintf(stderr, "hotfn bisect: the outcome differed in the first hooked run only: the "
                        "program is not deterministic\n");
    }
    return found ? TOOL_THRESHOLD : TOOL_FAILED;
}

static int run_bisection(bisection *b)
{
    bisect_outcome hooked;
    char text[64];

    if (!check_bare_runs(b) || !bisect_trial(&b->setup, "", "hooked", &hooked)) {
        return TOOL_FAILED;
    }
    bisect_format_outcome(&hooked, text, sizeof text);
    bool differs = bisect_differs(&b->setup, &b->bare, &hooked);
    fprintf(stderr, "hotfn bisect: all hooked: %s, %s\n", text, differs ? "differs" : "the same");
    if (!differs) {
        printf("No hook changes the outcome.\n");
        return TOOL_OK;
    }
    if (!collect_candidates(b)) {
        return TOOL_FAILED;
    }
    int status = search_all(b);
    free_candidates(b);
    return status;
}

/* ---- The command line. */

static const char usage[] =
    "usage: hotfn bisect [options] [options of hotfn run] -- PROGRAM [ARG ...]\n"
    "  --by output     the exit status or stdout differs from the bare program's (default)\n"
    "  --by exit       the exit status alone\n"
    "  --check COMMAND a shell command (Windows: of cmd.exe) that gets stdout as its stdin and the\n"
    "                  status in $STATUS (%STATUS%);\n"
    "                  0 means good (--by command)\n"
    "  --timeout TIME  a longer run counts as a hang [60s plus 20 times the bare run]\n"
    "stdin is read once and given to each run.\n"
    "Exit status 0: no hook changes the outcome; 3: a function was found.\n";

enum { BY = 256, TIMEOUT, CHECK };

static const struct option table[] = {
    { "by", required_argument, NULL, BY },
    { "timeout", required_argument, NULL, TIMEOUT },
    { "check", required_argument, NULL, CHECK },
    CLI_OPTIONS_END,
};

static const char *set_option(bisect_setup *s, int option, const char *value)
{
    static const char *const kinds[] = { "output", "exit", "command" }; /* BISECT_BY_* */

    switch (option) {
    case BY:
        s->by = (int)cli_find_name(value, kinds, 3);
        return s->by < 3 ? NULL : "output, exit or command";
    case TIMEOUT:
        return cli_parse_time(value, &s->timeout_ns) || s->timeout_ns == 0
                   ? "a time above 0 (2s, 500ms)"
                   : NULL;
    default:
        s->check = value;
        s->by = BISECT_BY_COMMAND;
        return NULL;
    }
}

/* Read an option of bisect at argv[at].  Returns the number of arguments it takes up, 0 if
 * argv[at] is not an option of bisect, or -1 after a message if its value is invalid. */
static int read_option(bisect_setup *s, char **argv, int at, int count)
{
    for (const struct option *o = table; o->name && o->val != CLI_HELP; o++) {
        if (strncmp(argv[at], "--", 2) != 0 || strcmp(argv[at] + 2, o->name) != 0) {
            continue;
        }
        const char *value = at + 1 < count ? argv[at + 1] : "";
        const char *wanted =
            *value ? set_option(s, o->val, value) : "complete: its argument is missing";
        if (wanted) {
            cli_refuse_argument(argv[0], table, o->val, value, wanted);
        }
        return wanted ? -1 : 2;
    }
    return 0;
}

/* Options of bisect may stand anywhere before `--`; all others are passed to `hotfn run` in
 * order. */
static bool parse_arguments(bisect_setup *s, int argc, char **argv)
{
    int dashes = 1, kept = 0;

    while (dashes < argc && strcmp(argv[dashes], "--") != 0) {
        dashes++;
    }
    s->command = argv + dashes + 1;
    s->run_arguments = argv + 1;
    for (int at = 1; at < dashes;) {
        int taken = read_option(s, argv, at, dashes);
        if (taken < 0) {
            return false;
        }
        if (taken == 0) {
            s->run_arguments[kept++] = argv[at++];
        }
        at += taken;
    }
    s->run_argument_count = kept;
    if (dashes + 1 >= argc) {
        cli_report_misuse("hotfn bisect", usage, "a program is missing");
    } else if (s->by == BISECT_BY_COMMAND && !s->check) {
        fputs("hotfn bisect: --by command also needs --check COMMAND\n", stderr);
    } else {
        return true;
    }
    return false;
}

int hotfn_command_bisect(int argc, char **argv)
{
    bisection *b = calloc(1, sizeof *b);
    char agent[PATH_MAX];
    hotfn_error err = HOTFN_ERROR_INIT;
    int status = TOOL_FAILED;

    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        status = TOOL_OK;
    } else if (b && !parse_arguments(&b->setup, argc, argv)) {
        status = TOOL_USAGE;
    } else if (b && hotfn_launch_find_agent(agent, sizeof agent, HOTFN_MACHINE_OTHER, &err) !=
                        HOTFN_OK) {
        hotfn_tool_fail("bisect", &err);
    } else if (b) {
        if (bisect_begin(&b->setup)) {
            status = run_bisection(b);
        }
        bisect_end(&b->setup);
    }
    free(b);
    return status;
}
