/* SPDX-License-Identifier: MIT */
/* Forwards arch/stub.h to the folder of the CPU that this library is built for. */
#include "arch/stub.h"

#include <stddef.h>

#if defined(__aarch64__)

#include "arch/arm64/emit_stub.h"

#define CPU_NAME(name) hfn_arm64_##name

enum { RETURN_ADDRESS_BYTES = 0 };

const hfn_patching *hfn_stub_get_patching(void)
{
    return &hfn_patching_arm64;
}

/* LDR (immediate) has a 12-bit offset in units of 8 bytes; ADD (immediate, lsl #12) adds 12 bits
 * (Arm ARM, C6.2). */
bool hfn_stub_can_reach(int32_t row_displacement, uint64_t slot_displacement)
{
    return row_displacement >= 0 && (uint32_t)row_displacement < HFN_STUB_NEAR_SLOT_BYTES &&
           row_displacement % 8 == 0 && slot_displacement < UINT64_C(1) << 24;
}

uint32_t hfn_stub_emit_time_gate(uint8_t *out, uint64_t target)
{
    return hfn_arm64_emit_count_gate(out, target);
}

const hfn_stub_shape *hfn_stub_get_shape(hfn_stub_kind kind, uint32_t flags, hfn_stub_shape *room)
{
    (void)room;
    return hfn_arm64_get_stub_shape(kind, flags);
}

uint32_t hfn_stub_get_original_at(uint32_t flags)
{
    return hfn_arm64_get_original_at(flags);
}

uint32_t hfn_stub_emit_call_gate(uint8_t *out)
{
    return hfn_arm64_emit_call_gate(out, false);
}

uint32_t hfn_stub_emit_filter_gate(uint8_t *out)
{
    return hfn_arm64_emit_call_gate(out, true);
}

uint8_t hfn_stub_get_return_column(void)
{
    return 30;
}

#else

#include "arch/x86/emit_stub.h"

#if defined(__i386__)

#define CPU_NAME(name) hfn_x86_32_##name
#define hfn_x86_32_emit_patch hfn_x86_emit_patch

enum { RETURN_COLUMN = 8, RETURN_ADDRESS_BYTES = 4 };

const hfn_patching *hfn_stub_get_patching(void)
{
    return &hfn_patching_x86;
}

uint32_t hfn_stub_emit_time_gate(uint8_t *out, uint64_t target)
{
    return hfn_x86_32_emit_count_gate(out, target);
}

#else

#define CPU_NAME(name) hfn_x86_##name

enum { RETURN_COLUMN = 16, RETURN_ADDRESS_BYTES = 8 };

const hfn_patching *hfn_stub_get_patching(void)
{
    return &hfn_patching_x86_64;
}

uint32_t hfn_stub_emit_time_gate(uint8_t *out, uint64_t target)
{
    hfn_x86_emit_time_gate(out, target);
    return HFN_X86_TIME_GATE_BYTES;
}

#endif

const hfn_stub_shape *hfn_stub_get_shape(hfn_stub_kind kind, uint32_t flags, hfn_stub_shape *room)
{
    *room = CPU_NAME(get_stub_shape)(kind, flags);
    return room;
}

bool hfn_stub_can_reach(int32_t row_displacement, uint64_t slot_displacement)
{
    (void)row_displacement;
    return slot_displacement <= INT32_MAX - sizeof(uint64_t);
}

uint32_t hfn_stub_get_original_at(uint32_t flags)
{
    (void)flags;
    return CPU_NAME(get_replace_shape)(HFN_STUB_REPLACE)->head_bytes;
}

uint32_t hfn_stub_emit_call_gate(uint8_t *out)
{
    hfn_x86_vector_state vector = hfn_x86_get_host_vector_state();

    return CPU_NAME(emit_call_gate)(out, &vector, false);
}

uint32_t hfn_stub_emit_filter_gate(uint8_t *out)
{
    hfn_x86_vector_state vector = hfn_x86_get_host_vector_state();

    return CPU_NAME(emit_call_gate)(out, &vector, true);
}

uint8_t hfn_stub_get_return_column(void)
{
    return RETURN_COLUMN;
}

#endif

bool hfn_stub_has_edits(void)
{
#if defined(__x86_64__)
    return true;
#else
    return false;
#endif
}

uint32_t hfn_stub_find_timing(hfn_stub_edit out[HFN_STUB_MAX_EDITS], const uint8_t *entry,
                              uint32_t byte_count)
{
#if defined(__x86_64__)
    return hfn_x86_find_timing(out, entry, byte_count);
#else
    (void)out, (void)entry, (void)byte_count;
    return 0;
#endif
}

void hfn_stub_emit(uint8_t *out, const hfn_stub_request *request)
{
    CPU_NAME(emit_stub)(out, request);
}

uint64_t hfn_stub_get_argument(const void *saved, uint32_t index)
{
    return CPU_NAME(get_argument)(saved, index);
}

void hfn_stub_set_result(void *saved, uint64_t value)
{
    CPU_NAME(set_result)(saved, value);
}

uint32_t hfn_stub_emit_count_gate(uint8_t *out, uint64_t slow_path)
{
    return CPU_NAME(emit_count_gate)(out, slow_path);
}

uint32_t hfn_stub_write_call_gate_cfi(uint8_t *out, uint32_t gate_bytes)
{
    return CPU_NAME(write_call_gate_cfi)(out, gate_bytes);
}

uint32_t hfn_stub_write_step_cfi(uint8_t *out, uint32_t lowered_bytes)
{
    return CPU_NAME(write_step_cfi)(out, lowered_bytes);
}

uint32_t hfn_stub_write_cie_state(uint8_t *out)
{
    return CPU_NAME(write_cie_state)(out);
}

uint32_t hfn_stub_emit_patch(uint8_t *out, const uint8_t *original, uint64_t at, uint64_t target)
{
    return CPU_NAME(emit_patch)(out, original, at, target);
}

/* The frame of the stub, and the return address of the body, which an x86 stub calls. */
uint32_t hfn_stub_get_call_stack_bytes(void)
{
    hfn_stub_shape room;
    const hfn_stub_shape *shape = hfn_stub_get_shape(HFN_STUB_TIME, 0, &room);
    uint32_t lowest = 0;

    for (uint32_t i = 0; i < shape->step_count; i++) {
        uint32_t lowered = shape->steps[i].lowered_bytes;
        if (lowered != HFN_STUB_PUSHES && lowered != HFN_STUB_SIGNS && lowered > lowest) {
            lowest = lowered;
        }
    }
    return lowest + RETURN_ADDRESS_BYTES;
}
