/* SPDX-License-Identifier: MIT */
/* What the files of this folder share while functions are judged; nobody outside includes this. */
#ifndef HFN_VERDICTS_JUDGING_H
#define HFN_VERDICTS_JUDGING_H

#include "arch/arch.h"
#include "functions/functions.h"
#include "image/image.h"
#include "os/threads.h"
#include "verdicts/code.h"
#include "verdicts/references.h"
#include "verdicts/verdicts.h"

#define HFN_NO_SUBJECT UINT32_MAX

#define HFN_NOTE_LOOPS 1u      /* jumps to its own entry                            */
#define HFN_NOTE_UNBOUNDED 2u  /* one of its jumps may land anywhere in it          */
#define HFN_NOTE_MAYBE_PART 4u /* its jumps may be those of another function's body */
#define HFN_NOTE_RSEQ 8u       /* holds a restartable sequence                      */
#define HFN_NOTE_FAULT 16u     /* a fault handler knows its addresses               */
#define HFN_NOTE_HANDS_FLAGS                                                                       \
    32u /* who calls it may read flags behind the call that were set before it */
/* Somebody knows where its bytes are, or nobody which are its own. */
#define HFN_NOTES_STAY (HFN_NOTE_UNBOUNDED | HFN_NOTE_RSEQ | HFN_NOTE_FAULT)

/* A function as the judge sees it.  Same index as in the functions. */
typedef struct hfn_subject {
    uint64_t rva, end;        /* end lies in the same region                            */
    uint64_t reach;           /* the furthest end of this one and those before it there */
    const hfn_region *region; /* NULL: not in executable bytes                   */
    uint16_t flags;           /* HOTFN_FUNCTION_*                                */
    uint8_t kind;
    uint8_t notes;         /* HFN_NOTE_*; written by the one thread that scans it     */
    uint8_t pad_used;      /* bytes of the padding behind end that patches have taken */
    uint32_t unbounded_at; /* offset of the jump that UNBOUNDED is about         */
} hfn_subject;

/* Bytes that must stay where they are, for a reason (fixed_bytes.c). */
typedef struct hfn_fixed {
    uint64_t rva, end;
    uint32_t reason;
} hfn_fixed;

/* A piece of code with an indirect jump that may go through a table. */
typedef struct hfn_dispatcher {
    uint64_t from, to;
    uint32_t subject; /* HFN_NO_SUBJECT between functions */
} hfn_dispatcher;

/* A jump table's entry that leads out of its function: perhaps into a part of it that stands elsewhere. */
typedef struct hfn_far_case {
    uint32_t subject;
    uint64_t target;
} hfn_far_case;

/* A word by which code reaches a function that may be of another image (hfn_image_each_slot). */
typedef struct hfn_slot {
    uint64_t rva;
    uint64_t target;   /* the function of this image that will be reached; UINT64_MAX: not known */
    uint64_t own;      /* this image's function of the name, which may not be the one        */
    bool is_standard;  /* whichever is reached, hfn_is_standard knows its name                   */
    bool pops_nothing; /* the same: hfn_pops_nothing (i386)                                    */
} hfn_slot;

typedef struct hfn_judging {
    hotfn_env env;
    const hotfn_image *image;
    const hotfn_functions *functions;
    const hfn_arch *arch;
    hotfn_image_info info;
    bool fixed_place;  /* absolute addresses in the code are meant           */
    bool image_base;   /* x64 of Windows: jump tables may count from RVA 0 */
    uint64_t pic_base; /* what position-independent i386 code keeps in a register; 0 none */
    uint32_t threads, flags;
    hfn_code code;
    hfn_references references;
    hfn_subject *subjects;
    uint32_t count;
    hfn_os_mutex lock; /* of all below, and of the caller's allocator */
    bool no_memory;
    hfn_dispatcher *dispatchers;
    size_t dispatcher_count, dispatcher_capacity;
    hfn_fixed *fixed; /* by rva, without overlaps */
    size_t fixed_count, fixed_capacity;
    uint64_t *flag_hands; /* who may hand flags through, as called; some more than once */
    size_t flag_hand_count, flag_hand_capacity;
    hfn_branch *branches; /* out of functions or back to their entries; by field */
    size_t branch_count, branch_capacity;
    hfn_far_case *far_cases; /* by subject and target; for the proofs of timing only */
    size_t far_case_count, far_case_capacity;
    hfn_slot *slots; /* by rva; for the proofs of timing only */
    size_t slot_count, slot_capacity;
    uint8_t *pops; /* i386, by subject: words that its returns take along, plus 1; 0: not looked at,
                    * UINT8_MAX: cannot be told */
    uint8_t *
        pieces; /* by subject, where arch has pieces: 1 it is none, 2 it may be one; 0: not looked at */
    uint64_t tsc_disable_rva; /* hfn_verdicts_get_tsc_disable_rva */
    hfn_dispatcher *orphans;  /* fragments whose jumps may land elsewhere */
    size_t orphan_count, orphan_capacity;
} hfn_judging;

/* False if there is no memory; then there is nothing to finish. */
bool hfn_judging_init(hfn_judging *j, const hotfn_image *image, const hotfn_functions *functions,
                      const hfn_arch *arch, const hotfn_verdicts_options *options,
                      const hotfn_env *env);
/* False if memory ran out on the way: what was found is not all. */
bool hfn_judging_finish(hfn_judging *j);

/* Where to read on behind bytes at rva that are no instruction. */
uint64_t hfn_judging_skip(const hfn_judging *j, uint64_t rva);

/* Does the instruction take an address of this image, and which? */
bool hfn_judging_takes(const hfn_judging *j, const hfn_instruction *in, uint64_t *target);

/* Append under the lock; sets no_memory. */
bool hfn_judging_append(hfn_judging *j, void **items, size_t *count, size_t *capacity,
                        const void *item, size_t item_bytes);

/* Index of the first subject at or behind rva. */
uint32_t hfn_judging_lower(const hfn_judging *j, uint64_t rva);

/* flow.c: read all code once; marks, notes and dispatchers. */
void hfn_flow_scan(hfn_judging *j);
/* flags.c: does the code at rva read flags before it writes them all, or return first, if at_return?  A direct
 * call of target was read, and what stands behind it (from any thread); when all are known, notes. */
bool hfn_flags_live(const hfn_judging *j, uint64_t rva, bool at_return);
void hfn_flags_note_call(hfn_judging *j, uint64_t target, uint64_t behind);
void hfn_flags_settle(hfn_judging *j);
/* tables.c: the jump tables behind the dispatchers; marks and notes. */
void hfn_tables_scan(hfn_judging *j);
/* Where the table's entry leads; false: to no code. */
bool hfn_tables_entry(const hfn_judging *j, const hfn_dispatch *d, uint64_t k, uint64_t *target);
/* orphans.c: who leads to the orphans; notes. */
void hfn_orphans_scan(hfn_judging *j);
/* evidence.c: before the scan (what names and sections tell), and verdicts that need no ladder. */
void hfn_evidence_prepare(hfn_judging *j);
bool hfn_evidence_settles(const hfn_judging *j, uint32_t index, hfn_verdict *out);
uint32_t hfn_evidence_flags(const hfn_judging *j, uint32_t index);
/* fixed_bytes.c: find the bytes that must stay as far as tables tell; add some that are read, from any thread;
 * when all are known, settle them; then why one of [from, to) is such, NONE if none is, and the first of
 * them. */
void hfn_fixed_prepare(hfn_judging *j);
void hfn_fixed_add_read(hfn_judging *j, uint64_t rva, uint32_t byte_count);
void hfn_fixed_settle(hfn_judging *j);
uint32_t hfn_fixed_reason(const hfn_judging *j, uint64_t from, uint64_t to, uint64_t *at);
/* rseq.c: note the functions that hold restartable sequences. */
void hfn_rseq_prepare(hfn_judging *j);
/* ladder.c: the cheapest strategy that works.  The first pass finds those that need nothing but
 * the function's own surroundings and answers false for the rest; the second, one function after
 * the other, shares out padding. */
bool hfn_ladder_first(const hfn_judging *j, uint32_t index, hfn_verdict *out);
void hfn_ladder_second(const hfn_judging *j, uint32_t index, hfn_verdict *out);
/* standard.c: does a standard say what a function of this name takes, all of it in registers? */
bool hfn_is_standard(const hfn_judging *j, const char *name);
/* And of this one, that it takes nothing off the stack when it returns (i386)? */
bool hfn_pops_nothing(const hfn_judging *j, const char *name);
/* timing.c: which hookable functions may be timed; their flags. */
void hfn_timing_judge(hfn_judging *j, hfn_verdict *items);
/* comes_to of fragments.  Before hfn_sites_keep leaves out branches that nobody changes. */
void hfn_timing_find_owners(const hfn_judging *j, hfn_verdict *items);
/* sites.c: of the branches, those that may be sent to a stub; in place: target becomes the index of the
 * function. */
void hfn_sites_keep(hfn_judging *j, const hfn_verdict *verdicts);
/* pads.c: its last instruction ends where it ends, and never goes on. */
bool hfn_subject_ends(const hfn_judging *j, const hfn_subject *s);
/* Take the bytes [from, to) behind the subject's end, if they are padding that nobody
 * reaches and nobody has taken. */
bool hfn_pad_take(const hfn_judging *j, uint32_t index, uint64_t from, uint64_t to);
/* Take byte_count such bytes that start in [low, high], anywhere; UINT64_MAX if there are none. */
uint64_t hfn_pad_find(const hfn_judging *j, uint64_t low, uint64_t high, uint32_t byte_count);

#endif
