/* SPDX-License-Identifier: MIT */
/* Fuzzes the x86-64 decoders, moved code and liveness with any bytes.  The first byte selects
 * the size of the patch. */
#include "arch/arch.h"
#include "arch/x86/decode.h"
#include "arch/x86/decode_common.h"
#include "arch/x86/registers.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RVA 0x1000u
#define LINK_BASE 0x400000u
#define LINE_MAX 64u

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_decoders_agree(const uint8_t *bytes, size_t size)
{
    hfn_instruction common, full;

    if (!hfn_x86_decode_common(bytes, size, RVA, LINK_BASE, &common)) {
        return;
    }
    require(hfn_x86_decode_fully(HFN_X86_64, bytes, size, RVA, LINK_BASE, &full));
    require(common.length == full.length && common.flow == full.flow &&
            common.target == full.target && common.relative_at == full.relative_at &&
            common.takes_address == full.takes_address && common.is_padding == full.is_padding &&
            common.through_table == full.through_table &&
            common.reads_memory_relative == full.reads_memory_relative);
}

static void check_uses_agree(const uint8_t *bytes, uint8_t length)
{
    hfn_x86_register_use common;
    hfn_x86_effects full;

    if (!hfn_x86_find_common_register_use(bytes, length, &common)) {
        return;
    }
    require(hfn_x86_decode_effects(HFN_X86_64, bytes, length, RVA, &full) && !full.opaque);
    require(common.kills == full.kills && common.reads == (full.reads & ~full.kills));
}

static void check_moved(const hfn_moved *m, uint32_t patch_bytes)
{
    require(m->length > 0 && m->length <= HFN_MOVED_MAX && m->fixup_count <= HFN_FIXUP_MAX);
    require(m->original_bytes >= patch_bytes && m->instruction_count <= 16);
    for (uint32_t i = 0; i < m->fixup_count; i++) {
        require(m->fixups[i].at + 4u <= m->fixups[i].end && m->fixups[i].end <= m->length);
    }
    for (uint32_t i = 0; i < m->instruction_count; i++) {
        require(m->original_at[i] < m->original_bytes && m->moved_at[i] < m->length);
        require(i == 0 || m->original_at[i] > m->original_at[i - 1]);
        require(i == 0 || m->moved_at[i] > m->moved_at[i - 1]);
    }
}

static void move_prologue(const uint8_t *bytes, size_t size, uint32_t patch_bytes)
{
    hfn_moved moved;
    uint32_t offset = UINT32_MAX;
    hfn_move_result result =
        hfn_arch_x86_64.move(bytes, size, RVA, patch_bytes, HFN_NO_REGISTER, &moved, &offset);

    require(offset <= size);
    if (result == HFN_MOVED) {
        check_moved(&moved, patch_bytes);
    }
    if (hfn_arch_x86_64.retarget(bytes, size, RVA, &moved)) {
        require(moved.length == 5 && moved.fixup_count == 1 && moved.original_bytes == 5);
    }
}

static void follow_line(const uint8_t *bytes, size_t size)
{
    uint32_t starts[LINE_MAX];
    hfn_straight_line line = { bytes, size, RVA, LINK_BASE, starts, 0, 0, size & 1 };
    hfn_instruction in;
    hfn_dispatch dispatch;
    const hfn_flag_reads reads = { .at_return = size & 2, .at_tail = size & 4 };
    uint64_t leaves_to;

    if (!hfn_arch_x86_64.flags_live(bytes, size, RVA, RVA + size / 2, &reads, &leaves_to)) {
        require(leaves_to == UINT64_MAX);
    }
    uint8_t scratch = hfn_arch_x86_64.find_scratch_register(bytes, size, RVA, RVA + size / 2);
    require(scratch == HFN_NO_REGISTER || scratch < 12);
    for (uint32_t at = 0; at < size && line.count < LINE_MAX; at += in.length) {
        check_decoders_agree(bytes + at, size - at);
        if (!hfn_arch_x86_64.decode(bytes + at, size - at, RVA + at, LINK_BASE, &in)) {
            return;
        }
        require(in.length > 0 && in.length <= HFN_X86_MAX_INSTRUCTION_BYTES &&
                in.length <= size - at);
        require(in.relative_at + in.relative_bytes <= in.length);
        check_uses_agree(bytes + at, in.length);
        starts[line.count++] = at;
        if (in.flow != HFN_FLOW_JUMP_INDIRECT) {
            continue;
        }
        hfn_arch_x86_64.dispatch(&line, &dispatch);
        require(dispatch.kind <= HFN_DISPATCH_COMPUTED && dispatch.proof_from <= at);
        require(dispatch.kind != HFN_DISPATCH_TABLE || dispatch.entry_bytes == 4 ||
                dispatch.entry_bytes == 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    move_prologue(data + 1, size - 1, 1 + data[0] % 16);
    follow_line(data + 1, size - 1);
    return 0;
}
