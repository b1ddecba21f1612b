/* SPDX-License-Identifier: MIT */
/* The streams of a PDB that say what it belongs to and where its symbols are: info, DBI. */
#ifndef HFN_SYMBOLS_PDB_STREAMS_H
#define HFN_SYMBOLS_PDB_STREAMS_H

#include "symbols/pdb_msf.h"
#include "symbols/pdb_omap.h"

/* One object file.  Its stream: symbols (4 bytes of signature before them), C11, then C13 lines. */
typedef struct hfn_pdb_module {
    uint32_t stream; /* HFN_MSF_NO_STREAM: it has no symbols */
    uint32_t symbol_bytes, c11_bytes, c13_bytes;
    const char *name; /* in the arena given to hfn_pdb_open */
} hfn_pdb_module;

typedef struct hfn_pdb {
    hfn_msf msf;
    uint8_t guid[16];
    uint32_t age;          /* the DBI stream's: that which the image names */
    uint32_t machine;      /* HOTFN_MACHINE_* */
    bool is_fastlink;      /* its symbols stayed in the object files */
    uint32_t names_stream; /* "/names": file names; HFN_MSF_NO_STREAM */
    uint32_t public_stream, record_stream, global_stream;
    hfn_pdb_module *modules;
    size_t module_capacity;
    uint32_t module_count;
    hfn_pdb_addresses addresses;
} hfn_pdb;

/* file, path, env and names are kept.  On failure nothing has to be closed. */
hotfn_status hfn_pdb_open(hfn_pdb *pdb, hfn_span file, const char *path, hfn_arena *names,
                          const hotfn_env *env, hotfn_error *err);
void hfn_pdb_close(hfn_pdb *pdb);

/* Fails with HOTFN_E_FORMAT and the file offset of that place in the stream. */
hotfn_status hfn_pdb_lies(const hfn_msf_stream *stream, uint64_t offset, hotfn_error *err,
                          const char *what);
/* hfn_msf_view with an error message; what names the data that must be there. */
hotfn_status hfn_pdb_view(hfn_msf_stream *stream, uint64_t offset, uint64_t size, hfn_span *out,
                          hotfn_error *err, const char *what);

#endif
