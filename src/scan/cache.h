/* SPDX-License-Identifier: MIT */
/* The cache folder of scans: one file for each path, set of options and installed hotfn.  The scan
 * of a new version of an image replaces that of the old one, so the folder does not grow with
 * every update. */
#ifndef HFN_SCAN_CACHE_H
#define HFN_SCAN_CACHE_H

#include "os/files.h"

#include <hotfn/lowlevel/scan.h>

/* Two hashes. */
typedef struct hfn_scan_key {
    uint64_t
        name; /* names the cached file: path, options, whether env can decompress, hotfn's path */
    uint64_t stamp; /* also differs between two builds of the image, of a map or of hotfn */
} hfn_scan_key;

/* Computed without reading the file. */
hfn_scan_key hfn_scan_get_key(const char *path, const hfn_os_file_info *file,
                              const hotfn_scan_options *options, const hotfn_env *env);
/* The cached bytes (mapped, private), or NULL.  The caller compares their stamp. */
const uint8_t *hfn_scan_cache_load(const char *folder, uint64_t name, uint64_t *bytes);
void hfn_scan_cache_unload(const uint8_t *block, uint64_t bytes);
hfn_os_error hfn_scan_cache_store(const char *folder, uint64_t name, const uint8_t *block,
                                  uint64_t bytes);

#endif
