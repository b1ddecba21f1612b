/* SPDX-License-Identifier: MIT */
/*
 * Fragments with an indirect jump that may go anywhere: its table may have been set up by the function
 * that it is a part of, and so may its targets lie there.  Which function that is nothing says but the
 * jumps into the fragment; all who jump there are treated as if the jump were theirs.  Rare: none
 * among 300,000 functions of Debian 12; so a second reading of all code may pay for it.
 */
#include "verdicts/judging.h"

static bool leads_to_orphan(const hfn_judging *j, uint64_t target)
{
    for (size_t i = 0; i < j->orphan_count; i++) {
        if (target - j->orphans[i].from < j->orphans[i].to - j->orphans[i].from) {
            return true;
        }
    }
    return false;
}

static void read_subject(const hfn_judging *j, hfn_subject *s)
{
    const hfn_region *region = s->region;
    hfn_instruction in;

    for (uint64_t at = s->rva, next; at < s->end; at = next) {
        next = hfn_judging_skip(j, at);
        if (!j->arch->decode(region->bytes + (at - region->rva), region->end - at, at, 0, &in)) {
            continue;
        }
        next = at + in.length;
        if ((in.flow != HFN_FLOW_JUMP && in.flow != HFN_FLOW_JUMP_IF) ||
            !leads_to_orphan(j, in.target)) {
            continue;
        }
        s->notes |= HFN_NOTE_UNBOUNDED;
        s->unbounded_at = (uint32_t)(at - s->rva);
        return;
    }
}

void hfn_orphans_scan(hfn_judging *j)
{
    for (uint32_t i = 0; j->orphan_count > 0 && i < j->count; i++) {
        if (j->subjects[i].region) {
            read_subject(j, &j->subjects[i]);
        }
    }
}
