/* SPDX-License-Identifier: MIT */
/* Opens any bytes as a plan block from a cache.  A plan that opens is read completely, and no read
 * may lie outside of its bytes.  Bit 0 of the first byte selects whether the checksum is verified.
 * Version, length and checksum are corrected first, so that the fuzzer reaches the other checks. */
#include "plan/plan.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touch every byte that a commit would read. */
static uint64_t read_hook(const hotfn_plan *plan, uint32_t index)
{
    hfn_plan_hook hook;
    const uint8_t *end;
    uint64_t sum = 0;

    hfn_plan_hook_at(plan, index, &hook);
    end = hook.tail_exits + hook.tail_exit_count * PLAN_FIELD_BYTES;
    for (const uint8_t *at = hook.original; at < end; at++) {
        sum += *at;
    }
    if (hook.strategy == HOTFN_STRATEGY_PUN) {
        sum += hfn_plan_pun_fixed(&hook);
    }
    return sum + hook.island_rva + hook.tail_target_rva;
}

static void read_plan(const hotfn_plan *plan)
{
    hotfn_plan_info info = HOTFN_PLAN_INFO_INIT;
    volatile uint64_t sum = 0;

    hotfn_plan_get_info(plan, &info);
    for (hfn_site_walk walk = hfn_site_walk_begin(plan); hfn_site_walk_next(&walk);) {
        sum += walk.field_rva + hfn_plan_rva_at(plan, walk.entry);
    }
    for (uint32_t i = 0; i < info.entry_count; i++) {
        hotfn_plan_entry entry = HOTFN_PLAN_ENTRY_INIT;
        hotfn_plan_get(plan, i, &entry);
        sum += read_hook(plan, i) + hfn_plan_find_function(plan, entry.function_index);
    }
    (void)sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_plan *plan = NULL;
    uint8_t *bytes;

    if (size < 1) {
        return 0;
    }
    /* A block of the exact size, so that a sanitizer reports any access after it. */
    bytes = malloc(size - 1 ? size - 1 : 1);
    if (!bytes) {
        return 0;
    }
    memcpy(bytes, data + 1, size - 1);
    if (size - 1 >= PLAN_HEADER_BYTES) {
        /* The version is set too, so that the corpus stays useful in later versions. */
        hfn_write_le32(bytes + PLAN_VERSION_AT, PLAN_VERSION);
        hfn_write_le64(bytes + PLAN_BYTE_COUNT_AT, size - 1);
        hfn_write_le64(bytes + PLAN_CHECKSUM_AT, hfn_plan_checksum(bytes, size - 1));
    }
    if (hotfn_plan_open(&plan, bytes, size - 1, data[0] & 1, NULL, NULL) == HOTFN_OK) {
        read_plan(plan);
        hotfn_plan_destroy(plan);
    }
    free(bytes);
    return 0;
}
