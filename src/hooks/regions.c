/* SPDX-License-Identifier: MIT */
/* Readers take no lock: a table is complete before it is published, and it is neither changed nor
 * freed while the set exists, because a reader may still use an old one. */
#include "hooks/regions.h"

#include "base/memory.h"
#include "base/search.h"

#include <string.h>

struct hfn_region_table {
    hfn_region_table *older;
    uint32_t count;
    hotfn_stub_region regions[];
};

static size_t bytes_for(uint32_t count)
{
    return sizeof(hfn_region_table) + count * sizeof(hotfn_stub_region);
}

static hfn_region_table *current_of(const hfn_regions *regions)
{
    /* Pairs with the release store in hfn_regions_add. */
    return atomic_load_explicit(&regions->current, memory_order_acquire);
}

static void insert_sorted(hfn_region_table *table, const hotfn_stub_region *region)
{
    uint32_t at = table->count++;

    for (; at > 0 && table->regions[at - 1].begin > region->begin; at--) {
        table->regions[at] = table->regions[at - 1];
    }
    table->regions[at] = *region;
}

bool hfn_regions_add(hfn_regions *regions, const hotfn_env *env, const hotfn_stub_region *added,
                     uint32_t added_count)
{
    hfn_region_table *old = current_of(regions), *table;
    uint32_t old_count = old ? old->count : 0;

    if (added_count == 0) {
        return true;
    }
    table = hfn_allocate_zeroed(env, bytes_for(old_count + added_count));
    if (!table) {
        return false;
    }
    table->older = old;
    for (uint32_t i = 0; i < old_count; i++) {
        insert_sorted(table, &old->regions[i]);
    }
    for (uint32_t i = 0; i < added_count; i++) {
        insert_sorted(table, &added[i]);
    }
    atomic_store_explicit(&regions->current, table,
                          memory_order_release); /* pairs with current_of */
    return true;
}

void hfn_regions_finish(hfn_regions *regions, const hotfn_env *env)
{
    hfn_region_table *table = current_of(regions);

    while (table) {
        hfn_region_table *older = table->older;
        hfn_free_memory(env, table, bytes_for(table->count));
        table = older;
    }
    atomic_store_explicit(&regions->current, NULL, memory_order_relaxed);
}

uint32_t hfn_regions_count(const hfn_regions *regions)
{
    const hfn_region_table *table = current_of(regions);
    return table ? table->count : 0;
}

const hotfn_stub_region *hfn_regions_at(const hfn_regions *regions, uint32_t index)
{
    const hfn_region_table *table = current_of(regions);
    return table && index < table->count ? &table->regions[index] : NULL;
}

const hotfn_stub_region *hfn_regions_find(const hfn_regions *regions, uint64_t pc)
{
    const hfn_region_table *table = current_of(regions);
    size_t low = table ? hfn_count_up_to(table->regions, table->count, sizeof *table->regions,
                                         offsetof(hotfn_stub_region, end), pc)
                       : 0;

    return table && low < table->count && table->regions[low].begin <= pc ? &table->regions[low]
                                                                          : NULL;
}

uint64_t hfn_regions_table_bytes(const hfn_regions *regions)
{
    uint64_t bytes = 0;

    for (const hfn_region_table *table = current_of(regions); table; table = table->older) {
        bytes += bytes_for(table->count);
    }
    return bytes;
}
