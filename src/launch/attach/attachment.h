/* SPDX-License-Identifier: MIT */
/*
 * A process that the launcher has attached to.  Everything is done from outside: the launcher scans
 * the target's modules, patches a mirror of them (mirror.c), and copies stubs, the core
 * (counters/core) and the patched pages into the target.  Until it is detached from, these are
 * mapped in the target, and the journal lists them:
 *
 *   the journal and the live record (shared); the core and its data; the stubs; a spare row;
 *   timed: the list of the stubs' unwind tables
 *
 *   DETACHED --enter.c--> ATTACHED --removal.c--> DETACHED, nothing is mapped any more
 */
#ifndef HFN_LAUNCH_ATTACHMENT_H
#define HFN_LAUNCH_ATTACHMENT_H

#include "arch/call_site.h"
#include "hooks/hookset.h"
#include "launch/attach/attached.h"
#include "launch/attach/code_files.h"
#include "launch/attach/journal.h"
#include "launch/launch.h"
#include "os/remote.h"

enum { HFN_ATTACH_BUFFER_BYTES = 1 << 20, HFN_WORD_CANDIDATES = 2 };

/* A function of the C library that is replaced by one of the core (replaced.h). */
enum {
    HFN_REPLACED_FIND_OBJECT = 0,
    HFN_REPLACED_ITERATE_PHDR,
    HFN_REPLACED_PRCTL,
    HFN_REPLACED_SYSCALL,
    HFN_REPLACED_COUNT
};
enum { HFN_REPLACED_BYTES = 5 }; /* the jump at its entry */
typedef struct hfn_replacement {
    uint64_t address;    /* in the target; 0: the module has no such function */
    uint32_t function;   /* in the plan; UINT32_MAX: it cannot be hooked */
    hotfn_code original; /* in the mirror */
} hfn_replacement;

/* A module of the target and the copy of its code, with room for stubs.  Addresses in the mirror
 * are those of the target plus `distance`. */
typedef struct hfn_mirror {
    hfn_remote_range zone; /* addresses of the target that the mirror represents */
    uint64_t distance;     /* modulo 2^64 */
    uint64_t base, end;    /* of the module, in the target */
    hfn_remote_code code[HFN_REMOTE_MODULE_CODE];
    uint8_t *shown[HFN_REMOTE_MODULE_CODE]; /* the code as the target has it now */
    uint32_t code_count;
    bool is_needed;        /* without it, the attach fails */
    bool is_dropped;       /* it was unloaded, or its code was changed, before it was patched */
    uint32_t live_module;  /* UINT32_MAX: only its fork is followed */
    uint32_t hooks_module; /* UINT32_MAX: no hooks */
    hotfn_plan *plan;
    const void *plan_bytes;
    uint64_t plan_byte_count;
    hfn_replacement replaced[HFN_REPLACED_COUNT];
} hfn_mirror;

/* Pages of stubs in the target. */
typedef struct hfn_stub_pages {
    uint64_t begin, end;
    uint32_t mirror;
    bool is_written;
} hfn_stub_pages;

/* Addresses in the target, one after the other; chosen before they are mapped.  No regions: nothing
 * is timed.  Without a gs base, no words of rows and no page of zeros, which is elsewhere. */
typedef struct hfn_attached_pages {
    uint64_t core, regions, words, spare_row, journal, record, end;
    uint64_t zeros; /* below 2 GiB */
} hfn_attached_pages;

/* A system call that may begin a thread (call_sites.c). */
typedef struct hfn_attached_site {
    uint64_t address;    /* of the first replaced instruction, in the target */
    hfn_child_call site; /* counted from it: begin is 0 */
    uint64_t stub;       /* in the target */
    hfn_call_stub code;
} hfn_attached_site;

struct hfn_attachment {
    hotfn_env env;
    hotfn_launch *launch;
    hfn_remote remote;
    hfn_mirror *mirrors;
    size_t mirror_count, mirror_capacity;
    hfn_stub_pages *stubs;
    size_t stub_count, stub_capacity;
    hfn_attached_site *sites;
    size_t site_count, site_capacity;
    bool has_fork_site, is_timed;
    bool uses_gs;         /* a thread's row is found by its gs base, else by its word */
    hfn_code_files files; /* while the target stands, before its code is changed */
    hotfn_hooks *hooks;
    hfn_hook_space space;
    hotfn_commit_stats stats;
    hfn_journal journal;
    int64_t word_at; /* the threads' word, from the thread pointer */
    hfn_attached_pages pages;
    uint64_t enter_ns, leave_ns; /* how long all threads were stopped */
    uint8_t *buffer;             /* [HFN_ATTACH_BUFFER_BYTES], for code and lists of gaps */
    bool is_word_named[HFN_WORD_CANDIDATES]; /* by an instruction, or used by a thread */
    bool is_inside;
    hfn_os_error error; /* of the latest remote step that failed */
};

/* mirror.c */
bool hfn_mirror_add(hfn_attachment *a, const hfn_remote_module *module, uint32_t *index);
/* Add it unless it has a mirror already; the attach fails without it. */
bool hfn_mirror_need(hfn_attachment *a, const hfn_remote_module *module);
void hfn_mirrors_finish(hfn_attachment *a);
/* The mirror that represents an address of the target; NULL if none does. */
hfn_mirror *hfn_mirror_of(const hfn_attachment *a, uint64_t address);
/* The same for an address in this process. */
hfn_mirror *hfn_mirror_of_local(const hfn_attachment *a, uint64_t local);
/* Fill in a->space: the hook set changes mirrors, and chooses pages that are mapped later. */
void hfn_mirror_init_space(hfn_attachment *a);
/* Find free addresses: the middle of the target's largest gap, far from where the system and the
 * program's memory allocator map next, and from the code, whose stubs need the addresses around it.
 * 0: none. */
uint64_t hfn_mirrors_find_room(const hfn_attachment *a, uint64_t byte_count);
/* A free page below 2 GiB; 0: none. */
uint64_t hfn_mirrors_find_low_page(const hfn_attachment *a);
/* Undo all patches and choices. */
void hfn_mirrors_reset(hfn_attachment *a);

/* The bytes that the journal of these mirrors takes at most. */
uint64_t hfn_mirrors_bound_journal(const hfn_attachment *a);
/* Describe what differs between the target and the mirrors. */
bool hfn_mirrors_write_journal(hfn_attachment *a);

/* copy_code.c */
/* While the target runs: copy the stubs into it, which no thread executes yet; give it its own
 * copies of the pages that will change.  Both also serve while it stands. */
bool hfn_mirror_write_stubs(hfn_attachment *a);
void hfn_mirrors_touch_code(hfn_attachment *a);
/* While it stands: drop the modules whose code is not as it was copied; false if one of them is
 * needed.  Move threads out of the bytes that change; change them. */
bool hfn_mirrors_drop_changed(hfn_attachment *a);
bool hfn_mirrors_adjust_threads(hfn_attachment *a);
bool hfn_mirrors_write_code(hfn_attachment *a);

/* core_state.c: the access of stubs to rows and to the core, once a->pages are chosen; describe the
 * record in the journal; write the core and its variables. */
hotfn_row_access hfn_core_get_access(const hfn_attachment *a);
void hfn_core_describe(hfn_attachment *a);
bool hfn_core_write(const hfn_attachment *a);
/* While the target stands: give its threads rows, to which their gs bases lead. */
bool hfn_core_assign_rows(hfn_attachment *a);

/* fork_sites.c: let the child of fork() begin with no row. */
/* Wait until a module has one: a program that has just started maps its C library only now. */
bool hfn_fork_sites_wait(hfn_attachment *a);
bool hfn_fork_sites_find(hfn_attachment *a);
bool hfn_fork_sites_patch(hfn_attachment *a);

/* thread_word.c: search the running target's code for instructions that name a candidate. */
void hfn_thread_words_search(hfn_attachment *a);
/* Choose a word of the thread descriptors that no instruction names. */
bool hfn_thread_word_choose(hfn_attachment *a, hotfn_error *err);
/* Check the chosen word in the stopped threads.  HOTFN_OK; HOTFN_E_STATE: a thread uses it, choose
 * another one; HOTFN_E_UNSUPPORTED. */
hotfn_status hfn_thread_word_check(hfn_attachment *a, hotfn_error *err);

/* enter.c and leave.c */
/* Open the process's memory, and find what an attach needs in its code, which is only read. */
hotfn_status hfn_attachment_open(hfn_attachment *a, hotfn_error *err);
/* Stop its threads; hfn_attachment_resume must follow, also after an error. */
hotfn_status hfn_attachment_stop(hfn_attachment *a, hotfn_error *err);
void hfn_attachment_resume(hfn_attachment *a);
/* Choose where threads keep their rows; check that while they stand.  As hfn_thread_word_*. */
bool hfn_attachment_choose_word(hfn_attachment *a, hotfn_error *err);
hotfn_status hfn_attachment_check_threads(hfn_attachment *a, hotfn_error *err);
/* Undo an attach that failed; false if something stays in the target. */
bool hfn_attachment_remove(hfn_attachment *a);

#endif
