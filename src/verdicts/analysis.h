/* SPDX-License-Identifier: MIT */
/*
 * The state of one analysis, from the bytes of an image to the verdicts; private to this folder.
 *
 *   analysis_init     functions with their bytes; facts from names and tables
 *   flow_scan         all code is decoded once: marks, branches, indirect jumps, references
 *   tables_scan       jump tables of the indirect jumps; unowned_scan: indirect jumps of fragments
 *   strategy_choose   the cheapest patch of each function
 *   timing_prove_all  which hookable functions may be timed (prove.h)
 */
#ifndef HFN_VERDICTS_ANALYSIS_H
#define HFN_VERDICTS_ANALYSIS_H

#include "arch/arch.h"
#include "functions/functions.h"
#include "image/image.h"
#include "os/threads.h"
#include "verdicts/code.h"
#include "verdicts/references.h"
#include "verdicts/relocated.h"
#include "verdicts/verdicts.h"

#define HFN_NO_FUNCTION UINT32_MAX
#define HFN_UNKNOWN_TARGET UINT64_MAX

#define HFN_TRAIT_LOOPS 1u       /* jumps to its own entry                                       */
#define HFN_TRAIT_UNBOUNDED 2u   /* contains an indirect jump that may target any of its bytes   */
#define HFN_TRAIT_MAY_BE_PART 4u /* may be a fragment of another function                        */
#define HFN_TRAIT_RSEQ 8u        /* contains a restartable sequence                              */
#define HFN_TRAIT_FAULT 16u      /* a fault handler compares addresses with those of its code    */
#define HFN_TRAIT_FLAGS_LIVE_OUT                                                                   \
    32u                         /* callers read flags after the call that were set before it   */
#define HFN_TRAIT_AMBIGUOUS 64u /* some of its bytes were decoded in two ways                  */
#define HFN_TRAIT_RED_ZONE 128u /* code that uses the red zone jumps to it                   */
#define HFN_TRAIT_FLAGS_LIVE_AT_TAIL 256u /* FLAGS_LIVE_OUT, and its callers certainly run on    */
#define HFN_TRAIT_GAP_ADDED 512u /* flags.c added the places in the code behind it            */
/* Functions whose instructions must keep their addresses, or have uncertain boundaries. */
#define HFN_TRAITS_FIXED                                                                           \
    (HFN_TRAIT_UNBOUNDED | HFN_TRAIT_RSEQ | HFN_TRAIT_FAULT | HFN_TRAIT_AMBIGUOUS)

#define HFN_RUNTIME_WALKS_STACK 1u  /* a runtime in the image finds frames by return address    */
#define HFN_RUNTIME_OWNS_THREADS 4u /* the image is the C library, or threads are of its kind    */
#define HFN_RUNTIME_READS_CODE 2u   /* a runtime reads or patches the code of the image          */
#define HFN_RUNTIME_GO 8u

/* A function with its place in the code.  Same index as in the functions. */
typedef struct hfn_body {
    uint64_t rva, end;        /* end lies in the same region                                    */
    uint64_t max_end;         /* maximum of the ends of this and all previous ones of the region */
    const hfn_region *region; /* NULL: not in executable bytes                                  */
    uint16_t flags;           /* HOTFN_FUNCTION_*                                               */
    uint8_t kind;
    uint8_t padding_used;  /* bytes of the padding after end that patches use                   */
    uint16_t traits;       /* HFN_TRAIT_*; written only by the thread that decodes the function */
    uint32_t unbounded_at; /* offset of the indirect jump that makes it UNBOUNDED               */
} hfn_body;

/* Bytes that must not be changed or moved, with the reason (fixed_bytes.c). */
typedef struct hfn_fixed {
    uint64_t rva, end;
    uint32_t reason;
} hfn_fixed;

/* A range of code with an indirect jump that may use a table. */
typedef struct hfn_dispatcher {
    uint64_t from, to;
    uint32_t function; /* HFN_NO_FUNCTION: code between functions */
} hfn_dispatcher;

/* A cross-function jump: an entry of a jump table that leads out of the table's function, perhaps
 * into a fragment of it. */
typedef struct hfn_cross_jump {
    uint32_t function;
    uint64_t target;
} hfn_cross_jump;

typedef enum hfn_exit_kind {
    HFN_EXIT_JUMP,    /* direct, or the code continues to other code */
    HFN_EXIT_CALL,    /* direct; the function may return after it without writing a flag */
    HFN_EXIT_BEHIND,  /* the code continues to other code behind a call */
    HFN_EXIT_PADDING, /* padding at `at`, not on any path seen, continues to other code */
} hfn_exit_kind;

/* An instruction behind which other code may run in the same stack frame or with the same flags. */
typedef struct hfn_exit {
    uint64_t at, target; /* target: HFN_UNKNOWN_TARGET at an indirect call or jump */
    hfn_exit_kind kind;
} hfn_exit;

/* An instruction that computes an address of code, or of the end of code, or that loads one from
 * a word of the GOT: then target is the word until hfn_fault_ranges_find. */
typedef struct hfn_taken {
    uint64_t at, target;
} hfn_taken;

/* Code of which a fault handler may know the addresses (fault_ranges.c). */
typedef struct hfn_known_range {
    uint64_t rva, end;
} hfn_known_range;

/* A call behind which flags are live that were set before it. */
typedef struct hfn_flags_call {
    uint64_t target; /* HFN_UNKNOWN_TARGET: an indirect call */
    uint64_t behind; /* its return address, HFN_RETURNS or HFN_MAY_NOT_RETURN */
    bool by_target;  /* live only if the targets of an indirect branch read flags */
} hfn_flags_call;
#define HFN_RETURNS 0u
#define HFN_MAY_NOT_RETURN UINT64_MAX

/* A word through which code reaches a function that may be in another image
 * (hfn_image_each_slot). */
typedef struct hfn_slot {
    uint64_t rva;
    uint64_t target;   /* function of this image that is certainly reached; UINT64_MAX: unknown */
    uint64_t own;      /* this image's function of that name, which may not be the one reached   */
    bool is_standard;  /* the name is one of hfn_is_standard */
    bool pops_nothing; /* i386: the name is one of hfn_pops_nothing */
} hfn_slot;

typedef struct hfn_analysis {
    hotfn_env env;
    const hotfn_image *image;
    const hotfn_functions *functions;
    const hfn_arch *arch;
    hotfn_image_info info;
    bool fixed_place;   /* the image is not relocated: immediates may be addresses           */
    uint8_t home_bytes; /* Windows x64: as in hfn_stack_state */
    bool image_base;    /* x64 Windows: entries of jump tables may be relative to RVA 0      */
    uint64_t pic_base;  /* i386: the RVA that position-independent code keeps in a register */
    uint32_t threads, flags;
    uint32_t runtimes;        /* HFN_RUNTIME_* */
    uint32_t thread_evidence; /* HFN_THREAD_* */
    bool has_own_threads;     /* a thread may have no thread block of the C library */
    hfn_code code;
    hfn_references references;
    hfn_body *bodies;
    uint32_t count;
    hfn_os_mutex lock; /* protects all fields below, and the caller's allocator */
    bool no_memory;
    hfn_dispatcher *dispatchers;
    size_t dispatcher_count, dispatcher_capacity;
    hfn_fixed *fixed; /* sorted by rva, without overlaps, after hfn_fixed_sort */
    size_t fixed_count, fixed_capacity;
    hfn_relocated relocated;
    hfn_flags_call *flags_calls; /* behind which flags are live; may repeat */
    size_t flags_call_count, flags_call_capacity;
    uint64_t gap_from, gap_read, gap_data; /* flags.c: the code between functions that was decoded
                                            * last, how far, and where it has data */
    hfn_flag_reads flag_reads;             /* valid after hfn_flags_propagate */
    uint64_t *table_jumps; /* indirect jumps with a known table; sorted by hfn_flow_finish_exits */
    size_t table_jump_count, table_jump_capacity;
    uint64_t *reading_jumps; /* indirect jumps whose tables lead to code that reads flags */
    size_t reading_jump_count, reading_jump_capacity;
    hfn_exit *exits; /* sorted by `at` after hfn_flow_finish_exits */
    size_t exit_count, exit_capacity;
    uint64_t got_rva, got_bytes;
    hfn_taken *taken;
    size_t taken_count, taken_capacity;
    hfn_known_range *known; /* sorted by rva, without overlaps, after hfn_fault_ranges_find */
    size_t known_count, known_capacity;
    hfn_known_range *tables; /* the words of jump tables that were read */
    size_t table_count, table_capacity;
    uint32_t *red_zone; /* functions with HFN_TRAIT_RED_ZONE */
    size_t red_zone_count, red_zone_capacity;
    bool red_zone_by_pointer; /* code that uses the red zone jumps by a pointer */
    hfn_branch *branches;     /* that leave their function or target its entry; sorted by field */
    size_t branch_count, branch_capacity;
    /* For the proofs of timing only: */
    hfn_cross_jump *cross_jumps; /* sorted by function and target */
    size_t cross_jump_count, cross_jump_capacity;
    hfn_slot *slots; /* sorted by rva */
    size_t slot_count, slot_capacity;
    uint8_t *pops; /* i386, for each function: words that its returns pop, plus 1; 0: not computed,
                        * UINT8_MAX: not known */
    uint8_t *outlined; /* for each function, where arch needs it: 1 not outlined, 2 may be outlined,
                        * 0 not computed */
    uint64_t tsc_disable_rva; /* hfn_verdicts_get_tsc_disable_rva */
    hfn_dispatcher *unowned;  /* fragments whose indirect jumps may leave them */
    size_t unowned_count, unowned_capacity;
    uint64_t *hidden; /* where paths that the sweep missed begin; UINT64_MAX: there is none */
    size_t hidden_count, hidden_capacity;
    size_t hidden_done; /* the first hidden_done of them have been decoded */
} hfn_analysis;

/* False if there is no memory; then there is nothing to finish. */
bool hfn_analysis_init(hfn_analysis *a, const hotfn_image *image, const hotfn_functions *functions,
                       const hfn_arch *arch, const hotfn_verdicts_options *options,
                       const hotfn_env *env);
/* False if memory ran out during the analysis: its results are incomplete. */
bool hfn_analysis_finish(hfn_analysis *a);

/* The next address at which an instruction may begin after undecodable bytes at rva. */
uint64_t hfn_analysis_next_start(const hfn_analysis *a, uint64_t rva);

/* Whether the instruction computes an address of this image, and which. */
bool hfn_analysis_takes_address(const hfn_analysis *a, const hfn_instruction *in, uint64_t *target);

/* Whether the instruction accesses memory at a known address of this image, and which. */
bool hfn_analysis_accesses(const hfn_analysis *a, const hfn_instruction *in, const uint8_t *bytes,
                           uint64_t *rva);

/* Append an item to an array of the analysis, under its lock; sets no_memory on failure. */
bool hfn_analysis_append(hfn_analysis *a, void **items, size_t *count, size_t *capacity,
                         const void *item, size_t item_bytes);

/* Index of the first body at or after rva. */
uint32_t hfn_analysis_find_body(const hfn_analysis *a, uint64_t rva);
/* The function, or the code between functions, that contains rva, which is in the region. */
hfn_dispatcher hfn_analysis_find_surroundings(const hfn_analysis *a, const hfn_region *region,
                                              uint64_t rva);
/* Whether a pointer may lead to the function: its address is taken or exported. */
bool hfn_analysis_has_pointer(const hfn_body *body);
/* For qsort: addresses in ascending order. */
int hfn_analysis_compare_addresses(const void *a, const void *b);
/* Index of the body that contains rva; HFN_NO_FUNCTION if there is none. */
uint32_t hfn_analysis_find_around(const hfn_analysis *a, uint64_t rva);

/* flow.c: decode all code once, then the paths that this sweep missed. */
void hfn_flow_scan(hfn_analysis *a);
/* Decode from every marked byte at which no instruction was decoded before, until all marked bytes
 * are starts of instructions. */
void hfn_flow_scan_hidden(hfn_analysis *a);
/* After all code was decoded: sort the exits, and remove the padding that no code jumps to, and
 * jumps through known tables. */
void hfn_flow_finish_exits(hfn_analysis *a);
/* The first exit of the body and their count. */
const hfn_exit *hfn_flow_exits(const hfn_analysis *a, const hfn_body *body, size_t *count);

/* flags.c: whether the code at rva may read flags before it writes them all (flags_live of
 * arch.h). */
bool hfn_flags_live(const hfn_analysis *a, uint64_t rva, const hfn_flag_reads *reads);
/* Record a call of target (or HFN_UNKNOWN_TARGET), and whether flags are live at its return address
 * `behind`.  Returns true if that depends on the caller of the code, as it may return before it
 * writes a flag.  Any thread. */
bool hfn_flags_record_call(hfn_analysis *a, uint64_t target, uint64_t behind);
/* The targets of the indirect jump at rva may read flags.  Any thread. */
void hfn_flags_add_reading_jump(hfn_analysis *a, uint64_t rva);
/* After all calls were recorded: set flag_reads and HFN_TRAIT_FLAGS_LIVE_OUT, also through nested
 * and tail calls. */
void hfn_flags_propagate(hfn_analysis *a);

/* tables.c: read the jump tables of all dispatchers; sets marks and traits. */
void hfn_tables_scan(hfn_analysis *a);
/* Note that the indirect jump at jump_rva may target any byte of the dispatcher's function or, in
 * a fragment, of any function that jumps to the fragment. */
void hfn_tables_mark_unbounded(hfn_analysis *a, const hfn_dispatcher *dispatcher,
                               uint64_t jump_rva);
/* The target of entry k of a table; false if it does not lead to code. */
bool hfn_tables_read_entry(const hfn_analysis *a, const hfn_dispatch *d, uint64_t k,
                           uint64_t *target);

/* red_zone.c: set HFN_TRAIT_RED_ZONE, after all code was decoded. */
void hfn_red_zone_scan(hfn_analysis *a);

/* unowned.c: functions that jump to unowned fragments become UNBOUNDED. */
void hfn_unowned_scan(hfn_analysis *a);

/* runtimes.c: the HFN_RUNTIME_* of the runtimes that left marks in the image. */
uint32_t hfn_runtimes_find(const hotfn_image *image, const hotfn_functions *functions);

/* own_threads.c: note a system call, or an instruction with an immediate.  Any thread. */
void hfn_own_threads_record(hfn_analysis *a, const hfn_region *region, uint64_t at,
                            const hfn_instruction *in);
/* After all code was decoded: set has_own_threads. */
void hfn_own_threads_finish(hfn_analysis *a);

/* evidence.c: traits that follow from names and sections alone. */
void hfn_evidence_prepare(hfn_analysis *a);
/* The verdicts that do not depend on a strategy; false if the function needs one. */
bool hfn_evidence_decide(const hfn_analysis *a, uint32_t index, hfn_verdict *out);
uint32_t hfn_evidence_flags(const hfn_analysis *a, uint32_t index);

/* fixed_bytes.c: collect fixed bytes from the image's tables. */
void hfn_fixed_prepare(hfn_analysis *a);
/* Bytes of code that must not be changed or moved; reason: HOTFN_REASON_*.  Ranges outside code are
 * ignored. */
void hfn_fixed_add(hfn_analysis *a, uint64_t rva, uint64_t end, uint32_t reason);
/* Add bytes that an instruction accesses.  Any thread. */
void hfn_fixed_add_read(hfn_analysis *a, uint64_t rva, uint32_t byte_count);
/* After all were added: sort the fixed bytes, so that they can be searched. */
void hfn_fixed_sort(hfn_analysis *a);
/* The reason why a byte in [from, to) is fixed, and the first such byte; NONE if there is none. */
uint32_t hfn_fixed_reason(const hfn_analysis *a, uint64_t from, uint64_t to, uint64_t *at);

/* fault_ranges.c: find the code whose addresses the program uses as data; after all code was
 * decoded. */
void hfn_fault_ranges_find(hfn_analysis *a);
/* Whether a fault handler may know a fault of the byte_count bytes at rva by its address, and the
 * offset of the first such instruction. */
bool hfn_fault_ranges_know(const hfn_analysis *a, const hfn_region *region, uint64_t rva,
                           uint32_t byte_count, uint32_t *offset);

/* rseq.c: find the functions that contain restartable sequences. */
void hfn_rseq_prepare(hfn_analysis *a);
/* Add the sleds of XRay to the fixed bytes. */
void hfn_xray_prepare(hfn_analysis *a);

/* strategy.c: choose the cheapest strategy.  The first call needs only the function's own
 * surroundings and may run in parallel; it returns false if it finds none.  The second decides
 * the other functions one after another, because they share padding. */
bool hfn_strategy_choose_local(const hfn_analysis *a, uint32_t index, hfn_verdict *out);
void hfn_strategy_choose_any(const hfn_analysis *a, uint32_t index, hfn_verdict *out);

/* standard.c: whether a standard specifies the function of this name, with all arguments in
 * registers. */
bool hfn_is_standard(const hfn_analysis *a, const char *name);
/* i386: whether the function of this name pops no arguments when it returns. */
bool hfn_pops_nothing(const hfn_analysis *a, const char *name);

/* timing.c: set the timing flags of all hookable functions. */
void hfn_timing_prove_all(hfn_analysis *a, hfn_verdict *items);

/* owners.c: set the owner of fragments, and loops[i] for each function to whose entry one of its
 * own fragments jumps.  Needs all branches, so it runs before hfn_sites_keep. */
void hfn_owners_find(hfn_analysis *a, hfn_verdict *items, uint8_t *loops);
/* When the timing is decided: report only loops to the entry that are proven. */
void hfn_owners_report_loops(const hfn_analysis *a, hfn_verdict *items, const uint8_t *loops);

/* sites.c: keep only the branches that may be redirected to a stub.  Their target becomes the
 * index of the function. */
void hfn_sites_keep(hfn_analysis *a, const hfn_verdict *verdicts);

/* padding.c: whether the function's last instruction ends at its end and never continues after
 * it. */
bool hfn_body_is_closed(const hfn_analysis *a, const hfn_body *body);
/* Reserve the bytes [from, to) after a function's end; false if they are not unused padding. */
bool hfn_padding_reserve(const hfn_analysis *a, uint32_t index, uint64_t from, uint64_t to);
/* Reserve byte_count bytes of padding that begin in [low, high]; UINT64_MAX if there are none. */
uint64_t hfn_padding_find(const hfn_analysis *a, uint64_t low, uint64_t high, uint32_t byte_count);

#endif
