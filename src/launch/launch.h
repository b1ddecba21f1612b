/* SPDX-License-Identifier: MIT */
/* The parts of a launch: its options, the target's file, the agent, the child, and the threads that
 * work while the child runs: the plan service, the observation frame and the budget. */
#ifndef HFN_LAUNCH_LAUNCH_H
#define HFN_LAUNCH_LAUNCH_H

#include "base/memory.h"
#include "counters/timing/ticker.h"
#include "events/sender.h"
#include "launch/budget/budget.h"
#include "launch/children.h"
#include "launch/switch/switch.h"
#include "live/live.h"
#include "live/plan_channel.h"
#include "os/child.h"
#include "os/threads.h"
#include "records/finish.h"
#include "scan/modules.h"

#include <hotfn/launch.h>
#include <hotfn/lowlevel/image.h>
#include <hotfn/lowlevel/lists.h>
#include <hotfn/lowlevel/scan.h>
#include <stdatomic.h>

/* target.c: the file that is executed, and the image that the agent enters. */
typedef struct hfn_target {
    char file[HFN_OS_PATH_BYTES];        /* the file passed to exec                      */
    char image[HFN_OS_PATH_BYTES];       /* the ELF program: file, or its #! interpreter */
    char interpreter[HFN_OS_PATH_BYTES]; /* the path of the dynamic loader without links */
    uint64_t device, inode;              /* of image                                */
    uint64_t text_bytes;
    uint32_t machine; /* HOTFN_MACHINE_* of image; OTHER where a descendant is the target */
    bool is_outside;  /* no agent can enter it: it is attached to at its entry point */
    bool runs_already;
} hfn_target;

/* watcher.c: a thread that works at intervals while the child runs. */
typedef struct hfn_watcher {
    hfn_os_thread thread;
    _Atomic uint32_t has_child_ended; /* 0 or 1; the sleeper waits on this word */
    bool is_started;
} hfn_watcher;

bool hfn_watcher_start(hfn_watcher *watcher, hfn_os_thread_fn work, void *user);
/* Sleep for ns nanoseconds; called in the watcher's thread.  Returns false as soon as the child
 * ends. */
bool hfn_watcher_sleep(hfn_watcher *watcher, uint64_t ns);
/* Called when the child has ended: wait until the watcher's thread ends.  Does nothing if the
 * watcher was never started. */
void hfn_watcher_stop(hfn_watcher *watcher);

/* observation.c: the observed frame of time (--after, --for), as two snapshots of the counts. */
typedef struct hfn_observation {
    const hfn_live *live;
    uint64_t after_ns, for_ns;
    hfn_snapshot *from, *to;
    hfn_watcher watcher;
} hfn_observation;

/* budget_thread.c */
typedef struct hfn_budget_thread {
    hfn_budget *budget;
    uint32_t pid;
    hfn_watcher watcher;
} hfn_budget_thread;

/* send_thread.c: a thread that sends events while the child runs. */
typedef struct hfn_send_thread {
    hfn_event_sender *sender; /* NULL: no events are sent */
    hfn_watcher watcher;
} hfn_send_thread;

/* service.c: a thread that scans the modules that the target loads. */
typedef struct hfn_plan_service {
    hfn_os_thread thread;
    bool is_started;
    atomic_bool stop;
} hfn_plan_service;

typedef struct hfn_thread_watch {
    hfn_watcher watcher;
    hfn_live *live;
} hfn_thread_watch;

typedef struct hfn_patch_watch hfn_patch_watch;

struct hotfn_launch {
    hotfn_env env;
    hfn_arena texts;
    hotfn_launch_options options; /* a copy, except for the command, which the start borrows */
    hotfn_selection selection;    /* copied */
    uint32_t timing;              /* HOTFN_TIMING_*; 0: calls are counted only */
    uint32_t state;
    const char *command; /* quoted for a shell */
    hfn_target target;
    char agent[HFN_OS_PATH_BYTES];
    char methods[HFN_OS_PATH_BYTES]; /* the pool of methods; "": none */
    hfn_file_identity methods_file;
    char cache_folder[HFN_OS_PATH_BYTES]; /* "": none */
    char kit_list[HFN_OS_PATH_BYTES];
    char fallback_path[HFN_OS_PATH_BYTES]; /* of the record if record_path could not be written */
    bool is_linked;                        /* record_path is a symbolic link to the live record */
    bool is_kept;                          /* the finished record was written */
    hotfn_list *list;                      /* NULL: none */
    hotfn_scan *kit;               /* the program's scan; NULL: the program is scanned at launch */
    uint8_t *matched_includes;     /* for each glob of the selection: 1 if it matched */
    uint8_t *matched_module_globs; /* for each module glob */
    hfn_live *live;
    hfn_plan_channel *channel;
    hfn_known_modules known; /* the modules that were scanned, by their index in the live record */
    hfn_plan_service service;
    hfn_observation observation;
    hfn_thread_watch threads;
    hfn_patch_watch *patch_watch; /* NULL: the patches are not compared from here */
    hfn_budget_thread budget;
    hfn_send_thread events;
    hfn_switch switching;
    hfn_ticker ticker;
    bool is_clock_free;                /* if it cannot tick, the counter is read */
    struct hfn_attachment *attachment; /* NULL: the program is a child of this process */
    hfn_os_child child;                /* attached: only its pid */
    hfn_children children;
    hfn_os_mutex lock;         /* held while the record is replaced, and to read live and channel */
    bool has_ended;            /* the child: its record is not replaced any more                  */
    char script[1024];         /* the file whose interpreter is counted; "": none */
    uint64_t begin_ns, end_ns; /* of the program's run, by the monotonic clock */
    _Atomic uint64_t waited_ns; /* the program, for answers of the plan service  */
};

/* launch.c: the steps that a launch and an attachment share.  NULL: no memory. */
hotfn_launch *hfn_launch_new(const hotfn_env *env);
void hfn_launch_free(hotfn_launch *launch);
void hfn_launch_choose_cache(hotfn_launch *launch);
/* start_child.c: can the program be counted from outside with these options? */
hotfn_status hfn_launch_check_outside(const hotfn_launch *launch, hotfn_error *err);
/* The program runs, and is counted. */
void hfn_launch_begin(hotfn_launch *launch);

/* options.c: copy and check the options. */
hotfn_status hfn_launch_set_options(hotfn_launch *launch, const hotfn_launch_options *options,
                                    hotfn_error *err);

/* target.c: find the target's file and check its image; with a target glob nothing is checked. */
hotfn_status hfn_target_find(hfn_target *target, const hotfn_launch_options *options,
                             const hotfn_env *env, hotfn_error *err);
/* Check the program of target->image; its identity, machine and size are stored. */
hotfn_status hfn_target_check_image(hfn_target *target, const hotfn_env *env, hotfn_error *err);
/* The process runs another image now.  Without effect if the image cannot be read. */
void hfn_target_set_image(hfn_target *target, const char *image, const hotfn_env *env);

/* next_image.c: answer a request of kind IMAGE. */
void hfn_launch_follow_exec(hotfn_launch *launch, const hfn_plan_request *request);

/* enter_elf.c, enter_pe.c: the reason why the agent cannot enter the program; NULL if it can.  The
 * path of the program's loader, if it has one, is stored in the target. */
const char *hfn_target_find_refusal(hfn_target *target, const hotfn_image *image);
/* The reason why the options cannot be used on this system; NULL if they can. */
const char *hfn_target_find_option_refusal(const hotfn_launch_options *options);
/* The same before an attach, where the agent enters a process that runs already. */
hotfn_status hfn_target_check_attached(hfn_target *target, const hotfn_env *env, hotfn_error *err);
/* Does this build have an agent for programs of that machine?  The name of its file; the reason why
 * an agent at that path cannot be loaded, or NULL. */
bool hfn_agent_serves(uint32_t machine);
const char *hfn_agent_get_name(uint32_t machine);
const char *hfn_agent_find_path_refusal(const char *path);
/* Set launch->agent. */
hotfn_status hfn_agent_choose(hotfn_launch *launch, hotfn_error *err);

/* runtime.c: a runtime whose methods can be counted. */
typedef struct hfn_runtime_kind {
    const char *name, *description;
    const char *pool;             /* file name of its pool of functions */
    uint32_t agent_flag;          /* AGENT_*                            */
    const char *const *libraries; /* globs on the files of the modules that it is in, which are
                                   * hooked by the agent even if no function of them is selected */
    bool obeys_orders;            /* of hotfn ctl, for methods that are called later
                        * (hfn_live_order_methods) */
    bool can_restore; /* what the tracer replaced only leads to the functions of methods, so it can
                        * be restored while all methods are off */
} hfn_runtime_kind;

/* NULL: unknown, or no runtime is asked for. */
const hfn_runtime_kind *hfn_runtime_find(const char *name);
/* Find the pool of methods, if the options ask for a runtime. */
hotfn_status hfn_runtime_find_pool(hotfn_launch *launch, hotfn_error *err);
bool hfn_runtime_is_pool(const hotfn_launch *launch, const hfn_file_identity *file);
/* When the program has ended: mark the globs that match a method, and warn of what was missed. */
void hfn_runtime_check(hotfn_launch *launch);
/* objects.c: warn of COM objects that were not released, as the finished record has them. */
void hfn_objects_check(const hotfn_launch *launch);
/* Add the pool to the record. */
hotfn_status hfn_runtime_add_pool(hotfn_launch *launch, const hotfn_scan *scan, uint32_t *module,
                                  hotfn_error *err);

/* inputs.c: open the kit and the list; refuse a kit, a list or a linker map of another build. */
hotfn_status hfn_launch_open_inputs(hotfn_launch *launch, hotfn_error *err);

/* live_record.c: create the live record and the plan channel, and make record_path a link to the
 * live record. */
hotfn_status hfn_launch_create_record(hotfn_launch *launch, hotfn_error *err);
/* Start the tick clock of the live record, if it has one; it may change to the counter. */
hotfn_status hfn_launch_start_ticker(hotfn_launch *launch, hotfn_error *err);
/* Remove the link, if there is one. */
void hfn_launch_unlink_record(hotfn_launch *launch);
/* Store the path by which other processes can open the live record. */
void hfn_launch_live_path(const hotfn_launch *launch, char *path, size_t path_bytes);

/* early.c: HOTFN_E_OPTION if no function or no module of the program can match. */
hotfn_status hfn_launch_check_matches(hotfn_launch *launch, hotfn_error *err);

/* start_child.c */
hotfn_status hfn_launch_start_child(hotfn_launch *launch, hotfn_error *err);

/* service.c */
bool hfn_plan_service_start(hotfn_launch *launch);
void hfn_plan_service_stop(hotfn_launch *launch);
/* Scan a module, unless it is known, and return its number in the record; UINT32_MAX: not
 * recorded.  Called by the service's thread, or where none runs. */
uint32_t hfn_plan_service_resolve(hotfn_launch *launch, const hfn_plan_request *request);

/* observation.c */
void hfn_observation_start(hotfn_launch *launch);
/* Called when the child has ended. */
void hfn_observation_stop(hotfn_launch *launch);

/* threads.c: read names and processor times of the target's threads. */
void hfn_thread_watch_start(hotfn_launch *launch);
/* Called when the child has ended, before it is reaped. */
void hfn_thread_watch_stop(hotfn_launch *launch);

/* send_thread.c: open the sender, if the options ask for one. */
hotfn_status hfn_send_thread_open(hotfn_launch *launch, hotfn_error *err);
/* Start to send the events of the live record; a failure is logged. */
void hfn_send_thread_start(hotfn_launch *launch);
/* Called when the child has ended, or has executed another program: send the rest. */
void hfn_send_thread_stop(hotfn_launch *launch, bool is_replaced);

/* patch_watch.c: start to compare the patches with memory. */
void hfn_patch_watch_start(hotfn_launch *launch);
/* Called when the child has ended, before it is reaped; with a last look, before an attachment's
 * patches are removed. */
void hfn_patch_watch_stop(hotfn_launch *launch, bool with_last_look);

/* budget_thread.c: start the thread; a failure is logged. */
void hfn_budget_thread_start(hotfn_launch *launch);
/* Called when the child has ended, before it is reaped. */
void hfn_budget_thread_stop(hotfn_launch *launch);

#endif
