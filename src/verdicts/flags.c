/* SPDX-License-Identifier: MIT */
/*
 * Where flags are live.  No ABI passes anything in them, but hand-written code does, into calls and through
 * them, and so do the pieces that clang's outliner makes: `call piece; jne`, where the piece only moves
 * data.  So behind each direct call it is looked whether flags are read there that nobody has written
 * since: then whoever is called hands them through, or makes them, and where it makes them its own line from
 * the entry shows so.  What it calls last and jumps on to does in its place.  Calls by address and into other
 * images are not seen.
 */
#include "verdicts/judging.h"

#define HOPS_MAX 4 /* from one region into another */

bool hfn_flags_live(const hfn_judging *j, uint64_t rva, bool at_return)
{
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        const hfn_region *region = hfn_code_region(&j->code, rva);
        if (!region) {
            return true;
        }
        if (!j->arch->flags_live(region->bytes, region->end - region->rva, region->rva, rva,
                                 at_return, &rva)) {
            return false;
        }
    }
    return true;
}

static void add_hand(hfn_judging *j, uint64_t target)
{
    hfn_judging_append(j, (void **)&j->flag_hands, &j->flag_hand_count, &j->flag_hand_capacity,
                       &target, sizeof target);
}

void hfn_flags_note_call(hfn_judging *j, uint64_t target, uint64_t behind)
{
    if (j->arch->stubs_change_flags && hfn_flags_live(j, behind, false)) {
        add_hand(j, target);
    }
}

/* Its last calls, as far as flags are concerned, and where it jumps on to. */
static void read_subject(hfn_judging *j, const hfn_subject *s)
{
    hfn_instruction in;

    for (uint64_t at = s->rva, next; at < s->end; at = next) {
        next = hfn_judging_skip(j, at);
        if (!j->arch->decode(s->region->bytes + (at - s->region->rva), s->region->end - at, at, 0,
                             &in)) {
            continue;
        }
        next = at + in.length;
        bool leaves = (in.flow == HFN_FLOW_JUMP || in.flow == HFN_FLOW_JUMP_IF) &&
                      (in.target < s->rva || in.target >= s->end);
        if (leaves || (in.flow == HFN_FLOW_CALL && hfn_flags_live(j, next, true))) {
            add_hand(j, in.target);
        }
    }
}

void hfn_flags_settle(hfn_judging *j)
{
    for (size_t i = 0; i < j->flag_hand_count; i++) { /* more are added on the way */
        uint64_t target = j->flag_hands[i];
        uint32_t index = hfn_judging_lower(j, target);
        if (index == j->count || j->subjects[index].rva != target) {
            if (index == 0) {
                continue;
            }
            index--; /* behind its landing pad, or in its middle */
        }
        hfn_subject *s = &j->subjects[index];
        if (!s->region || target >= s->end || (s->notes & HFN_NOTE_HANDS_FLAGS)) {
            continue;
        }
        s->notes |= HFN_NOTE_HANDS_FLAGS;
        read_subject(j, s);
    }
}
