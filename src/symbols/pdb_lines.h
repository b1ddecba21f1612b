/* SPDX-License-Identifier: MIT */
/* Source lines of a PDB, read on the first query. */
#ifndef HFN_SYMBOLS_PDB_LINES_H
#define HFN_SYMBOLS_PDB_LINES_H

#include "symbols/pdb_streams.h"

#include <hotfn/lowlevel/symbols.h>

/* The position of one function's line table in the stream of its module. */
typedef struct hfn_pdb_contribution {
    uint64_t source; /* address before OMAP */
    uint32_t bytes, module;
    uint32_t at, size; /* of the subsection's data in that stream */
} hfn_pdb_contribution;

/* The code from offset up to the next entry belongs to this line; file is an offset in the module's
 * list of files. */
typedef struct hfn_pdb_line {
    uint32_t offset, line, file;
} hfn_pdb_line;

/* The position of a module's list of files in the stream of the module. */
typedef struct hfn_pdb_files {
    uint32_t at, bytes;
} hfn_pdb_files;

/* An open PDB and the state of its line queries; lives as long as the symbols. */
typedef struct hfn_pdb_lines {
    hotfn_env env;
    hfn_pdb pdb;
    bool is_indexed;
    hfn_pdb_contribution *contributions; /* by source address */
    size_t contribution_capacity;
    uint32_t contribution_count;
    hfn_pdb_files *files; /* by module */
    hfn_msf_stream names_stream;
    hfn_span names;      /* the texts of "/names"; a view */
    uint32_t decoded;    /* index of the contribution that `lines` holds; UINT32_MAX: none */
    hfn_pdb_line *lines; /* by offset */
    size_t line_capacity;
    uint32_t line_count;
} hfn_pdb_lines;

/* The caller must open `pdb` with hfn_pdb_open.  NULL if there is no memory. */
hfn_pdb_lines *hfn_pdb_lines_new(const hotfn_env *env);
void hfn_pdb_lines_destroy(void *lines); /* closes pdb; NULL is fine */

/* For hfn_line_source.  Damaged tables are skipped with a warning. */
hotfn_status hfn_pdb_lines_find(void *lines, uint64_t rva, hotfn_source_line *out);

#endif
