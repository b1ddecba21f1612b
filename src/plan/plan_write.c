/* SPDX-License-Identifier: MIT */
/* The writer collects ranges, entries, data and call sites in growing arrays and concatenates them
 * after the header.  The result is opened by hotfn_plan_open like any other plan. */
#include "plan/plan_write.h"

#include "base/memory.h"
#include "base/status.h"

typedef struct buffer {
    uint8_t *bytes;
    size_t used, capacity;
} buffer;

struct hfn_plan_writer {
    hotfn_env env;
    const hfn_patching *patching; /* NULL: unsupported machine */
    buffer ranges, entries, data, sites;
    uint32_t entry_count;
    uint32_t last_site_end;         /* end of the last site's field */
    uint32_t section;               /* of the last range */
    int64_t reach_begin, reach_end; /* the RVAs that stubs must be able to reach */
    uint8_t header[PLAN_HEADER_BYTES];
};

/* Append uninitialised bytes; NULL if there is no memory. */
static uint8_t *extend_buffer(const hotfn_env *env, buffer *b, size_t byte_count)
{
    uint8_t *at;

    if (!hfn_grow_array(env, (void **)&b->bytes, &b->capacity, b->used + byte_count, 1)) {
        return NULL;
    }
    at = b->bytes + b->used;
    b->used += byte_count;
    return at;
}

hfn_plan_writer *hfn_plan_writer_create(const hotfn_env *env, uint32_t machine,
                                        uint32_t function_count)
{
    hotfn_env filled = hfn_env_fill(env);
    hfn_plan_writer *writer = hfn_allocate_zeroed(&filled, sizeof *writer);

    if (!writer) {
        return NULL;
    }
    writer->env = filled;
    writer->patching = hfn_patching_find(machine);
    writer->reach_begin = INT64_MAX;
    writer->reach_end = INT64_MIN;
    hfn_write_le64(writer->header + PLAN_MAGIC_AT, PLAN_MAGIC);
    hfn_write_le32(writer->header + PLAN_VERSION_AT, PLAN_VERSION);
    hfn_write_le32(writer->header + PLAN_MACHINE_AT, machine);
    hfn_write_le32(writer->header + PLAN_FUNCTION_COUNT_AT, function_count);
    return writer;
}

void hfn_plan_writer_set_id(hfn_plan_writer *writer, uint32_t id_kind, const uint8_t *id,
                            uint32_t id_bytes)
{
    hfn_write_le32(writer->header + PLAN_ID_KIND_AT, id_kind);
    hfn_write_le32(writer->header + PLAN_ID_BYTES_AT, id_bytes < 32 ? id_bytes : 32);
    memcpy(writer->header + PLAN_ID_AT, id, id_bytes < 32 ? id_bytes : 32);
}

void hfn_plan_writer_set_tsc_disable_rva(hfn_plan_writer *writer, uint32_t rva)
{
    hfn_write_le32(writer->header + PLAN_TSC_DISABLE_AT, rva);
}

void hfn_plan_writer_set_flags(hfn_plan_writer *writer, uint32_t flags)
{
    hfn_write_le32(writer->header + PLAN_FLAGS_AT, flags);
}

void hfn_plan_writer_destroy(hfn_plan_writer *writer)
{
    if (!writer) {
        return;
    }
    hfn_free_memory(&writer->env, writer->ranges.bytes, writer->ranges.capacity);
    hfn_free_memory(&writer->env, writer->entries.bytes, writer->entries.capacity);
    hfn_free_memory(&writer->env, writer->data.bytes, writer->data.capacity);
    hfn_free_memory(&writer->env, writer->sites.bytes, writer->sites.capacity);
    hfn_free_memory(&writer->env, writer, sizeof *writer);
}

/* ---- One entry. */

static void extend_reach(hfn_plan_writer *writer, int64_t begin, int64_t end)
{
    if (begin < writer->reach_begin) {
        writer->reach_begin = begin;
    }
    if (end > writer->reach_end) {
        writer->reach_end = end;
    }
}

static bool fits_i32(int64_t value)
{
    return value >= INT32_MIN && value <= INT32_MAX;
}

static bool fits_format(const hfn_plan_new_entry *source, const hfn_moved *moved)
{
    uint64_t patch_rva = source->rva + source->patch_offset;
    int64_t island = (int64_t)source->island_rva - (int64_t)(patch_rva + 2);

    for (uint32_t i = 0; i < moved->fixup_count; i++) {
        if (!fits_i32((int64_t)(moved->fixups[i].target_rva - patch_rva))) {
            return false;
        }
    }
    return patch_rva + source->original_bytes <= UINT32_MAX && source->patch_offset <= UINT8_MAX &&
           source->original_bytes <= PLAN_ORIGINAL_MAX &&
           source->patch_bytes <= source->original_bytes && source->flags <= UINT8_MAX &&
           source->tail_exit_count <= UINT8_MAX && moved->instruction_count <= PLAN_STEPS_MAX &&
           moved->length <= HFN_MOVED_MAX &&
           (source->strategy != HOTFN_STRATEGY_ISLAND ||
            (island >= INT8_MIN && island <= INT8_MAX));
}

static uint8_t *append_bytes(uint8_t *to, const uint8_t *from, size_t byte_count)
{
    memcpy(to, from, byte_count);
    return to + byte_count;
}

static void write_fixups(hfn_plan_writer *writer, uint8_t *at, const hfn_moved *moved,
                         uint64_t patch_rva)
{
    for (uint32_t i = 0; i < moved->fixup_count; i++, at += PLAN_FIXUP_BYTES) {
        int64_t target = (int64_t)moved->fixups[i].target_rva;
        at[0] = moved->fixups[i].at;
        at[1] = moved->fixups[i].end;
        hfn_write_le32(at + 2, (uint32_t)(moved->fixups[i].target_rva - patch_rva));
        if (writer->patching &&
            writer->patching->fixup_kind(at[0], at[1], moved->length) == HFN_FIXUP_NEAR) {
            extend_reach(writer, target, target + 1);
        }
    }
}

static bool write_data(hfn_plan_writer *writer, const hfn_plan_new_entry *source,
                       const uint8_t *cfi, uint32_t cfi_bytes)
{
    const hfn_moved *moved = source->moved;
    bool island = source->strategy == HOTFN_STRATEGY_ISLAND;
    size_t byte_count = source->original_bytes + (island ? PLAN_ISLAND_BYTES : 0) + moved->length +
                        moved->fixup_count * PLAN_FIXUP_BYTES +
                        moved->instruction_count * PLAN_STEP_BYTES + cfi_bytes +
                        (size_t)source->tail_exit_count * PLAN_FIELD_BYTES;
    uint8_t *at = extend_buffer(&writer->env, &writer->data, byte_count);

    if (!at) {
        return false;
    }
    at = append_bytes(at, source->original, source->original_bytes);
    if (island) {
        at = append_bytes(at, source->island_original, PLAN_ISLAND_BYTES);
    }
    at = append_bytes(at, moved->bytes, moved->length);
    write_fixups(writer, at, moved, source->rva + source->patch_offset);
    at += moved->fixup_count * PLAN_FIXUP_BYTES;
    for (uint32_t i = 0; i < moved->instruction_count; i++, at += PLAN_STEP_BYTES) {
        at[0] = moved->original_at[i];
        at[1] = moved->moved_at[i];
    }
    at = append_bytes(at, cfi, cfi_bytes);
    for (uint32_t i = 0; i < source->tail_exit_count; i++, at += PLAN_FIELD_BYTES) {
        hfn_write_le32(at, source->tail_exits[i]);
    }
    if (source->tail_exit_count > 0) {
        extend_reach(writer, source->tail_target_rva, (int64_t)source->tail_target_rva + 1);
    }
    return true;
}

static void write_entry(uint8_t *entry, const hfn_plan_new_entry *source, uint32_t data_at,
                        uint32_t cfi_bytes)
{
    uint64_t patch_rva = source->rva + source->patch_offset;

    memset(entry, 0, PLAN_ENTRY_BYTES);
    hfn_write_le32(entry + PLAN_ENTRY_RVA_AT, (uint32_t)source->rva);
    hfn_write_le32(entry + PLAN_ENTRY_FUNCTION_AT, source->function_index);
    hfn_write_le32(entry + PLAN_ENTRY_DATA_AT, data_at);
    entry[PLAN_ENTRY_STRATEGY_AT] = (uint8_t)source->strategy;
    entry[PLAN_ENTRY_FLAGS_AT] = (uint8_t)source->flags;
    entry[PLAN_ENTRY_PATCH_OFFSET_AT] = (uint8_t)source->patch_offset;
    entry[PLAN_ENTRY_PATCH_BYTES_AT] = (uint8_t)source->patch_bytes;
    entry[PLAN_ENTRY_ORIGINAL_BYTES_AT] = (uint8_t)source->original_bytes;
    entry[PLAN_ENTRY_MOVED_BYTES_AT] = source->moved->length;
    entry[PLAN_ENTRY_FIXUPS_AT] = source->moved->fixup_count;
    entry[PLAN_ENTRY_STEPS_AT] = source->moved->instruction_count;
    entry[PLAN_ENTRY_CFI_BYTES_AT] = (uint8_t)cfi_bytes;
    entry[PLAN_ENTRY_SCRATCH_AT] = (uint8_t)source->scratch;
    entry[PLAN_ENTRY_ARGUMENTS_AT] = (uint8_t)source->arguments;
    entry[PLAN_ENTRY_STORED_AT] = (uint8_t)source->stored_arguments;
    hfn_write_le32(entry + PLAN_ENTRY_TAIL_TARGET_AT, source->tail_target_rva);
    entry[PLAN_ENTRY_TAIL_EXITS_AT] = (uint8_t)source->tail_exit_count;
    if (source->strategy == HOTFN_STRATEGY_ISLAND) {
        entry[PLAN_ENTRY_ISLAND_AT] = (uint8_t)(source->island_rva - (patch_rva + 2));
    }
}

/* The range of the entry's section: the last one, or a new one. */
static uint8_t *get_or_add_range(hfn_plan_writer *writer, const hfn_plan_new_entry *source)
{
    uint8_t *range;

    if (writer->ranges.used > 0 && source->section == writer->section) {
        return writer->ranges.bytes + writer->ranges.used - PLAN_RANGE_BYTES;
    }
    range = extend_buffer(&writer->env, &writer->ranges, PLAN_RANGE_BYTES);
    if (!range) {
        return NULL;
    }
    hfn_write_le32(range + PLAN_RANGE_BEGIN_AT, UINT32_MAX);
    hfn_write_le32(range + PLAN_RANGE_END_AT, 0);
    hfn_write_le32(range + PLAN_RANGE_FIRST_AT, writer->entry_count);
    hfn_write_le32(range + PLAN_RANGE_ENTRY_COUNT_AT, 0);
    writer->section = source->section;
    return range;
}

static bool add_to_range(hfn_plan_writer *writer, const hfn_plan_new_entry *source)
{
    uint64_t begin = source->rva, end = begin + source->patch_offset + source->original_bytes;
    uint64_t island = source->island_rva;
    uint8_t *range = get_or_add_range(writer, source);

    if (!range) {
        return false;
    }
    if (source->strategy == HOTFN_STRATEGY_ISLAND) {
        begin = island < begin ? island : begin;
        end = island + PLAN_ISLAND_BYTES > end ? island + PLAN_ISLAND_BYTES : end;
    }
    if (source->end_rva > end && source->end_rva <= UINT32_MAX) {
        end = source->end_rva;
    }
    if (begin < hfn_read_le32(range + PLAN_RANGE_BEGIN_AT)) {
        hfn_write_le32(range + PLAN_RANGE_BEGIN_AT, (uint32_t)begin);
    }
    if (end > hfn_read_le32(range + PLAN_RANGE_END_AT)) {
        hfn_write_le32(range + PLAN_RANGE_END_AT, (uint32_t)end);
    }
    hfn_write_le32(range + PLAN_RANGE_ENTRY_COUNT_AT,
                   hfn_read_le32(range + PLAN_RANGE_ENTRY_COUNT_AT) + 1);
    extend_reach(writer, (int64_t)begin, (int64_t)end);
    return true;
}

hotfn_status hfn_plan_writer_add(hfn_plan_writer *writer, const hfn_plan_new_entry *source)
{
    uint8_t cfi[PLAN_CFI_MAX];
    uint32_t cfi_bytes =
        writer->patching ? writer->patching->cfi_steps(source->moved, cfi, sizeof cfi) : 0;
    size_t data_at = writer->data.used;
    uint8_t *entry;

    if (!fits_format(source, source->moved) || cfi_bytes > sizeof cfi ||
        data_at > UINT32_MAX - 4096) {
        return HOTFN_E_LIMIT;
    }
    entry = extend_buffer(&writer->env, &writer->entries, PLAN_ENTRY_BYTES);
    if (!entry) {
        return HOTFN_E_NO_MEMORY;
    }
    write_entry(entry, source, (uint32_t)data_at, cfi_bytes);
    if (!write_data(writer, source, cfi, cfi_bytes) || !add_to_range(writer, source)) {
        writer->entries.used -= PLAN_ENTRY_BYTES;
        writer->data.used = data_at;
        return HOTFN_E_NO_MEMORY;
    }
    writer->entry_count++;
    return HOTFN_OK;
}

/* ---- Call sites: direct calls that are redirected to a stub. */

static bool is_in_range(const hfn_plan_writer *writer, uint32_t field_rva)
{
    for (size_t at = 0; at < writer->ranges.used; at += PLAN_RANGE_BYTES) {
        if (field_rva >= hfn_read_le32(writer->ranges.bytes + at + PLAN_RANGE_BEGIN_AT) + 1 &&
            (uint64_t)field_rva + PLAN_FIELD_BYTES <=
                hfn_read_le32(writer->ranges.bytes + at + PLAN_RANGE_END_AT)) {
            return true;
        }
    }
    return false;
}

static bool put_site(hfn_plan_writer *writer, uint32_t gap, uint32_t entry)
{
    uint8_t *at = extend_buffer(&writer->env, &writer->sites, PLAN_SITE_BYTES);

    if (!at) {
        return false;
    }
    hfn_write_le32(at, gap | entry << PLAN_SITE_GAP_BITS);
    writer->last_site_end += gap + PLAN_FIELD_BYTES;
    return true;
}

bool hfn_plan_writer_add_site(hfn_plan_writer *writer, uint32_t field_rva, uint32_t entry)
{
    if (entry >= PLAN_SITE_NONE || !is_in_range(writer, field_rva)) {
        return true;
    }
    while (field_rva - writer->last_site_end > PLAN_SITE_GAP_MAX) {
        uint32_t gap = field_rva - writer->last_site_end - PLAN_FIELD_BYTES;
        if (!put_site(writer, gap < PLAN_SITE_GAP_MAX ? gap : PLAN_SITE_GAP_MAX, PLAN_SITE_NONE)) {
            return false;
        }
    }
    return put_site(writer, field_rva - writer->last_site_end, entry);
}

/* ---- The whole plan. */

static void finish_header(hfn_plan_writer *writer, uint64_t byte_count)
{
    uint8_t *header = writer->header;
    bool empty = writer->entry_count == 0;

    hfn_write_le64(header + PLAN_BYTE_COUNT_AT, byte_count);
    hfn_write_le32(header + PLAN_ENTRY_COUNT_AT, writer->entry_count);
    hfn_write_le32(header + PLAN_RANGE_COUNT_AT,
                   (uint32_t)(writer->ranges.used / PLAN_RANGE_BYTES));
    hfn_write_le32(header + PLAN_DATA_BYTES_AT, (uint32_t)writer->data.used);
    hfn_write_le32(header + PLAN_SITE_COUNT_AT, (uint32_t)(writer->sites.used / PLAN_SITE_BYTES));
    hfn_write_le64(header + PLAN_REACH_BEGIN_AT, empty ? 0 : (uint64_t)writer->reach_begin);
    hfn_write_le64(header + PLAN_REACH_END_AT, empty ? 0 : (uint64_t)writer->reach_end);
}

hotfn_status hfn_plan_writer_finish(hfn_plan_writer *writer, hotfn_plan **out, hotfn_error *err)
{
    size_t byte_count = PLAN_HEADER_BYTES + writer->ranges.used + writer->entries.used +
                        writer->data.used + writer->sites.used;
    uint8_t *bytes = hfn_allocate_zeroed(&writer->env, byte_count), *at = bytes;
    hotfn_plan *plan;
    hotfn_status status;

    if (!bytes) {
        return hfn_report_no_memory(err, NULL);
    }
    finish_header(writer, byte_count);
    at = append_bytes(at, writer->header, PLAN_HEADER_BYTES);
    if (writer->entry_count > 0) {
        at = append_bytes(at, writer->ranges.bytes, writer->ranges.used);
        at = append_bytes(at, writer->entries.bytes, writer->entries.used);
        at = append_bytes(at, writer->data.bytes, writer->data.used);
        if (writer->sites.used > 0) {
            memcpy(at, writer->sites.bytes, writer->sites.used);
        }
    }
    hfn_write_le64(bytes + PLAN_CHECKSUM_AT, hfn_plan_checksum(bytes, byte_count));
    status = hotfn_plan_open(&plan, bytes, byte_count, 0, &writer->env, err);
    if (status != HOTFN_OK) {
        hfn_free_memory(&writer->env, bytes, byte_count);
        return status;
    }
    plan->owns_bytes = true;
    *out = plan;
    return HOTFN_OK;
}
