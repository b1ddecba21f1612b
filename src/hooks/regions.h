/* SPDX-License-Identifier: MIT */
/* The table of generated code, for unwinders.  Any thread may read it at any time, even in a signal
 * handler, while the owner of the set adds regions. */
#ifndef HFN_HOOKS_REGIONS_H
#define HFN_HOOKS_REGIONS_H

#include <hotfn/lowlevel/hooks.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct hfn_region_table hfn_region_table;

typedef struct hfn_regions {
    hfn_region_table *_Atomic current; /* sorted by begin; immutable */
} hfn_regions;

/* Add regions in one step; false if there is no memory. */
bool hfn_regions_add(hfn_regions *regions, const hotfn_env *env, const hotfn_stub_region *added,
                     uint32_t added_count);
void hfn_regions_finish(hfn_regions *regions, const hotfn_env *env);
uint32_t hfn_regions_count(const hfn_regions *regions);
const hotfn_stub_region *hfn_regions_at(const hfn_regions *regions, uint32_t index);
/* The region that contains pc, or NULL. */
const hotfn_stub_region *hfn_regions_find(const hfn_regions *regions, uint64_t pc);
uint64_t hfn_regions_table_bytes(const hfn_regions *regions);

#endif
