/* SPDX-License-Identifier: MIT */
/*
 * Reads .pdata from end to end.  An entry whose unwind information is chained to that of a function
 * is a fragment of the function.  If it begins right where the function ends, it is not a separate
 * fragment: compilers chain when a frame grows late, and its bytes are added to the function.
 * Functions that change neither the stack pointer nor a saved register have no entry.
 */
#include "functions/bounds_pdata.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/status.h"
#include "functions/pdata_read.h"

#include <string.h>

enum { WARNINGS_MAX = 4, X64_CFA_OFFSET = 8 };

/* An entry during sorting. */
typedef struct range {
    hfn_fde fde;
    uint64_t parent; /* begin of its function; fde.rva if it is not chained */
} range;

typedef struct reader {
    hfn_pdata pdata;
    const hotfn_env *env;
    range *ranges;
    size_t capacity;
    uint32_t count, warnings;
} reader;

static void warn_skipped_entry(reader *r, uint64_t rva)
{
    hfn_span s = hfn_image_span(r->pdata.image, rva);
    unsigned long long offset =
        s.data ? (unsigned long long)(s.data - hfn_image_file(r->pdata.image).data) : 0;

    if (r->warnings++ < WARNINGS_MAX) {
        hfn_log_message(r->env, HOTFN_LOG_WARNING,
                        "%s: unwind information is broken at RVA 0x%llx (byte %llu): skipped",
                        hfn_image_path(r->pdata.image), (unsigned long long)rva, offset);
    }
}

static hfn_fde fde_of(const reader *r, const hfn_pdata_entry *e)
{
    hfn_fde fde = {
        .rva = e->rva, .byte_count = e->byte_count, .cfa_offset = -1, .lsda_rva = UINT64_MAX
    };

    fde.flags = e->inside ? HFN_FDE_INSIDE : 0;
    fde.flags |= e->handler ? HFN_FDE_LSDA : 0;
    if (!e->inside) {
        fde.cfa_offset = r->pdata.machine == HOTFN_MACHINE_X86_64 ? X64_CFA_OFFSET : 0;
    }
    return fde;
}

static bool read_all(reader *r)
{
    hfn_pdata_entry e;
    uint64_t broken_at;

    for (uint32_t i = 0; i < r->pdata.count; i++) {
        if (!hfn_pdata_read(&r->pdata, i, &e, &broken_at)) {
            if (broken_at) {
                warn_skipped_entry(r, broken_at);
            }
            continue;
        }
        if (!hfn_grow_array(r->env, (void **)&r->ranges, &r->capacity, (size_t)r->count + 1,
                            sizeof *r->ranges)) {
            return false;
        }
        r->ranges[r->count++] = (range){ fde_of(r, &e), e.parent };
    }
    return true;
}

static bool comes_before(const void *left, const void *right)
{
    const range *a = left, *b = right;

    return a->fde.rva < b->fde.rva;
}

/* Stores the entries in *out and merges chained parts with the function that they continue. */
static bool merge_chained_parts(const reader *r, hfn_fde_list *out)
{
    out->items = hfn_allocate_zeroed(r->env, r->count * sizeof *out->items);
    out->capacity = r->count;
    for (uint32_t i = 0; out->items && i < r->count; i++) {
        const range *next = &r->ranges[i];
        hfn_fde *last = out->count ? &out->items[out->count - 1] : NULL;
        bool chained = next->parent != next->fde.rva;
        if (chained && last && last->rva == next->parent &&
            last->rva + last->byte_count == next->fde.rva) {
            last->byte_count += next->fde.byte_count;
        } else {
            out->items[out->count++] = next->fde;
        }
    }
    return out->items != NULL;
}

bool hfn_bounds_pdata(hfn_fde_list *out, const hotfn_image *image, const hotfn_env *env)
{
    reader r = { .env = env };
    bool good;

    memset(out, 0, sizeof *out);
    hfn_pdata_open(&r.pdata, image);
    good = read_all(&r) &&
           hfn_sort_array(env, (void **)&r.ranges, r.capacity, r.count, sizeof *r.ranges,
                          comes_before) &&
           (r.count == 0 || merge_chained_parts(&r, out));
    if (r.ranges) {
        hfn_free_memory(env, r.ranges, r.capacity * sizeof *r.ranges);
    }
    if (r.warnings > WARNINGS_MAX) {
        hfn_log_message(env, HOTFN_LOG_WARNING, "%s: %u entries of its .pdata are broken",
                        hfn_image_path(image), r.warnings);
    }
    return good;
}
