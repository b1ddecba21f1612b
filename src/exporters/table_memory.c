/* SPDX-License-Identifier: MIT */
/* The columns of a run with --with alloc: the memory that a function itself allocated and freed,
 * and the memory that it and its callees allocated. */
#include "exporters/table.h"

#include <inttypes.h>
#include <stdio.h>

/* Four digits and a unit of 1000: 12.34 MB. */
static const char *bytes_text(uint64_t bytes, char out[24])
{
    static const char *const units[] = { "TB", "GB", "MB", "kB" };
    double unit = 1e12;
    for (size_t i = 0; i < HFN_COUNT_OF(units); i++, unit /= 1000) {
        double value = (double)bytes / unit;
        if (value >= 0.9995) {
            int decimals = value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
            snprintf(out, 24, "%.*f %s", decimals, value, units[i]);
            return out;
        }
    }
    snprintf(out, 24, "%" PRIu64 " B", bytes);
    return out;
}

void hfn_table_memory(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                      const hotfn_record_timing *t)
{
    char text[32];
    hfn_layout_put(view, sink, l, HFN_COLUMN_ALLOCATED, "",
                   bytes_text(t->self_alloc.allocated_bytes, text));
    hfn_layout_put(view, sink, l, HFN_COLUMN_BLOCKS, "",
                   hfn_table_grouped(t->self_alloc.allocated_blocks, text));
    hfn_layout_put(view, sink, l, HFN_COLUMN_FREED, "",
                   bytes_text(t->self_alloc.freed_bytes, text));
    hfn_layout_put(view, sink, l, HFN_COLUMN_BELOW, "",
                   bytes_text(t->total_alloc.allocated_bytes, text));
}

void hfn_table_memory_notes(const hfn_view *view, hfn_sink *sink)
{
    hotfn_alloc_cell sum = { 0, 0, 0, 0 };
    char allocated[32], blocks[32], freed[32], freed_blocks[32];
    if (!(view->time.flags & HOTFN_TIMING_ALLOC)) {
        return;
    }
    for (uint32_t i = 0; i < view->info.function_count; i++) {
        hotfn_record_timing t;
        hfn_view_timing(view, i, &t);
        sum.allocated_bytes += t.self_alloc.allocated_bytes;
        sum.allocated_blocks += t.self_alloc.allocated_blocks;
        sum.freed_bytes += t.self_alloc.freed_bytes;
        sum.freed_blocks += t.self_alloc.freed_blocks;
    }
    hfn_sink_format(sink, "memory: %s allocated in %s block%s, %s freed in %s\n",
                    bytes_text(sum.allocated_bytes, allocated),
                    hfn_table_grouped(sum.allocated_blocks, blocks),
                    hfn_table_s(sum.allocated_blocks), bytes_text(sum.freed_bytes, freed),
                    hfn_table_grouped(sum.freed_blocks, freed_blocks));
}
