/* SPDX-License-Identifier: MIT */
/*
 * Bytes that must not be changed or moved, or that differ from the file when loaded: data among
 * code that an instruction accesses by address; addresses that the loader relocates and that
 * relocated.c does not rewrite in a moved copy; instructions that an exception handler protects (a
 * fault in a moved copy would not find it).  The latter two exist in PE images only: an ELF image
 * with text relocations is refused as a whole, and its exception tables are read by call_sites.c.
 */
#include "verdicts/analysis.h"

#include "base/search.h"
#include "functions/handlers.h"
#include "image/pe.h"

#include <stdlib.h>

void hfn_fixed_add(hfn_analysis *a, uint64_t rva, uint64_t end, uint32_t reason)
{
    const hfn_fixed fixed = { .rva = rva, .end = end, .reason = reason };
    const hfn_region *region = hfn_code_region(&a->code, rva);

    if (region && end > rva) {
        hfn_analysis_append(a, (void **)&a->fixed, &a->fixed_count, &a->fixed_capacity, &fixed,
                            sizeof fixed);
    }
}

static void add_relocated(void *user, uint64_t rva, uint32_t byte_count)
{
    hfn_analysis *a = user;
    hfn_relocated *r = &a->relocated;

    if (a->arch->pointer_bytes != 4 || byte_count != 4) {
        hfn_fixed_add(a, rva, rva + byte_count, HOTFN_REASON_RELOCATED);
    } else if (hfn_code_region(&a->code, rva)) {
        hfn_analysis_append(a, (void **)&r->fields, &r->count, &r->capacity, &rva, sizeof rva);
    }
}

static void add_guarded(void *user, uint64_t begin, uint64_t end)
{
    hfn_fixed_add(user, begin, end, HOTFN_REASON_FAULT_KNOWN);
}

static void mark_called(void *user, uint64_t rva)
{
    const hfn_analysis *a = user;

    hfn_code_mark(&a->code, rva, HFN_MARK_TAKEN);
}

static void mark_jumped(void *user, uint64_t rva)
{
    const hfn_analysis *a = user;

    hfn_code_mark(&a->code, rva, HFN_MARK_JUMPED);
}

static int compare_ranges(const void *a, const void *b)
{
    const hfn_fixed *left = a, *right = b;

    return (left->rva > right->rva) - (left->rva < right->rva);
}

/* Sort by address and remove overlaps; either reason of an overlap is valid. */
static void sort_ranges(hfn_analysis *a)
{
    uint64_t end = 0;
    size_t kept = 0;

    if (a->fixed_count > 0) {
        qsort(a->fixed, a->fixed_count, sizeof *a->fixed, compare_ranges);
    }
    for (size_t i = 0; i < a->fixed_count; i++) {
        hfn_fixed f = a->fixed[i];
        f.rva = f.rva > end ? f.rva : end;
        if (f.rva >= f.end) {
            continue;
        }
        end = f.end;
        a->fixed[kept++] = f;
    }
    a->fixed_count = kept;
}

void hfn_fixed_prepare(hfn_analysis *a)
{
    const hfn_handler_visitor visitor = { mark_called, mark_jumped, add_guarded, a };

    if (!hfn_image_is_pe(a->image)) {
        return;
    }
    hfn_pe_each_relocated(a->image, add_relocated, a);
    hfn_relocated_sort(&a->relocated);
    hfn_each_handler(a->image, &visitor);
}

void hfn_fixed_add_read(hfn_analysis *a, uint64_t rva, uint32_t byte_count)
{
    hfn_fixed_add(a, rva, rva + byte_count, HOTFN_REASON_READ);
}

void hfn_fixed_sort(hfn_analysis *a)
{
    sort_ranges(a);
}

uint32_t hfn_fixed_reason(const hfn_analysis *a, uint64_t from, uint64_t to, uint64_t *at)
{
    size_t low =
        hfn_count_up_to(a->fixed, a->fixed_count, sizeof *a->fixed, offsetof(hfn_fixed, end), from);

    if (low == a->fixed_count || a->fixed[low].rva >= to) {
        return HOTFN_REASON_NONE;
    }
    *at = a->fixed[low].rva > from ? a->fixed[low].rva : from;
    return a->fixed[low].reason;
}
