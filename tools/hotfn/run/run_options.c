/* SPDX-License-Identifier: MIT */
/* The words of `hotfn run`. */
#include "cli/cli_options.h"
#include "cli/commands.h"
#include "run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_SIZE = 256,
    MAX_SIZE,
    MODULE,
    TARGET,
    FOLLOW,
    AFTER,
    FOR,
    DURABLE,
    PERF_MAP,
    NO_CACHE,
    ONLY,
    MAP,
    SYMBOL_DIR,
    KIT,
    FORCE,
    MODE,
    FLAT,
    SLOWER,
    EVENTS,
    SAMPLE,
    BUDGET,
    WITH
};

static const struct option table[] = {
    { "output", required_argument, NULL, 'o' },
    { "function", required_argument, NULL, 'f' },
    { "exclude", required_argument, NULL, 'x' },
    { "min-size", required_argument, NULL, MIN_SIZE },
    { "max-size", required_argument, NULL, MAX_SIZE },
    { "module", required_argument, NULL, MODULE },
    { "target", required_argument, NULL, TARGET },
    { "follow", no_argument, NULL, FOLLOW },
    { "after", required_argument, NULL, AFTER },
    { "for", required_argument, NULL, FOR },
    { "durable", no_argument, NULL, DURABLE },
    { "perf-map", no_argument, NULL, PERF_MAP },
    { "no-cache", no_argument, NULL, NO_CACHE },
    { "list", required_argument, NULL, ONLY },
    { "only-list", required_argument, NULL, ONLY },
    { "map", required_argument, NULL, MAP },
    { "symbol-dir", required_argument, NULL, SYMBOL_DIR },
    { "kit", required_argument, NULL, KIT },
    { "force", no_argument, NULL, FORCE },
    { "mode", required_argument, NULL, MODE },
    { "flat", no_argument, NULL, FLAT },
    { "slower-than", required_argument, NULL, SLOWER },
    { "events", no_argument, NULL, EVENTS },
    { "sample", required_argument, NULL, SAMPLE },
    { "budget", required_argument, NULL, BUDGET },
    { "with", required_argument, NULL, WITH },
    { "quiet", no_argument, NULL, 'q' },
    { "verbose", no_argument, NULL, 'v' },
    WORDS_END,
};

static const char usage[] =
    "usage: hotfn run [options] -- PROGRAM [ARG ...]\n"
    "  -o, --output FILE    the record [hotfn.hfr]\n"
    "      --mode MODE      count, or time: how long calls take too, and from where [count]\n"
    "      --flat           with --mode time: times by function only, no call tree\n"
    "      --slower-than T  with --mode time: keep each call that takes longer (1ms, 20us)\n"
    "      --sample N       with --mode time: time one call in N, at random; count all\n"
    "      --events         with --mode time: keep the latest entries and exits\n"
    "      --with alloc     with --mode time: memory that each function allocates and frees\n"
    "      --budget SHARE   hooks take at most that much of the program's time (5%): functions\n"
    "                       that cost too much are watched less closely, or not at all\n"
    "  -f, --function GLOB  count only functions that match (may be repeated)\n"
    "  -x, --exclude GLOB   leave out functions that match\n"
    "      --min-size N, --max-size N   by size in bytes\n"
    "      --module GLOB    modules to hook, by file name [the program itself]; '*' is all\n"
    "      --target GLOB    the program to count is a descendant whose file matches\n"
    "      --follow         count children that the program starts too\n"
    "      --after TIME     begin to count that long after the start (2s, 500ms)\n"
    "      --for TIME       and stop after that long\n"
    "      --durable        keep the record in the file all the time (survives a kill of both)\n"
    "      --perf-map       write names of generated code to /tmp/perf-PID.map\n"
    "      --no-cache       do not keep scans for the next run\n"
    "      --map FILE       names from the linker map of the program (a stripped one has none)\n"
    "      --symbol-dir DIR look for separate debug files there too (may be repeated)\n"
    "      --kit DIR        take plan and list from a folder that hotfn kit made\n"
    "      --force          take the map although it is of another build\n"
    "      --list FILE      hook only the functions listed: .flf of hotfn list -o, or text, a line\n"
    "                       module+0xRVA or module!name each (also --only-list)\n"
    "  -q, --quiet          no summary;  -v, --verbose: more messages\n"
    "The program's exit status is passed on; 125, 126, 127: hotfn could not run it.\n";

static bool bad(const char *text, const char *argument)
{
    fprintf(stderr, "hotfn run: %s '%s'\n", text, argument);
    return false;
}

static const char *append(run_list *list, const char *item)
{
    const char **more = realloc(list->items, (list->count + 1u) * sizeof *more);
    if (!more) {
        return "kept: there is no memory";
    }
    list->items = more;
    list->items[list->count++] = item;
    return NULL;
}

static const char *append_glob(run_list *list, const char *glob)
{
    const char *wanted = words_glob(glob);
    return wanted ? wanted : append(list, glob);
}

/* 5%, 0.5%; a bare number is a share: 0.05. */
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

static const char *parse_some_time(const char *text, uint64_t *out_ns)
{
    const char *wanted = words_time(text, out_ns);
    return wanted || *out_ns ? wanted : "a time above 0";
}

static const char *take_flag(run_options *o, int word)
{
    switch (word) {
    case FOLLOW: o->follow = true; return NULL;
    case DURABLE: o->durable = true; return NULL;
    case PERF_MAP: o->perf_map = true; return NULL;
    case NO_CACHE: o->no_cache = true; return NULL;
    case FORCE: o->force = true; return NULL;
    case FLAT: o->flat = true; return NULL;
    case EVENTS: o->events = true; return NULL;
    case 'q': o->quiet = true; return NULL;
    default: o->verbose = true; return NULL;
    }
}

static const char *take(void *user, int word, const char *argument)
{
    static const char *const modes[] = { "count", "time" };
    run_options *o = user;
    switch (word) {
    case 'o': o->record_path = argument; return NULL;
    case 'f': return append_glob(&o->include, argument);
    case 'x': return append_glob(&o->exclude, argument);
    case MODULE: return append_glob(&o->modules, argument);
    case TARGET: o->target_glob = argument; return words_glob(argument);
    case MIN_SIZE: return words_u64(argument, &o->min_bytes);
    case MAX_SIZE: return words_u64(argument, &o->max_bytes);
    case AFTER: return words_time(argument, &o->after_ns);
    case FOR: return parse_some_time(argument, &o->for_ns);
    case ONLY: o->only_path = argument; return NULL;
    case MAP: o->map_path = argument; return NULL;
    case SYMBOL_DIR: return append(&o->symbol_dirs, argument);
    case KIT: o->kit_path = argument; return NULL;
    case SLOWER: return parse_some_time(argument, &o->slow_ns);
    case SAMPLE:
        return words_u32(argument, 1, 1000000, &o->sample_mean) ? NULL
                                                                : "a number from 1 to 1000000";
    case WITH:
        o->with_alloc = strcmp(argument, "alloc") == 0;
        return o->with_alloc ? NULL : "alloc, the only thing that can be kept too";
    case BUDGET: return parse_share(argument, &o->budget_ppm);
    case MODE:
        o->timing = words_one_of(argument, modes, 2) == 1 ? HOTFN_TIMING_TIMES : 0;
        return words_one_of(argument, modes, 2) < 2 ? NULL : "count or time";
    default: return take_flag(o, word);
    }
}

/* What is to be kept of times, once all words are read. */
static bool choose_timing(run_options *o)
{
    if (!o->timing) {
        return !(o->flat || o->events || o->slow_ns || o->sample_mean || o->with_alloc) ||
               bad("only with --mode time:", o->with_alloc    ? "--with"
                                             : o->flat        ? "--flat"
                                             : o->events      ? "--events"
                                             : o->sample_mean ? "--sample"
                                                              : "--slower-than");
    }
    if (o->budget_ppm && !o->sample_mean) {
        o->sample_mean = 1; /* how many calls are timed can change while it runs only then */
    }
    if (o->sample_mean) {
        o->timing |= HOTFN_TIMING_SAMPLED | HOTFN_TIMING_HISTOGRAMS;
    } else if (!o->flat) {
        o->timing |= HOTFN_TIMING_TREE | HOTFN_TIMING_HISTOGRAMS;
    }
    if (o->with_alloc && o->sample_mean) {
        return bad(
            "who called an allocator is known only where every call is timed: not with --sample "
            "or --budget, but with --flat:",
            "--with alloc");
    }
    o->timing |= o->with_alloc ? HOTFN_TIMING_ALLOC : 0;
    o->timing |= o->slow_ns ? HOTFN_TIMING_SLOW : 0;
    o->timing |= o->events ? HOTFN_TIMING_EVENTS : 0;
    return true;
}

int run_parse(run_options *o, int argc, char **argv)
{
    const words w = { usage, "+o:f:x:qv", table, take, o, 0, INT_MAX };
    *o = (run_options){ .record_path = WORDS_RECORD };
    int status = words_read(&w, argc, argv);
    if (status >= 0) {
        return status == TOOL_OK ? TOOL_OK : RUN_FAILED;
    }
    if (o->kit_path && (o->map_path || o->target_glob)) {
        bad("a kit is of one program and has its names:", "--map, --target");
        return RUN_FAILED;
    }
    if (o->max_bytes && o->max_bytes < o->min_bytes) {
        fputs("hotfn run: --min-size is above --max-size: no function is left\n", stderr);
        return RUN_FAILED;
    }
    if (optind >= argc) {
        fprintf(stderr, "hotfn run: name a program: hotfn run -- ./program args\n");
        return RUN_FAILED;
    }
    o->command = argv + optind;
    return choose_timing(o) ? -1 : RUN_FAILED;
}
