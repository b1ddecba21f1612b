/* SPDX-License-Identifier: MIT */
/* arch/stub.h for x86: heads of stubs, gates and patches. */
#ifndef HFN_ARCH_X86_EMIT_STUB_H
#define HFN_ARCH_X86_EMIT_STUB_H

#include "arch/stub.h"

hfn_stub_shape hfn_x86_get_stub_shape(hfn_stub_kind kind, uint32_t flags);
/* Write shape.head_bytes bytes. */
void hfn_x86_emit_stub(uint8_t *out, const hfn_stub_request *request);

/* find_timing.c: hfn_stub_find_timing. */
uint32_t hfn_x86_find_timing(hfn_stub_edit out[HFN_STUB_MAX_EDITS], const uint8_t *entry,
                             uint32_t count);

/* emit_tail_exit.c: the code before a stub with HFN_STUB_TAIL_EXIT.  After the exit probe the stub
 * jumps into it at HFN_TAIL_EXIT_END_AT.  behind_body: the return address of the stub's call of the
 * body; room: the size of the stub's frame in bytes; argument_bytes: the size of the copied
 * arguments, which are between the frame and that return address. */
#define HFN_TAIL_EXIT_BYTES 62
#define HFN_TAIL_EXIT_END_AT 25
void hfn_x86_emit_tail_exit(uint8_t *out, const hfn_stub_request *request, uint64_t behind_body,
                            uint32_t room, uint32_t argument_bytes);
/* Add the tail exit to the shape of a stub without one. */
void hfn_x86_add_tail_exit_shape(hfn_stub_shape *shape, uint32_t room);

/* Gates (arch/stub.h).  Stubs with a scratch register enter the count gate at its second
 * instruction. */
#define HFN_X86_COUNT_GATE_BYTES 19
#define HFN_X86_TIME_GATE_BYTES 14
#define HFN_X86_CALL_GATE_MAX 240

/* Returns HFN_X86_COUNT_GATE_BYTES. */
uint32_t hfn_x86_emit_count_gate(uint8_t *out, uint64_t slow_path);
/* Jumps to code anywhere in memory; changes no register. */
void hfn_x86_emit_time_gate(uint8_t *out, uint64_t target);

/* How the call gate saves vector registers. */
typedef struct hfn_x86_vector_state {
    uint32_t method;     /* 0: fxsave64, 1: xsave64, 2: xsavec64 */
    uint32_t area_bytes; /* a multiple of 64                     */
    uint32_t mask;       /* state components (Intel SDM vol. 1, 13.1) */
} hfn_x86_vector_state;

/* For the processor that runs this; fxsave64 on other CPUs. */
hfn_x86_vector_state hfn_x86_get_host_vector_state(void);
/* Returns the size in bytes, at most HFN_X86_CALL_GATE_MAX.  filters: the filter gate. */
uint32_t hfn_x86_emit_call_gate(uint8_t *out, const hfn_x86_vector_state *vector, bool filters);

/* Unwinding of a call gate, starting with CFA = rsp + 8. */
uint32_t hfn_x86_write_call_gate_cfi(uint8_t *out, uint32_t gate_bytes);

/* The same for 32-bit code (emit_stub_32.c), which has the same patch. */
hfn_stub_shape hfn_x86_32_get_stub_shape(hfn_stub_kind kind, uint32_t flags);
void hfn_x86_32_emit_stub(uint8_t *out, const hfn_stub_request *request);
uint32_t hfn_x86_32_emit_count_gate(uint8_t *out, uint64_t slow_path);
uint32_t hfn_x86_32_emit_call_gate(uint8_t *out, const hfn_x86_vector_state *vector, bool filters);
uint32_t hfn_x86_32_write_call_gate_cfi(uint8_t *out, uint32_t gate_bytes);
uint32_t hfn_x86_32_write_cie_state(uint8_t *out);
uint32_t hfn_x86_32_write_step_cfi(uint8_t *out, uint32_t lowered_bytes);

/* emit_replace.c: REPLACE and FILTER.  If the function must not be called, a filter gate returns
 * this many bytes after its usual return address. */
#define HFN_X86_FILTER_SKIP_BYTES 18
#define HFN_X86_32_FILTER_SKIP_BYTES 10
const hfn_stub_shape *hfn_x86_get_replace_shape(hfn_stub_kind kind);
void hfn_x86_emit_replace(uint8_t *out, const hfn_stub_request *request);
void hfn_x86_emit_filter(uint8_t *out, const hfn_stub_request *request);
const hfn_stub_shape *hfn_x86_32_get_replace_shape(hfn_stub_kind kind);
void hfn_x86_32_emit_replace(uint8_t *out, const hfn_stub_request *request);
void hfn_x86_32_emit_filter(uint8_t *out, const hfn_stub_request *request);
/* Read an argument and set the result in a filter; `saved` is the pointer that its gate passed. */
uint64_t hfn_x86_get_argument(const void *saved, uint32_t index);
void hfn_x86_set_result(void *saved, uint64_t value);
uint64_t hfn_x86_32_get_argument(const void *saved, uint32_t index);
void hfn_x86_32_set_result(void *saved, uint64_t value);

uint32_t hfn_x86_emit_patch(uint8_t *out, const uint8_t *original, uint64_t at, uint64_t target);
uint32_t hfn_x86_write_cie_state(uint8_t *out);
uint32_t hfn_x86_write_step_cfi(uint8_t *out, uint32_t lowered_bytes);

#endif
