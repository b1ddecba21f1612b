/* SPDX-License-Identifier: MIT */
/* Finds the separate debug file, which has the symbols that were stripped from a release build. */
#ifndef HFN_SYMBOLS_ELF_SEPARATE_H
#define HFN_SYMBOLS_ELF_SEPARATE_H

#include "image/image.h"

/* The folders to search in addition to /usr/lib/debug; borrowed for the call. */
typedef struct hfn_symbol_dirs {
    const char *const *paths;
    uint32_t count;
} hfn_symbol_dirs;

/*
 * Opens the separate debug file of image (the caller closes it); NULL if there is none. A file that
 * is broken or belongs to another build is skipped with a warning.
 */
hotfn_image *hfn_separate_open(const hotfn_image *image, const hfn_symbol_dirs *dirs,
                               const hotfn_env *env);

/* CRC-32 of .gnu_debuglink (polynomial 0xedb88320, as in zlib). */
uint32_t hfn_separate_crc32(hfn_span bytes);

#endif
