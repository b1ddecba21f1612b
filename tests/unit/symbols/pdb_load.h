/* SPDX-License-Identifier: MIT */
/* Loads a PDB from pdb_builder.h and finds symbols in it. */
#ifndef HFN_TESTS_PDB_LOAD_H
#define HFN_TESTS_PDB_LOAD_H

#include "check.h"
#include "symbols/pdb_builder.h"

#include <hotfn/lowlevel/symbols.h>

static inline hotfn_symbols *load_with(const pdb_builder *b, const hotfn_env *env,
                                       hotfn_status wanted, hotfn_error *err)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_symbols *symbols = NULL;
    hotfn_status status;

    options.flags = HOTFN_SYMBOLS_DATA;
    status = hotfn_symbols_pdb_from_bytes(&symbols, b->file, b->file_bytes, "x.pdb", NULL, &options,
                                          env, err);
    if (!CHECK_EQ_I64(status, wanted)) {
        printf("#   %s\n", err->text);
    }
    return symbols;
}

/* Builds the PDB, which must load. */
static inline hotfn_symbols *load_good(pdb_builder *b)
{
    hotfn_error err = HOTFN_ERROR_INIT;

    pdb_finish(b);
    return load_with(b, NULL, HOTFN_OK, &err);
}

/* Expects that the PDB is refused with a message that contains `why`, at this file offset.  Frees
 * the PDB. */
static inline void refuse(pdb_builder *b, const char *why, uint64_t offset)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_symbols *symbols = load_with(b, NULL, HOTFN_E_FORMAT, &err);

    if (!CHECK(strstr(err.text, why))) {
        printf("#   %s\n", err.text);
    }
    CHECK_EQ_U64(err.offset, offset);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
}

/* The file offset of a byte of a stream that is not scattered. */
static inline uint64_t place(const pdb_builder *b, int stream, uint32_t offset)
{
    uint32_t block = b->first_block[stream] + 1 - blocks_of(b, b->s[stream].size);

    return (uint64_t)block * b->block_bytes + offset;
}

/* The first symbol of that name and kind; its name is NULL if there is none. */
static inline hotfn_symbol find(const hotfn_symbols *symbols, const char *name, uint32_t kind)
{
    hotfn_symbol s = HOTFN_SYMBOL_INIT;

    for (uint32_t i = 0; i < hotfn_symbols_get_count(symbols); i++) {
        if (hotfn_symbols_get(symbols, i, &s) == HOTFN_OK && s.kind == kind &&
            strcmp(s.name, name) == 0) {
            return s;
        }
    }
    CHECK_STR("(no symbol)", name);
    s = (hotfn_symbol)HOTFN_SYMBOL_INIT;
    return s;
}

#endif
