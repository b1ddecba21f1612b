/* SPDX-License-Identifier: MIT */
/* hotfn_symbols_load for a PE image: one table from its PDB if that is found, its COFF symbol
 * table, and its exports. */
#include "symbols/load_pe.h"

#include "symbols/coff_symtab.h"
#include "symbols/inside.h"
#include "symbols/pdb_find.h"
#include "symbols/pe_exports.h"

hotfn_status hfn_symbols_load_pe(hotfn_symbols **out, const hotfn_image *image,
                                 const hotfn_symbols_options *options, const hotfn_env *env,
                                 hotfn_error *err)
{
    bool want_data = (options->flags & HOTFN_SYMBOLS_DATA) != 0;
    hotfn_symbols *symbols = NULL;
    hotfn_status status = HOTFN_OK;

    if (!(options->flags & HOTFN_SYMBOLS_NO_SEPARATE)) {
        status = hfn_pdb_find(&symbols, image, options, env, err);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    bool has_pdb = symbols != NULL;
    if (!has_pdb) {
        symbols = hfn_symbols_new(hfn_image_path(image), env);
    }
    if (!symbols) {
        return hfn_report_no_memory(err, hfn_image_path(image));
    }
    status = hfn_coff_symtab_read(&symbols->table, image, want_data, err);
    if (status == HOTFN_OK) {
        status = hfn_exports_read(&symbols->table, image, want_data, err);
    }
    if (!has_pdb) {
        hfn_symbols_describe(symbols, image);
        symbols->lacks_debug_file = !(options->flags & HOTFN_SYMBOLS_NO_SEPARATE);
    }
    return hfn_symbols_finish_load(out, symbols, status, err);
}
