/* SPDX-License-Identifier: MIT */
/* File: the bytes of one file, read-only, for as long as they are needed. */
#ifndef HFN_IMAGE_FILE_H
#define HFN_IMAGE_FILE_H

#include <hotfn/env.h>

typedef struct hfn_file {
    const uint8_t *data;
    uint64_t size;
    size_t owned_bytes; /* allocated from env, 0 if none */
    size_t mapped_bytes;
} hfn_file;

/* HOTFN_OK, HOTFN_E_IO, HOTFN_E_LIMIT, HOTFN_E_NO_MEMORY; *out is written only on success. */
hotfn_status hfn_file_open(hfn_file *out, const char *path, const hotfn_env *env, hotfn_error *err);
void hfn_file_close(hfn_file *file, const hotfn_env *env); /* a zeroed file is fine */

#endif
