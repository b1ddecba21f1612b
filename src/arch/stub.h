/* SPDX-License-Identifier: MIT */
/* What stubs are made of, by the CPU that this is built for: they run here.  A stub's head runs between
 * the entry jump and the moved instructions; its size depends on kind and flags alone, so that a batch
 * of stubs is laid out before any is written. */
#ifndef HFN_ARCH_STUB_H
#define HFN_ARCH_STUB_H

#include "arch/arch.h"

typedef enum hfn_stub_kind {
    HFN_STUB_COUNT = 0, /* inc qword [row + slot_displacement] */
    HFN_STUB_CALL,      /* callback(user), all registers kept  */
    HFN_STUB_FLOOR,     /* nothing                             */
    HFN_STUB_TIME,      /* COUNT, and the body is called       */
    HFN_STUB_SAMPLE,    /* TIME, for some calls                */
    HFN_STUB_KINDS
} hfn_stub_kind;

#define HFN_STUB_FLAGS_LIVE 1u /* change no flag, not even between instructions that restore it */
#define HFN_STUB_RED_ZONE 2u   /* the 128 bytes below the stack pointer are in use              */
#define HFN_STUB_FAR_SLOT 4u   /* the slot lies beyond HFN_STUB_NEAR_SLOT_BYTES (ARM64)           */
#define HFN_STUB_SIGNED 8u     /* the return address is signed at the entry (ARM64)               */
#define HFN_STUB_KEY_B 16u     /* it is, with key B (ARM64)                                      */
#define HFN_STUB_COMES_BACK 32u /* timed, x86-64: its jump to `comes_to` ends the call first     */
#define HFN_STUB_SPARE_SHIFT 8  /* from this bit on, five: a register that may be spoilt, plus 1 */
#define HFN_STUB_ARGUMENTS_SHIFT                                                                   \
    16 /* TIME: words on the stack to be copied, five bits; from the next
                                     * on, i386, which of them the return takes: none, one or all */
#define HFN_STUB_POPS_ALL 2u

/* Where things are in a head, and how far it has lowered the stack pointer from where. */
typedef struct hfn_stub_step {
    uint8_t at;              /* from here on ...     */
    uint8_t lowered_bytes;   /* ... until the next step; or */
#define HFN_STUB_SIGNS 0xffu /* ... the return address is signed, or no longer is */
#define HFN_STUB_PUSHES                                                                            \
    0xfeu /* `at` pushes follow the last step, HFN_STUB_PUSH_BYTES and a word each */
} hfn_stub_step;
#define HFN_STUB_PUSH_BYTES 4u

typedef struct hfn_stub_shape {
    uint8_t head_bytes; /* the moved instructions follow, at the stack pointer of the entry */
    uint8_t entry_at;   /* where the patch jumps to                                         */
    uint8_t step_count;
    hfn_stub_step steps[12];
} hfn_stub_shape;

typedef struct hfn_stub_request {
    hfn_stub_kind kind;
    uint32_t flags;                 /* HFN_STUB_FLAGS_LIVE ...                           */
    uint64_t address;               /* of the head's first byte                          */
    uint64_t gate;                  /* the region's gate of this kind, within 2 GiB      */
    int32_t row_displacement;       /* COUNT: the thread's words, there: holds the row   */
    int32_t slot_displacement;      /* COUNT: from the row                               */
    uint64_t callback, user;        /* CALL                                              */
    uint64_t time_enter, time_exit; /* TIME: the region's gates                     */
    uint32_t slot;                  /* TIME: what they find in the stub's frame          */
    int32_t skip_displacement;      /* SAMPLE: from the row                              */
    uint64_t comes_to;              /* COMES_BACK: a function within 2 GiB               */
} hfn_stub_request;

#define HFN_STUB_NEAR_SLOT_BYTES 32768u /* that one load of any CPU reaches from a row */
#define HFN_STUB_COUNT_GATE_ROOM 32u
#define HFN_STUB_TIME_GATE_ROOM 16u
#define HFN_STUB_CALL_GATE_ROOM 256u
#define HFN_STUB_GATE_CFI_MAX 24u
#define HFN_STUB_CIE_STATE_MAX 8u
#define HFN_STUB_STEP_CFI_MAX 8u
#define HFN_STUB_PATCH_MAX 5u

/* Of the CPU that this is built for. */
const hfn_patching *hfn_stub_patching(void);
/* Can stubs reach a row and a slot that are so far away? */
bool hfn_stub_reaches(int32_t row_displacement, uint64_t slot_displacement);

/* Most shapes are tables; room holds one that is made.  */
const hfn_stub_shape *hfn_stub_shape_of(hfn_stub_kind kind, uint32_t flags, hfn_stub_shape *room);
/* Write shape.head_bytes bytes. */
void hfn_stub_emit(uint8_t *out, const hfn_stub_request *request);

/* A gate: code once a region that its stubs call; it runs where it is written.  The count gate goes on to a
 * slow path, the time gate to any code in memory; the call gate saves everything, calls what stands behind the call, and restores
 * it.  They return their number of bytes. */
uint32_t hfn_stub_emit_count_gate(uint8_t *out, uint64_t slow_path);
uint32_t hfn_stub_emit_time_gate(uint8_t *out, uint64_t target);
uint32_t hfn_stub_emit_call_gate(uint8_t *out);
/* DWARF call frame instructions (DWARF 5, 6.4.2) of a call gate from its first byte on, and of any code
 * at an entry, for the CIE; in units of 1 and -8.  They return their number of bytes. */
uint32_t hfn_stub_call_gate_cfi(uint8_t *out, uint32_t gate_bytes);
uint32_t hfn_stub_cie_state(uint8_t *out);
uint8_t hfn_stub_return_column(void);
/* The same of a step, and of what lies in the frame that it makes. */
uint32_t hfn_stub_step_cfi(uint8_t *out, uint32_t lowered_bytes);

/* The jump (a call, where original is one; it may be NULL) from `at` to target that a patch is; its bytes. */
uint32_t hfn_stub_emit_patch(uint8_t *out, const uint8_t *original, uint64_t at, uint64_t target);

#endif
