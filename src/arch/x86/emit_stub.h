/* SPDX-License-Identifier: MIT */
/* The head of an x86 stub, the gates and the patch: what arch/stub.h promises for this CPU. */
#ifndef HFN_ARCH_X86_EMIT_STUB_H
#define HFN_ARCH_X86_EMIT_STUB_H

#include "arch/stub.h"

const hfn_stub_shape *hfn_x86_get_stub_shape(hfn_stub_kind kind, uint32_t flags);
/* Write shape.head_bytes bytes. */
void hfn_x86_emit_stub(uint8_t *out, const hfn_stub_request *request);

/* emit_tail_exit.c: the front of a stub with HFN_STUB_TAIL_EXIT; behind its call the stub goes on at
 * HFN_TAIL_EXIT_END_AT in it.  The shape is one without it.  `room`: hfn_x86_get_time_room. */
#define HFN_TAIL_EXIT_BYTES 60
#define HFN_TAIL_EXIT_END_AT 28
void hfn_x86_emit_tail_exit(uint8_t *out, const hfn_stub_request *request, uint64_t behind_body,
                            uint32_t room, uint32_t argument_bytes);
void hfn_x86_add_tail_exit_shape(hfn_stub_shape *shape, uint32_t room);
/* How far a timing stub lowers the stack for its frame. */
uint32_t hfn_x86_get_time_room(uint32_t flags);
static inline bool hfn_x86_has_tail_exit(hfn_stub_kind kind, uint32_t flags)
{
    return (flags & HFN_STUB_TAIL_EXIT) && (kind == HFN_STUB_TIME || kind == HFN_STUB_SAMPLE);
}

/* A gate: code once a region that its stubs call.  The count gate goes on to a slow path anywhere in
 * memory (stubs with a spare register enter it a few bytes on); the call gate saves everything, calls what stands behind the call, and restores it. */
#define HFN_X86_COUNT_GATE_BYTES 24
#define HFN_X86_TIME_GATE_BYTES 14
#define HFN_X86_CALL_GATE_MAX 224

/* Returns HFN_X86_COUNT_GATE_BYTES. */
uint32_t hfn_x86_emit_count_gate(uint8_t *out, uint64_t slow_path);
/* A way on to code anywhere in memory; changes nothing. */
void hfn_x86_emit_time_gate(uint8_t *out, uint64_t target);

/* How this processor saves its vector registers. */
typedef struct hfn_x86_vector_state {
    uint32_t how;        /* 0: fxsave64, 1: xsave64, 2: xsavec64 */
    uint32_t area_bytes; /* a multiple of 64                     */
    uint32_t mask;       /* state components (Intel SDM vol. 1, 13.1) */
} hfn_x86_vector_state;

/* Of the processor that runs this; fxsave64 elsewhere. */
hfn_x86_vector_state hfn_x86_get_host_vector_state(void);
/* Returns the number of bytes, at most HFN_X86_CALL_GATE_MAX. */
uint32_t hfn_x86_emit_call_gate(uint8_t *out, const hfn_x86_vector_state *vector);

/* DWARF call frame instructions (DWARF 5, 6.4.2) of a call gate, from its first byte and the state
 * CFA = rsp + 8 on; in units of 1 and -8.  Returns their number of bytes. */
uint32_t hfn_x86_write_call_gate_cfi(uint8_t *out, uint32_t gate_bytes);

/* The same of 32-bit code (emit_stub_32.c); the patch is of both. */
hfn_stub_shape hfn_x86_32_get_stub_shape(hfn_stub_kind kind, uint32_t flags);
void hfn_x86_32_emit_stub(uint8_t *out, const hfn_stub_request *request);
uint32_t hfn_x86_32_emit_count_gate(uint8_t *out, uint64_t slow_path);
uint32_t hfn_x86_32_emit_call_gate(uint8_t *out, const hfn_x86_vector_state *vector);
uint32_t hfn_x86_32_write_call_gate_cfi(uint8_t *out, uint32_t gate_bytes);
uint32_t hfn_x86_32_write_cie_state(uint8_t *out);
uint32_t hfn_x86_32_write_step_cfi(uint8_t *out, uint32_t lowered_bytes);

uint32_t hfn_x86_emit_patch(uint8_t *out, const uint8_t *original, uint64_t at, uint64_t target);
uint32_t hfn_x86_write_cie_state(uint8_t *out);
uint32_t hfn_x86_write_step_cfi(uint8_t *out, uint32_t lowered_bytes);

#endif
