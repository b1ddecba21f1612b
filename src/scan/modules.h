/* SPDX-License-Identifier: MIT */
/*
 * The module policy: which loaded modules are scanned, what of each is hooked, which scans are
 * refused, and which modules are known already.  It is pure: the caller describes the module and
 * the user's choices as data, and no process or live record is touched.  The launcher and the
 * in-process session both decide by it.
 */
#ifndef HFN_SCAN_MODULES_H
#define HFN_SCAN_MODULES_H

#include "base/memory.h"

#include <hotfn/lowlevel/scan.h>

/* A file as it was at one moment.  Builds that replace each other often share device and inode; the
 * stamp then differs.  Stamp 0: the file was too new for its stamp to reveal a later change. */
typedef struct hfn_file_identity {
    uint64_t device, inode, stamp;
} hfn_file_identity;

/* A module that was loaded. */
typedef struct hfn_module_facts {
    const char *path; /* borrowed; resolved */
    hfn_file_identity file;
    bool is_main;
    /* Its code may hold the loader's breakpoint; false if that is unknown. */
    bool is_near_breakpoint;
} hfn_module_facts;

/* What the user asked for. */
typedef struct hfn_module_rules {
    const char *const *globs; /* borrowed; on paths and on file names; none: the main program */
    uint32_t glob_count;
    uint8_t *glob_used;      /* borrowed; per glob: 1 if it matched a module; or NULL */
    const char *loader_path; /* borrowed; the program's interpreter, resolved; NULL: unknown */
    bool needs_loader;       /* modules that are loaded later are to be hooked */
    bool needs_allocators;   /* calls of allocators are to be recorded */
    /* borrowed; globs on file names of modules of which functions are replaced; NULL: none.  Ends
     * with NULL. */
    const char *const *replaced;
} hfn_module_rules;

typedef enum hfn_module_use {
    HFN_MODULE_UNUSED,     /* not scanned */
    HFN_MODULE_SELECTED,   /* the selected functions are hooked */
    HFN_MODULE_ALLOCATORS, /* only the functions of its allocator are hooked */
    HFN_MODULE_LOADER,     /* only the loader's breakpoint is hooked, and no function is listed */
    HFN_MODULE_REPLACED    /* only functions that hotfn itself needs, and no function is listed */
} hfn_module_use;

/* How a module is used.  The globs have been checked with hotfn_glob_match. */
hfn_module_use hfn_modules_choose_use(const hfn_module_rules *rules, const hfn_module_facts *facts);

/*
 * Whether the scan of facts->path may be used for the module that was loaded.
 * HOTFN_OK, HOTFN_E_MISMATCH (the file was replaced), HOTFN_E_UNSUPPORTED (text relocations).
 */
hotfn_status hfn_modules_check_scan(const hfn_module_facts *facts, const hotfn_scan_info *scan,
                                    hotfn_error *err);

/* A module that was loaded before, and the caller's number for it. */
typedef struct hfn_known_module {
    hfn_file_identity file;
    uint8_t id[32];
    uint64_t plan_bytes;
    uint32_t id_kind, id_bytes, plan_crc;
    uint32_t number;
    bool is_scanned; /* id and plan are set */
} hfn_known_module;

typedef struct hfn_known_modules {
    const hotfn_env *env; /* kept */
    hfn_known_module *items;
    size_t count, capacity;
} hfn_known_modules;

void hfn_known_modules_init(hfn_known_modules *known, const hotfn_env *env);
void hfn_known_modules_finish(hfn_known_modules *known);
/* Remember a module; scan is NULL if it was not scanned.  stamp_is_reliable: the file's stamp
 * reveals any later change (hfn_file_stamp_is_reliable).  False if there is no memory. */
bool hfn_known_modules_add(hfn_known_modules *known, const hfn_module_facts *facts,
                           const hotfn_scan_info *scan, bool stamp_is_reliable, uint32_t number);
/* The number of the module with the same unchanged file, UINT32_MAX if none is known. */
uint32_t hfn_known_modules_find_file(const hfn_known_modules *known, const hfn_file_identity *file);
/* The number of the module that is the same build, although its stamp cannot prove it: the file,
 * the image id and the plan are equal.  UINT32_MAX if there is none. */
uint32_t hfn_known_modules_find_build(const hfn_known_modules *known, const hotfn_scan_info *scan);

#endif
