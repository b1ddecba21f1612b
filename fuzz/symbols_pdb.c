/* SPDX-License-Identifier: MIT */
/* Reads any bytes as a PDB, with its lines.  An error for damage must have an offset. */
#include "symbols_promises.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_symbols *symbols = NULL;

    options.flags = HOTFN_SYMBOLS_DATA;
    if (hotfn_symbols_pdb_from_bytes(&symbols, data, size, "fuzz.pdb", NULL, &options, NULL,
                                     &err) == HOTFN_OK) {
        check_symbols(symbols);
    } else if (err.status == HOTFN_E_FORMAT && err.offset == HOTFN_NO_OFFSET) {
        abort();
    }
    hotfn_symbols_destroy(symbols);
    return 0;
}
