/* SPDX-License-Identifier: MIT */
/* On Windows an hfn_os_error is a number of winerror.h. */
#include "os/windows/nt.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- Texts.  A buffer for each thread would need thread-local storage, so the common errors have
 * constants, and each other number gets a text that never changes. */

enum { MAX_NUMBERED = 32 };

static struct {
    _Atomic uint32_t error; /* stored after the text; 0: not yet */
    char text[40];
} numbered[MAX_NUMBERED];
static _Atomic uint32_t numbered_count;

static const char *get_numbered_text(hfn_os_error error)
{
    uint32_t i;

    for (i = 0; i < MAX_NUMBERED; i++) {
        if (atomic_load_explicit(&numbered[i].error, memory_order_acquire) == (uint32_t)error) {
            return numbered[i].text;
        }
    }
    i = atomic_load(&numbered_count) < MAX_NUMBERED ? atomic_fetch_add(&numbered_count, 1)
                                                    : MAX_NUMBERED;
    if (i >= MAX_NUMBERED) {
        return "The system reports an error";
    }
    snprintf(numbered[i].text, sizeof numbered[i].text, "The system reports error %u",
             (unsigned)error);
    atomic_store_explicit(&numbered[i].error, (uint32_t)error, memory_order_release);
    return numbered[i].text;
}

const char *hfn_os_get_error_text(hfn_os_error error)
{
    switch (error) {
    case ERROR_SUCCESS: return "Success";
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND: return "No such file or directory";
    case ERROR_ACCESS_DENIED: return "Permission denied";
    case ERROR_SHARING_VIOLATION: return "The file is in use by another process";
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: return "File exists";
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT: return "Cannot allocate memory";
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: return "No space left on device";
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME: return "Invalid file name";
    case ERROR_FILENAME_EXCED_RANGE: return "File name too long";
    case ERROR_DIRECTORY: return "Not a directory";
    case ERROR_INVALID_PARAMETER: return "Invalid argument";
    case ERROR_NOT_SUPPORTED: return "Operation not supported";
    case ERROR_BAD_EXE_FORMAT:
    case ERROR_EXE_MACHINE_TYPE_MISMATCH: return "Not a program of this system";
    case ERROR_TIMEOUT: return "Timed out";
    default: return get_numbered_text(error);
    }
}

bool hfn_os_is_missing(hfn_os_error error)
{
    return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
}

bool hfn_os_is_gone(hfn_os_error error)
{
    return error == ERROR_INVALID_PARAMETER; /* OpenProcess: no such process */
}

bool hfn_os_is_timeout(hfn_os_error error)
{
    return error == ERROR_TIMEOUT;
}

bool hfn_os_is_out_of_memory(hfn_os_error error)
{
    return error == ERROR_NOT_ENOUGH_MEMORY || error == ERROR_OUTOFMEMORY ||
           error == ERROR_COMMITMENT_LIMIT;
}

hfn_os_error hfn_os_get_out_of_memory(void)
{
    return ERROR_NOT_ENOUGH_MEMORY;
}

bool hfn_os_is_denied(hfn_os_error error)
{
    return error == ERROR_ACCESS_DENIED;
}

bool hfn_os_is_busy(hfn_os_error error)
{
    return error == ERROR_BUSY;
}
