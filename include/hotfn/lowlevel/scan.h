/* SPDX-License-Identifier: MIT */
/* Scan: the functions, verdicts and plan of one file in one block of bytes.  A block is made once
 * and kept in a cache folder, so that later runs of a program start at once.  An open scan does not
 * change, so that several threads may read it at once. */
#ifndef HOTFN_SCAN_H
#define HOTFN_SCAN_H

#include <hotfn/lowlevel/lists.h>
#include <hotfn/lowlevel/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_scan hotfn_scan;

#define HOTFN_SCAN_TIMING 0x10000u       /* also prove which functions may be timed */
#define HOTFN_SCAN_NO_TAIL_EXIT 0x20000u /* as HOTFN_VERDICTS_NO_TAIL_EXIT              */
#define HOTFN_SCAN_FOREIGN 0x40000u      /* also a file of another system, to be saved  */
#define HOTFN_SCAN_FOUND 0x80000u        /* with hotfn_verdicts_find_functions          */

typedef struct hotfn_scan_options {
    uint32_t size;    /* sizeof(hotfn_scan_options)                       */
    uint32_t flags;   /* HOTFN_SYMBOLS_NO_SEPARATE, _FORCE, HOTFN_SCAN_* [none] */
    uint32_t threads; /* used for scanning [number of CPUs]               */
    uint32_t symbol_dir_count;
    const char *const *symbol_dirs; /* borrowed; places for debug files   */
    const char *cache_folder;       /* borrowed; made if missing [no cache] */
    const char *map_path; /* borrowed; a linker map or a PDB gives the names [the file itself] */
} hotfn_scan_options;
#define HOTFN_SCAN_OPTIONS_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_scan_options), 0, 0, 0, 0, 0, 0                                     \
    }

typedef struct hotfn_scan_info {
    uint32_t size; /* sizeof(hotfn_scan_info) */
    uint32_t machine;
    uint32_t image_flags; /* HOTFN_IMAGE_*           */
    uint32_t function_count;
    uint32_t hookable_count;
    uint32_t refused_count;
    uint32_t fragment_count;
    uint32_t from_cache; /* 1: nothing was decoded  */
    uint32_t id_kind;    /* HOTFN_ID_*              */
    uint32_t id_bytes;
    uint8_t id[32];
    const void *plan; /* view: hotfn_plan_open   */
    uint64_t plan_bytes;
    uint64_t file_device; /* of the file scanned     */
    uint64_t file_inode;
    const char *path;    /* view                    */
    uint64_t file_stamp; /* of its size and times   */
    uint64_t code_bytes; /* as hotfn_functions_get_coverage */
    uint64_t known_bytes;
} hotfn_scan_info;
#define HOTFN_SCAN_INFO_INIT                                                                       \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_scan_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, 0, 0, 0, 0, 0, 0,  \
            0                                                                                      \
    }

/*
 * Scan the file at path, or load its scan from the cache (same file, size and times, same version
 * of the library).  A cache that cannot be read or written is ignored with a warning.
 *
 * out  receives a scan that the caller owns; untouched on failure.
 * HOTFN_OK, HOTFN_E_IO, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION, HOTFN_E_FORMAT (no image, a broken image
 * or a broken map), HOTFN_E_UNSUPPORTED (also an image of another system without the flag),
 * HOTFN_E_MISMATCH (a map of another build), HOTFN_E_LIMIT (an image of more than 4 GiB).  Any
 * thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_scan_open(hotfn_scan **out, const char *path,
                                       const hotfn_scan_options *options, const hotfn_env *env,
                                       hotfn_error *err);
/* Release the scan and every view into it.  NULL is fine.  One thread, after all other calls.
 * Since 0.1. */
HOTFN_API void hotfn_scan_close(hotfn_scan *scan);
/* Write the scan to a file, for hotfn_scan_load on another machine.  HOTFN_OK, HOTFN_E_IO.  Any
 * thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_scan_save(const hotfn_scan *scan, const char *scan_path,
                                       hotfn_error *err);
/*
 * Load a scan that hotfn_scan_save wrote, for the file at path, of which only the id is read.
 * HOTFN_OK, HOTFN_E_IO, HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT (broken, or of another version of the
 * library), HOTFN_E_MISMATCH (the file is not the build that was scanned).  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_scan_load(hotfn_scan **out, const char *path, const char *scan_path,
                                       const hotfn_env *env, hotfn_error *err);
/* Counts of what the scan found, its file and its plan; path and plan are views.  HOTFN_OK,
 * HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_scan_get_info(const hotfn_scan *scan, hotfn_scan_info *out);
/* The function at index as a record would list it, before any selection; texts are views.
 * HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_scan_get_function(const hotfn_scan *scan, uint32_t index,
                                               hotfn_record_function *out);
/*
 * Find the scanned functions that are on a list; there are none if the list is of another file.
 *
 * rvas   receives their RVAs, sorted, the first capacity of them (function_count is enough).
 * count  receives their number, which may be more than capacity.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_MISMATCH (the list belongs to another build of this file).
 * Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_scan_find_listed(const hotfn_scan *scan, const hotfn_list *list,
                                              uint64_t *rvas, uint32_t capacity, uint32_t *count,
                                              const hotfn_env *env, hotfn_error *err);

#ifdef __cplusplus
}
#endif

#endif
