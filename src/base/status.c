/* SPDX-License-Identifier: MIT */
/* Statuses, the caller's error struct, the log, and sized structs, which may come from callers that
 * were compiled with older or newer headers. */
#include "base/status.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef HOTFN_VERSION
#define HOTFN_VERSION "0.1.0"
#endif

const char *hotfn_status_get_name(hotfn_status status)
{
    static const char *const names[] = {
        "HOTFN_OK",       "HOTFN_E_NO_MEMORY",   "HOTFN_E_OPTION",    "HOTFN_E_IO",
        "HOTFN_E_FORMAT", "HOTFN_E_UNSUPPORTED", "HOTFN_E_NOT_FOUND", "HOTFN_E_MISMATCH",
        "HOTFN_E_STATE",  "HOTFN_E_DENIED",      "HOTFN_E_LIMIT",
    };

    if (status > 0 || status <= -(hotfn_status)HFN_COUNT_OF(names)) {
        return "HOTFN_E_UNKNOWN";
    }
    return names[-status];
}

uint32_t hotfn_get_abi_version(void)
{
    return HOTFN_ABI_VERSION;
}

const char *hotfn_get_version(void)
{
    return HOTFN_VERSION;
}

/* Copy text, or its end if it is too long: the end of a path is more specific than its start. */
static void copy_tail(char *out, size_t out_bytes, const char *text)
{
    size_t length = strlen(text);

    if (length < out_bytes) {
        memcpy(out, text, length + 1);
        return;
    }
    memcpy(out, "...", 3);
    memcpy(out + 3, text + length - (out_bytes - 4), out_bytes - 3);
}

hotfn_status hfn_report_error(hotfn_error *err, hotfn_status status, const char *file,
                              uint64_t offset, const char *format, ...)
{
    hotfn_error filled = HOTFN_ERROR_INIT;
    va_list args;

    if (!err) {
        return status;
    }
    filled.status = status;
    filled.offset = offset;
    copy_tail(filled.file, sizeof filled.file, file ? file : "");
    va_start(args, format);
    vsnprintf(filled.text, sizeof filled.text, format, args);
    va_end(args);
    filled.size = err->size;
    memcpy(err, &filled, err->size < sizeof filled ? err->size : sizeof filled);
    return status;
}

hotfn_status hfn_report_no_memory(hotfn_error *err, const char *file)
{
    return hfn_report_error(err, HOTFN_E_NO_MEMORY, file, HOTFN_NO_OFFSET, "not enough memory");
}

hotfn_status hfn_report_null(hotfn_error *err, const char *call)
{
    return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                            "%s: an argument that must be given is NULL", call);
}

void hfn_log_message(const hotfn_env *env, int32_t level, const char *format, ...)
{
    char text[1024];
    va_list args;

    if (!env->log_fn) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    env->log_fn(env->log_user, level, text);
}

/* No struct of any version is larger; a greater size is uninitialised, and must not be used to
 * read. */
#define MAX_STRUCT_BYTES 4096u

static uint32_t read_size(const void *sized)
{
    uint32_t size;

    memcpy(&size, sized, sizeof size);
    return size;
}

bool hfn_copy_options(void *known, uint32_t known_bytes, const void *in)
{
    uint32_t caller_bytes = in ? read_size(in) : known_bytes;

    if (caller_bytes < sizeof caller_bytes || caller_bytes > MAX_STRUCT_BYTES) {
        return false;
    }
    for (uint32_t i = known_bytes; i < caller_bytes; i++) {
        if (((const uint8_t *)in)[i] != 0) {
            return false;
        }
    }
    memset(known, 0, known_bytes);
    if (in) {
        memcpy(known, in, caller_bytes < known_bytes ? caller_bytes : known_bytes);
    }
    memcpy(known, &known_bytes, sizeof known_bytes);
    return true;
}

bool hfn_copy_out(void *out, const void *known, uint32_t known_bytes)
{
    uint32_t caller_bytes = out ? read_size(out) : 0;

    if (caller_bytes < sizeof caller_bytes || caller_bytes > known_bytes) {
        return false;
    }
    memcpy((uint8_t *)out + sizeof caller_bytes, (const uint8_t *)known + sizeof caller_bytes,
           caller_bytes - sizeof caller_bytes);
    return true;
}

hotfn_status hfn_copy_result(void *out, const void *known, uint32_t known_bytes)
{
    return hfn_copy_out(out, known, known_bytes) ? HOTFN_OK : HOTFN_E_OPTION;
}
