/* SPDX-License-Identifier: MIT */
/* The parts of `hotfn run`: options, the target's file, the service that scans for it, the child. */
#ifndef HOTFN_TOOL_RUN_H
#define HOTFN_TOOL_RUN_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* As env, nice and timeout do. */
#define RUN_FAILED 125
#define RUN_NOT_EXECUTABLE 126
#define RUN_NOT_FOUND 127

typedef struct run_list { /* a growing list of option arguments */
    const char **items;
    uint32_t count;
} run_list;

typedef struct run_options {
    const char *record_path;
    run_list modules, include, exclude, symbol_dirs;
    uint64_t min_bytes, max_bytes;
    const char *target_glob;
    const char *only_path;
    const char *map_path; /* of the main program */
    const char *kit_path; /* a folder that hotfn kit made */
    uint64_t after_ns, for_ns;
    uint32_t timing; /* HOTFN_TIMING_*; 0: count */
    uint32_t sample_mean;
    uint64_t slow_ns;
    uint32_t budget_ppm; /* 0: none */
    bool flat, events, with_alloc;
    bool follow, durable, perf_map, no_cache, quiet, verbose, force;
    char **command; /* NULL-terminated */
} run_options;

/* run_options.c: -1 to go on, else the status to end with (behind --help, or a message). */
int run_parse(run_options *o, int argc, char **argv);

/* run_target.c: what will be executed, and whether the agent can enter it. */
typedef struct run_target {
    char file[PATH_MAX];        /* what exec gets                                  */
    char image[PATH_MAX];       /* the ELF program: file, or its #! interpreter    */
    char interpreter[PATH_MAX]; /* the dynamic loader, resolved                    */
    uint64_t device, inode;     /* of image */
    uint64_t text_bytes;
    uint32_t machine; /* HOTFN_MACHINE_* of image; UNKNOWN with --target: ours, then */
} run_target;
/* 0, or RUN_* after a message. */
int run_find_target(run_target *t, const run_options *o);
/* Is there an agent for programs of that machine? */
bool run_can_run(uint32_t machine);
/* Its name; HOTFN_MACHINE_OTHER: for those like ourselves. */
const char *run_agent_name(uint32_t machine);
/* False after a message. */
bool run_has_proc(const char *of);
bool run_find_agent(char *path, size_t bytes, uint32_t machine);
/* From one agent's path to one by which each process finds that of its own word size; as it was if there
 * are not both. */
void run_take_either_agent(char *path, size_t bytes);

/* run_only.c: --list, a function list of either form. */
typedef struct run_only run_only;
run_only *run_only_read(const char *path, bool quiet,
                        const hotfn_env *env); /* NULL after a message */
void run_only_free(run_only *only);
/* Is it of this build of the program at path?  False after a message. */
bool run_only_fits(const run_only *only, const char *path, const hotfn_env *env);
/* *rvas: the sorted RVAs that it lists of the file, *count of them; kept until the next call. */
hotfn_status run_only_find(run_only *only, const hotfn_scan *scan, const hotfn_env *env,
                           const uint64_t **rvas, uint32_t *count, hotfn_error *err);

/* run_service.c: a thread that scans what the target asks for. */
typedef struct run_service {
    const run_options *options;
    const run_target *target;
    run_only *only;
    hotfn_scan *kit; /* of the main program; NULL: it is scanned here */
    hotfn_env env;
    hotfn_live *live;
    hotfn_handover *handover;
    char cache_folder[PATH_MAX]; /* "" = none */
    uint8_t *include_used;       /* per -f glob: did it match? */
    uint8_t *modules_used;       /* per --module glob */
    atomic_bool stop;
    bool main_seen;
    pthread_t thread;
} run_service;
bool run_service_start(run_service *s);
void run_service_stop(run_service *s);

/* run_summary.c: record is NULL if it cannot be read; a run without the agent is said so. */
void run_summarise(const run_service *s, const hotfn_record *record, double seconds);
/* run_left.c: says on stderr which processes of the record, but for the child that has ended, run on. */
void run_tell_left(const hotfn_record *record, const hotfn_live *live, uint32_t child);

/* run_child.c */
typedef struct run_child {
    pid_t pid;
    int status; /* as waitpid gives it */
} run_child;
/* Starts the command with the agent in its environment; 0 or RUN_* after a message. */
int run_child_start(run_child *c, const run_options *o, const run_target *t, const char *agent,
                    int live_fd, int handover_fd);
/* Until it has ended; it is reaped by run_child_reap. */
void run_child_wait(const run_child *c);
void run_child_reap(run_child *c);
/* End as the child ended: never returns. */
void run_child_imitate(const run_child *c);

/* run_watcher.c: a thread that sleeps and works while the child runs. */
typedef struct run_watcher {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool started, child_ended;
} run_watcher;
bool run_watcher_start(run_watcher *w, void *(*work)(void *), void *user);
/* In the thread: false when the child ended before so many ns were over. */
bool run_watcher_sleep(run_watcher *w, uint64_t ns);
/* The child has ended: waits for the thread.  One that was never started is fine. */
void run_watcher_stop(run_watcher *w);

/* run_window.c: --after and --for, two snapshots. */
typedef struct run_window {
    const hotfn_live *live;
    uint64_t after_ns, for_ns;
    hotfn_snapshot *from, *to;
    run_watcher watcher;
} run_window;
void run_window_start(run_window *w, const hotfn_live *live, uint64_t after_ns, uint64_t for_ns);
void run_window_stop(run_window *w);

/* run_budget.c: --budget, a thread that keeps it. */
typedef struct run_budget {
    hotfn_budget *budget;
    uint32_t pid;
    run_watcher watcher;
} run_budget;
/* False after a message. */
bool run_budget_start(run_budget *b, hotfn_live *live, hotfn_handover *handover, uint32_t pid,
                      const hotfn_env *env);
/* The child has ended, and is not reaped yet. */
void run_budget_stop(run_budget *b);

#endif
