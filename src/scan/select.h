/* SPDX-License-Identifier: MIT */
/* Applies a selection to one function after another, by all names and the size of the function. */
#ifndef HFN_SCAN_SELECT_H
#define HFN_SCAN_SELECT_H

#include "functions/match.h"

#include <hotfn/function.h>

typedef struct hfn_selector {
    hotfn_selection selection; /* checked; its globs are borrowed */
    hfn_name_matcher matcher;
    uint8_t *include_used; /* borrowed; per include glob: 1 if it matched a function */
    bool is_included, is_excluded;
} hfn_selector;

/* selection NULL selects all.  include_used has a byte for each include glob, or is NULL.
 * HOTFN_OK, or HOTFN_E_OPTION with nothing to close. */
hotfn_status hfn_selector_open(hfn_selector *selector, const hotfn_selection *selection,
                               uint8_t *include_used, const hotfn_env *env, hotfn_error *err);
void hfn_selector_close(hfn_selector *selector);

/* Call these three in this order for each function, the second one for each of its names.  Each
 * include glob is compared with each name, so that a glob that matches no function is reported. */
void hfn_selector_begin_function(hfn_selector *selector);
void hfn_selector_add_name(hfn_selector *selector, const char *name);
bool hfn_selector_is_selected(const hfn_selector *selector, uint64_t byte_count);

/* HOTFN_E_NO_MEMORY if a name could not be compared for lack of memory. */
hotfn_status hfn_selector_get_status(const hfn_selector *selector, const char *file,
                                     hotfn_error *err);

#endif
