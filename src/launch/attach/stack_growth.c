/* SPDX-License-Identifier: MIT */
/*
 * A Go function whose stack is too small calls the runtime, which moves the stack to a larger
 * place.  Then the function begins again at its entry, where the call is counted again:
 *
 *   entry:  cmp 16(%r14), %rsp          behind:  spill arguments
 *           jbe behind                           call runtime.morestack
 *           ...                                  load arguments
 *                                                jmp entry
 *
 * The call is led through code that takes back the first count (arch/uncount.h); the return
 * address, which the runtime looks up in its tables, stays that of the original.  Such a call is
 * recognised by the jump to the entry of its own function, and by its target, which many functions
 * have in common.
 */
#include "launch/attach/stack_growth.h"

#include "arch/uncount.h"
#include "base/byte_order.h"

#include <string.h>

enum {
    CALL_BYTES = 5,
    CALL_OPCODE = 0xe8,
    MAX_LOADS = 40, /* instructions between the call and the jump */
    MAX_TARGETS = 16,
    MIN_CALLS = 4, /* of a target */
    PATCH_BYTES = 5,
};

/* A target of such calls, and their number. */
typedef struct growth_target {
    uint64_t address;
    uint32_t count;
} growth_target;

typedef struct growth_search {
    hfn_attachment *attachment;
    const hfn_arch *arch;
    const hfn_mirror *mirror;
    uint32_t range; /* of its code */
    growth_target targets[MAX_TARGETS];
    uint32_t target_count;
    uint32_t call_count;
    uint64_t stub; /* next free one, in the mirror; 0: calls are only counted */
} growth_search;

static uint64_t get_target(const growth_search *s, uint64_t call)
{
    const hfn_mirror *m = s->mirror;
    const uint8_t *at = m->shown[s->range] + (call - m->code[s->range].begin);

    return call + CALL_BYTES + (uint64_t)(int64_t)(int32_t)hfn_read_le32(at + 1);
}

/* The plan's last entry at or below an address; UINT32_MAX: none. */
static uint32_t find_entry(const hfn_mirror *m, uint64_t address)
{
    uint32_t low = 0, high = m->plan->entry_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->base + hfn_plan_rva_at(m->plan, middle) <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? low - 1 : UINT32_MAX;
}

/* Is there a jump to `entry` behind the call, after instructions that load registers? */
static bool begins_again(const growth_search *s, uint64_t call, uint64_t entry)
{
    const hfn_remote_code *code = &s->mirror->code[s->range];
    const uint8_t *bytes = s->mirror->shown[s->range];
    uint64_t at = call + CALL_BYTES;
    hfn_instruction in;

    for (int i = 0; i < MAX_LOADS && at < code->end; i++) {
        if (!s->arch->decode(bytes + (at - code->begin), code->end - at, at, 0, &in) ||
            (in.flow != HFN_FLOW_NEXT && in.flow != HFN_FLOW_JUMP)) {
            return false;
        }
        if (in.flow == HFN_FLOW_JUMP) {
            return in.target == entry;
        }
        at += in.length;
    }
    return false;
}

static growth_target *find_target(growth_search *s, uint64_t address)
{
    for (uint32_t i = 0; i < s->target_count; i++) {
        if (s->targets[i].address == address) {
            return &s->targets[i];
        }
    }
    if (s->target_count == MAX_TARGETS) {
        return NULL;
    }
    s->targets[s->target_count] = (growth_target){ address, 0 };
    return &s->targets[s->target_count++];
}

/* Is the entry's hook in place? */
static bool is_hooked(const hfn_mirror *m, uint32_t range, const hfn_plan_hook *hook)
{
    uint64_t site = m->base + hook->site_rva;

    return site >= m->code[range].begin && site + PATCH_BYTES <= m->code[range].end &&
           memcmp((const void *)(uintptr_t)(site + m->distance),
                  m->shown[range] + (site - m->code[range].begin), PATCH_BYTES) != 0;
}

/* The mirror's call may lead to a hook of morestack by now. */
static void lead_through_stub(growth_search *s, uint64_t call, const hfn_plan_hook *hook)
{
    const hfn_attachment *a = s->attachment;
    uint32_t slot =
        hfn_live_get_slots(a->launch->live, s->mirror->live_module)[hook->function_index];
    uint64_t local = call + s->mirror->distance, behind = local + CALL_BYTES;
    uint8_t *field = (uint8_t *)(uintptr_t)(local + 1);
    uint64_t target = behind + (uint64_t)(int64_t)(int32_t)hfn_read_le32(field);

    hfn_emit_uncount((uint8_t *)(uintptr_t)s->stub, s->stub, (int32_t)a->pages.zeros,
                     (int32_t)(a->hooks->access.slot_base_bytes + 8 * slot), target);
    hfn_write_le32(field, (uint32_t)(s->stub - behind));
    s->stub += HFN_UNCOUNT_BYTES;
    hfn_live_remove_function_flags(a->launch->live, s->mirror->live_module, hook->function_index,
                                   HOTFN_VERDICT_ENTRY_LOOP); /* each call is counted once */
}

static void visit_call(growth_search *s, uint64_t call)
{
    const hfn_mirror *m = s->mirror;
    uint32_t entry = find_entry(m, call);
    hfn_plan_hook hook;
    growth_target *target;

    if (entry == UINT32_MAX || !begins_again(s, call, m->base + hfn_plan_rva_at(m->plan, entry))) {
        return;
    }
    target = find_target(s, get_target(s, call));
    if (!target) {
        return;
    }
    if (s->stub == 0) {
        target->count++;
        s->call_count++;
        return;
    }
    hfn_plan_hook_at(m->plan, entry, &hook);
    if (target->count >= MIN_CALLS && is_hooked(m, s->range, &hook)) {
        lead_through_stub(s, call, &hook);
    }
}

static void visit_calls(growth_search *s)
{
    const hfn_mirror *m = s->mirror;

    for (s->range = 0; s->range < m->code_count; s->range++) {
        const hfn_remote_code *code = &m->code[s->range];
        const uint8_t *begin = m->shown[s->range], *end = begin + (code->end - code->begin);
        for (const uint8_t *at = begin; end - at > CALL_BYTES; at++) {
            at = memchr(at, CALL_OPCODE, (size_t)(end - at));
            if (!at || end - at <= CALL_BYTES) {
                break;
            }
            visit_call(s, code->begin + (uint64_t)(at - begin));
        }
    }
}

static bool patch_module(hfn_attachment *a, const hfn_mirror *m)
{
    growth_search s = { .attachment = a, .mirror = m };

    s.arch = hfn_arch_find(hfn_stub_get_patching()->machine);
    if (!s.arch || !m->plan || m->hooks_module == UINT32_MAX) {
        return true;
    }
    visit_calls(&s);
    if (s.call_count == 0) {
        return true;
    }
    s.stub = a->space.map_near(a, m->base + m->distance, m->end + m->distance,
                               (uint64_t)s.call_count * HFN_UNCOUNT_BYTES,
                               a->hooks->options.near_range_bytes);
    if (s.stub == 0) {
        return false;
    }
    visit_calls(&s);
    return true;
}

bool hfn_stack_growth_patch(hfn_attachment *a)
{
    for (size_t i = 0; a->remote.has_small_stacks && i < a->mirror_count; i++) {
        if (!patch_module(a, &a->mirrors[i])) {
            return false;
        }
    }
    return true;
}
