/* SPDX-License-Identifier: MIT */
/* How much of the code belongs to functions that are known.  Code of functions that have neither a
 * symbol nor unwind data lies between them; a guessed size would hide it, so a function of unknown
 * size counts only if its source lists all functions (a linker map). */
#include "functions/inside.h"

#include "base/search.h"

#include <stddef.h>

#define MAX_ALIGNMENT_BYTES 15u /* shorter gaps are padding between aligned functions */

typedef struct coverage {
    uint64_t code_bytes, known_bytes;
} coverage;

static bool is_known(const hotfn_functions *functions, const hfn_function *f)
{
    return !(f->flags & HOTFN_FUNCTION_SIZE_GUESSED) || functions->map_hits > 0 ||
           f->kind == HOTFN_FUNCTION_PLT || f->kind == HOTFN_FUNCTION_GLUE;
}

static void add_range(coverage *c, uint64_t bytes, bool known)
{
    if (known) {
        c->known_bytes += bytes;
    }
    if (known || bytes > MAX_ALIGNMENT_BYTES) {
        c->code_bytes += bytes;
    }
}

static void add_section(const hotfn_functions *functions, const hotfn_section *section, coverage *c)
{
    uint64_t at = section->rva, end = section->rva + section->byte_count;
    size_t next = hfn_count_below(functions->items, functions->count, sizeof *functions->items,
                                  offsetof(hfn_function, rva), at);

    for (; next < functions->count && functions->items[next].rva < end; next++) {
        const hfn_function *f = &functions->items[next];
        if (f->rva > at) {
            add_range(c, f->rva - at, false);
        }
        uint64_t f_end = f->rva + f->byte_count < end ? f->rva + f->byte_count : end;
        add_range(c, f_end - f->rva, is_known(functions, f));
        at = f_end;
    }
    if (end > at) {
        add_range(c, end - at, false);
    }
}

void hotfn_functions_get_coverage(const hotfn_functions *functions, uint64_t *code_bytes,
                                  uint64_t *known_bytes)
{
    coverage c = { 0, 0 };

    for (uint32_t i = 0; functions && i < hotfn_image_get_section_count(functions->image); i++) {
        hotfn_section section = HOTFN_SECTION_INIT;
        hotfn_image_get_section(functions->image, i, &section);
        if ((section.flags & HOTFN_SECTION_EXECUTE) && section.byte_count > 0) {
            add_section(functions, &section, &c);
        }
    }
    if (code_bytes) {
        *code_bytes = c.code_bytes;
    }
    if (known_bytes) {
        *known_bytes = c.known_bytes;
    }
}
