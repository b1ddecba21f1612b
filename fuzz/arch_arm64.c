/* SPDX-License-Identifier: MIT */
/* Fuzzes the A64 decoder, moved code and the stack state with any words.  The first byte selects
 * the size of the patch. */
#include "arch/arch.h"

#include <stddef.h>
#include <stdlib.h>

#define RVA 0x1000u
#define LINE_MAX 64u

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void move_prologue(const uint8_t *bytes, size_t size, uint32_t patch_bytes)
{
    hfn_moved m;
    uint32_t offset = UINT32_MAX;

    if (hfn_arch_arm64.move(bytes, size, RVA, patch_bytes, HFN_NO_REGISTER, &m, &offset) ==
        HFN_MOVED) {
        require(m.length > 0 && m.length <= HFN_MOVED_MAX && m.length % 4 == 0);
        require(m.original_bytes >= patch_bytes && m.instruction_count * 4u == m.original_bytes);
        require(m.fixup_count <= HFN_FIXUP_MAX);
        for (uint32_t i = 0; i < m.fixup_count; i++) {
            require(m.fixups[i].at + (m.fixups[i].end ? 8u : 4u) <= m.length);
            hfn_patching_arm64.fix_up(m.bytes, 0x100000, m.fixups[i].at, m.fixups[i].end,
                                      m.fixups[i].target_rva);
        }
    }
    require(offset <= size + 4);
    if (hfn_arch_arm64.retarget(bytes, size, RVA, &m)) {
        require(m.length == 4 && m.fixup_count == 1 && m.original_bytes == 4);
    }
}

static void follow_line(const uint8_t *bytes, size_t size)
{
    uint32_t starts[LINE_MAX];
    hfn_straight_line line = { bytes, size, RVA, 0, starts, 0, 0, false };
    hfn_partial_addresses pages = { .known = 0 };
    hfn_instruction in;
    hfn_dispatch d;

    for (uint32_t at = 0; at + 4 <= size && line.count < LINE_MAX; at += in.length) {
        if (!hfn_arch_arm64.decode(bytes + at, size - at, RVA + at, 0, &in)) {
            return;
        }
        require(in.length == 4 && in.relative_at + in.relative_bytes <= in.length);
        hfn_arch_arm64.complete(bytes + at, &pages, &in);
        starts[line.count++] = at;
        if (in.flow != HFN_FLOW_JUMP_INDIRECT) {
            continue;
        }
        hfn_arch_arm64.dispatch(&line, &d);
        require(d.kind <= HFN_DISPATCH_COMPUTED && d.proof_from <= at);
        require(d.kind != HFN_DISPATCH_TABLE || (d.entry_bytes <= 4 && d.entry_shift < 64));
    }
}

/* While the stack can be followed, sp must not be above its value at the entry. */
static void follow_stack(const uint8_t *bytes, size_t size)
{
    const hfn_arch *arch = &hfn_arch_arm64;
    hfn_stack_state state;

    arch->begin_stack(&state);
    for (uint32_t at = 0; at + 4 <= size; at += 4) {
        hfn_stack_outcome outcome = arch->step_stack(bytes + at, size - at, RVA + at, &state);
        if (outcome != HFN_STACK_OK) {
            require(outcome == HFN_STACK_TOUCHES_CALLER || outcome == HFN_STACK_TOUCHES_RETURN ||
                    outcome == HFN_STACK_LOST);
            return;
        }
        require(state.at[arch->stack_register] <= 0);
        require(state.at[arch->stack_register] != HFN_STACK_UNRELATED);
        require(state.at[arch->return_place] <= -8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    move_prologue(data + 1, size - 1, 4 + 4 * (data[0] % 16));
    follow_line(data + 1, size - 1);
    follow_stack(data + 1, size - 1);
    return 0;
}
