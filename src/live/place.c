/* SPDX-License-Identifier: MIT */
/* The memory of a live record: a layout for the wanted capacities, and the file that holds it.  The
 * file is sealed shared memory, which no process can truncate, or a durable file.  Blocks of a
 * durable file are allocated before they are written, because a store to a full disk would kill the
 * target (SIGBUS). */
#include "base/status.h"
#include "live/live.h"
#include "os/os.h"

#define DEFAULT_SLOTS 65536u
#define DEFAULT_MODULES 1024u
/* Rows that were never used take addresses only. */
#define MAX_DEFAULT_THREADS 32768u
#define MIN_DEFAULT_THREADS 1024u
#define MEMORY_PER_THREAD (UINT64_C(64) << 10)
#define MIN_THREADS 16u
#define DEFAULT_STRING_BYTES (UINT64_C(256) << 20)
#define MAX_STRING_BYTES UINT64_C(0xfffff000) /* offsets have 32 bits */
#define MAX_SLOTS (UINT32_C(1) << 26)
#define MAX_MODULES (UINT32_C(1) << 20)
/* Address space of all rows: small enough for programs that use only a part of it
 * (ThreadSanitizer). */
#define ROW_ADDRESS_BYTES (UINT64_C(256) << 30)
#define DURABLE_ROW_BYTES (UINT64_C(64) << 20) /* default size on disk */
#define FAR_BYTES (UINT64_C(1) << 36)
/* Upper bound of the address space that rows take in a 32-bit process. */
#define NARROW_ROWS_BYTES (UINT64_C(512) << 20)

uint64_t hfn_live_get_address_share(void)
{
    uint64_t limit = hfn_os_get_address_limit();

    return limit == UINT64_MAX ? UINT64_MAX : limit / 4;
}

/* ---- Layout. */

static uint64_t round_to_pages(uint64_t bytes)
{
    uint64_t page = hfn_os_page_bytes();
    return (bytes + page - 1) & ~(page - 1);
}

/* row_bytes: with the events that a thread keeps. */
static uint32_t choose_threads(const hfn_live_options *o, uint64_t row_bytes)
{
    uint64_t max = (o->durable_path ? DURABLE_ROW_BYTES : ROW_ADDRESS_BYTES) / row_bytes;
    uint64_t wanted = hfn_os_get_memory_limit() / MEMORY_PER_THREAD;

    if (o->thread_capacity) {
        return o->thread_capacity;
    }
    wanted = wanted < MIN_DEFAULT_THREADS   ? MIN_DEFAULT_THREADS
             : wanted > MAX_DEFAULT_THREADS ? MAX_DEFAULT_THREADS
                                            : wanted;
    wanted = wanted < max ? wanted : max;
    return wanted > MIN_THREADS ? (uint32_t)wanted : MIN_THREADS;
}

static void place_section(hfn_layout *out, uint32_t type, uint64_t elements, uint64_t byte_count)
{
    hfn_section *s = &out->sections[type];

    s->type = type;
    s->flags = hfn_section_critical(type);
    s->offset = out->file_bytes;
    s->element_bytes = hfn_section_element_bytes(type);
    s->elements = elements;
    s->bytes = s->element_bytes ? elements * s->element_bytes : byte_count;
    out->file_bytes += round_to_pages(s->bytes ? s->bytes : 1);
}

static uint64_t get_counts_bytes(uint64_t slots)
{
    return round_to_pages(slots * sizeof(uint64_t));
}

static uint64_t get_row_bytes(uint64_t slots, const hfn_time_sizes *time)
{
    return get_counts_bytes(slots) +
           (time->is_timed ? round_to_pages(hfn_time_row_bytes(slots)) : 0);
}

/* Place all sections of timing except the rows. */
static void place_times(hfn_layout *out, const hfn_time_sizes *time, uint32_t threads,
                        uint32_t functions)
{
    if (!time->is_timed) {
        return;
    }
    place_section(out, HFN_SECTION_TIME_HEADER, 0, sizeof(hfn_time_header));
    place_section(out, HFN_SECTION_TIMING_STATES, functions, 0);
    place_section(out, HFN_SECTION_HISTOGRAMS, 0, time->histograms * HFN_HISTOGRAM_BYTES);
    place_section(out, HFN_SECTION_NODES, time->nodes, 0);
    place_section(out, HFN_SECTION_SLOW_CALLS, time->slow_calls, 0);
    if (time->allocs > 0) {
        place_section(out, HFN_SECTION_NODE_ALLOCS, time->allocs, 0);
    }
    if (time->has_ticks) {
        place_section(out, HFN_SECTION_TICKS, 0, hfn_os_page_bytes());
    }
    if (time->events > 0) {
        place_section(out, HFN_SECTION_EVENTS, 0, threads * time->events * sizeof(hfn_time_event));
    }
}

/* A thread's times follow its counts in the same row, so that one pointer reaches both.  The two
 * sections overlap: the section of times has the same distance between rows and begins at the times
 * of the first row. */
static void place_time_rows(hfn_layout *out, uint32_t slots)
{
    const hfn_section *rows = &out->sections[HFN_SECTION_ROWS];
    hfn_section *s = &out->sections[HFN_SECTION_TIME_ROWS];

    s->type = HFN_SECTION_TIME_ROWS;
    s->flags = hfn_section_critical(HFN_SECTION_TIME_ROWS);
    s->offset = rows->offset + get_counts_bytes(slots);
    s->bytes = rows->bytes;
    s->elements = slots;
    out->file_bytes += get_counts_bytes(slots);
}

static void place_budget(hfn_layout *out, bool wanted, const hfn_time_sizes *time,
                         uint32_t functions, uint32_t slots)
{
    place_section(out, HFN_SECTION_BUDGET_STATES, functions, 0);
    if (!wanted) {
        return;
    }
    if (time->is_timed) {
        place_section(out, HFN_SECTION_BUDGET_MEANS, slots, 0);
    }
    place_section(out, HFN_SECTION_BUDGET, HFN_BUDGET_CHANGES,
                  sizeof(hfn_budget_header) + HFN_BUDGET_CHANGES * sizeof(hfn_budget_change));
}

/* The sections that the target writes come first, so that one call allocates them in a durable
 * file. */
static void place_all(hfn_layout *out, uint32_t slots, uint32_t threads, uint32_t functions,
                      uint32_t modules, uint64_t meta_bytes, uint64_t string_bytes,
                      const hfn_time_sizes *time, bool with_budget)
{
    uint64_t row_bytes = get_row_bytes(slots, time);

    memset(out, 0, sizeof *out);
    out->kind = HFN_KIND_LIVE;
    out->row_bytes = (uint32_t)row_bytes;
    out->file_bytes = round_to_pages(HFN_HEADER_BYTES + HFN_SECTION_TYPES * HFN_ENTRY_BYTES);
    place_section(out, HFN_SECTION_META, 0, meta_bytes);
    place_section(out, HFN_SECTION_MODULES, modules, 0);
    place_section(out, HFN_SECTION_REASONS, HFN_REASON_CAPACITY, 0);
    place_section(out, HFN_SECTION_SLOTS, functions, 0);
    place_section(out, HFN_SECTION_STATES, functions, 0);
    place_section(out, HFN_SECTION_CELLS, threads,
                  sizeof(hfn_cell_header) + (uint64_t)threads * sizeof(hfn_thread_cell));
    place_times(out, time, threads, functions);
    place_budget(out, with_budget, time, functions, slots);
    place_section(out, HFN_SECTION_ROWS, slots, (uint64_t)threads * row_bytes);
    if (time->is_timed) {
        place_time_rows(out, slots);
    }
    place_section(out, HFN_SECTION_FUNCTIONS, functions, 0);
    place_section(out, HFN_SECTION_STRINGS, 0, string_bytes);
}

bool hfn_live_is_own_layout(const hfn_layout *found)
{
    const hfn_section *s = found->sections;
    hfn_time_sizes time = hfn_time_sizes_found(found);
    hfn_layout own;

    if (found->kind != HFN_KIND_LIVE || found->row_bytes == 0 ||
        s[HFN_SECTION_ROWS].elements - 1 >= MAX_SLOTS ||
        s[HFN_SECTION_FUNCTIONS].elements > 2 * MAX_SLOTS ||
        s[HFN_SECTION_MODULES].elements > MAX_MODULES ||
        s[HFN_SECTION_CELLS].elements > UINT32_MAX) {
        return false;
    }
    place_all(&own, (uint32_t)s[HFN_SECTION_ROWS].elements, (uint32_t)s[HFN_SECTION_CELLS].elements,
              (uint32_t)s[HFN_SECTION_FUNCTIONS].elements,
              (uint32_t)s[HFN_SECTION_MODULES].elements, s[HFN_SECTION_META].bytes,
              s[HFN_SECTION_STRINGS].bytes, &time, s[HFN_SECTION_BUDGET].type != 0);
    return own.row_bytes == found->row_bytes && own.file_bytes == found->file_bytes &&
           memcmp(own.sections, found->sections, sizeof own.sections) == 0;
}

hotfn_status hfn_live_choose_layout(hfn_layout *out, const hfn_live_options *o, uint64_t meta_bytes,
                                    hotfn_error *err)
{
    uint32_t slots = o->slot_capacity ? o->slot_capacity : DEFAULT_SLOTS;
    uint32_t functions = o->function_capacity ? o->function_capacity : slots * 2;
    uint32_t modules = o->module_capacity ? o->module_capacity : DEFAULT_MODULES;
    uint64_t shared_strings = hfn_live_get_address_share() / 8;
    uint64_t default_strings =
        shared_strings < DEFAULT_STRING_BYTES ? shared_strings : DEFAULT_STRING_BYTES;
    uint64_t strings = o->string_bytes ? o->string_bytes : default_strings;
    hfn_time_sizes time = hfn_time_sizes_wanted(o);
    uint64_t row_bytes = get_row_bytes(slots, &time);
    uint32_t threads = choose_threads(o, row_bytes + time.events * sizeof(hfn_time_event));

    if (slots > MAX_SLOTS || functions > 2 * MAX_SLOTS || modules > MAX_MODULES ||
        strings > MAX_STRING_BYTES) {
        return hfn_report_error(
            err, HOTFN_E_LIMIT, o->durable_path, HOTFN_NO_OFFSET,
            "a record holds at most %u slots, %u functions, %u modules and 4 GiB of "
            "names",
            MAX_SLOTS, 2 * MAX_SLOTS, MAX_MODULES);
    }
    if (time.is_timed && slots > HFN_TIME_MOST_SLOTS) {
        return hfn_report_error(err, HOTFN_E_LIMIT, o->durable_path, HOTFN_NO_OFFSET,
                                "a timed record holds at most %u slots", HFN_TIME_MOST_SLOTS);
    }
    place_all(out, slots, threads, functions, modules, meta_bytes, strings, &time,
              o->budget_ppm > 0);
    return HOTFN_OK;
}

/* ---- The file. */

hotfn_status hfn_live_create_memory(hfn_live *live, hotfn_error *err)
{
    hfn_os_error error =
        hfn_os_create_shared(&live->file, HFN_RECORD_MEMORY_NAME, live->layout.file_bytes);

    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no shared memory for a record of %llu MiB (sparse): %s",
                                (unsigned long long)(live->layout.file_bytes >> 20),
                                hfn_os_get_error_text(error));
    }
    error = hfn_os_commit_shared(live->file, 0, live->layout.sections[HFN_SECTION_ROWS].offset);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no memory for the record: %s", hfn_os_get_error_text(error));
    }
    error = hfn_os_seal_shared(live->file);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_DENIED, NULL, HOTFN_NO_OFFSET,
                                "the record's memory cannot be sealed: %s",
                                hfn_os_get_error_text(error));
    }
    return HOTFN_OK;
}

/* Remove an earlier file of this name, unless a run still writes it.  The file is never truncated,
 * because another process may have mapped it. */
static hotfn_status remove_earlier_file(const char *path, hotfn_error *err)
{
    hfn_os_file_info info;
    hfn_os_file file;
    hfn_os_error error;

    if (hfn_os_get_link_info(path, &info) != 0) {
        return HOTFN_OK;
    }
    if (info.kind != HFN_OS_REGULAR_FILE && info.kind != HFN_OS_LINK) {
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
                                "this is not a regular file: name another file for the record");
    }
    if (info.kind == HFN_OS_REGULAR_FILE && hfn_os_open_file(&file, path, HFN_OS_READ) == 0) {
        bool is_free = hfn_os_try_lock_file(file, HFN_OS_EXCLUSIVE_LOCK);

        hfn_os_close_file(file);
        if (!is_free) {
            return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
                                    "another run writes this record: name another file");
        }
    }
    error = hfn_os_remove_file(path);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET, "cannot be replaced: %s",
                                hfn_os_get_error_text(error));
    }
    return HOTFN_OK;
}

static hotfn_status fail_disk_full(const hfn_live *live, hfn_os_error error, hotfn_error *err)
{
    return hfn_report_error(
        err, HOTFN_E_IO, live->path, HOTFN_NO_OFFSET,
        "the durable record cannot be written: %s; free some space, name a file "
        "elsewhere (-o), or run without --durable",
        hfn_os_get_error_text(error));
}

hotfn_status hfn_live_create_file(hfn_live *live, hotfn_error *err)
{
    const hfn_section *functions = &live->layout.sections[HFN_SECTION_FUNCTIONS];
    hotfn_status status = remove_earlier_file(live->path, err);
    hfn_os_error error;

    if (status != HOTFN_OK) {
        return status;
    }
    error =
        hfn_os_open_file(&live->file, live->path, HFN_OS_READ | HFN_OS_WRITE | HFN_OS_CREATE_NEW);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_IO, live->path, HOTFN_NO_OFFSET,
                                "cannot be created: %s", hfn_os_get_error_text(error));
    }
    /* The lock is held until this process ends; readers recognise a live record by it. */
    hfn_os_try_lock_file(live->file, HFN_OS_EXCLUSIVE_LOCK);
    error = hfn_os_set_file_size(live->file, live->layout.file_bytes);
    if (error == 0) {
        error = hfn_os_allocate_space(live->file, 0, functions->offset);
    }
    if (error != 0) {
        status = fail_disk_full(live, error, err);
        hfn_os_remove_file(live->path);
    }
    return status;
}

hotfn_status hfn_live_allocate(hfn_live *live, uint32_t type, uint64_t byte_count,
                               uint64_t *allocated, hotfn_error *err)
{
    uint64_t wanted = round_to_pages(byte_count);
    const hfn_section *s = &live->layout.sections[type];
    hfn_os_error error;

    if (wanted <= *allocated) {
        return HOTFN_OK;
    }
    if (live->is_durable) {
        error = hfn_os_allocate_space(live->file, s->offset + *allocated, wanted - *allocated);
    } else {
        error = hfn_os_commit_shared(live->file, s->offset + *allocated, wanted - *allocated);
    }
    if (error != 0 && live->is_durable) {
        return fail_disk_full(live, error, err);
    }
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no memory for names of the record: %s",
                                hfn_os_get_error_text(error));
    }
    *allocated = wanted;
    return HOTFN_OK;
}

/* ---- The mapping: base (header to cells), rows, tail (functions and names). */

/* Choose an address far below the libraries.  The kernel would place the many gigabytes of rows
 * right below the libraries, where stubs and the program's generated code need addresses. */
static uint64_t choose_far_address(uint64_t byte_count)
{
    static const char code;
    uint64_t here = (uint64_t)(uintptr_t)&code, distance = byte_count + FAR_BYTES;

    return here > distance + FAR_BYTES ? round_to_pages(here - distance) : 0;
}

static hfn_os_error map_file(uint8_t **out, hfn_os_file file, uint64_t offset, uint64_t byte_count)
{
    void *at;
    hfn_os_error error = hfn_os_map_file(&at, file, offset, byte_count, HFN_OS_MAP_WRITE,
                                         choose_far_address(byte_count));

    if (error == 0) {
        /* A core dump would otherwise include the pages that were never written. */
        hfn_os_exclude_from_dumps(at, byte_count);
        *out = at;
    }
    return error;
}

/* Map the record where address space is scarce (ulimit -v, or a 32-bit process): base, tail, and
 * only as many rows as fit into `share`, because the program needs the other addresses. */
static hfn_os_error map_in_parts(hfn_live *live, hfn_os_file file, uint64_t share)
{
    const hfn_section *sections = live->layout.sections;
    uint64_t row_bytes = live->layout.row_bytes, count = live->rows_bytes / row_bytes;
    uint64_t others = live->base_bytes + live->tail_bytes;

    hfn_os_error error;

    live->rows_bytes = 0;
    if (others + row_bytes > share) {
        return hfn_os_get_out_of_memory();
    }
    if (count > (share - others) / row_bytes) {
        count = (share - others) / row_bytes;
    }
    if (SIZE_MAX <= UINT32_MAX && count > NARROW_ROWS_BYTES / row_bytes) {
        count = NARROW_ROWS_BYTES / row_bytes + 1;
    }
    error = map_file(&live->base, file, 0, live->base_bytes);
    if (error == 0) {
        error =
            map_file(&live->tail, file, sections[HFN_SECTION_FUNCTIONS].offset, live->tail_bytes);
    }
    if (error != 0) {
        return error;
    }
    error = hfn_os_get_out_of_memory();
    for (; count > 0 && error != 0; count /= 2) {
        live->rows_bytes = count * row_bytes;
        error = map_file(&live->rows, file, sections[HFN_SECTION_ROWS].offset, live->rows_bytes);
    }
    return error;
}

hotfn_status hfn_live_map(hfn_live *live, hfn_os_file file, const char *path, hotfn_error *err)
{
    const hfn_section *rows = &live->layout.sections[HFN_SECTION_ROWS];
    const hfn_section *functions = &live->layout.sections[HFN_SECTION_FUNCTIONS];
    uint64_t share = hfn_live_get_address_share();
    uint8_t *whole = NULL;
    hfn_os_error error;

    /* The rows that stay mapped would break up the few addresses of a 32-bit process. */
    if (SIZE_MAX > UINT32_MAX && live->layout.file_bytes <= share && hfn_os_can_unmap_parts()) {
        map_file(&whole, file, 0, live->layout.file_bytes);
    }

    live->base_bytes = rows->offset;
    live->rows_bytes = rows->bytes;
    live->tail_bytes = live->layout.file_bytes - functions->offset;
    if (whole) {
        live->base = whole;
        live->rows = whole + rows->offset;
        live->tail = whole + functions->offset;
        return HOTFN_OK;
    }
    error = map_in_parts(live, file, share);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, path, HOTFN_NO_OFFSET,
                                "the record cannot be mapped: %s%s", hfn_os_get_error_text(error),
                                share == UINT64_MAX ? ""
                                                    : "; raise ulimit -v, or select fewer modules");
    }
    return HOTFN_OK;
}

/* A thread inside a stub may still count after the record is closed, so used rows become private
 * pages.  Returns the bytes that stay mapped. */
static uint64_t keep_rows(hfn_live *live)
{
    uint64_t kept = (uint64_t)hfn_live_rows_used(live) * live->layout.row_bytes;

    if (!live->rows_were_active || kept == 0) {
        return 0;
    }
    kept = kept < live->rows_bytes ? kept : live->rows_bytes;
    /* where parts cannot be unmapped, the pages behind are unmapped already */
    return hfn_os_replace_pages(live->rows, kept) && hfn_os_can_unmap_parts() ? kept
                                                                              : live->rows_bytes;
}

/* The header and the pools of times lie just before the rows.  They stay mapped if a thread may
 * still write to them.  Returns the number of bytes before them. */
static uint64_t keep_pools(hfn_live *live)
{
    uint64_t before = live->layout.sections[HFN_SECTION_TIME_HEADER].offset;

    if (!live->keeps_times) {
        return live->base_bytes;
    }
    return hfn_os_replace_pages(live->base + before, live->base_bytes - before) ? before : 0;
}

/* The bytes from the rows on that are mapped.  In one mapping, the times of the last row lie behind
 * the section of the rows. */
static uint64_t get_mapped_row_bytes(const hfn_live *live)
{
    const hfn_section *sections = live->layout.sections;
    uint64_t rows = sections[HFN_SECTION_ROWS].offset;
    uint64_t functions = sections[HFN_SECTION_FUNCTIONS].offset;

    return live->rows == live->base + rows && live->tail == live->base + functions
               ? functions - rows
               : live->rows_bytes;
}

void hfn_live_unmap(hfn_live *live)
{
    uint64_t kept, before, mapped;

    if (live->rows) {
        kept = keep_rows(live);
        mapped = get_mapped_row_bytes(live);
        if (kept < live->rows_bytes) {
            hfn_os_unmap((uint64_t)(uintptr_t)(live->rows + kept), mapped - kept);
        }
    }
    before = live->base ? keep_pools(live) : 0;
    if (before > 0) {
        hfn_os_unmap((uint64_t)(uintptr_t)live->base, before);
    }
    if (live->tail) {
        hfn_os_unmap((uint64_t)(uintptr_t)live->tail, live->tail_bytes);
    }
}
