/* SPDX-License-Identifier: MIT */
/*
 * Bytes that may not be changed, or not leave their place, or not be compared with the file: those that
 * code reads as data, as far as an instruction names them (constants among code, as hand-written code has
 * them); addresses that the loader fixes up (a moved copy would keep the old ones), and instructions whose
 * address an exception handler asks for (a fault in a moved copy would find no handler).  The latter two
 * in PE images only: an ELF image whose code is rewritten is refused as a whole, and its handlers know
 * calls alone, which never move.
 */
#include "verdicts/judging.h"

#include "base/search.h"
#include "functions/handlers.h"
#include "image/pe.h"

#include <stdlib.h>

static void add(hfn_judging *j, uint64_t rva, uint64_t end, uint32_t reason)
{
    const hfn_fixed fixed = { .rva = rva, .end = end, .reason = reason };
    const hfn_region *region = hfn_code_region(&j->code, rva);

    if (region && end > rva) {
        hfn_judging_append(j, (void **)&j->fixed, &j->fixed_count, &j->fixed_capacity, &fixed,
                           sizeof fixed);
    }
}

static void take_relocated(void *user, uint64_t rva, uint32_t byte_count)
{
    add(user, rva, rva + byte_count, HOTFN_REASON_RELOCATED);
}

static void take_guarded(void *user, uint64_t begin, uint64_t end)
{
    add(user, begin, end, HOTFN_REASON_FAULT_KNOWN);
}

static void take_called(void *user, uint64_t rva)
{
    const hfn_judging *j = user;

    hfn_code_mark(&j->code, rva, HFN_MARK_TAKEN);
}

static void take_jumped(void *user, uint64_t rva)
{
    const hfn_judging *j = user;

    hfn_code_mark(&j->code, rva, HFN_MARK_JUMPED);
}

static int compare(const void *a, const void *b)
{
    const hfn_fixed *left = a, *right = b;

    return (left->rva > right->rva) - (left->rva < right->rva);
}

/* By address, and what overlaps cut: the earlier range's reason is as good as the later's. */
static void sort(hfn_judging *j)
{
    uint64_t end = 0;
    size_t kept = 0;

    if (j->fixed_count > 0) {
        qsort(j->fixed, j->fixed_count, sizeof *j->fixed, compare);
    }
    for (size_t i = 0; i < j->fixed_count; i++) {
        hfn_fixed f = j->fixed[i];
        f.rva = f.rva > end ? f.rva : end;
        if (f.rva >= f.end) {
            continue;
        }
        end = f.end;
        j->fixed[kept++] = f;
    }
    j->fixed_count = kept;
}

void hfn_fixed_prepare(hfn_judging *j)
{
    const hfn_handler_visitor visitor = { take_called, take_jumped, take_guarded, j };

    if (!hfn_image_is_pe(j->image)) {
        return;
    }
    hfn_pe_each_relocated(j->image, take_relocated, j);
    hfn_each_handler(j->image, &visitor);
}

void hfn_fixed_add_read(hfn_judging *j, uint64_t rva, uint32_t byte_count)
{
    add(j, rva, rva + byte_count, HOTFN_REASON_READ);
}

void hfn_fixed_settle(hfn_judging *j)
{
    sort(j);
}

uint32_t hfn_fixed_reason(const hfn_judging *j, uint64_t from, uint64_t to, uint64_t *at)
{
    size_t low =
        hfn_count_up_to(j->fixed, j->fixed_count, sizeof *j->fixed, offsetof(hfn_fixed, end), from);

    if (low == j->fixed_count || j->fixed[low].rva >= to) {
        return HOTFN_REASON_NONE;
    }
    *at = j->fixed[low].rva > from ? j->fixed[low].rva : from;
    return j->fixed[low].reason;
}
