/* SPDX-License-Identifier: MIT */
/* Opens and validates a plan.  Its bytes may come from a cache or from another process, so every
 * offset, count and order is checked here, in one pass; readers of an open plan check nothing.  The
 * checksum and the image id ensure that the moved instructions match the image. */
#include "plan/plan.h"

#include "base/memory.h"
#include "base/status.h"
#include "plan/cfi_steps.h"

#define MAX_REACH_BYTES (INT64_C(1) << 31)

hfn_plan_range hfn_plan_range_at(const hotfn_plan *plan, uint32_t index)
{
    const uint8_t *at = plan->ranges + (uint64_t)index * PLAN_RANGE_BYTES;

    return (hfn_plan_range){ hfn_read_le32(at + PLAN_RANGE_BEGIN_AT),
                             hfn_read_le32(at + PLAN_RANGE_END_AT),
                             hfn_read_le32(at + PLAN_RANGE_FIRST_AT),
                             hfn_read_le32(at + PLAN_RANGE_ENTRY_COUNT_AT) };
}

enum { LANES = 4 };

static uint64_t fold_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return sum ^ sum >> 32;
}

/* Multiply and fold in LANES independent lanes of 64-bit words, so that the multiplications
 * overlap.  A change of any one byte changes the sum. */
uint64_t hfn_plan_checksum(const uint8_t *bytes, uint64_t byte_count)
{
    uint64_t sum[LANES], at = 0;

    for (uint32_t i = 0; i < LANES; i++) {
        sum[i] = (UINT64_C(0x9e3779b97f4a7c15) ^ byte_count) + i;
    }
    for (; byte_count - at >= 8 * LANES; at += 8 * LANES) {
        for (uint32_t i = 0; i < LANES; i++) {
            sum[i] = fold_word(
                sum[i], at + 8 * i == PLAN_CHECKSUM_AT ? 0 : hfn_read_le64(bytes + at + 8 * i));
        }
    }
    for (; at < byte_count; at++) {
        sum[0] = fold_word(sum[0], bytes[at]);
    }
    for (uint32_t i = 1; i < LANES; i++) {
        sum[0] = fold_word(sum[0], sum[i]);
    }
    return sum[0];
}

/* ---- Checks. */

static bool check_strategy(const hfn_patching *patching, const hfn_plan_hook *hook)
{
    bool whole_jump = hook->patch_bytes == patching->jump_bytes;

    switch (hook->strategy) {
    case HOTFN_STRATEGY_RETARGET:
        return whole_jump &&
               (patching->unit_bytes > 1 || hook->original[0] == 0xe8 || hook->original[0] == 0xe9);
    case HOTFN_STRATEGY_JUMP:
    case HOTFN_STRATEGY_JUMP_PAD: return whole_jump;
    case HOTFN_STRATEGY_ISLAND:
        return patching->short_jump_bytes != 0 && hook->patch_bytes == patching->short_jump_bytes;
    case HOTFN_STRATEGY_PUN:
        return patching->unit_bytes == 1 && hook->patch_bytes >= 1 && hook->patch_bytes <= 4 &&
               hook->original_bytes >= 5;
    default: return false;
    }
}

static bool check_fixups(const hfn_patching *patching, const hotfn_plan *plan,
                         const hfn_plan_hook *hook)
{
    for (uint32_t i = 0; i < hook->fixup_count; i++) {
        const uint8_t *fixup = hook->fixups + i * PLAN_FIXUP_BYTES;
        int64_t target = (int64_t)hook->site_rva + (int32_t)hfn_read_le32(fixup + 2);
        hfn_fixup_kind kind = patching->fixup_kind(fixup[0], fixup[1], hook->moved_bytes);
        uint32_t original_at = kind == HFN_FIXUP_ADDRESS ? hfn_plan_original_at(hook, fixup[0]) : 0;
        if (kind == HFN_FIXUP_BROKEN || original_at >= PLAN_ORIGINAL_MAX ||
            original_at + PLAN_FIELD_BYTES > PLAN_ORIGINAL_MAX ||
            (kind == HFN_FIXUP_NEAR && (target < plan->reach_begin || target >= plan->reach_end))) {
            return false;
        }
    }
    return true;
}

static bool check_steps(const hfn_plan_hook *hook)
{
    uint32_t advanced = 0;

    for (uint32_t i = 0; i < hook->step_count; i++) {
        if (hook->steps[i * PLAN_STEP_BYTES + 1] >= hook->moved_bytes) {
            return false;
        }
    }
    return hfn_cfi_check_steps(hook->cfi, hook->cfi_bytes, &advanced) &&
           advanced <= hook->moved_bytes;
}

static uint32_t get_data_bytes(const uint8_t *entry)
{
    uint32_t island =
        entry[PLAN_ENTRY_STRATEGY_AT] == HOTFN_STRATEGY_ISLAND ? PLAN_ISLAND_BYTES : 0;

    return entry[PLAN_ENTRY_ORIGINAL_BYTES_AT] + island + entry[PLAN_ENTRY_MOVED_BYTES_AT] +
           entry[PLAN_ENTRY_FIXUPS_AT] * PLAN_FIXUP_BYTES +
           entry[PLAN_ENTRY_STEPS_AT] * PLAN_STEP_BYTES + entry[PLAN_ENTRY_CFI_BYTES_AT] +
           entry[PLAN_ENTRY_TAIL_EXITS_AT] * PLAN_FIELD_BYTES;
}

/* scratch: the register plus 1.  rsp and r12 cannot be scratch registers: they need a longer
 * encoding as a base than stubs reserve. */
static bool check_scratch(uint8_t scratch)
{
    return scratch <= PLAN_SCRATCH_MAX && (scratch & 7) != 5;
}

static bool check_arguments(const hotfn_plan *plan, const uint8_t *entry)
{
    uint8_t arguments = entry[PLAN_ENTRY_ARGUMENTS_AT], stored = entry[PLAN_ENTRY_STORED_AT];
    uint32_t words = arguments & 31, pops = arguments >> 5; /* on i386 */
    uint32_t popped = pops == HOTFN_POPS_ALL ? words : pops;

    if (arguments == 0) {
        return stored == 0;
    }
    if (!(entry[PLAN_ENTRY_FLAGS_AT] & HOTFN_VERDICT_TIMED)) {
        return false;
    }
    if (plan->machine != HOTFN_MACHINE_X86) {
        return arguments <= HFN_ARGUMENTS_MAX_64 / 8 && stored == 0;
    }
    return pops <= HOTFN_POPS_ALL && (pops != HOTFN_POPS_ONE || words >= 1) &&
           (uint64_t)stored >> words == 0 && (stored & ((UINT64_C(1) << popped) - 1)) == 0;
}

static bool check_sizes(const hotfn_plan *plan, const uint8_t *entry)
{
    return entry[PLAN_ENTRY_MOVED_BYTES_AT] >= 1 &&
           entry[PLAN_ENTRY_MOVED_BYTES_AT] <= HFN_MOVED_MAX &&
           entry[PLAN_ENTRY_FIXUPS_AT] <= HFN_FIXUP_MAX &&
           entry[PLAN_ENTRY_STEPS_AT] <= PLAN_STEPS_MAX &&
           entry[PLAN_ENTRY_CFI_BYTES_AT] <= PLAN_CFI_MAX &&
           check_scratch(entry[PLAN_ENTRY_SCRATCH_AT]) && check_arguments(plan, entry) &&
           entry[PLAN_ENTRY_PATCH_BYTES_AT] >= 1 &&
           entry[PLAN_ENTRY_ORIGINAL_BYTES_AT] >= entry[PLAN_ENTRY_PATCH_BYTES_AT] &&
           entry[PLAN_ENTRY_ORIGINAL_BYTES_AT] <= PLAN_ORIGINAL_MAX &&
           (uint64_t)hfn_read_le32(entry + PLAN_ENTRY_DATA_AT) + get_data_bytes(entry) <=
               plan->data_bytes;
}

/* All bytes that the hook reads or writes must lie in its range, and the island must not overlap
 * the patch. */
static bool check_place(const hfn_plan_hook *hook, const hfn_plan_range *range)
{
    uint64_t site = (uint64_t)hook->rva + hook->patch_offset;

    if (hook->rva < range->begin_rva || site + hook->original_bytes > range->end_rva) {
        return false;
    }
    if (hook->strategy != HOTFN_STRATEGY_ISLAND) {
        return true;
    }
    return hook->island_rva >= range->begin_rva &&
           (uint64_t)hook->island_rva + PLAN_ISLAND_BYTES <= range->end_rva &&
           (hook->island_rva + PLAN_ISLAND_BYTES <= site || hook->island_rva >= site + 2);
}

static bool check_tail_exits(const hfn_patching *patching, const hotfn_plan *plan,
                             const hfn_plan_hook *hook, const hfn_plan_range *range)
{
    if (hook->tail_exit_count == 0) {
        return hook->tail_target_rva == 0;
    }
    for (uint32_t i = 0; i < hook->tail_exit_count; i++) {
        uint64_t field = hfn_read_le32(hook->tail_exits + i * PLAN_FIELD_BYTES);
        if (field < hook->rva + 2u || field + PLAN_FIELD_BYTES > range->end_rva) {
            return false;
        }
    }
    return patching->has_tail_exits && (hook->flags & HOTFN_VERDICT_TIMED) &&
           hook->tail_target_rva != 0 && (int64_t)hook->tail_target_rva >= plan->reach_begin &&
           (int64_t)hook->tail_target_rva < plan->reach_end;
}

static bool check_entry(const hfn_patching *patching, const hotfn_plan *plan,
                        const hfn_plan_range *range, uint32_t index)
{
    const uint8_t *entry = plan->entries + (uint64_t)index * PLAN_ENTRY_BYTES;
    hfn_plan_hook hook;

    if (!check_sizes(plan, entry)) {
        return false;
    }
    hfn_plan_hook_at(plan, index, &hook);
    if (index > 0 && (hfn_plan_rva_at(plan, index - 1) >= hook.rva ||
                      hfn_plan_function_at(plan, index - 1) >= hook.function_index)) {
        return false;
    }
    return hook.function_index < plan->function_count && check_place(&hook, range) &&
           check_strategy(patching, &hook) && check_fixups(patching, plan, &hook) &&
           check_steps(&hook) && check_tail_exits(patching, plan, &hook, range);
}

/* Ranges must contain all entries, in order; they may touch. */
static bool check_range(const hotfn_plan *plan, const hfn_plan_range *range, uint32_t first)
{
    return range->end_rva > range->begin_rva && range->first_entry == first &&
           range->entry_count >= 1 && range->entry_count <= plan->entry_count - first &&
           range->begin_rva >= plan->reach_begin && range->end_rva <= plan->reach_end;
}

static hotfn_status check_entries(const hotfn_plan *plan, hotfn_error *err)
{
    const hfn_patching *patching = hfn_patching_find(plan->machine);
    uint32_t first = 0;

    if (!patching && plan->entry_count > 0) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, PLAN_MACHINE_AT,
                                "the plan is for a machine that this build does not support");
    }

    for (uint32_t i = 0; i < plan->range_count; i++) {
        hfn_plan_range range = hfn_plan_range_at(plan, i);
        if (!check_range(plan, &range, first)) {
            return hfn_report_error(err, HOTFN_E_FORMAT, NULL,
                                    (uint64_t)(plan->ranges - plan->bytes) + i * PLAN_RANGE_BYTES,
                                    "range %u of the plan is invalid: build the plan again", i);
        }
        for (uint32_t n = 0; n < range.entry_count; n++) {
            if (!check_entry(patching, plan, &range, first + n)) {
                return hfn_report_error(err, HOTFN_E_FORMAT, NULL,
                                        (uint64_t)(plan->entries - plan->bytes) +
                                            (uint64_t)(first + n) * PLAN_ENTRY_BYTES,
                                        "entry %u of the plan is invalid: build the plan again",
                                        first + n);
            }
        }
        first += range.entry_count;
    }
    return first == plan->entry_count
               ? HOTFN_OK
               : hfn_report_error(err, HOTFN_E_FORMAT, NULL, PLAN_ENTRY_COUNT_AT,
                                  "the plan has entries outside its ranges: build the plan again");
}

/* The fields of sites must not overlap, must be in the reach of stubs, and must refer to existing
 * entries. */
static hotfn_status check_sites(const hotfn_plan *plan, hotfn_error *err)
{
    uint64_t field_end = 0;
    uint32_t i;

    for (i = 0; i < plan->site_count; i++) {
        uint32_t word = hfn_read_le32(plan->sites + (uint64_t)i * PLAN_SITE_BYTES);
        uint32_t entry = word >> PLAN_SITE_GAP_BITS;
        field_end += (word & PLAN_SITE_GAP_MAX) + PLAN_FIELD_BYTES;
        if (field_end > UINT32_MAX) {
            break;
        }
        if (entry != PLAN_SITE_NONE &&
            (entry >= plan->entry_count || (int64_t)field_end > plan->reach_end ||
             (int64_t)field_end - PLAN_FIELD_BYTES <= plan->reach_begin)) {
            break;
        }
    }
    if (i == plan->site_count) {
        return HOTFN_OK;
    }
    return hfn_report_error(err, HOTFN_E_FORMAT, NULL,
                            (uint64_t)(plan->sites - plan->bytes) + (uint64_t)i * PLAN_SITE_BYTES,
                            "call site %u of the plan is invalid: build the plan again", i);
}

/* ---- Opening. */

static hotfn_status check_head(const uint8_t *bytes, uint64_t byte_count, bool check_sum,
                               hotfn_error *err)
{
    if (byte_count < PLAN_HEADER_BYTES || hfn_read_le64(bytes + PLAN_MAGIC_AT) != PLAN_MAGIC) {
        return hfn_report_error(err, HOTFN_E_FORMAT, NULL, 0, "not a hook plan");
    }
    if (hfn_read_le32(bytes + PLAN_VERSION_AT) != PLAN_VERSION) {
        return hfn_report_error(
            err, HOTFN_E_MISMATCH, NULL, PLAN_VERSION_AT,
            "the plan has version %u, this library reads %u: build the plan again",
            hfn_read_le32(bytes + PLAN_VERSION_AT), PLAN_VERSION);
    }
    if (hfn_read_le32(bytes + PLAN_FLAGS_AT) & ~PLAN_OWN_THREADS) {
        return hfn_report_error(err, HOTFN_E_FORMAT, NULL, PLAN_FLAGS_AT,
                                "the plan has an unknown flag: build it again");
    }
    if (hfn_read_le64(bytes + PLAN_BYTE_COUNT_AT) != byte_count) {
        return hfn_report_error(err, HOTFN_E_FORMAT, NULL, PLAN_BYTE_COUNT_AT,
                                "the plan is truncated: build it again");
    }
    if (hfn_read_le32(bytes + PLAN_ID_BYTES_AT) > 32) {
        return hfn_report_error(err, HOTFN_E_FORMAT, NULL, PLAN_ID_BYTES_AT,
                                "the plan's image id is too long: build the plan again");
    }
    if (check_sum &&
        hfn_plan_checksum(bytes, byte_count) != hfn_read_le64(bytes + PLAN_CHECKSUM_AT)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, NULL, PLAN_CHECKSUM_AT,
                                "the plan's checksum is wrong: build the plan again");
    }
    return HOTFN_OK;
}

bool hfn_plan_is_whole(const uint8_t *bytes, uint64_t byte_count)
{
    return check_head(bytes, byte_count, true, NULL) == HOTFN_OK;
}

static hotfn_status place_parts(hotfn_plan *plan, hotfn_error *err)
{
    const uint8_t *bytes = plan->bytes;
    uint64_t range_bytes, entry_bytes, site_bytes;

    plan->machine = hfn_read_le32(bytes + PLAN_MACHINE_AT);
    plan->function_count = hfn_read_le32(bytes + PLAN_FUNCTION_COUNT_AT);
    plan->entry_count = hfn_read_le32(bytes + PLAN_ENTRY_COUNT_AT);
    plan->range_count = hfn_read_le32(bytes + PLAN_RANGE_COUNT_AT);
    plan->data_bytes = hfn_read_le32(bytes + PLAN_DATA_BYTES_AT);
    plan->site_count = hfn_read_le32(bytes + PLAN_SITE_COUNT_AT);
    plan->reach_begin = (int64_t)hfn_read_le64(bytes + PLAN_REACH_BEGIN_AT);
    plan->reach_end = (int64_t)hfn_read_le64(bytes + PLAN_REACH_END_AT);
    range_bytes = (uint64_t)plan->range_count * PLAN_RANGE_BYTES;
    entry_bytes = (uint64_t)plan->entry_count * PLAN_ENTRY_BYTES;
    site_bytes = (uint64_t)plan->site_count * PLAN_SITE_BYTES;
    if (PLAN_HEADER_BYTES + range_bytes + entry_bytes + plan->data_bytes + site_bytes !=
        plan->byte_count) {
        return hfn_report_error(
            err, HOTFN_E_FORMAT, NULL, PLAN_FUNCTION_COUNT_AT,
            "the sizes of the plan's parts do not add up: build the plan again");
    }
    if (plan->reach_begin < -MAX_REACH_BYTES || plan->reach_end > 2 * MAX_REACH_BYTES ||
        plan->reach_begin > plan->reach_end) {
        return hfn_report_error(err, HOTFN_E_FORMAT, NULL, PLAN_REACH_BEGIN_AT,
                                "the plan's reach is invalid: build the plan again");
    }
    plan->ranges = bytes + PLAN_HEADER_BYTES;
    plan->entries = plan->ranges + range_bytes;
    plan->data = plan->entries + entry_bytes;
    plan->sites = plan->data + plan->data_bytes;
    return HOTFN_OK;
}

hotfn_status hotfn_plan_open(hotfn_plan **out, const void *bytes, uint64_t byte_count,
                             uint32_t check_sum, const hotfn_env *env, hotfn_error *err)
{
    if (!out || !bytes) {
        return hfn_report_null(err, __func__);
    }

    hotfn_env filled = hfn_env_fill(env);
    hotfn_plan *plan;
    hotfn_status status = check_head(bytes, byte_count, check_sum != 0, err);

    if (status != HOTFN_OK) {
        return status;
    }
    plan = hfn_allocate_zeroed(&filled, sizeof *plan);
    if (!plan) {
        return hfn_report_no_memory(err, NULL);
    }
    plan->env = filled;
    plan->bytes = bytes;
    plan->byte_count = byte_count;
    status = place_parts(plan, err);
    if (status == HOTFN_OK) {
        status = check_entries(plan, err);
    }
    if (status == HOTFN_OK) {
        status = check_sites(plan, err);
    }
    if (status != HOTFN_OK) {
        hotfn_plan_destroy(plan);
    } else {
        *out = plan;
    }
    return status;
}

void hotfn_plan_destroy(hotfn_plan *plan)
{
    if (!plan) {
        return;
    }
    if (plan->owns_bytes) {
        hfn_free_memory(&plan->env, (void *)(uintptr_t)plan->bytes, plan->byte_count);
    }
    hfn_free_memory(&plan->env, plan, sizeof *plan);
}

/* ---- Reading. */

hotfn_status hotfn_plan_get_info(const hotfn_plan *plan, hotfn_plan_info *out)
{
    if (!plan) {
        return HOTFN_E_OPTION;
    }

    hotfn_plan_info info = HOTFN_PLAN_INFO_INIT;

    info.machine = plan->machine;
    info.function_count = plan->function_count;
    info.entry_count = plan->entry_count;
    info.id_kind = hfn_read_le32(plan->bytes + PLAN_ID_KIND_AT);
    info.id_bytes = hfn_read_le32(plan->bytes + PLAN_ID_BYTES_AT);
    memcpy(info.id, plan->bytes + PLAN_ID_AT, sizeof info.id);
    info.bytes = plan->bytes;
    info.byte_count = plan->byte_count;
    return hfn_copy_result(out, &info, sizeof info);
}

hotfn_status hotfn_plan_get(const hotfn_plan *plan, uint32_t index, hotfn_plan_entry *out)
{
    if (!plan) {
        return HOTFN_E_OPTION;
    }

    hotfn_plan_entry entry = HOTFN_PLAN_ENTRY_INIT;
    hfn_plan_hook hook;

    if (index >= plan->entry_count) {
        return HOTFN_E_NOT_FOUND;
    }
    hfn_plan_hook_at(plan, index, &hook);
    entry.function_index = hook.function_index;
    entry.rva = hook.rva;
    entry.strategy = hook.strategy;
    entry.flags = hook.flags;
    entry.patch_offset = hook.patch_offset;
    entry.patch_bytes = hook.patch_bytes;
    return hfn_copy_result(out, &entry, sizeof entry);
}

uint32_t hfn_plan_find_function(const hotfn_plan *plan, uint32_t function_index)
{
    uint32_t low = 0, high = plan->entry_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (hfn_plan_function_at(plan, middle) < function_index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < plan->entry_count && hfn_plan_function_at(plan, low) == function_index
               ? low
               : UINT32_MAX;
}
