/* SPDX-License-Identifier: MIT */
/* The tables hfn_arch_x86_64 and hfn_arch_x86: the same functions, for two instruction sets. */
#include "arch/x86/address_use.h"
#include "arch/x86/decode.h"
#include "arch/x86/disables_tsc.h"
#include "arch/x86/dispatch.h"
#include "arch/x86/flags.h"
#include "arch/x86/relocate.h"
#include "arch/x86/scratch.h"
#include "arch/x86/stack_use.h"
#include "arch/x86/system_calls.h"
#include "arch/x86/thread_pointer.h"

#include <hotfn/machine.h>

static bool decode_64(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t link_base,
                      hfn_instruction *out)
{
    return hfn_x86_decode(HFN_X86_64, bytes, size, rva, link_base, out);
}

static bool decode_32(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t link_base,
                      hfn_instruction *out)
{
    return hfn_x86_decode(HFN_X86_32, bytes, size, rva, link_base, out);
}

static hfn_move_result move_64(const uint8_t *bytes, uint64_t size, uint64_t rva,
                               uint32_t patch_bytes, uint8_t pc_register, hfn_moved *out,
                               uint32_t *offset)
{
    return hfn_x86_move_prologue(HFN_X86_64, bytes, size, rva, patch_bytes, pc_register, out,
                                 offset);
}

static hfn_move_result move_32(const uint8_t *bytes, uint64_t size, uint64_t rva,
                               uint32_t patch_bytes, uint8_t pc_register, hfn_moved *out,
                               uint32_t *offset)
{
    return hfn_x86_move_prologue(HFN_X86_32, bytes, size, rva, patch_bytes, pc_register, out,
                                 offset);
}

static bool flags_live_64(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t at,
                          const hfn_flag_reads *reads, uint64_t *leaves_to)
{
    return hfn_x86_are_flags_live(HFN_X86_64, bytes, size, rva, at, reads, leaves_to);
}

static bool flags_live_32(const uint8_t *bytes, uint64_t size, uint64_t rva, uint64_t at,
                          const hfn_flag_reads *reads, uint64_t *leaves_to)
{
    return hfn_x86_are_flags_live(HFN_X86_32, bytes, size, rva, at, reads, leaves_to);
}

static uint32_t touched_bytes_64(const uint8_t *bytes, uint64_t size)
{
    return hfn_x86_get_touched_bytes(HFN_X86_64, bytes, size);
}

static uint32_t touched_bytes_32(const uint8_t *bytes, uint64_t size)
{
    return hfn_x86_get_touched_bytes(HFN_X86_32, bytes, size);
}

static bool retarget_64(const uint8_t *bytes, uint64_t size, uint64_t rva, hfn_moved *out)
{
    return hfn_x86_make_retarget(HFN_X86_64, bytes, size, rva, out);
}

static bool retarget_32(const uint8_t *bytes, uint64_t size, uint64_t rva, hfn_moved *out)
{
    return hfn_x86_make_retarget(HFN_X86_32, bytes, size, rva, out);
}

static void dispatch_64(const hfn_straight_line *line, hfn_dispatch *out)
{
    hfn_x86_describe_dispatch(HFN_X86_64, line, out);
}

static void dispatch_32(const hfn_straight_line *line, hfn_dispatch *out)
{
    hfn_x86_describe_dispatch(HFN_X86_32, line, out);
}

/* Whether bytes that begin with a ModRM byte may address memory by a negative displacement. */
static bool may_be_below(const uint8_t *modrm, uint64_t size)
{
    uint8_t mod = modrm[0] >> 6;
    uint64_t sign_at = (mod == 1 ? 1 : 4) + ((modrm[0] & 7) == 4); /* a SIB byte follows */

    return (mod == 1 || mod == 2) && sign_at < size && modrm[sign_at] >= 0x80;
}

/* Whether bytes may be a 64-bit mov of rsp to another register than rbp, from its opcode on; the
 * byte before is a REX prefix. */
static bool may_copy_rsp(const uint8_t *opcode)
{
    return (opcode[0] == 0x89 && (opcode[1] & 0xF8) == 0xE0 &&
            !(opcode[1] == 0xE5 && opcode[-1] == 0x48)) ||
           (opcode[0] == 0x8B && (opcode[1] & 0xC7) == 0xC4 &&
            !(opcode[1] == 0xEC && opcode[-1] == 0x48));
}

/* Neither test misses an instruction that uses_red_zone counts; both are fast. */
static bool code_may_use_red_zone(const uint8_t *bytes, uint64_t size)
{
    bool may = false;

    for (uint64_t i = 0; i + 2 < size && !may; i++) {
        bool by_rsp = (bytes[i] & 7) == 4 && (bytes[i + 1] & 7) == 4;
        bool wide = i > 0 && (bytes[i - 1] & 0xF8) == 0x48; /* REX.W */
        may = (by_rsp && may_be_below(bytes + i, size - i)) || (wide && may_copy_rsp(bytes + i));
    }
    return may;
}

static bool instruction_may_use_red_zone(const uint8_t *bytes, uint64_t length)
{
    bool may = false;

    for (uint64_t i = 1; i + 1 < length && !may; i++) {
        may = may_be_below(bytes + i, length - i) || may_copy_rsp(bytes + i);
    }
    return may;
}

/* Whether the code contains an operand [rsp - n], or [r - n] and a copy of rsp to r.  Ordinary code
 * uses rbp in this way for its frame, so rbp does not count. */
static bool uses_red_zone(const uint8_t *bytes, uint64_t size)
{
    uint32_t copies = 0, bases = 0; /* registers */
    hfn_x86_effects e;
    hfn_instruction in;

    if (!code_may_use_red_zone(bytes, size)) {
        return false;
    }
    for (uint64_t at = 0; at < size; at += in.length) {
        if (!hfn_x86_decode(HFN_X86_64, bytes + at, size - at, at, 0, &in)) {
            return true;
        }
        if (!instruction_may_use_red_zone(bytes + at, in.length)) {
            continue;
        }
        if (!hfn_x86_decode_effects(HFN_X86_64, bytes + at, size - at, at, &e)) {
            return true;
        }
        if (e.has_memory && e.base < 16 && e.displacement < 0) {
            bases |= 1u << e.base;
        }
        if (e.shape == HFN_X86_MOVE && e.src == HFN_X86_RSP && e.dest < 16) {
            copies |= 1u << e.dest;
        }
    }
    return bases & ((copies & ~(1u << 5)) | 1u << HFN_X86_RSP);
}

static void stack_begin_64(hfn_stack_state *state)
{
    hfn_x86_begin_stack(HFN_X86_64, state);
}

static void stack_begin_32(hfn_stack_state *state)
{
    hfn_x86_begin_stack(HFN_X86_32, state);
}

static hfn_stack_outcome stack_step_64(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                       hfn_stack_state *state)
{
    return hfn_x86_step_stack(HFN_X86_64, bytes, size, rva, state);
}

static hfn_stack_outcome stack_step_32(const uint8_t *bytes, uint64_t size, uint64_t rva,
                                       hfn_stack_state *state)
{
    return hfn_x86_step_stack(HFN_X86_32, bytes, size, rva, state);
}

static void apply_condition_64(const uint8_t *bytes, uint64_t size, bool is_taken,
                               hfn_stack_state *state)
{
    hfn_x86_apply_condition(HFN_X86_64, bytes, size, is_taken, state);
}

static void apply_condition_32(const uint8_t *bytes, uint64_t size, bool is_taken,
                               hfn_stack_state *state)
{
    hfn_x86_apply_condition(HFN_X86_32, bytes, size, is_taken, state);
}

static hfn_stack_outcome leave_stack_64(const hfn_stack_state *state)
{
    return hfn_x86_leave_stack(HFN_X86_64, state);
}

static hfn_stack_outcome leave_stack_32(const hfn_stack_state *state)
{
    return hfn_x86_leave_stack(HFN_X86_32, state);
}

static bool uses_stack_64(const uint8_t *bytes, uint64_t size)
{
    return hfn_x86_uses_stack(HFN_X86_64, bytes, size);
}

static bool uses_stack_32(const uint8_t *bytes, uint64_t size)
{
    return hfn_x86_uses_stack(HFN_X86_32, bytes, size);
}

static bool may_switch_stack_64(const hfn_straight_line *line)
{
    return hfn_x86_may_switch_stack(HFN_X86_64, line);
}

static bool may_switch_stack_32(const hfn_straight_line *line)
{
    return hfn_x86_may_switch_stack(HFN_X86_32, line);
}

static bool disables_tsc_64(const uint8_t *bytes, uint64_t size, uint64_t *at)
{
    return hfn_x86_disables_tsc(HFN_X86_64, bytes, size, at);
}

static bool disables_tsc_32(const uint8_t *bytes, uint64_t size, uint64_t *at)
{
    return hfn_x86_disables_tsc(HFN_X86_32, bytes, size, at);
}

static uint32_t find_fault_64(const uint8_t *bytes, uint64_t size, uint32_t byte_count)
{
    return hfn_x86_find_fault(HFN_X86_64, bytes, size, byte_count);
}

static uint32_t find_fault_32(const uint8_t *bytes, uint64_t size, uint32_t byte_count)
{
    return hfn_x86_find_fault(HFN_X86_32, bytes, size, byte_count);
}

static hfn_address_use get_address_use_64(const uint8_t *bytes, uint64_t size, uint64_t rva)
{
    return hfn_x86_get_address_use(HFN_X86_64, bytes, size, rva);
}

static hfn_address_use get_address_use_32(const uint8_t *bytes, uint64_t size, uint64_t rva)
{
    return hfn_x86_get_address_use(HFN_X86_32, bytes, size, rva);
}

static bool reads_context_64(const uint8_t *bytes, uint64_t size)
{
    return hfn_x86_reads_context(HFN_X86_64, bytes, size);
}

static bool reads_context_32(const uint8_t *bytes, uint64_t size)
{
    return hfn_x86_reads_context(HFN_X86_32, bytes, size);
}

static uint32_t find_thread_evidence_64(const uint8_t *bytes, uint64_t size, uint64_t at,
                                        const hfn_instruction *in)
{
    return hfn_x86_find_thread_evidence(HFN_X86_64, bytes, size, at, in);
}

static uint32_t find_thread_evidence_32(const uint8_t *bytes, uint64_t size, uint64_t at,
                                        const hfn_instruction *in)
{
    return hfn_x86_find_thread_evidence(HFN_X86_32, bytes, size, at, in);
}

const hfn_arch hfn_arch_x86_64 = {
    .name = "x86-64",
    .machine = HOTFN_MACHINE_X86_64,
    .pointer_bytes = 8,
    .patching = &hfn_patching_x86_64,
    .uses_red_zone = uses_red_zone,
    .has_red_zone = true,
    .decode = decode_64,
    .move = move_64,
    .stubs_change_flags = true,
    .flags_live = flags_live_64,
    .find_scratch_register = hfn_x86_find_scratch_register,
    .find_fault = find_fault_64,
    .get_address_use = get_address_use_64,
    .reads_context = reads_context_64,
    .retarget = retarget_64,
    .is_retargetable = hfn_x86_is_retargetable,
    .dispatch = dispatch_64,
    .begin_stack = stack_begin_64,
    .step_stack = stack_step_64,
    .apply_condition = apply_condition_64,
    .leave_stack = leave_stack_64,
    .stack_register = HFN_X86_RSP,
    .return_place = HFN_X86_RSP,
    .frame_register = 5, /* rbp */
    .is_never_shared = uses_stack_64,
    .may_switch_stack = may_switch_stack_64,
    .find_thread_evidence = find_thread_evidence_64,
    .is_signal_restorer = hfn_x86_64_is_signal_restorer,
    .disables_tsc = disables_tsc_64,
    .touched_bytes = touched_bytes_64,
};

const hfn_arch hfn_arch_x86 = {
    .name = "i386",
    .machine = HOTFN_MACHINE_X86,
    .pointer_bytes = 4,
    .patching = &hfn_patching_x86,
    .decode = decode_32,
    .move = move_32,
    .stubs_change_flags = true,
    .flags_live = flags_live_32,
    .find_fault = find_fault_32,
    .get_address_use = get_address_use_32,
    .reads_context = reads_context_32,
    .retarget = retarget_32,
    .dispatch = dispatch_32,
    .pc_register = hfn_x86_find_pc_register,
    .begin_stack = stack_begin_32,
    .step_stack = stack_step_32,
    .apply_condition = apply_condition_32,
    .leave_stack = leave_stack_32,
    .stack_register = HFN_X86_RSP,
    .return_place = HFN_X86_KEPT,
    .frame_register = 5, /* ebp */
    .is_never_shared = uses_stack_32,
    .may_switch_stack = may_switch_stack_32,
    .find_thread_evidence = find_thread_evidence_32,
    .is_signal_restorer = hfn_x86_32_is_signal_restorer,
    .disables_tsc = disables_tsc_32,
    .touched_bytes = touched_bytes_32,
};
