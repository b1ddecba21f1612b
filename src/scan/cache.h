/* SPDX-License-Identifier: MIT */
/* The cache folder of scans: one file per image, options and build of hotfn, named by the hash that
 * hfn_scan_stamp returns, and replaced by rename. */
#ifndef HFN_SCAN_CACHE_H
#define HFN_SCAN_CACHE_H

#include "os/files.h"

#include <hotfn/lowlevel/scan.h>

/* A hash that differs between two builds of a file, computed without reading the file.  It includes
 * the build of hotfn and whether env can decompress. */
uint64_t hfn_scan_stamp(const char *path, const hfn_os_file_info *file,
                        const hotfn_scan_options *options, const hotfn_env *env);
/* The cached bytes (mapped, private), or NULL. */
const uint8_t *hfn_scan_cache_load(const char *folder, uint64_t stamp, uint64_t *bytes);
void hfn_scan_cache_unload(const uint8_t *block, uint64_t bytes);
hfn_os_error hfn_scan_cache_store(const char *folder, uint64_t stamp, const uint8_t *block,
                                  uint64_t bytes);

#endif
