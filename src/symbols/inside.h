/* SPDX-License-Identifier: MIT */
/* The internals of a symbol table; only the files of src/symbols include this header. */
#ifndef HFN_SYMBOLS_INSIDE_H
#define HFN_SYMBOLS_INSIDE_H

#include "base/status.h"
#include "image/file.h"
#include "image/image.h"
#include "symbols/table.h"

/* What a loader's file says of lines; NULL members are not called. */
typedef struct hfn_line_source {
    hotfn_status (*find)(void *state, uint64_t rva, hotfn_source_line *out);
    void (*destroy)(void *state);
    void *state;
} hfn_line_source;

/* What env's line_fn or inlined_fn wrote last. */
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
    bool lacks_packed; /* .gnu_debugdata is there, and could not be unpacked */
    hfn_line_source lines;
    hfn_line_text *line_text; /* made when it is needed */
};

/* Empty, with a copy of path for its info; NULL if there is no memory. */
hotfn_symbols *hfn_symbols_new(const char *path, const hotfn_env *env);

/* Copies a caller's options; HOTFN_E_OPTION for flags that are not among known. */
hotfn_status hfn_symbols_take_options(hotfn_symbols_options *out, const hotfn_symbols_options *in,
                                      uint32_t known_flags, hotfn_error *err);

/* Fill info from the image that the symbols came with; call before they are sorted. */
void hfn_symbols_describe(hotfn_symbols *symbols, const hotfn_image *image);

/* The end of each load: sorts, then writes *out; on failure destroys symbols and passes status
 * on. */
hotfn_status hfn_symbols_finish_load(hotfn_symbols **out, hotfn_symbols *symbols,
                                     hotfn_status status, hotfn_error *err);

#endif
