/* SPDX-License-Identifier: MIT */
/* Whose code is where in this process: a sampled call finds its caller by its return address, since
 * the caller's own call need not be timed now. */
#include "counters/timing.h"
#include "process.h"
#include "records/live.h"

#include <stdlib.h>

static uint32_t function_count(const hfn_process *p, const hfn_loaded_module *m)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;

    if (m->live_module == UINT32_MAX ||
        hotfn_live_get_module(p->live, m->live_module, &known) != HOTFN_OK)
        return 0;
    return known.function_count;
}

static void add_ranges(const hfn_process *p, const hfn_loaded_module *m, hfn_code_map *map)
{
    const uint32_t *slots = hotfn_live_slots(p->live, m->live_module);
    uint32_t first, count;
    uint8_t *module;

    if (!hfn_live_module(p->live, m->live_module, &module, &first, &count))
        return;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *at = hfn_live_section(p->live, HFN_SECTION_FUNCTIONS) +
                            (uint64_t)(first + i) * HFN_FUNCTION_BYTES;
        uint64_t begin = m->base + hfn_get64(at + HFN_FUNCTION_RVA);
        if (slots[i] != HOTFN_NO_SLOT)
            map->ranges[map->count++] =
                (hfn_code_range){ begin, begin + hfn_get64(at + HFN_FUNCTION_SIZE), slots[i], 0 };
    }
}

static int by_begin(const void *a, const void *b)
{
    const hfn_code_range *x = a, *y = b;

    return (x->begin > y->begin) - (x->begin < y->begin);
}

void hfn_process_map_code(const hfn_process *p)
{
    const hotfn_time_header *h = hfn_live_time_header(p->live);
    uint64_t most = 0;
    hfn_code_map *map;

    if (!h || !(h->flags & HOTFN_TIMING_SAMPLED))
        return;
    for (size_t i = 0; i < p->loaded_count; i++)
        most += function_count(p, &p->loaded[i]);
    map = hfn_alloc(&p->env, sizeof *map + most * sizeof *map->ranges);
    if (!map)
        return; /* then callers that come now are not known */
    for (size_t i = 0; i < p->loaded_count; i++)
        if (function_count(p, &p->loaded[i]) > 0)
            add_ranges(p, &p->loaded[i], map);
    qsort(map->ranges, map->count, sizeof *map->ranges, by_begin);
    hfn_timing_set_code(map);
}
