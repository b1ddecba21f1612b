/* SPDX-License-Identifier: MIT */
/* What a record lists of a scanned file: a row for the module, and one for each function, where the
 * functions that are not chosen are marked as excluded. */
#ifndef HFN_SCAN_CHOICE_H
#define HFN_SCAN_CHOICE_H

#include "base/function_source.h"
#include "scan/modules.h"

/* Which functions of a module are hooked.  Everything is borrowed. */
typedef struct hfn_function_rules {
    const hotfn_selection *selection; /* NULL: all */
    uint8_t *include_used;            /* per include glob: 1 if it matched a function; or NULL */
    const hotfn_list *list;           /* NULL: all; else only the listed ones */
    const uint64_t *only;             /* NULL: all; else only those at these RVAs, sorted */
    uint32_t only_count;
} hfn_function_rules;

typedef struct hfn_scan_choice {
    const hotfn_scan *scan;     /* kept */
    hotfn_record_module module; /* its path is a view into the scan */
    uint8_t *selected;          /* per function; owned */
} hfn_scan_choice;

/*
 * Choose the functions of scan by the module's use and by rules (NULL: all).  Of a module that is
 * used as HFN_MODULE_UNUSED, HFN_MODULE_LOADER or HFN_MODULE_REPLACED no function is listed.
 *
 * out  receives a choice to be finished; untouched on failure.
 * HOTFN_OK, HOTFN_E_OPTION (a broken glob), HOTFN_E_MISMATCH (the list is of another build),
 * HOTFN_E_NO_MEMORY.
 */
hotfn_status hfn_scan_choose(hfn_scan_choice *out, const hotfn_scan *scan, hfn_module_use use,
                             uint32_t module_flags, const hfn_function_rules *rules,
                             hotfn_error *err);
/* The rows of choice->module.function_count functions.  The choice must outlive the source. */
hfn_function_source hfn_scan_choice_source(const hfn_scan_choice *choice);
void hfn_scan_choice_finish(hfn_scan_choice *choice);

#endif
