/* SPDX-License-Identifier: MIT */
/* `hotfn run`: start a program with the agent inside, look after it until it ends, write the record,
 * and end as it ended.  The record's path is a symbolic link to the live record meanwhile, so that
 * `hotfn report` can read it at any time. */
#include "run.h"
#include "cli/commands.h"
#include "scan/kit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct run {
    run_options options;
    run_target target;
    run_service service;
    run_window window;
    run_budget budget;
    run_child child;
    hotfn_live *live;
    hotfn_handover *handover;
    char agent[PATH_MAX];
    double started;
} run;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void log_line(void *user, int32_t level, const char *text)
{
    const run_options *o = user;
    int32_t most = o->quiet ? HOTFN_LOG_ERROR : HOTFN_LOG_WARNING;
    if (level <= most || o->verbose) {
        fprintf(stderr, "hotfn run: %s\n", text);
    }
}

/* The command as a shell would take it, for the record. */
static char *quote_command(char **command)
{
    size_t bytes = 1;
    for (char **word = command; *word; word++) {
        bytes += 4 * strlen(*word) + 3;
    }
    char *text = calloc(bytes, 1), *at = text;
    for (char **word = command; text && *word; word++) {
        bool plain = **word && !(*word)[strcspn(*word, " \t\n'\"\\$`*?[]{}()<>|&;#~!")];
        at += sprintf(at, "%s%s", word == command ? "" : " ", plain ? "" : "'");
        for (const char *c = *word; *c; c++) {
            at += sprintf(at, *c == '\'' ? "'\\''" : "%c", *c);
        }
        at += sprintf(at, "%s", plain ? "" : "'");
    }
    return text;
}

/* ---- Before: the live record under its path. */

/* A 32-bit target has no room for a record of many gigabytes, sparse as it is. */
enum {
    EITHER_SLOTS = 1 << 19, /* of a 64-bit program whose children may be of 32 */
    NARROW_SLOTS = 1 << 18,
    NARROW_TIMED_SLOTS = 1 << 16,
    NARROW_ROWS_BYTES = 256 << 20,
    NARROW_STRING_BYTES = 64 << 20,
    NARROW_HISTOGRAMS = 1 << 12,
    NARROW_NODES = 1 << 19,
    TIMED_SLOT_BYTES = 80, /* and NARROW_LOG_BYTES a thread */
    NARROW_LOG_BYTES = 192 << 10,
};

static void make_narrow(hotfn_live_options *o, uint32_t timing)
{
    uint64_t row = (uint64_t)o->slot_capacity * sizeof(uint64_t), rows;

    if (timing) {
        row = (uint64_t)o->slot_capacity * TIMED_SLOT_BYTES + NARROW_LOG_BYTES;
    }
    rows = NARROW_ROWS_BYTES / row;
    o->thread_capacity = rows < 16 ? 16 : rows > 4096 ? 4096 : (uint32_t)rows;
    o->string_bytes = NARROW_STRING_BYTES;
    o->node_capacity = NARROW_NODES;
    o->histogram_capacity = NARROW_HISTOGRAMS;
}

/* For functions of other images than the target's. */
static uint32_t other_slots(const run *r, bool narrow)
{
    if (!r->options.modules.count && !r->options.target_glob && !r->options.follow) {
        return 0;
    }
    if (narrow) {
        return r->options.timing ? NARROW_TIMED_SLOTS : NARROW_SLOTS;
    }
    return strstr(r->agent, "$PLATFORM") ? EITHER_SLOTS : 2u << 20;
}

static bool make_live(run *r)
{
    char folder[PATH_MAX];
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_live_options o = HOTFN_LIVE_OPTIONS_INIT;
    char *command = quote_command(r->options.command);
    bool narrow = r->target.machine == HOTFN_MACHINE_X86;
    uint64_t slots = r->target.text_bytes / 16 + 8192 + other_slots(r, narrow);
    o.slot_capacity = slots < (16u << 20) ? (uint32_t)slots : 16u << 20;
    if (narrow) {
        make_narrow(&o, r->options.timing);
    }
    o.command = command;
    o.directory = getcwd(folder, sizeof folder) ? folder : "";
    o.durable_path = r->options.durable ? r->options.record_path : NULL;
    o.timing = r->options.timing;
    o.sample_mean = r->options.sample_mean;
    o.slow_ns = r->options.slow_ns;
    o.budget_ppm = r->options.budget_ppm;
    hotfn_status s = hotfn_live_create(&r->live, &o, &r->service.env, &err);
    free(command);
    if (s == HOTFN_OK) {
        s = hotfn_handover_create(&r->handover, &r->service.env, &err);
    }
    if (s != HOTFN_OK) {
        hotfn_tool_fail("run", &err);
        return false;
    }
    for (uint32_t reason = 1; reason < 128; reason++) {
        hotfn_live_set_reason(r->live, reason, hotfn_reason_get_name(reason),
                              hotfn_reason_get_text(reason));
    }
    return true;
}

static bool link_live(const run *r)
{
    char live[64];
    const char *path = r->options.record_path;
    struct stat old;
    if (r->options.durable) {
        return true;
    }
    if (lstat(path, &old) == 0 && !S_ISREG(old.st_mode) && !S_ISLNK(old.st_mode)) {
        fprintf(stderr,
                "hotfn run: %s: is no file that a record may replace; choose another with -o\n",
                path);
        return false;
    }
    snprintf(live, sizeof live, "/proc/%d/fd/%d", (int)getpid(), hotfn_live_fd(r->live));
    unlink(path);
    if (symlink(live, path) != 0) {
        fprintf(stderr,
                "hotfn run: %s: the record cannot be written there (%s); choose another "
                "place with -o\n",
                path, strerror(errno));
        return false;
    }
    return true;
}

/* A map of another build is refused before the program starts. */
static bool map_fits(const run *r)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    hotfn_functions *functions = NULL;
    options.flags = r->options.force ? HOTFN_SYMBOLS_FORCE : 0;
    hotfn_status s = hotfn_image_open(&image, r->target.image, &r->service.env, &err);
    if (s == HOTFN_OK) {
        s = hotfn_symbols_load_map(&symbols, r->options.map_path, image, &options, &r->service.env,
                                   &err);
    }
    if (s == HOTFN_OK) {
        s = hotfn_functions_build(&functions, image, symbols, &r->service.env, &err);
    }
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    if (s != HOTFN_OK) {
        hotfn_tool_fail("run", &err);
    }
    return s == HOTFN_OK;
}

static bool read_list(run *r)
{
    r->service.only = run_only_read(r->options.only_path, r->options.quiet, &r->service.env);
    return r->service.only && (r->options.target_glob ||
                               run_only_fits(r->service.only, r->target.image, &r->service.env));
}

/* What a kit holds beside the program that it is of. */
static bool open_kit(run *r)
{
    static char list[PATH_MAX];
    char plan[PATH_MAX];
    hotfn_error err = HOTFN_ERROR_INIT;
    if (snprintf(list, sizeof list, "%s/" KIT_LIST, r->options.kit_path) >= (int)sizeof list ||
        snprintf(plan, sizeof plan, "%s/" KIT_PLAN, r->options.kit_path) >= (int)sizeof plan ||
        hotfn_scan_load(&r->service.kit, r->target.image, plan, &r->service.env, &err) !=
            HOTFN_OK) {
        hotfn_tool_fail("run", &err);
        return false;
    }
    if (!r->options.only_path) {
        r->options.only_path = list;
    }
    return true;
}

static int prepare(run *r)
{
    int status = run_find_target(&r->target, &r->options);
    if (status != 0) {
        return status;
    }
    if (!run_has_proc("hotfn run")) {
        return RUN_FAILED;
    }
    if (!run_find_agent(r->agent, sizeof r->agent, r->target.machine)) {
        fprintf(stderr,
                "hotfn run: %s was not found beside this program nor at %s; "
                "install libhotfn whole%s\n",
                run_agent_name(r->target.machine), HOTFN_AGENT_FOLDER,
                r->target.machine == HOTFN_MACHINE_X86
                    ? " (this one is built where the compiler takes -m32)"
                    : "");
        return RUN_FAILED;
    }
    if (r->options.follow || r->options.target_glob) {
        run_take_either_agent(r->agent, sizeof r->agent);
    }
    if (strpbrk(r->agent, " :")) {
        fprintf(stderr,
                "hotfn run: %s: the loader takes no agent whose path has a space or colon; "
                "install it elsewhere\n",
                r->agent);
        return RUN_FAILED;
    }
    r->service.env = hotfn_tool_env();
    r->service.env.log_fn = log_line;
    r->service.env.log_user = &r->options;
    if (r->options.kit_path && !open_kit(r)) {
        return RUN_FAILED;
    }
    if (r->options.only_path && !read_list(r)) {
        return RUN_FAILED;
    }
    if (r->options.map_path && !r->options.target_glob && !map_fits(r)) {
        return RUN_FAILED;
    }
    return make_live(r) && link_live(r) ? 0 : RUN_FAILED;
}

/* ---- After. */

static uint32_t record_state(int status)
{
    return WIFSIGNALED(status) ? HOTFN_RECORD_KILLED : HOTFN_RECORD_FINISHED;
}

static int32_t record_exit_code(int status)
{
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static bool finish_record(run *r)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_status s =
        hotfn_live_finish(r->live, r->options.record_path, record_state(r->child.status),
                          record_exit_code(r->child.status), r->window.from, r->window.to, &err);
    if (s == HOTFN_OK) {
        return true;
    }
    hotfn_tool_fail("run", &err);
    if (!r->options.durable) {
        unlink(r->options.record_path); /* the link to the live record: it leads nowhere soon */
    }
    char elsewhere[] = "/tmp/hotfn-XXXXXX.hfr";
    int fd = mkstemps(elsewhere, 4);
    if (fd >= 0) {
        close(fd);
        if (hotfn_live_finish(r->live, elsewhere, record_state(r->child.status),
                              record_exit_code(r->child.status), r->window.from, r->window.to,
                              NULL) == HOTFN_OK) {
            fprintf(stderr, "hotfn run: the record was kept in %s instead\n", elsewhere);
            return false;
        }
        unlink(elsewhere);
    }
    return false;
}

/* Print the summary on stderr, and the processes that still run. */
static void report_run(const run *r)
{
    hotfn_record *record = NULL;
    if (r->options.quiet) {
        return;
    }
    hotfn_record_open(&record, r->options.record_path, NULL, NULL);
    run_summarise(&r->service, record, now() - r->started);
    if (record) {
        run_tell_left(record, r->live, (uint32_t)r->child.pid);
    }
    hotfn_record_close(record);
}

static void clean_up(run *r)
{
    hotfn_snapshot_destroy(r->window.from);
    hotfn_snapshot_destroy(r->window.to);
    hotfn_handover_destroy(r->handover);
    hotfn_live_close(r->live);
    run_only_free(r->service.only);
    hotfn_scan_close(r->service.kit);
    free(r->service.include_used);
    free(r->service.modules_used);
    free(r->options.modules.items);
    free(r->options.include.items);
    free(r->options.exclude.items);
}

int hotfn_command_run(int argc, char **argv)
{
    static run r;
    int status = run_parse(&r.options, argc, argv);
    if (status >= 0) {
        return status;
    }
    r.started = now();
    status = prepare(&r);
    if (status == 0) {
        status = run_child_start(&r.child, &r.options, &r.target, r.agent, hotfn_live_fd(r.live),
                                 hotfn_handover_fd(r.handover));
        if (status != 0 && !r.options.durable) {
            unlink(r.options.record_path);
        }
    }
    if (status != 0) {
        clean_up(&r);
        return status;
    }
    hotfn_live_set_pid(r.live, (uint32_t)r.child.pid);
    r.service.options = &r.options;
    r.service.target = &r.target;
    r.service.live = r.live;
    r.service.handover = r.handover;
    if (!run_service_start(&r.service)) {
        fprintf(stderr, "hotfn run: no thread can be started: nothing is counted\n");
    }
    run_window_start(&r.window, r.live, r.options.after_ns, r.options.for_ns);
    if (r.options.budget_ppm &&
        !run_budget_start(&r.budget, r.live, r.handover, (uint32_t)r.child.pid, &r.service.env)) {
        fprintf(stderr, "hotfn run: the budget is not kept\n");
    }
    run_child_wait(&r.child);
    run_budget_stop(&r.budget);
    run_child_reap(&r.child);
    run_window_stop(&r.window);
    run_service_stop(&r.service);
    if (finish_record(&r)) {
        report_run(&r);
    }
    run_child child = r.child;
    clean_up(&r);
    run_child_imitate(&child);
    return RUN_FAILED;
}
