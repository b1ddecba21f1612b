/* SPDX-License-Identifier: MIT */
/* `hotfn ctl`: switch functions of a process that hotfn run or hotfn attach counts. */
#include "ctl.h"

#include "cli/cli_options.h"
#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODE = 256, MODULE };

static const struct option table[] = {
    { "mode", required_argument, NULL, MODE },   { "function", required_argument, NULL, 'f' },
    { "exclude", required_argument, NULL, 'x' }, { "module", required_argument, NULL, MODULE },
    { "quiet", no_argument, NULL, 'q' },         CLI_OPTIONS_END,
};

/* clang-format off */
static const char usage[] =
    "usage: hotfn ctl --mode MODE [options] PID|RECORD\n"
    "      --mode MODE      off: restore the functions' own bytes, so that they cost nothing;\n"
    "                       count: count their calls; time: also time them (hotfn run --mode time)\n"
    "  -f, --function GLOB  only functions that match (may be repeated) [all that are hooked]\n"
    "  -x, --exclude GLOB   exclude functions that match (may be repeated)\n"
    "      --module GLOB    only functions of modules that match (may be repeated) [all]\n"
    "  -q, --quiet          no messages but errors\n"
    "PID is counted by hotfn run or hotfn attach now; RECORD is the file that one of them will write.\n"
    "Counts continue from their earlier values.\n";
/* clang-format on */

typedef struct globs {
    const char **items;
    uint32_t count;
} globs;

typedef struct ctl_options {
    uint32_t mode;
    globs include, exclude, modules;
    bool quiet;
} ctl_options;

static const char *const modes[] = { "off", "count", "time" }; /* HOTFN_SWITCH_OFF ... */

static const char *add_glob(globs *list, const char *glob)
{
    const char *expected = cli_check_glob(glob);
    const char **more =
        expected ? NULL : realloc((void *)list->items, (list->count + 1u) * sizeof *more);

    if (!more) {
        return expected ? expected : "stored: not enough memory";
    }
    list->items = more;
    more[list->count++] = glob;
    return NULL;
}

static const char *read_option(void *user, int option, const char *argument)
{
    ctl_options *o = user;

    switch (option) {
    case 'f': return add_glob(&o->include, argument);
    case 'x': return add_glob(&o->exclude, argument);
    case MODULE: return add_glob(&o->modules, argument);
    case 'q': o->quiet = true; return NULL;
    default:
        o->mode = 1 + cli_find_name(argument, modes, 3);
        return o->mode <= HOTFN_SWITCH_TIME ? NULL : "off, count or time";
    }
}

static void add_count(char *out, size_t bytes, uint32_t count, const char *what, const char *rest)
{
    size_t at = strlen(out);

    if (count > 0) {
        snprintf(out + at, bytes - at, "; %" PRIu32 " %s%s %s", count, what,
                 strcmp(what, "process") == 0 ? (count == 1 ? "" : "es") : cli_plural(count), rest);
    }
}

void ctl_describe(char *out, size_t bytes, uint32_t mode, const hotfn_switch_result *r)
{
    static const char *const states[] = { "off", "counted", "timed" };
    uint32_t same = r->matched_count - r->switched_count - r->busy_count - r->foreign_count;

    snprintf(out, bytes, "%" PRIu32 " function%s now %s", r->switched_count,
             r->switched_count == 1 ? " is" : "s are", states[mode - 1]);
    add_count(out, bytes, same, "function", "as before");
    add_count(out, bytes, r->count_only_count, "function", "can only be counted");
    add_count(out, bytes, r->busy_count, "function",
              "still off, because a thread is inside: try again");
    add_count(out, bytes, r->foreign_count, "function",
              "unchanged, as other code changed the bytes");
    add_count(out, bytes, r->failed_process_count, "process", "could not be stopped: try again");
    if (r->stop_ns > 0) {
        size_t at = strlen(out);
        snprintf(out + at, bytes - at, "; threads were stopped for %.1f ms",
                 (double)r->stop_ns / 1e6);
    }
}

static hotfn_status send_order(const ctl_options *o, const char *name, hotfn_switch_result *result,
                               hotfn_error *err)
{
    hotfn_switch_order order = HOTFN_SWITCH_ORDER_INIT;
    hotfn_selection selection = HOTFN_SELECTION_INIT;
    hotfn_env env = hotfn_tool_env();
    uint32_t pid = 0;
    bool is_pid = cli_parse_u32(name, 1, INT32_MAX, &pid);

    selection.include = o->include.items;
    selection.include_count = o->include.count;
    selection.exclude = o->exclude.items;
    selection.exclude_count = o->exclude.count;
    order.mode = o->mode;
    order.selection = &selection;
    order.modules = o->modules.items;
    order.module_count = o->modules.count;
    return hotfn_switch_functions(is_pid ? NULL : name, pid, &order, result, &env, err);
}

int hotfn_command_ctl(int argc, char **argv)
{
    ctl_options o = { 0 };
    const cli_options w = { usage, "f:x:q", table, read_option, &o, 0, 1 };
    hotfn_switch_result result = HOTFN_SWITCH_RESULT_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    char text[512];
    int status = cli_read_options(&w, argc, argv);

    if (status < 0 && (o.mode == 0 || argc == optind)) {
        status = cli_report_misuse("hotfn ctl", usage,
                                   o.mode == 0 ? "--mode is missing"
                                               : "name a process by its number, or a record");
    }
    if (status < 0) {
        status = send_order(&o, argv[optind], &result, &err) == HOTFN_OK
                     ? TOOL_OK
                     : hotfn_tool_fail("ctl", &err);
        if (status == TOOL_OK && !o.quiet) {
            ctl_describe(text, sizeof text, o.mode, &result);
            fprintf(stderr, "hotfn: %s\n", text);
        }
        if (result.busy_count || result.failed_process_count) {
            status = TOOL_FAILED;
        }
    }
    free((void *)o.include.items);
    free((void *)o.exclude.items);
    free((void *)o.modules.items);
    return status;
}
