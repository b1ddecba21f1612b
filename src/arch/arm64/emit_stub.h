/* SPDX-License-Identifier: MIT */
/* arch/stub.h for AArch64: heads of stubs, gates and patches. */
#ifndef HFN_ARCH_ARM64_EMIT_STUB_H
#define HFN_ARCH_ARM64_EMIT_STUB_H

#include "arch/stub.h"

const hfn_stub_shape *hfn_arm64_get_stub_shape(hfn_stub_kind kind, uint32_t flags);
void hfn_arm64_emit_stub(uint8_t *out, const hfn_stub_request *request);
uint32_t hfn_arm64_emit_count_gate(uint8_t *out, uint64_t slow_path);
/* filters: the filter gate. */
uint32_t hfn_arm64_emit_call_gate(uint8_t *out, bool filters);
uint32_t hfn_arm64_get_original_at(uint32_t flags);
uint64_t hfn_arm64_get_argument(const void *saved, uint32_t index);
void hfn_arm64_set_result(void *saved, uint64_t value);
uint32_t hfn_arm64_write_call_gate_cfi(uint8_t *out, uint32_t gate_bytes);
uint32_t hfn_arm64_emit_patch(uint8_t *out, const uint8_t *original, uint64_t at, uint64_t target);
uint32_t hfn_arm64_write_cie_state(uint8_t *out);
uint32_t hfn_arm64_write_step_cfi(uint8_t *out, uint32_t lowered_bytes);

#endif
