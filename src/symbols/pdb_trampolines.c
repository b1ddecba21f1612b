/* SPDX-License-Identifier: MIT */
/*
 * TRAMPOLINESYM (microsoft-pdb, include/cvinfo.h) gives the place and the target of a jump.  The
 * jump gets the name that Microsoft's debuggers show, "@ILT+5(main)": the offset in its section,
 * then the first name of the function at the end of the chain of jumps.
 */
#include "symbols/pdb_trampolines.h"

#include "base/search.h"
#include "base/sort.h"

#include <stdio.h>
#include <string.h>

enum { MAX_HOPS = 8, PREFIX_BYTES = 24 };

bool hfn_pdb_trampolines_add(hfn_pdb_trampolines *list, const hotfn_env *env,
                             const hfn_pdb_trampoline *trampoline)
{
    if (!hfn_grow_array(env, (void **)&list->items, &list->capacity, (size_t)list->count + 1,
                        sizeof *list->items)) {
        return false;
    }
    list->items[list->count++] = *trampoline;
    return true;
}

void hfn_pdb_trampolines_finish(hfn_pdb_trampolines *list, const hotfn_env *env)
{
    hfn_free_memory(env, list->items, list->capacity * sizeof *list->items);
}

static bool comes_before(const void *left, const void *right)
{
    const hfn_pdb_trampoline *a = left, *b = right;

    return a->rva < b->rva;
}

static const hfn_pdb_trampoline *trampoline_at(const hfn_pdb_trampolines *list, uint64_t rva)
{
    size_t low = hfn_count_below(list->items, list->count, sizeof *list->items,
                                 offsetof(hfn_pdb_trampoline, rva), rva);

    return low < list->count && list->items[low].rva == rva ? &list->items[low] : NULL;
}

static uint64_t end_of_chain(const hfn_pdb_trampolines *list, const hfn_pdb_trampoline *from)
{
    const hfn_pdb_trampoline *next = from;

    for (int hops = 0; next && hops < MAX_HOPS; hops++) {
        from = next;
        next = trampoline_at(list, from->target);
    }
    return from->target;
}

/* The first name at rva among the first count symbols, which are sorted; NULL if there is none. */
static const char *name_at(const hfn_symbol_table *table, uint32_t count, uint64_t rva)
{
    size_t low =
        hfn_count_below(table->items, count, sizeof *table->items, offsetof(hfn_symbol, rva), rva);

    return low < count && table->items[low].rva == rva ? table->items[low].name : NULL;
}

static const char *make_name(hfn_symbol_table *table, uint32_t offset, const char *target)
{
    size_t length = target ? strlen(target) : 0;
    char *name = hfn_arena_alloc(&table->names, PREFIX_BYTES + length);

    if (!name) {
        return NULL;
    }
    if (target) {
        snprintf(name, PREFIX_BYTES + length, "@ILT+%u(%s)", offset, target);
    } else {
        snprintf(name, PREFIX_BYTES, "@ILT+%u", offset);
    }
    return name;
}

bool hfn_pdb_trampolines_follow(hfn_pdb_trampolines *list, hfn_symbol_table *table,
                                size_t name_bytes)
{
    uint32_t count;

    if (list->count == 0) {
        return true;
    }
    if (!hfn_symbol_table_sort(table) ||
        !hfn_sort_array(&table->env, (void **)&list->items, list->capacity, list->count,
                        sizeof *list->items, comes_before)) {
        return false;
    }
    count = table->count;
    for (uint32_t i = 0; i < list->count; i++) {
        const hfn_pdb_trampoline *t = &list->items[i];
        hfn_symbol symbol = { .rva = t->rva, .byte_count = t->bytes, .module = t->module };
        const char *target = name_at(table, count, end_of_chain(list, t));
        size_t length = target ? strnlen(target, name_bytes + 1) : 0;
        if (length > name_bytes) {
            target = NULL;
            name_bytes = 0; /* the names of all further trampolines have only the offset */
        }
        name_bytes -= target ? length : 0;
        symbol.name = make_name(table, t->offset, target);
        symbol.kind = HOTFN_SYMBOL_THUNK;
        symbol.source = HOTFN_SOURCE_PDB;
        if (!symbol.name || !hfn_symbol_table_add(table, &symbol)) {
            return false;
        }
    }
    return true;
}
