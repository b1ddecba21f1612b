/* SPDX-License-Identifier: MIT */
/* Any bytes as a PDB, with its lines.  The table must be in order, damage must have a place, and a
 * line must be around the address that was asked for. */
#include <hotfn/symbols.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES_ASKED = 256 };

static void check_order(const hotfn_symbol *before, const hotfn_symbol *s)
{
    int global_before = (before->flags & HOTFN_SYMBOL_GLOBAL) != 0;
    int global = (s->flags & HOTFN_SYMBOL_GLOBAL) != 0;

    if (before->rva > s->rva)
        abort();
    if (before->rva == s->rva && global_before < global)
        abort();
    if (before->rva == s->rva && global_before == global && strcmp(before->name, s->name) >= 0)
        abort();
}

static void check_line(hotfn_symbols *symbols, uint64_t rva)
{
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;

    if (hotfn_symbols_find_line(symbols, rva, &line) != HOTFN_OK)
        return;
    if (line.rva > rva || rva - line.rva >= line.byte_count || strlen(line.file) > SIZE_MAX / 2)
        abort();
}

static void check_symbols(hotfn_symbols *symbols)
{
    hotfn_symbol before = HOTFN_SYMBOL_INIT;

    for (uint32_t i = 0; i < hotfn_symbols_count(symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        if (hotfn_symbols_get(symbols, i, &s) != HOTFN_OK || !s.kind ||
            s.source != HOTFN_SOURCE_PDB || (s.module && strlen(s.module) > SIZE_MAX / 2))
            abort();
        if (i > 0)
            check_order(&before, &s);
        if (i < MAX_LINES_ASKED) {
            check_line(symbols, s.rva);
            check_line(symbols, s.rva + s.byte_count / 2);
        }
        before = s;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_symbols *symbols = NULL;

    options.flags = HOTFN_SYMBOLS_DATA;
    if (hotfn_symbols_pdb_from_bytes(&symbols, data, size, "fuzz.pdb", NULL, &options, NULL,
                                     &err) == HOTFN_OK)
        check_symbols(symbols);
    else if (err.status == HOTFN_E_FORMAT && err.offset == HOTFN_NO_OFFSET)
        abort();
    hotfn_symbols_destroy(symbols);
    return 0;
}
