/* SPDX-License-Identifier: MIT */
/* Launch: start a program with hotfn's agent inside, wait for its end, write its record.  This is
 * what `hotfn run` does; the caller chooses the options, prints the messages and decides how to
 * exit. */
#ifndef HOTFN_LAUNCH_H
#define HOTFN_LAUNCH_H

#include <hotfn/env.h>
#include <hotfn/function.h>
#include <hotfn/record.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_launch hotfn_launch;

/* Modes. */
#define HOTFN_LAUNCH_COUNT 0u /* count calls                                  */
#define HOTFN_LAUNCH_TIME 1u  /* also measure how long calls take, by callers */

/* Clocks of HOTFN_LAUNCH_TIME. */
#define HOTFN_LAUNCH_CLOCK_AUTO 0u /* TICK, or CPU with events or allocated memory */
#define HOTFN_LAUNCH_CLOCK_TICK 1u /* a word that threads of this process copy the counter to */
#define HOTFN_LAUNCH_CLOCK_CPU 2u  /* the processor's counter, read at both ends of each call  */

/* Flags.  The first three need HOTFN_LAUNCH_TIME. */
#define HOTFN_LAUNCH_FLAT 0x1u          /* times by function only: no call tree          */
#define HOTFN_LAUNCH_EVENTS 0x2u        /* keep the latest entries and exits             */
#define HOTFN_LAUNCH_ALLOC 0x4u         /* keep the memory that functions allocate       */
#define HOTFN_LAUNCH_FOLLOW 0x8u        /* count children that the program starts too    */
#define HOTFN_LAUNCH_DURABLE 0x10u      /* keep the record in its file all the time      */
#define HOTFN_LAUNCH_PERF_MAP 0x20u     /* write names of stubs to /tmp/perf-PID.map     */
#define HOTFN_LAUNCH_NO_CACHE 0x40u     /* neither read nor write the folder of scans    */
#define HOTFN_LAUNCH_FORCE_MAP 0x80u    /* use the linker map although its build differs */
#define HOTFN_LAUNCH_QUIET_AGENT 0x100u /* the agent writes nothing to the target's stderr */
/* Until hotfn_launch_destroy this process ignores SIGINT and SIGQUIT, which a terminal sends to the
 * child as well, and passes SIGTERM and SIGHUP on to the child.  One launch at a time may use this
 * flag. */
#define HOTFN_LAUNCH_PASS_SIGNALS 0x200u
#define HOTFN_LAUNCH_BY_HOOK 0x400u /* attach on Windows: enter by a window's message hook */
#define HOTFN_LAUNCH_FOUND 0x800u   /* also hook what hotfn_verdicts_find_functions finds  */

/* Names of the files in a kit that hotfn_launch_options.kit_path leads to. */
#define HOTFN_KIT_PLAN "program.scan" /* hotfn_scan_save of the program */
#define HOTFN_KIT_LIST "functions.flf"

/* All pointers are borrowed: hotfn_launch_start copies what it needs. */
typedef struct hotfn_launch_options {
    uint32_t size;              /* sizeof(hotfn_launch_options)                           */
    uint32_t flags;             /* HOTFN_LAUNCH_* [none]                                  */
    const char *const *command; /* the program and its arguments, NULL-terminated         */
    const char *record_path;    /* the record; while the program runs, a symbolic link to
                                   the live record [no file]                              */
    const char *const *modules; /* globs on file names of modules [the program itself]    */
    uint32_t module_count;
    uint32_t mode;                    /* HOTFN_LAUNCH_COUNT or _TIME                      */
    const hotfn_selection *selection; /* functions to hook [all]                          */
    const char *target_glob;          /* count the descendant whose file matches [the program] */
    const char *list_path;            /* hook only the functions of this list [all]       */
    const char *map_path;             /* linker map with the program's names [none]       */
    const char *kit_path;             /* folder with plan and list of `hotfn kit` [none]  */
    const char *const *symbol_dirs;   /* folders with separate debug files [none]         */
    uint32_t symbol_dir_count;
    uint32_t sample_interval; /* TIME: mean number of calls per timed call [0: time every call] */
    uint64_t slow_ns;         /* TIME, or with watch: keep each call that takes longer [0: none] */
    uint64_t after_ns;        /* begin to count so long after the start                   */
    uint64_t for_ns;          /* and stop after so long [0: count until the end]          */
    uint32_t budget_ppm;      /* share of the program's time that hooks may take [0: any] */
    uint32_t clock;           /* TIME: HOTFN_LAUNCH_CLOCK_* [auto]                        */
    const char *cache_folder; /* where scans are kept [$XDG_CACHE_HOME/hotfn, ~/.cache/hotfn] */
    const char *agent_path;   /* hotfn-agent.so [beside the tool or library that runs]    */
    uint32_t max_threads;     /* at one time; further ones are not counted [by memory]    */
    uint32_t max_places;      /* TIME: in the call trees; more are merged [by memory]     */
    const char *runtime;      /* also count the methods of this runtime: "python", "objc", "com"; or
                                 filter the method trace of "art" [none]                  */
    const char *send_to;      /* send entries and exits as they happen to this address,
                                 "udp:HOST:PORT" or "unix:PATH"; implies HOTFN_LAUNCH_TIME and
                                 HOTFN_LAUNCH_EVENTS [none]                                 */
    const char *watch;        /* art: glob; trace only calls of methods that match and take longer
                                 than slow_ns, and what they call [all]                     */
} hotfn_launch_options;
#define HOTFN_LAUNCH_OPTIONS_INIT                                                                  \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_launch_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
            0, 0, 0, 0, 0, 0, 0, 0, 0                                                              \
    }

/* States. */
#define HOTFN_LAUNCH_RUNNING 1u
#define HOTFN_LAUNCH_ENDED 2u    /* the program has ended; the record is not written yet */
#define HOTFN_LAUNCH_FINISHED 3u /* hotfn_launch_finish was called                       */

typedef struct hotfn_launch_info {
    uint32_t size;           /* sizeof(hotfn_launch_info)                                 */
    uint32_t state;          /* HOTFN_LAUNCH_*                                            */
    uint32_t pid;            /* of the child                                              */
    int32_t exit_code;       /* 0..255; -signal if killed by one; 0 while it runs         */
    uint32_t is_joined;      /* 1: the target has hooked itself; else nothing was counted */
    uint32_t hooked_count;   /* functions hooked when the target started                  */
    uint32_t refused_count;  /* functions whose hook failed then                          */
    uint32_t reserved;       /* 0                                                         */
    uint64_t hook_ns;        /* time that this took                                       */
    uint64_t run_ns;         /* from the start of the program to its end, or until now    */
    const char *record_path; /* view: the record's file, also where hotfn_launch_finish had to
                                choose another one; NULL if there is none                 */
    uint64_t attach_stop_ns; /* attached: how long the threads stood then; 0: started     */
    uint64_t detach_stop_ns; /* and when it was detached from; 0: not yet                 */
    uint64_t preparation_ns; /* part of run_ns in which the program waited for its scan and its
                                hooks                                                     */
} hotfn_launch_info;
#define HOTFN_LAUNCH_INFO_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_launch_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                 \
    }

/*
 * Start the program of options->command as a child of this process, with the agent inside.
 *
 * out      receives a launch that the caller owns; untouched on failure, when no program runs.
 * options  borrowed.
 * env      NULL means all defaults.  Its log receives warnings, until the launch is destroyed and
 *          also from the launch's own threads; its memory is then used by them too.
 *
 * The child inherits everything of this process; its environment carries the agent until the agent
 * has removed it.  While the program runs, threads of the launch answer the target, which waits for
 * the scan of each module that it loads.
 *
 * HOTFN_OK.  HOTFN_E_NOT_FOUND: there is no such program.  HOTFN_E_DENIED: it may not be executed
 * or read.  HOTFN_E_UNSUPPORTED: the agent cannot enter it (static, setuid, another CPU or C
 * library), or events cannot be sent on this system.  HOTFN_E_IO: the agent, the list, the kit or
 * the map cannot be read, the record cannot be written, or the host of send_to is not known.
 * HOTFN_E_MISMATCH: the list, the kit or the map belongs to another build.  HOTFN_E_STATE: another
 * launch passes signals on.  HOTFN_E_OPTION, HOTFN_E_FORMAT, HOTFN_E_LIMIT, HOTFN_E_NO_MEMORY.  Any
 * thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_start(hotfn_launch **out, const hotfn_launch_options *options,
                                          const hotfn_env *env, hotfn_error *err);

/*
 * Count or time the calls of a process that runs already, from now on.
 *
 * out      receives a launch that the caller owns; untouched on failure, when the process runs on
 *          as before.
 * pid      of the process.  It needs no relation to this one, only the permission to trace it.
 * options  borrowed; NULL means all defaults.  command is ignored.  for_ns: detach after so long.
 *          Options that apply only to a program that is started are refused; with
 *          HOTFN_LAUNCH_TIME also events, allocated memory and the clock CPU.
 * env      as for hotfn_launch_start.
 *
 * All threads of the process stand while its code is changed (hotfn_launch_info.attach_stop_ns).
 * This process may be its parent only if it does not wait for children at the same time.  Modules
 * that the process loads later are not hooked.  x86-64 Linux; programs with glibc.
 * On x86-64 Windows they are, and the agent stays loaded in the process, unused, after the detach.
 *
 * HOTFN_OK.  HOTFN_E_NOT_FOUND: there is no such process, or it has ended.  HOTFN_E_DENIED: it may
 * not be traced; err says why.  HOTFN_E_STATE: it is stopped, traced by another process, or counted
 * already; or a step failed.  HOTFN_E_UNSUPPORTED: another CPU, word size or C library, or a filter
 * of system calls.  Further the statuses of hotfn_launch_start.  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_attach(hotfn_launch **out, uint32_t pid,
                                           const hotfn_launch_options *options,
                                           const hotfn_env *env, hotfn_error *err);

/* One condition of an attach ("times": of HOTFN_LAUNCH_TIME, not of the result).  status: HOTFN_OK
 * if it holds, else that of the refusal; text: one sentence, after a refusal with what to do. */
typedef void (*hotfn_attach_check_fn)(void *user, const char *name, hotfn_status status,
                                      const char *text);

/*
 * Check whether hotfn_launch_attach would attach to a process, without changing it.  Its threads
 * are stopped for a moment, unless an earlier condition has failed.
 *
 * report  borrowed; called for each condition that could be checked.  NULL: only the result counts.
 * env     NULL means all defaults.
 *
 * HOTFN_OK: it would.  Else the status with which it would refuse; err has the reason.  Any thread.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_check_attach(uint32_t pid, hotfn_attach_check_fn report,
                                                 void *user, const hotfn_env *env,
                                                 hotfn_error *err);

/*
 * Detach from a process: restore its code, and release what was mapped in it.  The process runs on,
 * and the launch has ended (HOTFN_LAUNCH_ENDED).
 *
 * HOTFN_OK, also if the process has ended or was replaced by exec meanwhile.  HOTFN_E_STATE: the
 * launch is not attached, or a thread of the process could not be stopped: it is still counted.
 * One thread at a time per launch.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_detach(hotfn_launch *launch, hotfn_error *err);

/*
 * Release a process that another hotfn has attached to.  If that hotfn still runs, its run ends as
 * if it had detached; if it was killed, what it left in the process is removed.
 *
 * record_path  borrowed, or NULL; receives the counts of a hotfn that was killed.
 * stop_ns      borrowed, or NULL; receives how long the threads of the process stood.
 *
 * HOTFN_OK, also if hooks were removed while other code had changed some, which is logged.
 * HOTFN_E_NOT_FOUND: there is no such process, or no hotfn is attached to it.  HOTFN_E_MISMATCH: a
 * hotfn of another version is.  HOTFN_E_STATE: it could not be stopped, and is still hooked.
 * HOTFN_E_FORMAT, HOTFN_E_IO: it is released, but the record was not written.  HOTFN_E_DENIED,
 * HOTFN_E_UNSUPPORTED, HOTFN_E_NO_MEMORY.  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_release(uint32_t pid, const char *record_path,
                                            uint64_t *stop_ns, const hotfn_env *env,
                                            hotfn_error *err);

/*
 * Wait until the program has ended, at most timeout_ns (UINT64_MAX: without limit).  A process that
 * was attached to with for_ns is detached from when that time is over.  Afterwards
 * hotfn_launch_get_info reports whether it runs or has ended, and its exit status.
 *
 * HOTFN_OK, also when the time is over first.  One thread at a time per launch.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_wait(hotfn_launch *launch, uint64_t timeout_ns,
                                         hotfn_error *err);

/* Report the state of the launch.  HOTFN_OK, HOTFN_E_OPTION.  One thread at a time per launch.
 * Since 0.1. */
HOTFN_API hotfn_status hotfn_launch_get_info(const hotfn_launch *launch, hotfn_launch_info *out);

/*
 * Write the finished record to options->record_path, once the program has ended.  If that fails,
 * for instance because the disk is full, the record is written to the system's folder of temporary
 * files: the call still fails, and hotfn_launch_info.record_path names that file.
 *
 * HOTFN_OK, HOTFN_E_STATE (the program still runs, the launch has no record_path, or it is
 * finished), HOTFN_E_IO (err names the file), HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT (the target
 * overwrote its counters).  One thread at a time per launch.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_finish(hotfn_launch *launch, hotfn_error *err);

/*
 * Open the record of the launch: what was counted until now, or the finished record.
 *
 * out  receives a record that the caller owns (hotfn_record_close); it may outlive the launch.
 *
 * The statuses of hotfn_record_open.  One thread at a time per launch.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_open_record(hotfn_record **out, const hotfn_launch *launch,
                                                hotfn_error *err);

/*
 * Find processes that were counted and still run although the program has ended, for instance a
 * daemon that went to the background: their later calls are not in the record.
 *
 * pids  receives at most capacity of their numbers.
 *
 * Returns how many were stored.  One thread at a time per launch.  Since 0.1.
 */
HOTFN_API uint32_t hotfn_launch_find_remaining(uint32_t *pids, const hotfn_launch *launch,
                                               uint32_t capacity);

/* 1 if calls of the process are counted by the launch: it is the launch's own process, or was
 * forked from it while it was counted and has not executed another program since.  0 if not, or if
 * it is not known.  One thread at a time per launch.  Since 0.1. */
HOTFN_API int32_t hotfn_launch_counts_process(const hotfn_launch *launch, uint32_t pid);

/*
 * Find a process and the processes that it started, with theirs.
 *
 * pids      receives at most capacity numbers; pid itself comes first.
 * programs  receives a number for each, which changes when the process executes another program,
 *           and which a process shares with the children that it forks; 0 if it cannot be read.
 *
 * Returns how many were stored; 0: there is no such process.  Any thread.  Since 0.1.
 */
HOTFN_API uint32_t hotfn_launch_find_family(uint32_t *pids, uint64_t *programs, uint32_t capacity,
                                            uint32_t pid);

/* Free the launch.  A program that still runs continues, but is no longer counted.  A record that
 * is not finished is lost unless it is durable.  NULL is fine.  One thread at a time per launch. 
 * Since 0.1. */
HOTFN_API void hotfn_launch_destroy(hotfn_launch *launch);

/*
 * Find the agent for programs of a CPU (HOTFN_MACHINE_*; HOTFN_MACHINE_OTHER: of this process):
 * beside the tool or library that runs, or where it was installed.
 *
 * path  receives the file's path: at most path_bytes, NUL included; unspecified on failure.
 *
 * HOTFN_OK, HOTFN_E_UNSUPPORTED (this build launches no programs of that CPU), HOTFN_E_IO (the file
 * is not there; err says where it is expected), HOTFN_E_LIMIT (the path is longer).  Any thread.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_find_agent(char *path, uint64_t path_bytes, uint32_t machine,
                                               hotfn_error *err);

/* Get how a launch with HOTFN_LAUNCH_TIME would keep its tick clock now: HOTFN_TICKER_*
 * (hotfn/lowlevel/timing.h).  Any thread.  Since 0.1. */
HOTFN_API uint32_t hotfn_launch_choose_ticker(void);

#ifdef __cplusplus
}
#endif

#endif
