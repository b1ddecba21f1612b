/* SPDX-License-Identifier: MIT */
/* The shared memory between `hotfn run` and its target: plans, and a mailbox in which the target asks
 * for modules that nobody planned.  Both ends are of one build; what the other end wrote is still
 * bounded before it is used.  The target keeps no file descriptor of it: ranges are mapped by path. */
#ifndef HFN_HANDOVER_H
#define HFN_HANDOVER_H

#include <hotfn/lowlevel/target.h>
#include <hotfn/session.h>
#include <stdatomic.h>

#define HFN_PLAN_MEMORY_NAME "hotfn-handover"
#define HFN_HANDOVER_MAGIC 0x33564f484e4648ull /* "HFNHOV3": 3 is the version of the layout */
#define HFN_HANDOVER_VERSION(magic) ((char)((magic) >> 48))
#define HFN_HANDOVER_PLANS 1024u
#define HFN_HANDOVER_BYTES (4ull << 30) /* sparse; plans begin at HFN_HANDOVER_FIRST */
#define HFN_HANDOVER_FIRST (1ull << 20)

/* The mail's two low bits; above them stands the pid of who asks. */
#define HFN_MAIL_FREE 0u
#define HFN_MAIL_WRITING 1u /* a thread of the target fills the question in */
#define HFN_MAIL_ASKED 2u
#define HFN_MAIL_ANSWERED 3u
#define HFN_MAIL(pid, state)                                                                       \
    ((uint32_t)(pid) << 2 | (state)) /* pids have 22 bits (linux/threads.h) */

typedef struct hfn_plan_place {
    uint64_t offset; /* in the handover, page aligned */
    uint64_t bytes;  /* 0: no plan                    */
} hfn_plan_place;

typedef struct hfn_handover_shared {
    uint64_t magic;
    uint32_t parent_pid;
    _Atomic uint32_t mail; /* HFN_MAIL_*, a futex word; the question and the answer follow it:
                              they are read only behind an acquire load of it                */
    uint32_t answer_module;
    _Atomic uint32_t stats_ready;
    _Atomic uint32_t
        bell; /* a futex word on which the parent alone sleeps: one more at each ring */
    _Atomic uint32_t
        started_pid; /* who has put its hooks in last, and the processor time of that */
    _Atomic uint32_t start_us;
    uint32_t unused;
    hotfn_request question;
    hotfn_commit_stats stats;
    hfn_plan_place plans[HFN_HANDOVER_PLANS]; /* by module number of the live record */
} hfn_handover_shared;

/* ---- The parent's end.  A module's plan, mapped for the caller; NULL if it has none. */
const void *hfn_handover_view_plan(const hotfn_handover *handover, uint32_t module,
                                   uint64_t *bytes);

/* What it took the process to put its hooks in, of processor time; 0: not known (yet). */
uint64_t hfn_handover_start_ns(const hotfn_handover *handover, uint32_t pid);

/* ---- The target's end. */
typedef struct hfn_handover_link {
    hfn_handover_shared *shared;
    const char *path;
} hfn_handover_link;

hotfn_status hfn_handover_join(hfn_handover_link *link, const char *path, hotfn_error *err);
void hfn_handover_leave(hfn_handover_link *link);
/* Ask for the module; its number in the live record, or UINT32_MAX when nobody answers. */
uint32_t hfn_handover_ask(hfn_handover_link *link, const hotfn_request *question);
/* Map the plan of a module; NULL if it has none, or it cannot be mapped. */
const void *hfn_handover_map_plan(const hfn_handover_link *link, uint32_t module, uint64_t *bytes);
void hfn_handover_tell_stats(hfn_handover_link *link, const hotfn_commit_stats *stats);
void hfn_handover_tell_start(hfn_handover_link *link, uint32_t pid, uint64_t cpu_ns);

#endif
