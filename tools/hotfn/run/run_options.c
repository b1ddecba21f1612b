/* SPDX-License-Identifier: MIT */
/* The command line of `hotfn run`, as options of hotfn_launch_start. */
#include "cli/cli_options.h"
#include "cli/commands.h"
#include "run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TARGET = RUN_FIRST_OWN_OPTION,
    FOLLOW,
    FOUND,
    AFTER,
    DURABLE,
    PERF_MAP,
    MAP,
    KIT,
    FORCE,
    BUDGET,
    WITH,
    RUNTIME,
    SEND,
    WATCH,
    PUSH,
    PUSH_EVERY,
    APP,
    BUILD_VERSION,
    LABEL,
    TOKEN_FILE
};

static const struct option table[] = {
    RUN_SHARED_OPTIONS,
    { "target", required_argument, NULL, TARGET },
    { "follow", no_argument, NULL, FOLLOW },
    { "found", no_argument, NULL, FOUND },
    { "after", required_argument, NULL, AFTER },
    { "durable", no_argument, NULL, DURABLE },
    { "perf-map", no_argument, NULL, PERF_MAP },
    { "only-list", required_argument, NULL, RUN_LIST },
    { "map", required_argument, NULL, MAP },
    { "kit", required_argument, NULL, KIT },
    { "force", no_argument, NULL, FORCE },
    { "budget", required_argument, NULL, BUDGET },
    { "with", required_argument, NULL, WITH },
    { "runtime", required_argument, NULL, RUNTIME },
    { "send", required_argument, NULL, SEND },
    { "watch", required_argument, NULL, WATCH },
#ifdef HOTFN_HAVE_PUSH
    { "push", required_argument, NULL, PUSH },
    { "push-every", required_argument, NULL, PUSH_EVERY },
    { "app", required_argument, NULL, APP },
    { "app-version", required_argument, NULL, BUILD_VERSION },
    { "label", required_argument, NULL, LABEL },
    { "token-file", required_argument, NULL, TOKEN_FILE },
#endif
    CLI_OPTIONS_END,
};

/* clang-format off */
static const char usage[] =
    "usage: hotfn run [options] -- PROGRAM [ARG ...]\n"
    "  -o, --output FILE    the record [hotfn.hfr]\n"
    "      --mode MODE      count, or time: also measure times, callers and the call tree [count]\n"
    "      --flat           with --mode time: times by function only, no call tree\n"
    "      --slower-than T  with --mode time: keep each call that takes longer (1ms, 20us)\n"
    "      --sample N       with --mode time: time one call in N, at random; count all\n"
    "      --events         with --mode time: keep the latest entries and exits\n"
    "      --send ADDRESS   send entries and exits as they happen to hotfn listen: udp:HOST:PORT,\n"
    "                       unix:PATH; implies --mode time and --events\n"
    "      --with alloc     with --mode time: memory that each function allocates and frees\n"
    "      --clock CLOCK    with --mode time: auto, tick (cheap, 4 us), cpu (exact, costly) [auto]\n"
    "      --budget SHARE   limit the hooks' share of the program's time (5%): functions that\n"
    "                       cost too much are timed less often, only counted, or unhooked\n"
    "      --runtime NAME   also count the functions of a runtime's programs: python, objc,\n"
    "                       com (Windows); or filter the method trace of Android: art\n"
    "      --watch GLOB     with --runtime art: trace only calls of methods that match and take\n"
    "                       longer than --slower-than\n"
    "      --max-threads N  count at most N threads at one time [by the memory there is]\n"
    "      --max-places N   with --mode time: keep N places in the call trees [by memory]\n"
    RUN_SELECTION_USAGE
    "      --target GLOB    count the descendant whose file matches, not PROGRAM itself\n"
    "      --found          also hook functions of stripped programs that only calls show\n"
    "      --follow         also count children that the program starts\n"
    "      --after TIME     begin to count TIME after the start (2s, 500ms)\n"
    "      --for TIME       count for TIME, then stop\n"
    "      --durable        keep the live record in the file: it survives a kill of both processes\n"
    "      --perf-map       write names of generated code to /tmp/perf-PID.map\n"
    "      --no-cache       do not keep scans for the next run\n"
    "      --map FILE       names from the linker map of the program (a stripped one has none)\n"
    "      --symbol-dir DIR also search DIR for separate debug files (may be repeated)\n"
    "      --kit DIR        take plan and list from a folder that hotfn kit made\n"
    "      --force          use the map even if it belongs to another build\n"
    "      --list FILE      hook only the functions listed: a .flf of hotfn list -o, or text with\n"
    "                       module+0xRVA or module!name on each line (also --only-list)\n"
#ifdef HOTFN_HAVE_PUSH
    "      --push URL       send the record to a hotfn-collector when the program has ended, with\n"
    "      --app NAME, --app-version TEXT, --label KEY=VALUE, --token-file FILE (hotfn push --help)\n"
    "      --push-every T   with --push: also send what was counted every T while it runs (10s)\n"
#endif
    "  -q, --quiet          no summary;  -v, --verbose: more messages\n"
    "The program's exit status is passed on; 125, 126, 127: hotfn could not run it.\n";
/* clang-format on */

static const char *append_item(const char ***list, uint32_t *count, const char *item)
{
    const char **more = realloc(*list, (*count + 1u) * sizeof *more);

    if (!more) {
        return "stored: not enough memory";
    }
    *list = more;
    more[(*count)++] = item;
    return NULL;
}

static const char *append_glob(const char ***list, uint32_t *count, const char *glob)
{
    const char *expected = cli_check_glob(glob);

    return expected ? expected : append_item(list, count, glob);
}

/* 5%, 0.5%; a number without % is a fraction: 0.05. */
static const char *parse_share(const char *text, uint32_t *out_ppm)
{
    char *end;
    double value = strtod(text, &end);
    bool percent = end != text && strcmp(end, "%") == 0;
    double ppm = value * (percent ? 1e4 : 1e6);
    bool is_share = end != text && (percent || *end == 0) && ppm >= 100 && ppm <= 1e6;

    *out_ppm = is_share ? (uint32_t)(ppm + 0.5) : 0;
    return is_share ? NULL : "a share of the time (5%, 0.5%, at most 100%)";
}

static const char *parse_positive_time(const char *text, uint64_t *out_ns)
{
    const char *expected = cli_parse_time(text, out_ns);

    return expected || *out_ns ? expected : "a time above 0";
}

static const char *parse_mode(const char *text, uint32_t *mode)
{
    static const char *const modes[] = { "count", "time" }; /* HOTFN_LAUNCH_COUNT, _TIME */

    *mode = cli_find_name(text, modes, 2);
    return *mode < 2 ? NULL : "count or time";
}

static const char *parse_clock(const char *text, uint32_t *clock)
{
    static const char *const clocks[] = { "auto", "tick", "cpu" }; /* HOTFN_LAUNCH_CLOCK_* */

    *clock = cli_find_name(text, clocks, 3);
    return *clock < 3 ? NULL : "auto, tick or cpu";
}

/* Times, and room for them. */
static const char *read_times_option(hotfn_launch_options *launch, int option, const char *argument)
{
    switch (option) {
    case RUN_MODE: return parse_mode(argument, &launch->mode);
    case RUN_CLOCK: return parse_clock(argument, &launch->clock);
    case RUN_FLAT: launch->flags |= HOTFN_LAUNCH_FLAT; return NULL;
    case RUN_EVENTS: launch->flags |= HOTFN_LAUNCH_EVENTS; return NULL;
    case RUN_SLOWER: return parse_positive_time(argument, &launch->slow_ns);
    case RUN_SAMPLE:
        return cli_parse_u32(argument, 1, 1000000, &launch->sample_interval)
                   ? NULL
                   : "a number from 1 to 1000000";
    case RUN_MAX_THREADS:
        return cli_parse_u32(argument, 1, 1000000, &launch->max_threads)
                   ? NULL
                   : "a number from 1 to 1000000";
    default:
        return cli_parse_u32(argument, 1, 60000000, &launch->max_places)
                   ? NULL
                   : "a number from 1 to 60000000";
    }
}

const char *run_read_shared_option(run_options *o, int option, const char *argument)
{
    hotfn_launch_options *launch = &o->launch;

    switch (option) {
    case 'o': launch->record_path = argument; return NULL;
    case 'f': return append_glob(&o->includes, &o->selection.include_count, argument);
    case 'x': return append_glob(&o->excludes, &o->selection.exclude_count, argument);
    case RUN_MODULE: return append_glob(&o->modules, &launch->module_count, argument);
    case RUN_MIN_SIZE: return cli_parse_u64(argument, &o->selection.min_bytes);
    case RUN_MAX_SIZE: return cli_parse_u64(argument, &o->selection.max_bytes);
    case RUN_FOR: return parse_positive_time(argument, &launch->for_ns);
    case RUN_LIST: launch->list_path = argument; return NULL;
    case RUN_SYMBOL_DIR: return append_item(&o->symbol_dirs, &launch->symbol_dir_count, argument);
    case RUN_NO_CACHE: launch->flags |= HOTFN_LAUNCH_NO_CACHE; return NULL;
    case 'q': o->quiet = true; return NULL;
    case 'v': o->verbose = true; return NULL;
    default: return read_times_option(launch, option, argument);
    }
}

bool run_use_lists(run_options *o, const char *command)
{
    if (o->selection.max_bytes && o->selection.max_bytes < o->selection.min_bytes) {
        fprintf(stderr, "hotfn %s: --min-size is above --max-size: no function has such a size\n",
                command);
        return false;
    }
    o->launch.modules = o->modules;
    o->launch.symbol_dirs = o->symbol_dirs;
    o->launch.selection = &o->selection;
    o->selection.include = o->includes;
    o->selection.exclude = o->excludes;
    return true;
}

/* The flag of an option without an argument; 0: another option. */
static uint32_t find_flag(int option)
{
    switch (option) {
    case FOLLOW: return HOTFN_LAUNCH_FOLLOW;
    case FOUND: return HOTFN_LAUNCH_FOUND;
    case DURABLE: return HOTFN_LAUNCH_DURABLE;
    case PERF_MAP: return HOTFN_LAUNCH_PERF_MAP;
    case FORCE: return HOTFN_LAUNCH_FORCE_MAP;
    default: return 0;
    }
}

#ifdef HOTFN_HAVE_PUSH
static const char *read_push_option(push_choices *push, int option, const char *argument)
{
    switch (option) {
    case PUSH: return push_set_url(push, argument);
    case PUSH_EVERY: return push_set_interval(push, argument);
    case APP: push->options.app = argument; return NULL;
    case BUILD_VERSION: push->options.version = argument; return NULL;
    case LABEL: return push_add_label(push, argument);
    default: push->token_file = argument; return NULL;
    }
}
#endif

static const char *read_option(void *user, int option, const char *argument)
{
    run_options *o = user;
    hotfn_launch_options *launch = &o->launch;

    switch (option) {
    case TARGET: launch->target_glob = argument; return cli_check_glob(argument);
    case AFTER: return cli_parse_time(argument, &launch->after_ns);
    case MAP: launch->map_path = argument; return NULL;
    case KIT: launch->kit_path = argument; return NULL;
    case WITH:
        launch->flags |= HOTFN_LAUNCH_ALLOC;
        return strcmp(argument, "alloc") == 0 ? NULL : "alloc";
    case SEND: launch->send_to = argument; return NULL;
    case RUNTIME: launch->runtime = argument; return NULL;
    case WATCH: launch->watch = argument; return cli_check_glob(argument);
    case BUDGET: return parse_share(argument, &launch->budget_ppm);
#ifdef HOTFN_HAVE_PUSH
    case PUSH:
    case PUSH_EVERY:
    case APP:
    case BUILD_VERSION:
    case LABEL:
    case TOKEN_FILE: return read_push_option(&o->push, option, argument);
#endif
    default:
        launch->flags |= find_flag(option);
        return find_flag(option) ? NULL : run_read_shared_option(o, option, argument);
    }
}

/* Report options that cannot be combined, with their names.  hotfn_launch_start refuses the same
 * combinations, in words for callers of the library. */
static int check_combinations(const hotfn_launch_options *o)
{
    const char *needs_times = o->flags & HOTFN_LAUNCH_ALLOC    ? "--with alloc"
                              : o->flags & HOTFN_LAUNCH_FLAT   ? "--flat"
                              : o->flags & HOTFN_LAUNCH_EVENTS ? "--events"
                              : o->sample_interval             ? "--sample"
                              : o->slow_ns && !o->watch        ? "--slower-than"
                              : o->max_places                  ? "--max-places"
                                                               : NULL;

    if (o->mode == HOTFN_LAUNCH_COUNT && needs_times && !o->send_to) {
        fprintf(stderr, "hotfn run: %s needs --mode time\n", needs_times);
        return RUN_FAILED;
    }
    if (o->watch && (!o->slow_ns || !o->runtime || strcmp(o->runtime, "art") != 0)) {
        fputs("hotfn run: --watch needs --runtime art and --slower-than\n", stderr);
        return RUN_FAILED;
    }
    if (o->flags & HOTFN_LAUNCH_ALLOC && (o->sample_interval || o->budget_ppm)) {
        fputs(
            "hotfn run: --with alloc cannot be used with --sample or --budget: the caller of an "
            "allocator is known only if every call is timed; to make timing cheaper, use --flat\n",
            stderr);
        return RUN_FAILED;
    }
    return -1;
}

int run_parse_options(run_options *o, int argc, char **argv)
{
    const cli_options w = { usage, "+" RUN_SHARED_LETTERS, table, read_option, o, 0, INT_MAX };

    *o = (run_options){ .launch = HOTFN_LAUNCH_OPTIONS_INIT, .selection = HOTFN_SELECTION_INIT };
#ifdef HOTFN_HAVE_PUSH
    push_init_choices(&o->push);
#endif
    o->launch.flags = HOTFN_LAUNCH_PASS_SIGNALS;
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status == TOOL_OK ? TOOL_OK : RUN_FAILED;
    }
    if (!run_use_lists(o, "run")) {
        return RUN_FAILED;
    }
    o->launch.command = optind < argc ? (const char *const *)(argv + optind) : NULL;
    status = o->launch.kit_path ? run_use_kit(o) : -1;
    if (status >= 0) {
        return status;
    }
    o->launch.record_path = o->launch.record_path ? o->launch.record_path : CLI_DEFAULT_RECORD;
    o->launch.flags |= o->quiet ? HOTFN_LAUNCH_QUIET_AGENT : 0;
#ifdef HOTFN_HAVE_PUSH
    if (!o->push.options.url &&
        (o->push.options.app || o->push.options.version || o->push.options.label_count ||
         o->push.token_file || o->push.every_seconds)) {
        fputs(
            "hotfn run: --push-every, --app, --app-version, --label and --token-file need --push\n",
            stderr);
        return RUN_FAILED;
    }
#endif
    status = check_combinations(&o->launch);
    if (status >= 0) {
        return status;
    }
    if (!o->launch.command) {
        fprintf(stderr, "hotfn run: no program is named: hotfn run -- ./program args\n");
        return RUN_FAILED;
    }
    return -1;
}

void run_free_options(run_options *o)
{
    free(o->modules);
    free(o->includes);
    free(o->excludes);
    free(o->symbol_dirs);
    free(o->kit.settings);
}
