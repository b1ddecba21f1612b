/* SPDX-License-Identifier: MIT */
/* The internals of an open scan, shared by the files of this folder. */
#ifndef HFN_SCAN_SCAN_H
#define HFN_SCAN_SCAN_H

#include "scan/block.h"

#include "base/memory.h"

#include <hotfn/lowlevel/symbols.h>

struct hotfn_scan {
    hotfn_env env;
    hfn_span block;
    hfn_scan_header header;
    bool is_mapped; /* block is a mapped cache file: unmapped, not freed */
    uint64_t device, inode, file_stamp;
    bool stamp_is_reliable; /* file_stamp reveals any later change of the file */
    char *path;
    size_t path_bytes;
};

/* Whether the file's stamp at the time of the scan reveals any later change. */
bool hfn_scan_stamp_is_reliable(const hotfn_scan *scan);

/* make.c: load the symbols of a linker map or of a PDB. */
hotfn_status hfn_scan_load_names(hotfn_symbols **out, const char *path, const hotfn_image *image,
                                 const hotfn_symbols_options *options, const hotfn_env *env,
                                 hotfn_error *err);

#endif
