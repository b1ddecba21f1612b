/* SPDX-License-Identifier: MIT */
/* The info and DBI streams of a PDB: its identity, its modules, and the numbers of the streams with
 * symbols. */
#ifndef HFN_SYMBOLS_PDB_STREAMS_H
#define HFN_SYMBOLS_PDB_STREAMS_H

#include "symbols/pdb_msf.h"
#include "symbols/pdb_omap.h"

/* One object file.  Its stream holds a signature of 4 bytes and the symbols, then C11, then C13
 * lines. */
typedef struct hfn_pdb_module {
    uint32_t stream; /* HFN_MSF_NO_STREAM: it has no symbols */
    uint32_t symbol_bytes, c11_bytes, c13_bytes;
    const char *name; /* in the arena given to hfn_pdb_open */
} hfn_pdb_module;

typedef struct hfn_pdb {
    hfn_msf msf;
    uint8_t guid[16];
    uint32_t age;          /* of the DBI stream, which the image refers to */
    uint32_t machine;      /* HOTFN_MACHINE_* */
    bool is_fastlink;      /* most symbols are in the object files only */
    uint32_t names_stream; /* of "/names", the file names; or HFN_MSF_NO_STREAM */
    uint32_t public_stream, record_stream, global_stream;
    hfn_pdb_module *modules;
    size_t module_capacity;
    uint32_t module_count;
    hfn_pdb_addresses addresses;
} hfn_pdb;

/* file, path, env and names are kept.  On failure there is nothing to close. */
hotfn_status hfn_pdb_open(hfn_pdb *pdb, hfn_span file, const char *path, hfn_arena *names,
                          const hotfn_env *env, hotfn_error *err);
void hfn_pdb_close(hfn_pdb *pdb);

/* Reports HOTFN_E_FORMAT with the file offset of the byte at offset of the stream; what describes
 * the damage. */
hotfn_status hfn_pdb_fail(const hfn_msf_stream *stream, uint64_t offset, hotfn_error *err,
                          const char *what);
/* hfn_msf_view with an error message; what names the data that is read. */
hotfn_status hfn_pdb_view(hfn_msf_stream *stream, uint64_t offset, uint64_t size, hfn_span *out,
                          hotfn_error *err, const char *what);

#endif
