/* SPDX-License-Identifier: MIT */
/*
 * All symbols of one address name the same function. The most familiar name comes first: typed
 * before untyped, without a version before with one, global before local, few leading underscores
 * first, strong before weak (memcmp, not bcmp), short before long, then alphabetical. A function
 * without a symbol is named after its file and RVA, "prog+0x1234".
 */
#include "functions/inside.h"

#include "base/sort.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_MEASURED_NAME = 4096 }; /* longer names compare as equally long */

/* Mangled names ("_Z..." of C++ and Rust, "_R..." of Rust) begin with an underscore by
 * definition. */
static size_t count_underscores(const char *name)
{
    size_t count = strspn(name, "_");

    return count > 0 && (name[count] == 'Z' || name[count] == 'R') ? 0 : count;
}

/* In Microsoft's mangling, as in "?f@@YAXXZ", '@' does not begin a version. */
static bool has_version(const char *name, size_t length)
{
    return name[0] != '?' && memchr(name, '@', length) != NULL;
}

/* Less than 0 if a is preferred to b. */
static int compare_names(const hfn_symbol *a, const hfn_symbol *b)
{
    size_t length_a = strnlen(a->name, MAX_MEASURED_NAME);
    size_t length_b = strnlen(b->name, MAX_MEASURED_NAME);
    size_t underscores_a = count_underscores(a->name), underscores_b = count_underscores(b->name);
    int by_number = (a->name[0] == '#') - (b->name[0] == '#'); /* an export without a name */
    int by_type = (a->kind == HOTFN_SYMBOL_LABEL) - (b->kind == HOTFN_SYMBOL_LABEL);
    int by_version = has_version(a->name, length_a) - has_version(b->name, length_b);
    int by_binding = (b->flags & HOTFN_SYMBOL_GLOBAL) - (a->flags & HOTFN_SYMBOL_GLOBAL);

    if (by_number) {
        return by_number;
    }
    if (by_type || by_version || by_binding) {
        return by_type ? by_type : by_version ? by_version : by_binding;
    }
    if (underscores_a != underscores_b) {
        return underscores_a < underscores_b ? -1 : 1;
    }
    if ((a->flags ^ b->flags) & HOTFN_SYMBOL_WEAK) {
        return b->flags & HOTFN_SYMBOL_WEAK ? -1 : 1;
    }
    if (length_a != length_b) {
        return length_a < length_b ? -1 : 1;
    }
    return strncmp(a->name, b->name, MAX_MEASURED_NAME);
}

static bool is_preferred(const void *left, const void *right)
{
    const hfn_symbol *const *a = left, *const *b = right;

    return compare_names(*a, *b) < 0;
}

static bool append_name(hotfn_functions *functions, hfn_function *f, const char *name)
{
    if (!name || functions->name_count == UINT32_MAX ||
        !hfn_grow_array(&functions->env, (void **)&functions->names, &functions->name_capacity,
                        (size_t)functions->name_count + 1, sizeof *functions->names)) {
        return false;
    }
    functions->names[functions->name_count++] = name;
    f->name_count++;
    return true;
}

static bool add_generated_name(hotfn_functions *functions, hfn_function *f)
{
    const char *path = hfn_image_path(functions->image), *slash = strrchr(path, '/');
    char text[288];
    int length = snprintf(text, sizeof text, "%.255s+0x%" PRIx64, slash ? slash + 1 : path, f->rva);

    return append_name(functions, f,
                       hfn_arena_copy(&functions->generated_names, text, (size_t)length));
}

static bool add_sorted(hotfn_functions *functions, hfn_function *f, hfn_name_scratch *scratch,
                       uint32_t count)
{
    const hfn_symbol **sorted = hfn_sort_items(scratch->order, scratch->order + count, count,
                                               sizeof *scratch->order, is_preferred);

    for (uint32_t i = 0; i < count; i++) {
        if (!append_name(functions, f, sorted[i]->name)) {
            return false;
        }
    }
    return true;
}

bool hfn_functions_add_names(hotfn_functions *functions, hfn_function *function,
                             const hfn_symbol *symbols, uint32_t count, hfn_name_scratch *scratch)
{
    uint32_t named = 0;

    function->first_name = functions->name_count;
    if (!hfn_grow_array(&functions->env, (void **)&scratch->order, &scratch->capacity,
                        (size_t)count * 2, sizeof *scratch->order)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (symbols[i].kind != HOTFN_SYMBOL_DATA) {
            scratch->order[named++] = &symbols[i];
        }
    }
    if (named == 0) {
        return add_generated_name(functions, function);
    }
    return add_sorted(functions, function, scratch, named);
}
