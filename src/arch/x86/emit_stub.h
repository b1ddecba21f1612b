/* SPDX-License-Identifier: MIT */
/* The head of a stub: what runs between the entry jump and the moved instructions.  Its size depends
 * on kind and flags alone, so that a batch of stubs is laid out before any is written. */
#ifndef HFN_ARCH_X86_EMIT_STUB_H
#define HFN_ARCH_X86_EMIT_STUB_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hfn_stub_kind {
    HFN_STUB_COUNT = 0, /* inc qword [row + slot_displacement] */
    HFN_STUB_CALL,      /* callback(user), all registers kept  */
    HFN_STUB_FLOOR,     /* nothing                             */
    HFN_STUB_TIME,      /* COUNT, and the body is called       */
    HFN_STUB_KINDS
} hfn_stub_kind;

#define HFN_STUB_FLAGS_LIVE 1u /* change no flag, not even between instructions that restore it */
#define HFN_STUB_RED_ZONE 2u   /* the 128 bytes below the stack pointer are in use              */
#define HFN_STUB_SPARE_SHIFT 8 /* from this bit on: a register that may be spoilt, plus 1       */

/* Where things are in a head, and how far it has lowered the stack pointer from where. */
typedef struct hfn_stub_step {
    uint8_t at;            /* from here on ...     */
    uint8_t lowered_bytes; /* ... until the next step */
} hfn_stub_step;

typedef struct hfn_stub_shape {
    uint8_t head_bytes; /* the moved instructions follow, at the stack pointer of the entry */
    uint8_t entry_at;   /* where the patch jumps to                                         */
    uint8_t step_count;
    hfn_stub_step steps[8];
} hfn_stub_shape;

typedef struct hfn_stub_request {
    hfn_stub_kind kind;
    uint32_t flags;            /* HFN_STUB_FLAGS_LIVE ...                           */
    uint64_t address;          /* of the head's first byte                          */
    uint64_t gate;             /* the region's gate of this kind, within 2 GiB      */
    int32_t row_displacement;  /* COUNT: fs:[row_displacement] holds the row        */
    int32_t slot_displacement; /* COUNT: from the row                               */
    uint64_t callback, user;   /* CALL                                              */
    uint64_t time_enter, time_exit; /* TIME: the region's gates                     */
    uint32_t slot;             /* TIME: what they find in the stub's frame          */
} hfn_stub_request;

const hfn_stub_shape *hfn_x86_stub_shape(hfn_stub_kind kind, uint32_t flags);
/* Write shape.head_bytes bytes. */
void hfn_x86_emit_stub(uint8_t *out, const hfn_stub_request *request);

/* A gate: code once a region that its stubs call.  The count gate goes on to a slow path anywhere in
 * memory (stubs with a spare register enter it a few bytes on); the call gate saves everything, calls what stands behind the call, and restores it. */
#define HFN_COUNT_GATE_BYTES 24
#define HFN_TIME_GATE_BYTES 14
#define HFN_CALL_GATE_MAX 224

void hfn_x86_emit_count_gate(uint8_t *out, uint64_t slow_path);
/* A way on to code anywhere in memory; changes nothing. */
void hfn_x86_emit_time_gate(uint8_t *out, uint64_t target);

/* How this processor saves its vector registers. */
typedef struct hfn_vector_state {
    uint32_t how;        /* 0: fxsave64, 1: xsave64, 2: xsavec64 */
    uint32_t area_bytes; /* a multiple of 64                     */
    uint32_t mask;       /* state components (Intel SDM vol. 1, 13.1) */
} hfn_vector_state;

/* Of the processor that runs this; fxsave64 elsewhere. */
hfn_vector_state hfn_x86_host_vector_state(void);
/* Returns the number of bytes, at most HFN_CALL_GATE_MAX. */
uint32_t hfn_x86_emit_call_gate(uint8_t *out, const hfn_vector_state *vector);

/* DWARF call frame instructions (DWARF 5, 6.4.2) of a call gate, from its first byte and the state
 * CFA = rsp + 8 on; in units of 1 and -8.  Returns their number of bytes. */
#define HFN_CALL_GATE_CFI_MAX 20
uint32_t hfn_x86_call_gate_cfi(uint8_t *out, uint32_t gate_bytes);

#endif
