/* SPDX-License-Identifier: MIT */
/* The processes that the target starts and that are not counted: which programs they run, and how
 * much processor time they use.  Processes are sampled, so the time of a process is known up to its
 * last sample; what is missing from the total that the kernel keeps is divided among the processes
 * that have ended. */
#ifndef HFN_LAUNCH_CHILDREN_H
#define HFN_LAUNCH_CHILDREN_H

#include "live/live.h"
#include "live/plan_channel.h"

#define HFN_CHILDREN_PAUSE_NS 20000000u /* between two samples */

typedef struct hfn_child_process {
    uint32_t pid, program; /* index; HFN_CHILD_COUNTED */
    uint64_t start, image; /* as in hfn_os_process_facts */
    uint64_t begin_ns, cpu_ns;
    uint32_t samples;                    /* of this program */
    char announced[HFN_PLAN_PATH_BYTES]; /* the file of an exec that is expected; "": none */
    bool is_seen;
} hfn_child_process;
#define HFN_CHILD_COUNTED UINT32_MAX

typedef struct hfn_child_program {
    char *path; /* owned */
    uint32_t processes;
    uint64_t cpu_ns;
} hfn_child_program;

typedef struct hfn_children {
    hotfn_env env;
    uint32_t pid; /* of the target */
    bool follows; /* children are counted; an uncounted child is recognised only by samples */
    uint64_t begin_ns, children_begin_ns; /* processor time when the program began */
    uint64_t next_search_ns;
    hfn_child_process *processes;
    size_t process_count, process_capacity;
    hfn_child_program *programs;
    size_t program_count, program_capacity;
    uint64_t ended_ns;    /* known time of processes that ended */
    uint32_t ended_count; /* of programs that ended             */
} hfn_children;

/* Begin to watch the children of process pid, which has just begun to run its program. */
void hfn_children_begin(hfn_children *children, uint32_t pid, bool follows, const hotfn_env *env);
/* Take a sample.  The live record and its channel are those of the target. */
void hfn_children_sample(hfn_children *children, const hfn_live *live, hfn_plan_channel *channel);
/* The target has ended and is not reaped: complete the times and store them in the record. */
void hfn_children_finish(hfn_children *children, hfn_live *live, hfn_plan_channel *channel);
void hfn_children_free(hfn_children *children);

#endif
