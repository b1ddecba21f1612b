/* SPDX-License-Identifier: MIT */
/*
 * One walk over the symbols and the FDEs, both sorted by address, decides which addresses are
 * functions:
 *   - an address with a function symbol;
 *   - the start of an FDE, unless it lies in the range of a symbol (then it is part of that
 *     function);
 *   - a global symbol without type outside all other ranges: hand-written code.
 * A second walk determines sizes: the symbol's, else the FDE's, else up to the next function; never
 * beyond the next function or the section.
 */
#include "functions/inside.h"

#include "base/search.h"

#include <string.h>

/* The symbols and the FDE of one address. */
typedef struct group {
    uint64_t rva;
    const hfn_symbol *symbols;
    uint32_t symbol_count;
    const hfn_fde *fde; /* NULL if none begins here */
    bool has_function, has_label, is_resolver, global, exported;
    bool has_entry;      /* a function symbol that is not marked as a part of another */
    bool reliable;       /* a function symbol from a source with sizes and types */
    uint64_t byte_count; /* the longest of the symbols'                           */
    uint64_t max_bytes;  /* the largest size that a map allows; 0: not limited */
} group;

typedef struct walk {
    hotfn_functions *functions;
    const hfn_symbol *symbols;
    uint32_t symbol_count, next_symbol;
    const hfn_fde_list *fdes;
    uint32_t next_fde;
    hfn_name_scratch name_scratch;
    uint64_t symbol_end, fde_end; /* how far the ranges seen so far reach */
} walk;

static void add_to_group(group *g, const hfn_symbol *s)
{
    if (s->kind == HOTFN_SYMBOL_DATA) {
        return;
    }
    if (s->kind == HOTFN_SYMBOL_LABEL) {
        g->has_label = true;
    } else {
        g->has_function = true;
    }
    g->has_entry |= s->kind != HOTFN_SYMBOL_LABEL && s->kind != HOTFN_SYMBOL_FRAGMENT;
    g->is_resolver |= s->kind == HOTFN_SYMBOL_IFUNC;
    g->global |= (s->flags & HOTFN_SYMBOL_GLOBAL) != 0;
    g->exported |= (s->flags & HOTFN_SYMBOL_EXPORTED) != 0;
    if (s->flags & HOTFN_SYMBOL_SIZE_GUESSED) {
        g->max_bytes = s->byte_count;
    } else if (s->byte_count > g->byte_count) {
        g->byte_count = s->byte_count;
    }
    g->reliable |= s->kind != HOTFN_SYMBOL_LABEL && !(s->flags & HOTFN_SYMBOL_SIZE_GUESSED);
}

/* False at the end of both lists. */
static bool next_group(walk *w, group *g)
{
    uint32_t symbol = w->next_symbol, fde = w->next_fde;
    uint64_t symbol_rva = symbol < w->symbol_count ? w->symbols[symbol].rva : UINT64_MAX;
    uint64_t fde_rva = fde < w->fdes->count ? w->fdes->items[fde].rva : UINT64_MAX;

    memset(g, 0, sizeof *g);
    g->rva = symbol_rva < fde_rva ? symbol_rva : fde_rva;
    if (g->rva == UINT64_MAX) {
        return false;
    }
    if (fde_rva == g->rva) {
        g->fde = &w->fdes->items[fde];
    }
    while (fde < w->fdes->count && w->fdes->items[fde].rva == g->rva) {
        fde++;
    }
    if (symbol_rva == g->rva) {
        g->symbols = w->symbols + symbol;
    }
    for (; symbol < w->symbol_count && w->symbols[symbol].rva == g->rva; symbol++) {
        add_to_group(g, &w->symbols[symbol]);
    }
    g->symbol_count = symbol - w->next_symbol;
    w->next_symbol = symbol;
    w->next_fde = fde;
    return true;
}

/*
 * A label without type and without an FDE is a function only if it is global and not inside any
 * range whose end is known.  Local labels are loops, tables of constants in code (OpenSSL's K256)
 * and symbols of compiler plugins (.annobin_*); none of these is called.  A linker map does not
 * distinguish labels from functions: a name inside an FDE is a label.
 */
static bool is_function(const walk *w, const group *g)
{
    if (!hfn_image_is_code(w->functions->image, g->rva)) {
        return false;
    }
    if (g->reliable) {
        return true;
    }
    if (g->fde) {
        return g->has_function || g->rva >= w->symbol_end;
    }
    if (g->has_function) {
        return g->rva >= w->fde_end;
    }
    return g->has_label && g->global && g->rva >= w->symbol_end && g->rva >= w->fde_end;
}

static void describe_function(const group *g, hfn_function *f)
{
    f->rva = g->rva;
    f->byte_count = g->byte_count;
    f->fde_cfa_offset = -1;
    f->kind = g->is_resolver ? HOTFN_FUNCTION_RESOLVER : HOTFN_FUNCTION_PLAIN;
    if (g->has_function && !g->has_entry) { /* marked by the tool that split it (S_SEPCODE, OMAP) */
        f->kind = HOTFN_FUNCTION_FRAGMENT;
    }
    f->flags |= g->has_function || g->has_label ? HOTFN_FUNCTION_HAS_SYMBOL : 0;
    f->flags |= g->global ? HOTFN_FUNCTION_GLOBAL : 0;
    f->flags |= g->exported ? HOTFN_FUNCTION_EXPORTED : 0;
    f->flags |= g->has_label && !g->has_function ? HOTFN_FUNCTION_UNTYPED : 0;
    if (f->byte_count == 0 && !g->fde && g->max_bytes) {
        f->byte_count = g->max_bytes;
        f->flags |= HOTFN_FUNCTION_SIZE_GUESSED;
    }
    if (!g->fde) {
        return;
    }
    f->fde_cfa_offset = g->fde->cfa_offset;
    f->flags |= HOTFN_FUNCTION_HAS_FDE;
    f->flags |= g->fde->flags & HFN_FDE_SIGNAL ? HOTFN_FUNCTION_SIGNAL_FRAME : 0;
    f->flags |= g->fde->flags & HFN_FDE_LSDA ? HOTFN_FUNCTION_HAS_LSDA : 0;
    f->sizes_arguments = (g->fde->flags & HFN_FDE_ARGUMENTS) != 0;
    f->cfi_rva = g->fde->cfi_rva;
    f->cfi_bytes = g->fde->cfi_bytes;
    f->lsda_rva = g->fde->lsda_rva;
    if (f->byte_count == 0) {
        f->byte_count = g->fde->byte_count;
    }
    if ((g->fde->flags & HFN_FDE_INSIDE) && !(g->fde->flags & HFN_FDE_SIGNAL) && !g->is_resolver) {
        f->kind = HOTFN_FUNCTION_FRAGMENT;
    }
}

static bool add_function(walk *w, const group *g)
{
    hotfn_functions *functions = w->functions;
    hfn_function f = { .section = hfn_image_section_of(functions->image, g->rva) };

    describe_function(g, &f);
    if (!hfn_functions_add_names(functions, &f, g->symbols, g->symbol_count, &w->name_scratch) ||
        !hfn_grow_array(&functions->env, (void **)&functions->items, &functions->capacity,
                        (size_t)functions->count + 1, sizeof f)) {
        return false;
    }
    functions->items[functions->count++] = f;
    return true;
}

/* Ends a symbol's range at the next function symbol at the latest, so that a wrong size does not
 * cover the rest of the section. */
static void extend_symbol_end(walk *w, const group *g)
{
    uint64_t end = g->rva + g->byte_count;

    if (g->has_function) {
        w->symbol_end = end >= g->rva ? end : UINT64_MAX;
    }
    if (g->fde && g->rva + g->fde->byte_count > w->fde_end) {
        w->fde_end = g->rva + g->fde->byte_count;
    }
}

/* Compares a map with the unwind data: its functions must begin where FDEs begin. */
static void compare_map(walk *w, const group *g)
{
    if (!g->has_function || g->reliable || g->symbols->kind != HOTFN_SYMBOL_FUNCTION) {
        return;
    }
    if (g->fde) {
        w->functions->map_hits++;
    } else if (g->rva < w->fde_end) {
        w->functions->map_misses++;
    }
}

static bool walk_groups(walk *w)
{
    group g;

    while (next_group(w, &g)) {
        compare_map(w, &g);
        if (is_function(w, &g) && !add_function(w, &g)) {
            return false;
        }
        extend_symbol_end(w, &g);
    }
    return true;
}

/* Determines the sizes; each ends at the next function or at the end of the section. */
static void compute_sizes(hotfn_functions *functions)
{
    hotfn_section section = HOTFN_SECTION_INIT;
    uint32_t known = UINT32_MAX;

    for (uint32_t i = 0; i < functions->count; i++) {
        hfn_function *f = &functions->items[i];
        uint64_t room = UINT64_MAX;
        if (f->section != known) {
            known = f->section;
            if (hotfn_image_get_section(functions->image, known, &section) != HOTFN_OK) {
                section.rva = section.byte_count = 0;
            }
        }
        if (section.byte_count > f->rva - section.rva) {
            room = section.byte_count - (f->rva - section.rva);
        }
        if (i + 1 < functions->count && functions->items[i + 1].rva - f->rva < room) {
            room = functions->items[i + 1].rva - f->rva;
        }
        if (f->byte_count == 0) {
            f->flags |= HOTFN_FUNCTION_SIZE_GUESSED;
        }
        if (f->byte_count == 0 || f->byte_count > room) {
            f->byte_count = room;
        }
    }
}

/*
 * No call instruction precedes a signal restorer, so its FDE begins one byte early: unwinders
 * look up a return address minus one (glibc, x86_64/libc_sigaction.c). If a symbol gives the
 * true start, the FDE is moved there.
 */
static void move_signal_fdes(const walk *w, hfn_fde_list *fdes)
{
    for (uint32_t i = 0; i < fdes->count; i++) {
        hfn_fde *fde = &fdes->items[i];
        if (!(fde->flags & HFN_FDE_SIGNAL) || fde->byte_count < 2) {
            continue;
        }
        size_t low = hfn_count_below(w->symbols, w->symbol_count, sizeof *w->symbols,
                                     offsetof(hfn_symbol, rva), fde->rva);
        if (low < w->symbol_count && w->symbols[low].rva == fde->rva + 1) {
            fde->rva++;
            fde->byte_count--;
        }
    }
}

bool hfn_functions_collect(hotfn_functions *functions, const hotfn_symbols *symbols,
                           hfn_fde_list *fdes)
{
    walk w = { .functions = functions, .fdes = fdes };
    bool good;

    if (symbols) {
        w.symbols = hfn_symbols_table(symbols);
        w.symbol_count = hotfn_symbols_get_count(symbols);
    }
    move_signal_fdes(&w, fdes);
    good = walk_groups(&w);
    hfn_free_memory(&functions->env, w.name_scratch.order,
                    w.name_scratch.capacity * sizeof *w.name_scratch.order);
    if (good) {
        compute_sizes(functions);
    }
    return good;
}
