/* SPDX-License-Identifier: MIT */
/* The result of a call: a status and, on request, an error that names the file, the offset and what
 * to do.  There is no thread-local last error. */
#ifndef HOTFN_STATUS_H
#define HOTFN_STATUS_H

#include <stdint.h>

#if defined(_WIN32)
#define HOTFN_API
#else
#define HOTFN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_ABI_VERSION 1u

/* An integer of one size for every compiler and for ctypes.  A NULL argument that a call requires
 * gives HOTFN_E_OPTION; a call that returns no status then returns 0, NULL or its sentinel for
 * "none", or does nothing. */
typedef int32_t hotfn_status;

#define HOTFN_OK 0
#define HOTFN_E_NO_MEMORY (-1)   /* an allocation or a mapping failed                       */
#define HOTFN_E_OPTION (-2)      /* an option that this version does not know, or a bad value */
#define HOTFN_E_IO (-3)          /* open, read, write or map of a file failed               */
#define HOTFN_E_FORMAT (-4)      /* the bytes are damaged or of another format              */
#define HOTFN_E_UNSUPPORTED (-5) /* well-formed, but not served by this version            */
#define HOTFN_E_NOT_FOUND (-6)   /* no such function, module, section, file                 */
#define HOTFN_E_MISMATCH (-7)    /* another build: ids, versions or bytes differ            */
#define HOTFN_E_STATE (-8)       /* the call does not fit the object's state                */
#define HOTFN_E_DENIED (-9)      /* the system does not allow it                            */
#define HOTFN_E_LIMIT (-10)      /* a bound of this library is exceeded                     */

#define HOTFN_NO_OFFSET UINT64_MAX

/* Owned by the caller; filled only on failure.  Set size (HOTFN_ERROR_INIT) before the call. */
typedef struct hotfn_error {
    uint32_t size;   /* sizeof(hotfn_error)                              */
    int32_t status;  /* the HOTFN_E_* that the call returned             */
    uint64_t offset; /* file offset in bytes, or HOTFN_NO_OFFSET         */
    char file[256];  /* the file it is about, cut at the front; or ""    */
    char text[512];  /* what is wrong and what to do, one line           */
} hotfn_error;
#define HOTFN_ERROR_INIT                                                                           \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_error), 0, UINT64_MAX, "", ""                                       \
    }

/* The name of a status ("HOTFN_E_FORMAT"); never NULL.  Static text.  Since 0.1. */
HOTFN_API const char *hotfn_status_get_name(hotfn_status status);

/* HOTFN_ABI_VERSION of the library that is loaded.  Since 0.1. */
HOTFN_API uint32_t hotfn_get_abi_version(void);

/* The library's version, "0.1.0".  Static text.  Since 0.1. */
HOTFN_API const char *hotfn_get_version(void);

/* sizeof of a public struct by its name ("hotfn_error"), 0 if there is none: bindings check their
 * own layout with it.  Since 0.1. */
HOTFN_API uint32_t hotfn_get_struct_bytes(const char *struct_name);

#ifdef __cplusplus
}
#endif

#endif
