/* SPDX-License-Identifier: MIT */
/* The internals of a function table; only the files of src/functions include this header. */
#ifndef HFN_FUNCTIONS_INSIDE_H
#define HFN_FUNCTIONS_INSIDE_H

#include "base/memory.h"
#include "base/status.h"
#include "functions/bounds_eh_frame.h"
#include "functions/functions.h"
#include "image/image.h"
#include "symbols/symbols.h"

struct hotfn_functions {
    hotfn_env env;
    const hotfn_image *image;
    hfn_arena generated_names; /* "prog+0x1234"                       */
    hfn_function *items;       /* by rva                              */
    const char **names;        /* of all functions, those of one adjacent, best first */
    size_t capacity, name_capacity;
    uint32_t count, name_count;
    uint32_t map_hits, map_misses; /* rows of a map at the start of an FDE, and inside one */
};

/* table.c: fills items and names from both sources.  False if there is no memory. */
bool hfn_functions_collect(hotfn_functions *functions, const hotfn_symbols *symbols,
                           hfn_fde_list *fdes);
/* names.c: appends the names of one function (symbols[0..count), maybe none), best first. */
typedef struct hfn_name_scratch {
    const hfn_symbol **order; /* two halves: the symbols to sort, and the sort's scratch */
    size_t capacity;
} hfn_name_scratch;
bool hfn_functions_add_names(hotfn_functions *functions, hfn_function *function,
                             const hfn_symbol *symbols, uint32_t count, hfn_name_scratch *scratch);
/* kinds.c: marks linker stubs, resolvers and C run-time glue. */
void hfn_functions_mark_kinds(hotfn_functions *functions);
void hfn_functions_mark_pe_kinds(hotfn_functions *functions); /* kinds_pe.c */
/* The function at exactly rva, or NULL. */
hfn_function *hfn_functions_at_rva(hotfn_functions *functions, uint64_t rva);

#endif
