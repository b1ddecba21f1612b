/* SPDX-License-Identifier: MIT */
/*
 * A process that the launcher has attached to.  Everything is done from outside: the launcher scans
 * the target's modules, patches a mirror of them (mirror.c), and copies stubs, the core
 * (counters/core) and the patched pages into the target while its threads stand.  Until it is
 * detached from, these remain in the target:
 *
 *   cells and rows of the live record (shared); the core and its data; the stubs; a spare row
 *
 *   DETACHED --enter--> ATTACHED --leave--> DETACHED, nothing is mapped any more
 *
 * If a thread stands in a stub until leave gives up, stubs, core and rows stay mapped, unused.
 */
#ifndef HFN_LAUNCH_ATTACHMENT_H
#define HFN_LAUNCH_ATTACHMENT_H

#include "hooks/hookset.h"
#include "launch/launch.h"
#include "os/remote.h"

enum { HFN_MAX_FORK_SITES = 16, HFN_ATTACH_BUFFER_BYTES = 1 << 20, HFN_WORD_CANDIDATES = 2 };

/* A module of the target and the copy of its code, with room for stubs.  Addresses in the mirror
 * are those of the target plus `distance`. */
typedef struct hfn_mirror {
    hfn_remote_range zone; /* addresses of the target that the mirror represents */
    uint64_t distance;     /* modulo 2^64 */
    uint64_t base, end;    /* of the module, in the target */
    hfn_remote_range code[HFN_REMOTE_MODULE_CODE];
    uint8_t *shown[HFN_REMOTE_MODULE_CODE]; /* the code as the target has it now */
    uint32_t code_count;
    uint32_t live_module;  /* UINT32_MAX: only its fork is followed */
    uint32_t hooks_module; /* UINT32_MAX: no hooks */
    hotfn_plan *plan;
    const void *plan_bytes;
    uint64_t plan_byte_count;
} hfn_mirror;

/* Pages of stubs in the target. */
typedef struct hfn_stub_pages {
    uint64_t begin, end;
    uint32_t mirror;
    bool is_written; /* and executable */
} hfn_stub_pages;

typedef struct hfn_attachment {
    hotfn_env env;
    hotfn_launch *launch;
    hfn_remote remote;
    hfn_mirror *mirrors;
    size_t mirror_count, mirror_capacity;
    hfn_stub_pages *stubs;
    size_t stub_count, stub_capacity;
    uint64_t fork_sites[HFN_MAX_FORK_SITES]; /* that are patched */
    size_t fork_site_count;
    bool has_fork_site;
    hotfn_hooks *hooks;
    hfn_hook_space space;
    hotfn_commit_stats stats;
    int64_t word_at;                  /* the threads' word, from the thread pointer */
    uint64_t core, record, spare_row; /* addresses in the target; 0: not mapped */
    uint64_t record_bytes, record_offset, spare_bytes;
    uint64_t enter_ns, leave_ns; /* how long all threads stood */
    uint8_t *buffer;             /* [HFN_ATTACH_BUFFER_BYTES], for code and lists of gaps */
    bool is_word_named[HFN_WORD_CANDIDATES]; /* by an instruction of the target */
    bool is_inside;
    bool is_residue;    /* detached, but pages stay in the target */
    hfn_os_error error; /* of the latest remote step that failed */
} hfn_attachment;

/* mirror.c */
bool hfn_mirror_add(hfn_attachment *a, const hfn_remote_module *module, uint32_t *index);
void hfn_mirrors_finish(hfn_attachment *a);
/* The mirror that represents an address of the target; NULL if none does. */
hfn_mirror *hfn_mirror_of(const hfn_attachment *a, uint64_t address);
/* Fill in a->space, whose calls a hook set makes while the target's threads stand and make
 * calls. */
void hfn_mirror_init_space(hfn_attachment *a);
/* From now on changes of the hook set stay in the mirror. */
void hfn_mirror_leave_target(hfn_attachment *a);
/* Copy new stubs into the target and make them executable. */
bool hfn_mirror_write_stubs(hfn_attachment *a);
/* Copy the pages of code that differ from the target's.  Nothing is written if other code has
 * changed the target's, and all is restored if a page cannot be written. */
bool hfn_mirror_show_code(hfn_attachment *a);

/* Write the bytes that differ, except for those that others have changed, which are counted. */
bool hfn_mirror_restore_code(hfn_attachment *a, uint32_t *foreign);

/* fork_sites.c: let the child of fork() begin with no row. */
/* Wait until a module has one: a program that has just started maps its C library only now. */
bool hfn_fork_sites_wait(hfn_attachment *a);
bool hfn_fork_sites_find(hfn_attachment *a);
bool hfn_fork_sites_patch(hfn_attachment *a);
void hfn_fork_sites_restore(hfn_attachment *a); /* in the mirror */

/* thread_word.c: search the running target's code for instructions that name a candidate. */
void hfn_thread_words_search(hfn_attachment *a);
/* Choose a word of the thread descriptors that nothing uses; false with a reason. */
bool hfn_thread_word_choose(hfn_attachment *a, hotfn_error *err);
/* Zero the words that lead to rows. */
bool hfn_thread_words_clear(hfn_attachment *a);

/* enter.c and leave.c */
hotfn_status hfn_attachment_enter(hfn_attachment *a, hotfn_error *err);
hotfn_status hfn_attachment_leave(hfn_attachment *a, hotfn_error *err);
/* attach.c: hotfn_launch_wait and hotfn_launch_get_info of a launch that is attached. */
hotfn_status hfn_attachment_wait(hotfn_launch *launch, uint64_t timeout_ns, hotfn_error *err);
void hfn_attachment_get_info(const hotfn_launch *launch, hotfn_launch_info *info);
/* Free it; NULL is fine.  The target keeps what was not removed. */
void hfn_attachment_destroy(hotfn_launch *launch);

/* Unmap everything from the stopped target, which makes calls; false if pages stay. */
bool hfn_attachment_unmap(hfn_attachment *a);

#endif
