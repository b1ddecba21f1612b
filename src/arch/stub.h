/* SPDX-License-Identifier: MIT */
/*
 * Stubs, for the CPU that the library is built for, since stubs run in this process.
 *
 * The patch at a function's entry jumps to the function's stub, which consists of a head and the
 * moved instructions.  A head's size depends on its kind and flags alone, so a batch of stubs is
 * laid out before any is written.  A region of stubs shares gates: code that the heads call for
 * rare or long operations.
 *
 * Nothing here writes to code that may run: the caller passes a buffer and the address at which its
 * bytes will be placed.  Any thread may call any of these functions.
 */
#ifndef HFN_ARCH_STUB_H
#define HFN_ARCH_STUB_H

#include "arch/arch.h"

typedef enum hfn_stub_kind {
    HFN_STUB_COUNT = 0, /* inc qword [row + slot_displacement]           */
    HFN_STUB_CALL,      /* callback(user) with all registers saved       */
    HFN_STUB_REPLACE,   /* a jump to callback in place of the function   */
    HFN_STUB_FILTER,    /* callback(user, saved): 0 returns to the caller */
    HFN_STUB_EMPTY,     /* nothing, to measure a patch and a moved entry  */
    HFN_STUB_TIME,      /* COUNT; entry and exit probes around the body  */
    HFN_STUB_SAMPLE,    /* COUNT; the probes for some of the calls       */
    HFN_STUB_KINDS
} hfn_stub_kind;

#define HFN_STUB_FLAGS_LIVE 1u /* flags are live: do not change them, not even temporarily       */
#define HFN_STUB_RED_ZONE 2u   /* the 128 bytes below the stack pointer are in use              */
#define HFN_STUB_FAR_SLOT 4u   /* the slot lies beyond HFN_STUB_NEAR_SLOT_BYTES (ARM64)         */
#define HFN_STUB_SIGNED 8u     /* the return address is signed at the entry (ARM64) ...         */
#define HFN_STUB_KEY_B 16u     /* ... with key B                                                */
#define HFN_STUB_TAIL_EXIT 32u /* TIME, SAMPLE on x86-64: the jump to tail_target exits first    */
/* From this bit on, five bits: a scratch register's number plus 1; 0: none. */
#define HFN_STUB_SCRATCH_SHIFT 8
/* TIME, SAMPLE.  From this bit on, five bits: words of stack arguments to copy; three more bits,
 * i386: how many of them the return pops: none, one or all (HFN_STUB_POPS_ALL). */
#define HFN_STUB_ARGUMENTS_SHIFT 16
#define HFN_STUB_POPS_ALL 2u
/* TIME, SAMPLE on i386.  From this bit on, bit n: the copy of argument word n is written back to
 * the caller's when the body has returned. */
#define HFN_STUB_STORED_SHIFT 24

/* A change of the unwinding state within a head.  From offset `at` on, the stack pointer is
 * lowered_bytes below its value at the entry.  Two values of lowered_bytes have a meaning of
 * their own. */
typedef struct hfn_stub_step {
    uint8_t at;
    uint8_t lowered_bytes;
#define HFN_STUB_SIGNS 0xffu  /* the return address changes between signed and unsigned */
#define HFN_STUB_PUSHES 0xfeu /* after the previous step, `at` pushes of HFN_STUB_PUSH_BYTES each */
} hfn_stub_step;
#define HFN_STUB_PUSH_BYTES 4u

typedef struct hfn_stub_shape {
    uint8_t head_bytes; /* after the head, the stack pointer is that of the entry */
    uint8_t entry_at;   /* offset to which the patch jumps */
    uint8_t step_count;
    hfn_stub_step steps[18];
} hfn_stub_shape;

typedef struct hfn_stub_request {
    hfn_stub_kind kind;
    uint32_t flags;                 /* HFN_STUB_FLAGS_LIVE ...                          */
    uint64_t address;               /* where the head will be placed                    */
    uint64_t gate;                  /* COUNT, CALL, FILTER: the region's gate, within 2 GiB */
    bool row_in_gs;                 /* x86-64: row_displacement is from the gs base     */
    int32_t row_displacement;       /* of the word that points to the thread's row,
                                     * from the thread pointer                          */
    int32_t slot_displacement;      /* of the counter, from the row                     */
    uint64_t callback, user;        /* CALL, FILTER; REPLACE: callback                  */
    uint64_t time_enter, time_exit; /* TIME, SAMPLE: the region's gates                 */
    uint32_t slot;                  /* TIME, SAMPLE: the function's slot, for the probes */
    int32_t skip_displacement;      /* SAMPLE: of the number of calls to skip, from the row */
    uint64_t tail_target;           /* TAIL_EXIT: a function within 2 GiB               */
} hfn_stub_request;

#define HFN_STUB_NEAR_SLOT_BYTES 32768u /* reach of one load from a row on any CPU */
#define HFN_STUB_COUNT_GATE_ROOM 32u
#define HFN_STUB_TIME_GATE_ROOM 16u
#define HFN_STUB_CALL_GATE_ROOM 256u
#define HFN_STUB_FILTER_GATE_ROOM 288u
#define HFN_STUB_GATE_CFI_MAX 24u
#define HFN_STUB_CIE_STATE_MAX 8u
#define HFN_STUB_STEP_CFI_MAX 8u
#define HFN_STUB_PATCH_MAX 5u

/* The patching table of this CPU. */
const hfn_patching *hfn_stub_get_patching(void);

/* Can stubs address a row and a slot at these displacements? */
bool hfn_stub_can_reach(int32_t row_displacement, uint64_t slot_displacement);

/* The stack that a timed call without stack arguments uses until it returns, in bytes. */
uint32_t hfn_stub_get_call_stack_bytes(void);

/* The shape of a head: a constant, or *room filled in. */
const hfn_stub_shape *hfn_stub_get_shape(hfn_stub_kind kind, uint32_t flags, hfn_stub_shape *room);

/* Write a head of shape.head_bytes bytes. */
void hfn_stub_emit(uint8_t *out, const hfn_stub_request *request);

/* REPLACE: offset in the stub of the code that runs the original function, as if called. */
uint32_t hfn_stub_get_original_at(uint32_t flags);

/* Write a gate; unlike heads, gates are written where they will run.  The count gate continues
 * at a slow path, the time gate at any address; the call gate saves all registers, calls the
 * callback that follows the stub's call, and restores them.  The filter gate also passes the saved
 * registers and obeys the result.  They return their size in bytes. */
uint32_t hfn_stub_emit_count_gate(uint8_t *out, uint64_t slow_path);
uint32_t hfn_stub_emit_time_gate(uint8_t *out, uint64_t target);
uint32_t hfn_stub_emit_call_gate(uint8_t *out);
uint32_t hfn_stub_emit_filter_gate(uint8_t *out);

/* FILTER: an integer or pointer argument of the filtered call, by its number, and the register of
 * its result.  `saved` is what the gate passed to the filter. */
uint64_t hfn_stub_get_argument(const void *saved, uint32_t index);
void hfn_stub_set_result(void *saved, uint64_t value);

/* Write DWARF call frame instructions (DWARF 5, 6.4.2) with a code alignment of 1 and a data
 * alignment of -8.  They describe a whole call or filter gate, the state at an entry (for the
 * CIE), and one step of a head.  Each function returns their size in bytes. */
uint32_t hfn_stub_write_call_gate_cfi(uint8_t *out, uint32_t gate_bytes);
uint32_t hfn_stub_write_cie_state(uint8_t *out);
uint32_t hfn_stub_write_step_cfi(uint8_t *out, uint32_t lowered_bytes);

/* The instructions of a stub that lead into its timing tail: with their counted bytes, calls are
 * counted and no longer timed, but those that are open still end as timed calls. */
typedef struct hfn_stub_edit {
    uint8_t at, byte_count; /* from the stub's entry */
    uint8_t timed[8], counted[8];
} hfn_stub_edit;
enum { HFN_STUB_MAX_EDITS = 2, HFN_STUB_TIMED_BYTES = 176 };
bool hfn_stub_has_edits(void); /* is the library built for x86-64? */
/* Find the edits in the first bytes of a stub, at most HFN_STUB_TIMED_BYTES of which matter.
 * Returns their number; 0: the stub does not time, or its calls are only counted already, or the
 * library is built for another CPU than x86-64. */
uint32_t hfn_stub_find_timing(hfn_stub_edit out[HFN_STUB_MAX_EDITS], const uint8_t *entry,
                              uint32_t byte_count);

/* DWARF number of the column that holds the return address. */
uint8_t hfn_stub_get_return_column(void);

/* Write the patch at address `at`: a jump to target, or a call if `original` is a call.
 * original may be NULL.  Returns its size in bytes. */
uint32_t hfn_stub_emit_patch(uint8_t *out, const uint8_t *original, uint64_t at, uint64_t target);

/* ---- x86-64 only: the place in a C library where fork() enters the kernel, and a stub that makes
 * the call and zeroes a word of the thread descriptor in the child. */
enum { HFN_FORK_SITE_BYTES = 7, HFN_FORK_PATCH_BYTES = 5, HFN_FORK_STUB_BYTES = 35 };

/* mov $56, %eax; syscall.  The thread creation of glibc has other instructions between the two. */
bool hfn_is_fork_site(const uint8_t bytes[HFN_FORK_SITE_BYTES]);
void hfn_write_fork_site(uint8_t out[HFN_FORK_SITE_BYTES]);
/* A jump from the site to the stub; it replaces the first instruction. */
void hfn_emit_fork_patch(uint8_t out[HFN_FORK_PATCH_BYTES], uint64_t site, uint64_t stub);
/* The stub changes rcx only, which the system call itself destroys. */
void hfn_emit_fork_stub(uint8_t out[HFN_FORK_STUB_BYTES], uint64_t stub, uint64_t site,
                        int32_t word_at);

#endif
