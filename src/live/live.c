/* SPDX-License-Identifier: MIT */
/* Create, join and close a live record; append.c and state.c fill it.  live.h describes the life
 * cycle. */
#include "live/live.h"

#include "base/status.h"
#include "os/os.h"

#include <stdio.h>

#define HEAD_BYTES 2048u /* enough for the header and section table of a live record */

/* ---- Words that two processes share. */

uint32_t hfn_shared_get32(const uint8_t *at)
{
    return __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

uint64_t hfn_shared_get64(const uint8_t *at)
{
    return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

void hfn_shared_put32(uint8_t *at, uint32_t value)
{
    __atomic_store_n((uint32_t *)(void *)at, value, __ATOMIC_RELEASE);
}

void hfn_shared_put64(uint8_t *at, uint64_t value)
{
    __atomic_store_n((uint64_t *)(void *)at, value, __ATOMIC_RELEASE);
}

/* ---- Sections. */

uint8_t *hfn_live_section(const hfn_live *live, uint32_t type)
{
    const hfn_section *s = live->layout.sections;
    uint64_t tail = s[HFN_SECTION_FUNCTIONS].offset;

    if (type == HFN_SECTION_ROWS) {
        return live->rows;
    }
    return s[type].offset >= tail ? live->tail + (s[type].offset - tail)
                                  : live->base + s[type].offset;
}

uint64_t hfn_live_section_bytes(const hfn_live *live, uint32_t type)
{
    return live->layout.sections[type].bytes;
}

hfn_cell_header *hfn_live_cell_header(const hfn_live *live)
{
    return (hfn_cell_header *)(void *)hfn_live_section(live, HFN_SECTION_CELLS);
}

hfn_thread_cell *hfn_live_cells(const hfn_live *live)
{
    return (hfn_thread_cell *)(void *)(hfn_live_cell_header(live) + 1);
}

uint32_t hfn_live_slot_capacity(const hfn_live *live)
{
    return (uint32_t)live->layout.sections[HFN_SECTION_ROWS].elements;
}

uint32_t hfn_live_rows_used(const hfn_live *live)
{
    uint32_t capacity = (uint32_t)live->layout.sections[HFN_SECTION_CELLS].elements;
    uint32_t used = __atomic_load_n(&hfn_live_cell_header(live)->cells_used, __ATOMIC_ACQUIRE);

    return used < capacity ? used : capacity;
}

uint32_t hfn_live_slots_used(const hfn_live *live)
{
    uint32_t capacity = hfn_live_slot_capacity(live);
    uint32_t used = hfn_shared_get32(live->base + HFN_AT_SLOTS);

    return used < capacity ? used : capacity;
}

/* ---- Creating. */

typedef struct meta_text {
    const char *key, *value;
} meta_text;

/* Write key NUL value NUL ... unless out is NULL; returns the number of bytes. */
static uint64_t write_meta(uint8_t *out, const meta_text *texts, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        const char *both[2] = { texts[i].key, texts[i].value ? texts[i].value : "" };

        for (int k = 0; k < 2; k++) {
            size_t length = strlen(both[k]) + 1;

            if (out) {
                memcpy(out + bytes, both[k], length);
            }
            bytes += length;
        }
    }
    return bytes;
}

static void make_uuid(uint8_t out[16])
{
    uint64_t fallback[2] = { hfn_os_wall_ns(), hfn_os_get_process_id() };

    if (!hfn_os_get_random(out, 16)) {
        memcpy(out, fallback, 16);
    }
    out[6] = (uint8_t)((out[6] & 0x0f) | 0x40); /* RFC 4122: version 4 */
    out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

static void write_header(hfn_live *live, const meta_text *texts, size_t count)
{
    uint8_t uuid[16];

    make_uuid(uuid);
    write_meta(hfn_live_section(live, HFN_SECTION_META), texts, count);
    live->string_bytes = 2; /* the empty string and the empty list of names */
    hfn_write_le64(live->base + HFN_AT_STRINGS, live->string_bytes);
    hfn_write_le32(live->base + HFN_AT_STATE, HOTFN_RECORD_LIVE);
    hfn_write_le32(live->base + HFN_AT_PID, hfn_os_get_process_id());
    /* reasons that every record has; callers may replace their texts */
    hfn_live_set_reason(live, HOTFN_REASON_NO_SLOTS, "no-slots", "the record has no slots left");
    hfn_live_set_reason(live, HOTFN_REASON_NOT_LOADED, "not-loaded", "its module was never loaded");
    hfn_live_set_reason(live, HOTFN_REASON_OVERWRITTEN, "overwritten",
                        "other code overwrote its hook while the program ran");
    hfn_header_write(live->base, &live->layout, uuid, hfn_os_wall_ns());
}

static hotfn_status create_record(hfn_live *live, const hfn_live_options *o, hotfn_error *err)
{
    char tool[64];
    const meta_text texts[] = {
        { "command", o->command },
        { "directory", o->directory },
        { "tool", tool },
    };
    hotfn_status status;

    snprintf(tool, sizeof tool, "hotfn %s", hotfn_get_version());
    status =
        hfn_live_choose_layout(&live->layout, o, write_meta(NULL, texts, HFN_COUNT_OF(texts)), err);
    if (status == HOTFN_OK && o->durable_path) {
        size_t bytes = strlen(o->durable_path) + 1;

        live->is_durable = true;
        live->path = hfn_allocate_zeroed(&live->env, bytes);
        if (!live->path) {
            return hfn_report_no_memory(err, NULL);
        }
        memcpy(live->path, o->durable_path, bytes);
        status = hfn_live_create_file(live, err);
    } else if (status == HOTFN_OK) {
        status = hfn_live_create_memory(live, err);
    }
    if (status == HOTFN_OK) {
        status = hfn_live_map(live, live->file, live->path, err);
    }
    if (status == HOTFN_OK) {
        status =
            hfn_live_allocate(live, HFN_SECTION_STRINGS, 2, &live->string_bytes_allocated, err);
    }
    if (status == HOTFN_OK) {
        write_header(live, texts, HFN_COUNT_OF(texts));
        hfn_live_write_time_header(live, o);
        hfn_live_write_budget_header(live, o);
    } else if (live->is_durable && hfn_os_is_open(live->file)) {
        hfn_os_remove_file(live->path);
    }
    return status;
}

static hfn_live *allocate_live(const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hfn_live *live = hfn_allocate_zeroed(&filled, sizeof *live);

    if (live) {
        live->env = filled;
        live->file = HFN_OS_NO_FILE;
    }
    return live;
}

hotfn_status hfn_live_create(hfn_live **out, const hfn_live_options *options, const hotfn_env *env,
                             hotfn_error *err)
{
    hfn_live_options o = options ? *options : (hfn_live_options){ 0 };
    hotfn_status status;
    hfn_live *live;

    if (o.timing && !HFN_CAN_TIME) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "calls cannot be timed on this CPU: count them (--mode count)");
    }
    live = allocate_live(env);
    if (!live) {
        return hfn_report_no_memory(err, NULL);
    }
    status = create_record(live, &o, err);
    if (status != HOTFN_OK) {
        hfn_live_close(live);
        return status;
    }
    *out = live;
    return HOTFN_OK;
}

/* ---- Joining. */

/* head has the header of another kind of record, or of a live record with another layout. */
static hotfn_status refuse_layout(uint32_t kind, const uint8_t *head, const char *path,
                                  hotfn_error *err)
{
    if (kind != HFN_KIND_LIVE) {
        return hfn_report_error(err, HOTFN_E_MISMATCH, path, HOTFN_NO_OFFSET,
                                "this is not a live record");
    }
    return hfn_report_error(
        err, HOTFN_E_MISMATCH, path, HOTFN_NO_OFFSET,
        "the live record (format version %u.%u) does not have the layout of this hotfn "
        "(format version %u.%u): use the agent of the same hotfn",
        hfn_read_le32(head + HFN_AT_MAJOR), hfn_read_le32(head + HFN_AT_MINOR), HFN_RECORD_MAJOR,
        HFN_RECORD_MINOR);
}

static hotfn_status join_file(hfn_live *live, hfn_os_file file, const char *path, hotfn_error *err)
{
    uint8_t head[HEAD_BYTES];
    hfn_os_file_info info;
    hotfn_status status;
    uint64_t n;
    hfn_os_error error = hfn_os_get_file_info(file, &info);

    if (error == 0) {
        error = hfn_os_read_at(file, 0, head, sizeof head, &n);
    }
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET, "cannot be read: %s",
                                hfn_os_get_error_text(error));
    }
    status = hfn_header_read(&live->layout, (hfn_span){ head, n, false }, info.byte_count, false,
                             path, err);
    if (status != HOTFN_OK) {
        return status;
    }
    if (!hfn_live_is_own_layout(&live->layout)) {
        return refuse_layout(live->layout.kind, head, path, err);
    }
    status = hfn_live_map(live, file, path, err);
    if (status == HOTFN_OK) {
        hfn_live_protect_tick(live);
    }
    return status;
}

hotfn_status hfn_live_join(hfn_live **out, const char *path, const hotfn_env *env, hotfn_error *err)
{
    if (!out || !path) {
        return hfn_report_null(err, __func__);
    }

    hfn_live *live;
    hotfn_status status;
    hfn_os_file file;
    hfn_os_error error = hfn_os_open_file(&file, path, HFN_OS_READ | HFN_OS_WRITE);

    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET, "cannot be opened: %s",
                                hfn_os_get_error_text(error));
    }
    live = allocate_live(env);
    status = live ? join_file(live, file, path, err) : hfn_report_no_memory(err, path);
    hfn_os_close_file(file);
    if (status != HOTFN_OK) {
        hfn_live_close(live);
        return status;
    }
    *out = live;
    return HOTFN_OK;
}

void hfn_live_close(hfn_live *live)
{
    hotfn_env env;

    if (!live) {
        return;
    }
    env = live->env;
    hfn_live_forget_owner_times(live);
    hfn_live_unmap(live);
    if (hfn_os_is_open(live->file)) {
        hfn_os_close_file(live->file);
    }
    if (live->path) {
        hfn_free_memory(&env, live->path, strlen(live->path) + 1);
    }
    hfn_free_memory(&env, live->run_texts, live->run_text_capacity);
    hfn_free_memory(&env, live, sizeof *live);
}

bool hfn_live_add_run_text(hfn_live *live, const char *key, const char *value)
{
    size_t key_bytes = strlen(key) + 1, value_bytes = strlen(value) + 1,
           used = live->run_text_bytes;

    if (!hfn_grow_array(&live->env, (void **)&live->run_texts, &live->run_text_capacity,
                        used + key_bytes + value_bytes, 1)) {
        return false;
    }
    memcpy(live->run_texts + used, key, key_bytes);
    memcpy(live->run_texts + used + key_bytes, value, value_bytes);
    live->run_text_bytes = used + key_bytes + value_bytes;
    return true;
}

int32_t hfn_live_get_fd(const hfn_live *live)
{
    if (!live) {
        return -1;
    }
    return (int32_t)live->file.handle;
}

hfn_row_memory hfn_live_get_rows(const hfn_live *live)
{
    return (hfn_row_memory){
        .thread_capacity = (uint32_t)(live->rows_bytes / live->layout.row_bytes),
        .slot_capacity = hfn_live_slot_capacity(live),
        .row_bytes = live->layout.row_bytes,
        .header = hfn_live_cell_header(live),
        .cells = hfn_live_cells(live),
        .rows = live->rows,
    };
}

hfn_row_memory hfn_live_activate_rows(hfn_live *live)
{
    live->rows_were_active = true;
    return hfn_live_get_rows(live);
}

void hfn_live_set_pid(hfn_live *live, uint32_t pid)
{
    hfn_shared_put32(live->base + HFN_AT_PID, pid);
}
