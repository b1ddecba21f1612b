/* SPDX-License-Identifier: MIT */
/* Filling a caller's hotfn_error, and the log. */
#ifndef HFN_BASE_STATUS_H
#define HFN_BASE_STATUS_H

#include "base/compiler.h"

#include <hotfn/env.h>
#include <stdbool.h>

/* Fill err (NULL is fine) and return status: `return hfn_report_error(err, HOTFN_E_FORMAT, path, offset,
 * ...)`. Writes only the bytes that err->size covers. */
hotfn_status hfn_report_error(hotfn_error *err, hotfn_status status, const char *file,
                              uint64_t offset, const char *format, ...) HFN_PRINTF(5, 6);

/* HOTFN_E_OPTION: an argument that the public call must be given is NULL. */
hotfn_status hfn_report_null(hotfn_error *err, const char *call);

/* To the env's log callback, if there is one. */
void hfn_log_message(const hotfn_env *env, int32_t level, const char *format, ...) HFN_PRINTF(3, 4);

/*
 * Sized structs. hfn_copy_options copies a caller's struct of given size (its first u32) into ours:
 * missing bytes stay 0; bytes that we do not know must be 0, else false (-> HOTFN_E_OPTION); so is a size that
 * nobody can have set. in NULL means all defaults. hfn_copy_out fills a caller's out struct up to its size;
 * false if it is NULL or its size is 0 or above what we know (our struct's first u32 is kept as the caller's size).
 */
bool hfn_copy_options(void *ours, uint32_t our_bytes, const void *in);
bool hfn_copy_out(void *out, const void *ours, uint32_t our_bytes);

#endif
