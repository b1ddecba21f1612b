/* SPDX-License-Identifier: MIT */
/*
 * What a range of code is, by what leads to it: a function, or a fragment of one.  A name proves
 * nothing alone: gcc's f.part.0 and LLVM's f.cold.1 are called functions.  Also the refusals that
 * need no look at the bytes.
 */
#include "verdicts/judging.h"

#include <string.h>

/* Anything that can only be meant as "call this". */
static bool is_referred_to(const hfn_judging *j, uint32_t index)
{
    const hfn_subject *s = &j->subjects[index];
    uint32_t wanted = HFN_MARK_CALLED | HFN_MARK_TAKEN;

    return (s->flags & HOTFN_FUNCTION_EXPORTED) || (hfn_region_marks(s->region, s->rva) & wanted);
}

/* The kernel jumps there.  Old linkers put the first code address into the header of libraries; a
 * function that is called is none such, and on Windows the entry point is called like any other. */
static bool is_process_entry(const hfn_judging *j, uint32_t index)
{
    const hfn_subject *s = &j->subjects[index];

    return j->info.format != HOTFN_FORMAT_PE && s->rva == j->info.entry_rva &&
           (j->info.flags & HOTFN_IMAGE_EXECUTABLE) &&
           !(hfn_region_marks(s->region, s->rva) & HFN_MARK_CALLED);
}

static bool has_name_with(const hfn_judging *j, uint32_t index, const char *part)
{
    const char *name;

    for (uint32_t i = 0; (name = hotfn_functions_get_name(j->functions, index, i)) != NULL; i++) {
        if (strstr(name, part)) {
            return true;
        }
    }
    return false;
}

/* Nothing calls it and nothing takes its address. */
static bool is_fragment(const hfn_judging *j, uint32_t index)
{
    const hfn_subject *s = &j->subjects[index];

    if (s->kind == HOTFN_FUNCTION_FRAGMENT) {
        return true;
    }
    if (is_referred_to(j, index) || s->rva == j->info.entry_rva) {
        return false;
    }
    if (!(s->flags & HOTFN_FUNCTION_HAS_SYMBOL)) {
        return true;
    }
    /* A label in hand-written code that is only jumped to. */
    if ((s->flags & HOTFN_FUNCTION_UNTYPED) &&
        (hfn_region_marks(s->region, s->rva) & HFN_MARK_JUMPED)) {
        return true;
    }
    return has_name_with(j, index, ".cold");
}

static bool refuse(hfn_verdict *out, uint32_t reason)
{
    out->pub.verdict = HOTFN_VERDICT_REFUSED;
    out->pub.reason = reason;
    return true;
}

bool hfn_evidence_settles(const hfn_judging *j, uint32_t index, hfn_verdict *out)
{
    const hfn_subject *s = &j->subjects[index];

    out->site_rva = s->rva;
    if (!s->region) {
        return refuse(out, HOTFN_REASON_NOT_CODE);
    }
    if (j->info.flags & HOTFN_IMAGE_TEXTREL) {
        return refuse(out, HOTFN_REASON_TEXTREL);
    }
    if (s->kind == HOTFN_FUNCTION_PLT) {
        return refuse(out, HOTFN_REASON_PLT);
    }
    if (s->flags & HOTFN_FUNCTION_SIGNAL_FRAME) {
        return refuse(out, HOTFN_REASON_SIGNAL_RESTORER);
    }
    if (s->notes & HFN_NOTE_RSEQ) {
        return refuse(out, HOTFN_REASON_RSEQ);
    }
    if (s->notes & HFN_NOTE_FAULT) {
        return refuse(out, HOTFN_REASON_FAULT_KNOWN);
    }
    if (is_process_entry(j, index)) {
        return refuse(out, HOTFN_REASON_GLUE);
    }
    if (!is_fragment(j, index)) {
        return false;
    }
    out->pub.verdict = HOTFN_VERDICT_FRAGMENT;
    out->pub.reason = HOTFN_REASON_FRAGMENT;
    return true;
}

uint32_t hfn_evidence_flags(const hfn_judging *j, uint32_t index)
{
    const hfn_subject *s = &j->subjects[index];
    uint32_t marks = hfn_region_marks(s->region, s->rva), flags = 0;

    /* Where the patch is a single instruction, an unbounded jump may at worst be such a loop. */
    if ((s->notes & HFN_NOTE_LOOPS) || (marks & HFN_MARK_FROM_PART) ||
        ((s->notes & HFN_NOTE_UNBOUNDED) &&
         j->arch->patching->jump_bytes == j->arch->patching->unit_bytes)) {
        flags |= HOTFN_VERDICT_ENTRY_LOOP;
    }
    /* Only at a call is the memory below the stack pointer free for sure; on Windows nobody keeps
     * anything there (Microsoft, 'x64 stack usage'), nor on ARM64 (AAPCS64, 6.4.5.1; of Windows' 16 bytes
     * programs make no use: 'ARM64 ABI conventions', red zone). */
    if (j->info.format != HOTFN_FORMAT_PE && j->arch->has_red_zone && !is_referred_to(j, index)) {
        flags |= HOTFN_VERDICT_RED_ZONE;
    }
    return flags;
}

void hfn_evidence_prepare(hfn_judging *j)
{
    for (uint32_t i = 0; i < j->count; i++) {
        hfn_subject *s = &j->subjects[i];
        const char *name = (s->flags & HOTFN_FUNCTION_HAS_SYMBOL)
                               ? hotfn_functions_get_name(j->functions, i, 0)
                               : NULL;
        if (s->kind == HOTFN_FUNCTION_FRAGMENT) {
            s->notes |= HFN_NOTE_MAYBE_PART;
        }
        /* HotSpot: safefetch, whose fault its SIGSEGV handler knows by address. */
        if (name && (name[0] == 'S' || name[0] == '_') && strstr(name, "SafeFetch")) {
            s->notes |= HFN_NOTE_FAULT;
        }
    }
}
