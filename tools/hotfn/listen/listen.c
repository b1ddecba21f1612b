/* SPDX-License-Identifier: MIT */
/* `hotfn listen`: shows the events that `hotfn run --send` sends, while they happen. */
#include "listen.h"

#include "cli/cli_options.h"
#include "cli/column_widths.h"
#include "cli/commands.h"
#include "cli/log.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_NS UINT64_C(50000000) /* how long an entry is held back for its exit */
#define MAX_PATH 4096

enum { SLOW = 256, JSON, FOR, KEEP };

typedef struct known_stream {
    uint32_t pid;
    bool was_replaced; /* its program executed another one, which has a stream of its own */
} known_stream;

typedef struct listen_command {
    listen_view view;
    listen_tree tree;
    bool json, keeps_listening;
    uint64_t for_ns;
    const char *record_path;
    hotfn_listener *listener;
    bool expects_another;  /* a program has executed another one, which has sent nothing yet */
    known_stream *streams; /* stream n is at n - 1; owned */
    uint32_t stream_capacity;
} listen_command;

static volatile sig_atomic_t must_stop;

static const char usage[] =
    "usage: hotfn listen [options] udp:PORT | udp:HOST:PORT | unix:PATH\n"
    "  -f, --function GLOB  show only functions that match (may be repeated)\n"
    "      --slow TIME      highlight calls that take at least TIME (5ms, 20us)\n"
    "      --json           print one line of JSON for each event\n"
    "  -o, --output FILE    also write a record of what was received, for hotfn report; further\n"
    "                       programs get FILE.PID\n"
    "      --for TIME       end after TIME (10s)\n"
    "      --keep           continue when all programs have ended\n"
    "Start it first, then: hotfn run --send udp:HOST:PORT -- PROGRAM\n"
    "It ends when all programs have ended (or their launchers were silent for 10 s), or on Ctrl-C.\n";

static const struct option table[] = {
    { "function", required_argument, NULL, 'f' },
    { "slow", required_argument, NULL, SLOW },
    { "json", no_argument, NULL, JSON },
    { "output", required_argument, NULL, 'o' },
    { "for", required_argument, NULL, FOR },
    { "keep", no_argument, NULL, KEEP },
    CLI_OPTIONS_END,
};

static const char *add_glob(listen_view *v, const char *glob)
{
    const char **more = realloc(v->globs, (v->glob_count + 1u) * sizeof *more);

    if (!more) {
        return "stored: not enough memory";
    }
    v->globs = more;
    more[v->glob_count++] = glob;
    return cli_check_glob(glob);
}

static const char *read_option(void *user, int option, const char *argument)
{
    listen_command *c = user;

    switch (option) {
    case 'f': return add_glob(&c->view, argument);
    case SLOW: return cli_parse_time(argument, &c->view.slow_ns);
    case JSON: c->json = true; return NULL;
    case 'o': c->record_path = argument; return NULL;
    case FOR: return cli_parse_time(argument, &c->for_ns);
    default: c->keeps_listening = true; return NULL;
    }
}

/* ---- Filters. */

bool listen_shows_function(const listen_view *v, const char *name)
{
    for (uint32_t i = 0; i < v->glob_count; i++) {
        if (hotfn_glob_match(v->globs[i], name) > 0) {
            return true;
        }
    }
    return v->glob_count == 0;
}

bool listen_is_slow(const listen_view *v, const hotfn_listener_event *e)
{
    return v->slow_ns && e->duration_ns != HOTFN_NO_DURATION && e->duration_ns >= v->slow_ns;
}

listen_object_event listen_get_object_event(const char *name)
{
    static const char created[] = "} created", released[] = "} released", failed[] = " failed: ";

    if (name[0] != '{') {
        return LISTEN_NO_OBJECT;
    }
    return strstr(name, created)    ? LISTEN_CREATED
           : strstr(name, released) ? LISTEN_RELEASED
           : strstr(name, failed)   ? LISTEN_FAILED
                                    : LISTEN_NO_OBJECT;
}

/* Find what is known of a stream, or add it.  NULL: not enough memory. */
static known_stream *find_stream(listen_command *c, uint32_t stream)
{
    if (stream > c->stream_capacity) {
        uint32_t capacity = stream + 16;
        known_stream *more = realloc(c->streams, capacity * sizeof *more);
        if (!more) {
            return NULL;
        }
        memset(more + c->stream_capacity, 0, (capacity - c->stream_capacity) * sizeof *more);
        c->streams = more;
        c->stream_capacity = capacity;
    }
    return &c->streams[stream - 1];
}

static void report_event(void *user, const hotfn_listener_event *e)
{
    listen_command *c = user;

    c->expects_another = e->kind == HOTFN_EVENTS_EXECUTED;
    known_stream *known = find_stream(c, e->stream);
    if (known) {
        known->pid = e->pid;
        known->was_replaced |= e->kind == HOTFN_EVENTS_EXECUTED;
    }
    if (c->json) {
        listen_print_json(&c->view, e);
    } else {
        listen_show_event(&c->tree, e);
    }
}

/* ---- Receiving. */

static void request_stop(int signal)
{
    must_stop = signal;
}

static uint64_t get_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static hotfn_listener_stats get_stats(const listen_command *c)
{
    hotfn_listener_stats stats = HOTFN_LISTENER_STATS_INIT;

    hotfn_listener_get_stats(c->listener, &stats);
    return stats;
}

static bool is_over(const listen_command *c, uint64_t begin_ns)
{
    if (must_stop || ferror(c->view.out) || (c->for_ns && get_clock_ns() - begin_ns >= c->for_ns)) {
        return true;
    }
    hotfn_listener_stats stats = get_stats(c);
    return !c->keeps_listening && !c->expects_another && stats.stream_count > 0 &&
           stats.running_count == 0;
}

static bool receive_events(listen_command *c)
{
    uint64_t begin_ns = get_clock_ns(), datagrams = 0;
    hotfn_error err = HOTFN_ERROR_INIT;

    while (!is_over(c, begin_ns)) {
        if (hotfn_listener_receive(c->listener, WAIT_NS, report_event, c, &err) != HOTFN_OK) {
            hotfn_tool_fail("listen", &err);
            return false;
        }
        if (get_stats(c).datagram_count == datagrams) {
            listen_print_held(&c->tree);
        }
        datagrams = get_stats(c).datagram_count;
        fflush(c->view.out);
    }
    return true;
}

/* ---- The end. */

static bool save_stream(const listen_command *c, uint32_t stream, const char *path)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_status status = hotfn_listener_save(c->listener, stream, path, &err);

    if (status == HOTFN_OK) {
        fprintf(stderr, "hotfn listen: record %s\n", path);
    } else {
        hotfn_tool_fail("listen", &err);
    }
    return status == HOTFN_OK;
}

/* As with hotfn run, a program that has executed another one has no record of its own. */
static bool save_records(listen_command *c)
{
    uint32_t count = c->record_path ? get_stats(c).stream_count : 0, saved = 0;
    char path[MAX_PATH];
    bool ok = true;

    for (uint32_t stream = 1; stream <= count; stream++) {
        const known_stream *known = find_stream(c, stream);
        uint32_t number = known && known->pid ? known->pid : stream;

        if (known && known->was_replaced) {
            continue;
        }
        snprintf(path, sizeof path, saved > 0 ? "%s.%" PRIu32 : "%s", c->record_path, number);
        ok &= save_stream(c, stream, path);
        saved++;
    }
    if (c->record_path && saved == 0) {
        fprintf(stderr, "hotfn listen: nothing was received: %s is not written\n", c->record_path);
    }
    return ok;
}

static void print_summary(const listen_command *c)
{
    hotfn_listener_stats s = get_stats(c);

    if (c->json) {
        listen_print_json_summary(&c->view, &s);
    }
    fprintf(stderr,
            "hotfn listen: %" PRIu64 " events, %" PRIu64 " calls; %" PRIu64
            " datagrams lost, %" PRIu64 " events not sent, %" PRIu64 " datagrams malformed\n",
            s.event_count, s.call_count, s.lost_count, s.skipped_count, s.malformed_count);
}

static void print_log(void *user, int32_t level, const char *text)
{
    (void)user;
    if (log_is_shown(level, HOTFN_LOG_WARNING)) {
        fprintf(stderr, "hotfn listen: %s\n", text);
    }
}

static int listen_to(listen_command *c, const char *address)
{
    /* SA_RESTART: output continues after a signal; waiting for datagrams ends all the same */
    struct sigaction action = { .sa_handler = request_stop, .sa_flags = SA_RESTART };
    hotfn_env env = hotfn_tool_env();
    hotfn_error err = HOTFN_ERROR_INIT;
    env.log_fn = print_log;
    hotfn_status status = hotfn_listener_open(&c->listener, address,
                                              c->record_path ? HOTFN_LISTENER_KEEP : 0, &env, &err);

    if (status != HOTFN_OK) {
        hotfn_tool_fail("listen", &err);
        return status == HOTFN_E_OPTION ? TOOL_USAGE : TOOL_FAILED;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    fprintf(stderr, "hotfn listen: listening on %s\n", hotfn_listener_get_address(c->listener));
    bool ok = receive_events(c);
    listen_print_held(&c->tree);
    print_summary(c);
    ok &= save_records(c);
    hotfn_listener_close(c->listener);
    return ok ? TOOL_OK : TOOL_FAILED;
}

int hotfn_command_listen(int argc, char **argv)
{
    listen_command c = { .view = { .out = stdout } };
    const cli_options w = { usage, "f:o:", table, read_option, &c, 0, 1 };
    int status = cli_read_options(&w, argc, argv);

    if (status < 0 && optind == argc) {
        status = cli_report_misuse(argv[0], usage, "no address is named");
    }
    if (status < 0) {
        c.view.color = fit_wants_color();
        c.tree.view = &c.view;
        status = listen_to(&c, argv[optind]);
    }
    free(c.view.globs);
    free(c.streams);
    return status;
}
