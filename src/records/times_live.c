/* SPDX-License-Identifier: MIT */
/* Reads times from a live record's file, which the target may write at the same time.  Each word is
 * read once; holes of the sparse file are skipped.  An impossible number is an error, and a number
 * outside of the file is 0. */
#include "base/status.h"
#include "records/times.h"

#define CHUNK_BYTES 65536u
#define MIN_CELLS_AT sizeof(hfn_time_thread)
#define PAGE_BYTES 4096u

typedef struct live_reader {
    hfn_times *out;
    hfn_os_file file;
    const hfn_layout *layout;
    uint64_t file_bytes;
    uint32_t thread_count, slot_count;
    uint64_t now;
    bool has_holes; /* not in a durable file: see pack.c */
    uint8_t *chunk;
    const char *path;
    hotfn_error *err;
} live_reader;

/* ---- Bytes. */

static hotfn_status read_all(const live_reader *r, void *out, uint64_t byte_count, uint64_t at)
{
    uint64_t done;
    hfn_os_error error = hfn_os_read_at(r->file, at, out, byte_count, &done);

    if (error != 0 || done < byte_count) {
        return hfn_report_error(r->err, HOTFN_E_IO, r->path, at + done, "times cannot be read: %s",
                                error != 0 ? hfn_os_get_error_text(error) : "the file was cut");
    }
    return HOTFN_OK;
}

static hotfn_status no_memory(const live_reader *r)
{
    return hfn_report_no_memory(r->err, r->path);
}

/* How many elements of a section lie inside the file. */
static uint64_t count_elements(const live_reader *r, uint32_t type, uint64_t element_bytes)
{
    const hfn_section *s = &r->layout->sections[type];
    uint64_t inside = s->offset < r->file_bytes ? r->file_bytes - s->offset : 0;

    return s->type == 0 ? 0 : (s->bytes < inside ? s->bytes : inside) / element_bytes;
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Where data begins at or behind `at`: at the begin of a page, since holes consist of pages. */
static uint64_t next_data(const live_reader *r, uint64_t at, uint64_t end)
{
    uint64_t data = r->has_holes ? hfn_os_find_data(r->file, at, end) : at;

    return data <= at ? at : data == end ? end : data & ~(uint64_t)(PAGE_BYTES - 1);
}

/* ---- Rows. */

static bool is_used(const hfn_time_cell *c)
{
    return c->timed_calls || c->total_ticks || c->self_ticks || c->open || c->histogram ||
           c->max_ticks;
}

static bool is_sampled(const live_reader *r)
{
    return (r->out->header.flags & HOTFN_TIMING_SAMPLED) != 0;
}

static hotfn_status take_cells(live_reader *r, uint32_t thread, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        hfn_time_entry e = { .slot = (uint32_t)(first + i), .thread = thread };

        memcpy(&e.cell, r->chunk + i * sizeof e.cell, sizeof e.cell);
        bool used = is_used(&e.cell);
        e.cell.open = 0;
        if (used && !hfn_times_add_entry(r->out, &e)) {
            return no_memory(r);
        }
    }
    return HOTFN_OK;
}

static hotfn_status read_row(live_reader *r, uint32_t thread)
{
    const hfn_time_header *h = &r->out->header;
    uint64_t row =
        r->layout->sections[HFN_SECTION_TIME_ROWS].offset + (uint64_t)thread * h->row_bytes;
    uint64_t cells = row + h->cells_at;
    hotfn_status status = read_all(r, &r->out->threads[thread], sizeof *r->out->threads, row);

    for (uint64_t slot = 0; status == HOTFN_OK && slot < r->slot_count;) {
        uint64_t at = cells + slot * sizeof(hfn_time_cell), count;

        at = next_data(r, at, cells + (uint64_t)r->slot_count * sizeof(hfn_time_cell));
        slot = (at - cells) / sizeof(hfn_time_cell);
        count = min_of(r->slot_count - slot, CHUNK_BYTES / sizeof(hfn_time_cell));
        if (count == 0) {
            break;
        }
        status = read_all(r, r->chunk, count * sizeof(hfn_time_cell),
                          cells + slot * sizeof(hfn_time_cell));
        if (status == HOTFN_OK) {
            status = take_cells(r, thread, slot, count);
        }
        slot += count;
    }
    return status;
}

static hotfn_status read_rows(live_reader *r)
{
    const hfn_time_header *h = &r->out->header;
    hotfn_status status = HOTFN_OK;
    uint64_t rows;

    if (h->cells_at < MIN_CELLS_AT || h->cells_at > h->row_bytes || h->row_bytes % 8 != 0 ||
        (h->row_bytes - h->cells_at) / sizeof(hfn_time_cell) < r->slot_count) {
        return hfn_report_error(r->err, HOTFN_E_FORMAT, r->path,
                                r->layout->sections[HFN_SECTION_TIME_HEADER].offset,
                                "the header of the times is damaged");
    }
    rows = min_of(r->thread_count, count_elements(r, HFN_SECTION_TIME_ROWS, h->row_bytes));
    if (!hfn_times_make_threads(r->out, r->thread_count)) {
        return no_memory(r);
    }
    for (uint32_t i = 0; status == HOTFN_OK && i < rows; i++) {
        status = read_row(r, i);
    }
    return status;
}

/* ---- Calls that are open: the threads' logs. */

/* Where the log begins in a row's times; 0: there is no room for one. */
static uint64_t log_at(const live_reader *r)
{
    const hfn_section *s = r->layout->sections;
    uint64_t at = hfn_time_log_at(s[HFN_SECTION_ROWS].elements & UINT32_MAX),
             counts = s[HFN_SECTION_TIME_ROWS].offset - s[HFN_SECTION_ROWS].offset,
             end = at + HFN_LOG_CAPACITY * sizeof(hfn_open_call);

    return r->out->header.row_bytes > end && r->out->header.row_bytes - end >= counts ? at : 0;
}

static hotfn_status read_log(live_reader *r, uint32_t thread, const hfn_thread_cell *owner,
                             uint64_t at, uint64_t end)
{
    const uint64_t most = CHUNK_BYTES / sizeof(hfn_open_call);
    uint64_t depth = min_of(r->out->threads[thread].depth, HFN_LOG_CAPACITY);
    hotfn_status status = HOTFN_OK;

    at += r->layout->sections[HFN_SECTION_TIME_ROWS].offset +
          (uint64_t)thread * r->out->header.row_bytes;
    if (!hfn_times_add_running(r->out, thread, owner, end)) {
        return no_memory(r);
    }
    for (uint64_t first = 0; status == HOTFN_OK && first < depth; first += most) {
        uint64_t count = min_of(depth - first, most);

        status = read_all(r, r->chunk, count * sizeof(hfn_open_call),
                          at + first * sizeof(hfn_open_call));
        if (status == HOTFN_OK && !hfn_times_add_open(r->out, thread, (const void *)r->chunk,
                                                      (uint32_t)first, (uint32_t)count, end)) {
            return no_memory(r);
        }
    }
    return status;
}

static hotfn_status read_logs(live_reader *r, hfn_thread_cell *owners, uint64_t *ends,
                              uint32_t rows)
{
    uint64_t at = log_at(r);
    uint8_t pid[sizeof(uint32_t)];
    hotfn_status status =
        read_all(r, owners, rows * sizeof *owners,
                 r->layout->sections[HFN_SECTION_CELLS].offset + sizeof(hfn_cell_header));

    if (status == HOTFN_OK) {
        status = read_all(r, pid, sizeof pid, HFN_AT_PID);
    }
    if (status == HOTFN_OK &&
        !hfn_times_find_ends(r->out, owners, rows, hfn_read_le32(pid), r->now, ends)) {
        return no_memory(r);
    }
    for (uint32_t i = 0; status == HOTFN_OK && at != 0 && i < rows; i++) {
        if (r->out->threads[i].depth > 0) {
            status = read_log(r, i, &owners[i], at, ends[i]);
        }
    }
    return status;
}

static hotfn_status read_open_calls(live_reader *r)
{
    uint64_t cells = count_elements(r, HFN_SECTION_CELLS, sizeof(hfn_thread_cell));
    uint32_t rows = (uint32_t)min_of(
        min_of(r->thread_count, count_elements(r, HFN_SECTION_TIME_ROWS, r->out->header.row_bytes)),
        cells > 0 ? cells - 1 : 0); /* its header is as long as a cell */
    size_t owner_bytes = (size_t)rows * sizeof(hfn_thread_cell),
           end_bytes = (size_t)rows * sizeof(uint64_t);
    hfn_thread_cell *owners = hfn_allocate_zeroed(&r->out->env, owner_bytes);
    uint64_t *ends = hfn_allocate_zeroed(&r->out->env, end_bytes);
    hotfn_status status = owners && ends ? read_logs(r, owners, ends, rows) : no_memory(r);

    hfn_free_memory(&r->out->env, owners, owner_bytes);
    hfn_free_memory(&r->out->env, ends, end_bytes);
    return status;
}

/* ---- Pools and rings. */

static hotfn_status read_histograms(live_reader *r)
{
    hfn_time_header *h = &r->out->header;
    const hfn_section *s = &r->layout->sections[HFN_SECTION_HISTOGRAMS];
    uint64_t used = min_of(min_of(h->histograms_used, h->histogram_capacity),
                           count_elements(r, HFN_SECTION_HISTOGRAMS, HFN_HISTOGRAM_BYTES));

    hotfn_status status;

    if (used == 0) {
        return HOTFN_OK;
    }
    status = hfn_packed_read(&r->out->histograms, r->file, s->offset, HFN_HISTOGRAM_BYTES,
                             (uint32_t)used, HOTFN_HISTOGRAM_BUCKETS, r->path, r->err);
    return status;
}

/* A thread takes nodes in chunks.  Those that it has not written yet represent no place. */
static void drop_unused_nodes(hfn_times *t)
{
    for (uint32_t i = 0; i < t->node_count; i++) {
        if (!(t->nodes[i].flags & HFN_NODE_USED)) {
            t->nodes[i].slot = HOTFN_NO_SLOT;
        }
    }
}

static hotfn_status read_nodes(live_reader *r)
{
    const hfn_section *s = r->layout->sections;
    const hfn_time_header *h = &r->out->header;
    uint64_t used = min_of(min_of(h->nodes_used, h->node_capacity),
                           count_elements(r, HFN_SECTION_NODES, sizeof(hfn_time_node)));
    uint64_t allocs = count_elements(r, HFN_SECTION_NODE_ALLOCS, sizeof(hotfn_alloc_cell));
    hotfn_status status;

    if (!hfn_times_make_nodes(r->out, (uint32_t)used, allocs > 0)) {
        return no_memory(r);
    }
    status = read_all(r, r->out->nodes, used * sizeof(hfn_time_node), s[HFN_SECTION_NODES].offset);
    if (status == HOTFN_OK && allocs > 0) {
        status = read_all(r, r->out->allocs, min_of(allocs, used) * sizeof(hotfn_alloc_cell),
                          s[HFN_SECTION_NODE_ALLOCS].offset);
    }
    drop_unused_nodes(r->out);
    return status;
}

static hotfn_status read_slow_calls(live_reader *r)
{
    const hfn_time_header *h = &r->out->header;
    uint64_t used = min_of(min_of(h->slow_used, h->slow_capacity),
                           count_elements(r, HFN_SECTION_SLOW_CALLS, sizeof(hfn_slow_call)));

    if (!hfn_times_make_slow_calls(r->out, (uint32_t)used)) {
        return no_memory(r);
    }
    return read_all(r, r->out->slow, used * sizeof(hfn_slow_call),
                    r->layout->sections[HFN_SECTION_SLOW_CALLS].offset);
}

/* A part of a thread's ring, [begin, end) of its places. */
static hotfn_status read_events(live_reader *r, uint32_t thread, uint64_t begin, uint64_t end)
{
    const uint64_t most = CHUNK_BYTES / sizeof(hfn_time_event);
    uint64_t ring = r->layout->sections[HFN_SECTION_EVENTS].offset +
                    (uint64_t)thread * r->out->header.event_capacity * sizeof(hfn_time_event);
    hotfn_status status = HOTFN_OK;

    while (status == HOTFN_OK && begin < end) {
        uint64_t count = min_of(end - begin, most);

        status = read_all(r, r->chunk, count * sizeof(hfn_time_event),
                          ring + begin * sizeof(hfn_time_event));
        if (status == HOTFN_OK &&
            !hfn_times_add_events(r->out, (const hfn_time_event *)(void *)r->chunk, count)) {
            return no_memory(r);
        }
        begin += count;
    }
    return status;
}

static hotfn_status read_rings(live_reader *r)
{
    uint64_t capacity = r->out->header.event_capacity;
    uint64_t rings =
        capacity ? count_elements(r, HFN_SECTION_EVENTS, capacity * sizeof(hfn_time_event)) : 0;
    hotfn_status status = HOTFN_OK;

    for (uint32_t i = 0; status == HOTFN_OK && i < r->thread_count; i++) {
        uint64_t written = i < rings ? r->out->threads[i].events : 0;
        uint64_t oldest = written > capacity ? written % capacity : 0;

        status = read_events(r, i, oldest, min_of(written, capacity));
        if (status == HOTFN_OK) {
            status = read_events(r, i, 0, oldest);
        }
        r->out->event_ends[i] = r->out->event_count;
    }
    return status;
}

/* ---- The whole. */

static hotfn_status read_everything(live_reader *r)
{
    hotfn_status status = read_rows(r);

    if (status == HOTFN_OK) {
        status = read_open_calls(r);
    }
    if (status == HOTFN_OK) {
        status = read_histograms(r);
    }
    if (status == HOTFN_OK) {
        status = read_nodes(r);
    }
    if (status == HOTFN_OK) {
        status = read_slow_calls(r);
    }
    if (status == HOTFN_OK && !is_sampled(r) && !hfn_times_sum_tree(r->out, r->slot_count)) {
        return no_memory(r);
    }
    return status == HOTFN_OK ? read_rings(r) : status;
}

hotfn_status hfn_times_read_live(hfn_times *out, hfn_os_file file, const hfn_layout *layout,
                                 uint64_t file_bytes, uint32_t thread_count, uint32_t slot_count,
                                 uint64_t now, const char *path, hotfn_error *err)
{
    live_reader r = { .out = out,
                      .file = file,
                      .layout = layout,
                      .file_bytes = file_bytes,
                      .thread_count = thread_count,
                      .slot_count = slot_count,
                      .now = now,
                      .path = path,
                      .err = err };
    hotfn_status status;
    hfn_os_file_info info;

    if (count_elements(&r, HFN_SECTION_TIME_HEADER, sizeof out->header) == 0) {
        return HOTFN_OK;
    }
    status = read_all(&r, &out->header, sizeof out->header,
                      layout->sections[HFN_SECTION_TIME_HEADER].offset);
    if (status != HOTFN_OK || out->header.flags == 0 || out->header.ticks_per_second == 0) {
        return status; /* no process has begun to time */
    }
    r.has_holes = hfn_os_get_file_info(file, &info) == 0 && info.stored_bytes < file_bytes;
    r.chunk = hfn_allocate_unset(&out->env, CHUNK_BYTES);
    if (!r.chunk) {
        return no_memory(&r);
    }
    status = read_everything(&r);
    out->present = status == HOTFN_OK;
    hfn_free_memory(&out->env, r.chunk, CHUNK_BYTES);
    return status;
}
