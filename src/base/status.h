/* SPDX-License-Identifier: MIT */
/* The caller's hotfn_error, the log, and sized structs. */
#ifndef HFN_BASE_STATUS_H
#define HFN_BASE_STATUS_H

#include "base/compiler.h"

#include <hotfn/env.h>
#include <stdbool.h>

/* Fill err and return status, for `return hfn_report_error(err, HOTFN_E_FORMAT, ...)`.  Only the
 * bytes that err->size covers are written; err may be NULL. */
hotfn_status hfn_report_error(hotfn_error *err, hotfn_status status, const char *file,
                              uint64_t offset, const char *format, ...) HFN_PRINTF(5, 6);

/* HOTFN_E_NO_MEMORY with its standard text; file is the file that is being processed, or NULL. */
hotfn_status hfn_report_no_memory(hotfn_error *err, const char *file);

/* HOTFN_E_OPTION: a required argument of a public call is NULL. */
hotfn_status hfn_report_null(hotfn_error *err, const char *call);

/* Pass a message to the env's log callback, if it has one. */
void hfn_log_message(const hotfn_env *env, int32_t level, const char *format, ...) HFN_PRINTF(3, 4);

/* Copy a caller's options struct, whose first u32 is its size, to `known`; `in` NULL means all
 * defaults. Missing bytes become 0.  False (HOTFN_E_OPTION) if bytes beyond known_bytes are not 0,
 * or if the size cannot be valid. */
bool hfn_copy_options(void *known, uint32_t known_bytes, const void *in);
/* Copy `known` to a caller's struct, as much as fits its size field, which is not changed.  False
 * if out is NULL, or if its size is 0 or above known_bytes. */
bool hfn_copy_out(void *out, const void *known, uint32_t known_bytes);
/* The same, as a status: HOTFN_OK or HOTFN_E_OPTION. */
hotfn_status hfn_copy_result(void *out, const void *known, uint32_t known_bytes);

#endif
