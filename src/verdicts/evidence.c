/* SPDX-License-Identifier: MIT */
/*
 * Classifies functions by how they are referenced: real functions, fragments of others, and code
 * that must not be hooked.  Names alone prove nothing: gcc's f.part.0 and LLVM's f.cold.1 are
 * called functions.
 */
#include "verdicts/analysis.h"

#include <string.h>

/* Whether something refers to the entry as to a function. */
static bool is_referred_to(const hfn_analysis *a, uint32_t index)
{
    const hfn_body *body = &a->bodies[index];
    uint32_t wanted = HFN_MARK_CALLED | HFN_MARK_TAKEN;

    return (body->flags & HOTFN_FUNCTION_EXPORTED) ||
           (hfn_region_marks(body->region, body->rva) & wanted);
}

/* Whether the kernel jumps to the function.  The entry point of a library is ignored, because old
 * linkers store the first code address there; on Windows the entry point is called like any
 * function. */
static bool is_process_entry(const hfn_analysis *a, uint32_t index)
{
    const hfn_body *body = &a->bodies[index];

    return a->info.format != HOTFN_FORMAT_PE && body->rva == a->info.entry_rva &&
           (a->info.flags & HOTFN_IMAGE_EXECUTABLE) &&
           !(hfn_region_marks(body->region, body->rva) & HFN_MARK_CALLED);
}

static bool has_name_with(const hfn_analysis *a, uint32_t index, const char *part)
{
    const char *name;

    for (uint32_t i = 0; (name = hotfn_functions_get_name(a->functions, index, i)) != NULL; i++) {
        if (strstr(name, part)) {
            return true;
        }
    }
    return false;
}

/* Whether the function is part of another one: nothing calls it, and nothing takes its address. */
static bool is_fragment(const hfn_analysis *a, uint32_t index)
{
    const hfn_body *body = &a->bodies[index];

    if (body->kind == HOTFN_FUNCTION_FRAGMENT) {
        return true;
    }
    if (is_referred_to(a, index) || body->rva == a->info.entry_rva) {
        return false;
    }
    if (!(body->flags & HOTFN_FUNCTION_HAS_SYMBOL)) {
        return true;
    }
    /* A label in hand-written code, targeted by jumps only. */
    if ((body->flags & HOTFN_FUNCTION_UNTYPED) &&
        (hfn_region_marks(body->region, body->rva) & HFN_MARK_JUMPED)) {
        return true;
    }
    return has_name_with(a, index, ".cold");
}

static bool is_signal_restorer(const hfn_analysis *a, const hfn_body *body)
{
    const hfn_region *region = body->region;

    return a->arch->is_signal_restorer(region->bytes + (body->rva - region->rva),
                                       region->end - body->rva);
}

static bool set_refused(hfn_verdict *out, uint32_t reason)
{
    out->pub.verdict = HOTFN_VERDICT_REFUSED;
    out->pub.reason = reason;
    return true;
}

bool hfn_evidence_decide(const hfn_analysis *a, uint32_t index, hfn_verdict *out)
{
    const hfn_body *body = &a->bodies[index];

    out->site_rva = body->rva;
    if (!body->region) {
        return set_refused(out, HOTFN_REASON_NOT_CODE);
    }
    if (a->runtimes & HFN_RUNTIME_READS_CODE) {
        return set_refused(out, HOTFN_REASON_RUNTIME_READS);
    }
    if (a->info.flags & HOTFN_IMAGE_TEXTREL) {
        return set_refused(out, HOTFN_REASON_TEXTREL);
    }
    if (body->kind == HOTFN_FUNCTION_PLT) {
        return set_refused(out, HOTFN_REASON_PLT);
    }
    if ((body->flags & HOTFN_FUNCTION_SIGNAL_FRAME) || is_signal_restorer(a, body)) {
        return set_refused(out, HOTFN_REASON_SIGNAL_RESTORER);
    }
    if (body->traits & HFN_TRAIT_RSEQ) {
        return set_refused(out, HOTFN_REASON_RSEQ);
    }
    if (body->traits & HFN_TRAIT_FAULT) {
        return set_refused(out, HOTFN_REASON_FAULT_KNOWN);
    }
    if (is_process_entry(a, index)) {
        return set_refused(out, HOTFN_REASON_GLUE);
    }
    if (!is_fragment(a, index)) {
        return false;
    }
    out->pub.verdict = HOTFN_VERDICT_FRAGMENT;
    out->pub.reason = HOTFN_REASON_FRAGMENT;
    return true;
}

uint32_t hfn_evidence_flags(const hfn_analysis *a, uint32_t index)
{
    const hfn_body *body = &a->bodies[index];
    uint32_t marks = hfn_region_marks(body->region, body->rva), flags = 0;

    /* If the patch is one instruction, an unbounded jump can at worst target it: a loop to the
     * entry. */
    if ((body->traits & HFN_TRAIT_LOOPS) || (marks & HFN_MARK_FROM_PART) ||
        ((body->traits & HFN_TRAIT_UNBOUNDED) &&
         a->arch->patching->jump_bytes == a->arch->patching->unit_bytes)) {
        flags |= HOTFN_VERDICT_ENTRY_LOOP;
    }
    /* Data below the stack pointer is dead at a call, but not at a jump from code that keeps
     * some there.  Windows and ARM64 code keeps none (Microsoft, 'x64 stack usage'; AAPCS64,
     * 6.4.5.1). */
    if (a->info.format != HOTFN_FORMAT_PE && a->arch->has_red_zone &&
        ((body->traits & HFN_TRAIT_RED_ZONE) || !is_referred_to(a, index))) {
        flags |= HOTFN_VERDICT_RED_ZONE;
    }
    return flags;
}

void hfn_evidence_prepare(hfn_analysis *a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        hfn_body *body = &a->bodies[i];
        const char *name = (body->flags & HOTFN_FUNCTION_HAS_SYMBOL)
                               ? hotfn_functions_get_name(a->functions, i, 0)
                               : NULL;
        if (body->kind == HOTFN_FUNCTION_FRAGMENT) {
            body->traits |= HFN_TRAIT_MAY_BE_PART;
        }
        /* HotSpot: its SIGSEGV handler compares the fault address with SafeFetch. */
        if (name && (name[0] == 'S' || name[0] == '_') && strstr(name, "SafeFetch")) {
            body->traits |= HFN_TRAIT_FAULT;
        }
    }
}
