/* SPDX-License-Identifier: MIT */
/* Source lines of a PDB, read on the first query. */
#ifndef HFN_SYMBOLS_PDB_LINES_H
#define HFN_SYMBOLS_PDB_LINES_H

#include "symbols/pdb_streams.h"

#include <hotfn/lowlevel/symbols.h>

/* The lines of one function, as they lie in its module's stream. */
typedef struct hfn_pdb_contribution {
    uint64_t source; /* address before OMAP */
    uint32_t bytes, module;
    uint32_t at, size; /* of the subsection's data, in the module's stream */
} hfn_pdb_contribution;

/* Code from offset on is of this line; file is a place in the module's list of files. */
typedef struct hfn_pdb_line {
    uint32_t offset, line, file;
} hfn_pdb_line;

/* Where in its stream a module's list of files is. */
typedef struct hfn_pdb_files {
    uint32_t at, bytes;
} hfn_pdb_files;

/* A PDB whose lines may be asked for: kept as long as the symbols. */
typedef struct hfn_pdb_lines {
    hotfn_env env;
    hfn_pdb pdb;
    bool is_indexed;
    hfn_pdb_contribution *contributions; /* by source address */
    size_t contribution_capacity;
    uint32_t contribution_count;
    hfn_pdb_files *files; /* by module */
    hfn_msf_stream names_stream;
    hfn_span names;      /* "/names" behind its header; a view */
    uint32_t decoded;    /* index of the contribution in lines; UINT32_MAX none */
    hfn_pdb_line *lines; /* by offset */
    size_t line_capacity;
    uint32_t line_count;
} hfn_pdb_lines;

/* pdb is zeroed: hfn_pdb_open it.  NULL if there is no memory. */
hfn_pdb_lines *hfn_pdb_lines_new(const hotfn_env *env);
void hfn_pdb_lines_destroy(void *lines); /* closes pdb; NULL is fine */

/* For hfn_line_source.  What is damaged is passed over with a warning to the log. */
hotfn_status hfn_pdb_lines_find(void *lines, uint64_t rva, hotfn_source_line *out);

#endif
