/* SPDX-License-Identifier: MIT */
/* Names: each distinct text once, under a small number that stays (0, 1, 2 ... in order of
 * arrival). For sets of names. */
#ifndef HFN_BASE_NAMES_H
#define HFN_BASE_NAMES_H

#include <hotfn/env.h>
#include <stddef.h>
#include <stdint.h>

#define HFN_NAME_NONE UINT32_MAX

typedef struct hfn_names hfn_names;

hfn_names *hfn_names_create(const hotfn_env *env); /* env is copied; NULL if no memory */
void hfn_names_destroy(hfn_names *names);          /* NULL is fine                     */

/* The number of text, added if it is new; HFN_NAME_NONE if there is no memory. */
uint32_t hfn_names_intern(hfn_names *names, const char *text, size_t length);
/* The number of text, or HFN_NAME_NONE. */
uint32_t hfn_names_find(const hfn_names *names, const char *text, size_t length);

uint32_t hfn_names_count(const hfn_names *names);

#endif
