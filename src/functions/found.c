/* SPDX-License-Identifier: MIT */
/* Merges found functions into the table. */
#include "functions/found.h"

#include "base/sort.h"
#include "functions/inside.h"

static bool is_before(const void *a, const void *b)
{
    return ((const hfn_function *)a)->rva < ((const hfn_function *)b)->rva;
}

static bool append_found(hotfn_functions *functions, const hfn_found *found, uint32_t count)
{
    hfn_name_scratch scratch = { NULL, 0 };

    if (!hfn_grow_array(&functions->env, (void **)&functions->items, &functions->capacity,
                        (size_t)functions->count + count, sizeof *functions->items)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        hfn_function *f = &functions->items[functions->count + i];
        *f = (hfn_function){ .rva = found[i].rva,
                             .byte_count = found[i].byte_count,
                             .section = hfn_image_section_of(functions->image, found[i].rva),
                             .fde_cfa_offset = -1,
                             .flags = found[i].flag,
                             .kind = HOTFN_FUNCTION_PLAIN };
        if (!hfn_functions_add_names(functions, f, NULL, 0, &scratch)) {
            return false;
        }
    }
    return true;
}

bool hfn_functions_add_found(hotfn_functions *functions, const hfn_found *found, uint32_t count)
{
    if (count > UINT32_MAX - functions->count || !append_found(functions, found, count) ||
        !hfn_sort_array(&functions->env, (void **)&functions->items, functions->capacity,
                        (size_t)functions->count + count, sizeof *functions->items, is_before)) {
        return false;
    }
    functions->count += count;
    for (uint32_t i = 0; i + 1 < functions->count; i++) {
        hfn_function *f = &functions->items[i];
        if ((f->flags & HOTFN_FUNCTION_SIZE_GUESSED) && f->byte_count > f[1].rva - f->rva) {
            f->byte_count = f[1].rva - f->rva;
        }
    }
    hfn_functions_mark_kinds(functions);
    return true;
}
