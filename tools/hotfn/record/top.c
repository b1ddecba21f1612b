/* SPDX-License-Identifier: MIT */
/* `hotfn top`: shows the functions that a running program calls.  The screen uses plain ANSI
 * sequences; --once is for scripts. */
#include "top.h"
#include "cli/cli_options.h"
#include "run/ctl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_INTERVAL_S 0.1
#define MAX_INTERVAL_S 60.0

static const char usage[] =
    "usage: hotfn top [options] [PID|NAME|RECORD]\n"
    "  -d, --interval S     seconds between samples [1]\n"
    "      --by ORDER       rate, calls, self, total or alloc [rate]\n"
    "  -f, --filter TEXT    only functions whose name contains TEXT\n"
    "      --threads        show threads instead of functions\n"
    "      --once           print one sample and exit (waits for a second sample to get rates)\n"
    "      --json           with --once: hotfn.top/1\n"
    "NAME is a glob for the program of the process.  Without it: hotfn.hfr in this folder, which hotfn run writes by default.\n";

/* ---- Keys. */

static void edit_filter(top_view *v, int key)
{
    size_t length = strlen(v->filter);
    if (key == '\n' || key == '\r' || key == 27) {
        v->typing = false;
        if (key == 27) {
            v->filter[0] = 0;
        }
    } else if ((key == 127 || key == 8) && length > 0) {
        v->filter[length - 1] = 0;
    } else if (isprint(key) && length + 1 < sizeof v->filter) {
        v->filter[length] = (char)key;
        v->filter[length + 1] = 0;
    }
}

static void change_interval(top_view *v, double factor)
{
    double s = v->interval_s * factor;
    v->interval_s = s < MIN_INTERVAL_S ? MIN_INTERVAL_S : s > MAX_INTERVAL_S ? MAX_INTERVAL_S : s;
}

/* Switch the functions that the filter shows. */
static void switch_shown(top_view *v, uint32_t mode)
{
    hotfn_switch_order order = HOTFN_SWITCH_ORDER_INIT;
    hotfn_switch_result result = HOTFN_SWITCH_RESULT_INIT;
    hotfn_selection selection = HOTFN_SELECTION_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    char glob[4 * sizeof v->filter + 3] = "*";
    const char *globs = glob;
    size_t at = 1;

    for (const char *c = v->filter; *c; c++) { /* the filter ignores case */
        int lower = tolower((unsigned char)*c), upper = toupper((unsigned char)*c);
        at += (size_t)snprintf(glob + at, sizeof glob - at,
                               lower != upper        ? "[%c%c]"
                               : strchr("*?[\\", *c) ? "\\%c"
                                                     : "%c",
                               lower, upper);
    }
    glob[at] = '*';
    selection.include = &globs;
    selection.include_count = v->filter[0] ? 1 : 0;
    order.selection = &selection;
    order.mode = mode;
    if (hotfn_switch_functions(v->path, 0, &order, &result, NULL, &err) == HOTFN_OK) {
        ctl_describe(v->message, sizeof v->message, mode, &result);
    } else {
        snprintf(v->message, sizeof v->message, "%s", err.text);
    }
}

/* Returns false if the key quits. */
static bool handle_key(top_view *v, int key)
{
    v->message[0] = 0;
    if (v->typing) {
        edit_filter(v, key);
        return true;
    }
    switch (key) {
    case 'q': return false;
    case 'r': v->by = TOP_BY_RATE; break;
    case 'c': v->by = TOP_BY_CALLS; break;
    case 's': v->by = TOP_BY_SELF; break;
    case 't': v->by = TOP_BY_TOTAL; break;
    case 'a': v->by = TOP_BY_ALLOC; break;
    case 'T': v->threads = !v->threads; break;
    case 'f':
    case ' ': v->frozen = !v->frozen; break;
    case '/':
        v->typing = true;
        v->filter[0] = 0;
        break;
    case '+': change_interval(v, 0.5); break;
    case '-': change_interval(v, 2); break;
    case '0': switch_shown(v, HOTFN_SWITCH_OFF); break;
    case '1': switch_shown(v, HOTFN_SWITCH_COUNT); break;
    case '2': switch_shown(v, HOTFN_SWITCH_TIME); break;
    case 'j': v->scroll++; break;
    case 'k': v->scroll -= v->scroll > 0; break;
    default: break;
    }
    return true;
}

/* Returns 1 after a key, 0 after the time, -1 to quit. */
static int wait_for_key(top_view *v, double seconds)
{
    int key = top_read_key(seconds);

    return key <= 0 ? key : handle_key(v, key) ? 1 : -1;
}

/* ---- Samples. */

typedef struct two_samples {
    top_sample now, before;
    bool has_before;
} two_samples;

static bool sample_again(two_samples *l, const char *path)
{
    top_sample next;
    if (!top_take_sample(&next, path, &l->now)) {
        return false;
    }
    if (l->has_before) {
        top_free_sample(&l->before);
    }
    l->before = l->now;
    l->now = next;
    l->has_before = true;
    return true;
}

static void free_samples(two_samples *l)
{
    top_free_sample(&l->now);
    if (l->has_before) {
        top_free_sample(&l->before);
    }
}

static double get_clock_s(void)
{
    return (double)top_read_clock() / 1e9;
}

/* Show the samples and handle keys until the next sample is due.  Returns false to quit. */
static bool show_until_due(two_samples *l, top_view *v)
{
    double due = get_clock_s() + v->interval_s;
    uint32_t columns, lines;
    for (;;) {
        double remaining = due - get_clock_s();
        top_get_terminal_size(&columns, &lines);
        top_show(&l->now, l->has_before ? &l->before : NULL, v, columns, lines);
        int came = wait_for_key(v, remaining > 0 ? remaining : 0);
        if (came < 0) {
            return false;
        }
        if (came == 0 && !v->frozen) {
            return true;
        }
        due = v->frozen && came == 0 ? get_clock_s() + v->interval_s : due;
    }
}

static int watch_record(two_samples *l, top_view *v, const char *path)
{
    static char screen[1 << 18];
    bool ok = true;

    setvbuf(stdout, screen, _IOFBF, sizeof screen);
    if (!top_prepare_terminal()) {
        return TOOL_FAILED;
    }
    while (show_until_due(l, v)) {
        if (l->now.info.state == HOTFN_RECORD_LIVE && !sample_again(l, path)) {
            ok = false; /* the message stays visible on the restored screen */
            break;
        }
    }
    top_restore_terminal();
    return ok ? TOOL_OK : TOOL_FAILED;
}

static int print_once(two_samples *l, const top_view *v, const char *path, bool json)
{
    if (l->now.info.state == HOTFN_RECORD_LIVE) {
        top_sleep(v->interval_s);
        if (!sample_again(l, path)) {
            return TOOL_FAILED;
        }
    }
    if (json) {
        top_show_json(&l->now, l->has_before ? &l->before : NULL, v);
    } else {
        top_print(&l->now, l->has_before ? &l->before : NULL, v);
    }
    return TOOL_OK;
}

/* ---- Options. */

enum { BY = 256, THREADS, ONCE, JSON };

typedef struct choices {
    top_view view;
    bool once, json;
} choices;

static const char *read_option(void *user, int option, const char *argument)
{
    choices *c = user;
    top_view *v = &c->view;
    char *end;
    switch (option) {
    case 'd':
        v->interval_s = strtod(argument, &end);
        return *end == 0 && v->interval_s >= MIN_INTERVAL_S && v->interval_s <= MAX_INTERVAL_S
                   ? NULL
                   : "a number of seconds from 0.1 to 60";
    case 'f': snprintf(v->filter, sizeof v->filter, "%s", argument); return NULL;
    case THREADS: v->threads = true; return NULL;
    case ONCE: c->once = true; return NULL;
    case JSON: c->json = true; return NULL;
    default:
        v->by = cli_find_name(argument, top_orders, TOP_ORDERS);
        return v->by < TOP_ORDERS ? NULL : "rate, calls, self, total or alloc";
    }
}

int hotfn_command_top(int argc, char **argv)
{
    static const struct option table[] = {
        { "interval", required_argument, NULL, 'd' },
        { "by", required_argument, NULL, BY },
        { "filter", required_argument, NULL, 'f' },
        { "threads", no_argument, NULL, THREADS },
        { "once", no_argument, NULL, ONCE },
        { "json", no_argument, NULL, JSON },
        CLI_OPTIONS_END,
    };
    const char *no = getenv("NO_COLOR");
    choices c = { .view = { .interval_s = 1, .color = !(no && no[0]) } };
    const cli_options w = { usage, "d:f:", table, read_option, &c, 0, 1 };
    char path[4096];
    two_samples l = { 0 };
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (c.json && !c.once) {
        fputs("hotfn top: --json needs --once\n", stderr);
        return TOOL_USAGE;
    }
    const char *named = cli_choose_record(argv[0], usage, argc, argv);
    if (!named) {
        return TOOL_USAGE;
    }
    if (!top_find_record(named, path, sizeof path) || !top_take_sample(&l.now, path, NULL)) {
        return TOOL_FAILED;
    }
    c.view.path = path;
    status = c.once ? print_once(&l, &c.view, path, c.json) : watch_record(&l, &c.view, path);
    free_samples(&l);
    return status;
}
