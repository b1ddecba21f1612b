/* SPDX-License-Identifier: MIT */
/* The internals of a symbol table; only the files of src/symbols include this header. */
#ifndef HFN_SYMBOLS_INSIDE_H
#define HFN_SYMBOLS_INSIDE_H

#include "base/status.h"
#include "image/file.h"
#include "image/image.h"
#include "symbols/table.h"

/* The source lines that a PDB or a map has itself; NULL members are not called. */
typedef struct hfn_line_source {
    hotfn_status (*find)(void *state, uint64_t rva, hotfn_source_line *out);
    void (*destroy)(void *state);
    void *state;
} hfn_line_source;

/* The last texts that line_fn or inlined_fn of the env returned. */
typedef struct hfn_line_text {
    char file[4096], function[4096];
} hfn_line_text;

struct hotfn_symbols {
    hfn_symbol_table table;
    hotfn_symbols_info info;
    hfn_file file;          /* of a PDB or a map: names are views into it */
    hotfn_image *separate;  /* names are views into it */
    hotfn_image *debugdata; /* the same                */
    void *debugdata_bytes;
    size_t debugdata_size;
    bool unpack_failed;    /* .gnu_debugdata could not be unpacked    */
    bool lacks_debug_file; /* a debug file or a PDB was searched without result */
    hfn_line_source lines;
    hfn_line_text *line_text; /* made when it is needed */
};

/* Creates an empty object with a copy of path in its info; NULL if there is no memory. */
hotfn_symbols *hfn_symbols_new(const char *path, const hotfn_env *env);

/* Copies the caller's options; HOTFN_E_OPTION if they have a flag that is not among known_flags. */
hotfn_status hfn_symbols_copy_options(hotfn_symbols_options *out, const hotfn_symbols_options *in,
                                      uint32_t known_flags, hotfn_error *err);

/* Fills the info from the image that has the symbols; call it before they are sorted. */
void hfn_symbols_describe(hotfn_symbols *symbols, const hotfn_image *image);

/* Ends a load: sorts the symbols, then stores them in *out.  On failure destroys them and returns
 * the status. */
hotfn_status hfn_symbols_finish_load(hotfn_symbols **out, hotfn_symbols *symbols,
                                     hotfn_status status, hotfn_error *err);

#endif
