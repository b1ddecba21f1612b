/* SPDX-License-Identifier: MIT */
/* The read-only bytes of a file, mapped or read into memory until hfn_file_close. */
#ifndef HFN_IMAGE_FILE_H
#define HFN_IMAGE_FILE_H

#include <hotfn/env.h>

typedef struct hfn_file {
    const uint8_t *data;
    uint64_t size;
    size_t owned_bytes;  /* size of the allocation from env; 0: none */
    size_t mapped_bytes; /* size of the mapping; 0: none             */
} hfn_file;

/* HOTFN_OK, HOTFN_E_IO, HOTFN_E_LIMIT, HOTFN_E_NO_MEMORY; *out is written only on success. */
hotfn_status hfn_file_open(hfn_file *out, const char *path, const hotfn_env *env, hotfn_error *err);
void hfn_file_close(hfn_file *file, const hotfn_env *env); /* a zeroed file is fine */

#endif
