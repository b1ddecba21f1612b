/* SPDX-License-Identifier: MIT */
/* Merge records.  Functions with the same image id and RVA are one function, so that runs of one
 * build on several machines are merged; where an image has no id, its path identifies it.  A sum
 * has a row for each run; all other modes have one row. */
#include "profile/merge.h"

#include "base/names.h"
#include "base/progress.h"
#include "base/sort.h"
#include "base/status.h"
#include "os/process.h"
#include "records/finish.h"

#include <hotfn/lowlevel/ranks.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_RECORDS 4096u
/* Reserved address space: unused bytes are holes in the file.  A 32-bit process has less of it. */
#define STRING_BYTES (UINT64_C(1) << (sizeof(void *) == 8 ? 30 : 27))

typedef struct merged {
    uint32_t module, record, function; /* its first occurrence that was counted, else its first */
    uint32_t number;                   /* in the order in which functions were found */
    bool counted;
} merged;

typedef struct merger {
    hfn_merge m;
    hfn_names *modules, *functions;
    uint32_t *module_record, *module_index; /* the first occurrence of each module */
    merged *list;                           /* by number, later by module */
    size_t module_capacity, index_capacity, list_capacity;
    uint32_t *final; /* [number]: index in the new record */
} merger;

static int compare_values(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

void hfn_merge_find_ranked(const hfn_merge *m, const uint64_t *values, uint32_t count,
                           uint64_t *first, uint64_t *second)
{
    uint32_t low, high;

    memcpy(m->sorted, values, count * sizeof *values);
    qsort(m->sorted, count, sizeof *values, compare_values);
    if (m->mode == HOTFN_MERGE_MEDIAN) {
        hotfn_get_median_ranks(m->record_count, &low, &high);
    } else {
        low = high = hotfn_get_p95_rank(m->record_count);
    }
    *first = hotfn_get_ranked_value(m->sorted, count, m->record_count, low);
    *second = hotfn_get_ranked_value(m->sorted, count, m->record_count, high);
}

uint64_t hfn_merge_values(const hfn_merge *m, const uint64_t *values, uint32_t count)
{
    uint64_t sum = 0, smallest = UINT64_MAX, largest = 0, first, second;
    uint32_t called = 0;

    for (uint32_t i = 0; i < count; i++) {
        sum = sum > UINT64_MAX - values[i] ? UINT64_MAX : sum + values[i];
        smallest = values[i] < smallest ? values[i] : smallest;
        largest = values[i] > largest ? values[i] : largest;
        called += values[i] > 0;
    }
    switch (m->mode) {
    case HOTFN_MERGE_MEAN: return (sum + m->record_count / 2) / m->record_count;
    case HOTFN_MERGE_MEAN_CALLED: return called ? (sum + called / 2) / called : 0;
    case HOTFN_MERGE_MIN: return count ? smallest : 0;
    case HOTFN_MERGE_MAX: return largest;
    case HOTFN_MERGE_MEDIAN:
    case HOTFN_MERGE_P95:
        hfn_merge_find_ranked(m, values, count, &first, &second);
        return first + (second - first + 1) / 2;
    default: return sum;
    }
}

uint32_t hfn_merge_rows(const hfn_merge *m)
{
    return m->mode == HOTFN_MERGE_SUM ? m->record_count : 1;
}

/* ---- The same modules and functions. */

/* Number a module without an id by its path and machine: builds for several machines may have the
 * same path. */
static uint32_t number_path(hfn_names *modules, const hotfn_record_module *m)
{
    char key[4096 + 4];
    size_t bytes = strlen(m->path);

    bytes = bytes < sizeof key - 4 ? bytes : sizeof key - 4;
    memcpy(key, &m->machine, 4);
    memcpy(key + 4, m->path, bytes);
    return hfn_names_intern(modules, key, 4 + (uint32_t)bytes);
}

static uint32_t number_module(merger *g, uint32_t record, uint32_t index,
                              const hotfn_record_module *m)
{
    uint32_t before = hfn_names_count(g->modules), number;
    char key[64];

    if (m->id_bytes > 0 && m->id_bytes <= sizeof m->id) {
        memcpy(key, &m->id_kind, 4);
        memcpy(key + 4, m->id, m->id_bytes);
        number = hfn_names_intern(g->modules, key, 4 + m->id_bytes);
    } else {
        number = number_path(g->modules, m);
    }
    if (number == HFN_NAME_NONE || number < before) {
        return number;
    }
    if (!hfn_grow_array(&g->m.env, (void **)&g->module_record, &g->module_capacity, number + 1u,
                        4) ||
        !hfn_grow_array(&g->m.env, (void **)&g->module_index, &g->index_capacity, number + 1u, 4)) {
        return HFN_NAME_NONE;
    }
    g->module_record[number] = record;
    g->module_index[number] = index;
    return number;
}

static bool add_function(merger *g, uint32_t record, uint32_t index, uint32_t module)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    uint32_t before = hfn_names_count(g->functions), number;
    char key[12];

    hotfn_record_get_function(g->m.records[record], index, &f);
    memcpy(key, &module, 4);
    memcpy(key + 4, &f.rva, 8);
    number = hfn_names_intern(g->functions, key, sizeof key);
    if (number == HFN_NAME_NONE || !hfn_grow_array(&g->m.env, (void **)&g->list, &g->list_capacity,
                                                   number + 1u, sizeof *g->list)) {
        return false;
    }
    if (number == before || (f.counted && !g->list[number].counted)) {
        g->list[number] = (merged){ module, record, index, number, f.counted };
    }
    g->m.places[record][index] = number;
    return true;
}

static bool add_record(merger *g, uint32_t record)
{
    const hotfn_record *r = g->m.records[record];

    g->m.places[record] = hfn_allocate_zeroed(&g->m.env, r->function_count * sizeof(uint32_t));
    if (!g->m.places[record]) {
        return false;
    }
    for (uint32_t i = 0; i < r->module_count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        uint32_t number;

        hotfn_record_get_module(r, i, &m);
        number = number_module(g, record, i, &m);
        if (number == HFN_NAME_NONE) {
            return false;
        }
        for (uint32_t k = 0; k < m.function_count; k++) {
            if (!add_function(g, record, m.first_function + k, number)) {
                return false;
            }
        }
    }
    return true;
}

static bool comes_before(const void *left, const void *right)
{
    const merged *a = left, *b = right;

    return a->module != b->module ? a->module < b->module : a->number < b->number;
}

/* Sort the list by module: the order of the new record. */
static bool order_functions(merger *g)
{
    uint32_t count = hfn_names_count(g->functions);

    g->m.function_count = count;
    g->final = hfn_allocate_zeroed(&g->m.env, count * sizeof *g->final);
    if (!g->final || !hfn_sort_array(&g->m.env, (void **)&g->list, g->list_capacity, count,
                                     sizeof *g->list, comes_before)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        g->final[g->list[i].number] = i;
    }
    for (uint32_t r = 0; r < g->m.record_count; r++) {
        for (uint32_t i = 0; i < g->m.records[r]->function_count; i++) {
            g->m.places[r][i] = g->final[g->m.places[r][i]];
        }
    }
    return true;
}

/* ---- The new record's counts. */

static hotfn_status add_module(merger *g, hfn_live *live, uint32_t number, uint32_t *at,
                               hotfn_error *err)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT, added = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_function *functions;
    uint32_t first = *at, count, index;
    hotfn_status status;

    while (*at < g->m.function_count && g->list[*at].module == number) {
        ++*at;
    }
    count = *at - first;
    functions = hfn_allocate_zeroed(&g->m.env, count * sizeof *functions);
    if (!functions) {
        return HOTFN_E_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        const merged *f = &g->list[first + i];

        functions[i].size = sizeof functions[i];
        hotfn_record_get_function(g->m.records[f->record], f->function, &functions[i]);
        functions[i].state = f->counted ? HOTFN_STATE_HOOKED : functions[i].state;
    }
    hotfn_record_get_module(g->m.records[g->module_record[number]], g->module_index[number], &m);
    m.function_count = count;
    status = hfn_live_add_module(live, &m, functions, &index, err);
    if (status == HOTFN_OK) {
        status = hfn_live_get_module(live, index, &added);
    }
    if (status == HOTFN_OK &&
        added.function_count != count) { /* the indices of later functions would be wrong */
        status = hfn_report_error(err, HOTFN_E_LIMIT, m.path, HOTFN_NO_OFFSET, "%s", added.note);
    }
    if (status == HOTFN_OK) {
        status = hfn_live_set_module(live, index, m.flags, m.load_base, m.note);
    }
    hfn_free_memory(&g->m.env, functions, count * sizeof *functions);
    return status;
}

static const char *file_name(const hotfn_record *r)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    const char *slash;

    hotfn_record_get_info(r, &info);
    slash = strrchr(info.path, '/');
    return slash ? slash + 1 : info.path;
}

/* "./game (2 runs merged: a.hfr, b.hfr)": the command of the first run, and the files that fit. */
static void name_runs(const hfn_merge *m, const char *command, char *out, size_t bytes)
{
    static const char more[] = ", ...";
    size_t used = (size_t)snprintf(out, bytes, "%.600s (%u run%s merged:", command, m->record_count,
                                   m->record_count == 1 ? "" : "s");

    for (uint32_t i = 0; i < m->record_count; i++) {
        const char *name = file_name(m->records[i]);

        if (used + strlen(name) + sizeof more + 3 > bytes) {
            snprintf(out + used, bytes - used, "%s", more);
            break;
        }
        used += (size_t)snprintf(out + used, bytes - used, "%s %s", i ? "," : "", name);
    }
    strcat(out, ")");
}

static hotfn_status make_live(merger *g, hfn_live **out, hotfn_error *err)
{
    hfn_live_options o = { 0 };
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    uint32_t at = 0, rows = hfn_merge_rows(&g->m);
    char command[1024];
    hotfn_status status;

    hotfn_record_get_info(g->m.records[0], &info);
    name_runs(&g->m, info.command, command, sizeof command);
    o.command = command;
    o.directory = info.directory;
    o.slot_capacity = g->m.function_count ? g->m.function_count : 1;
    o.function_capacity = o.slot_capacity;
    o.module_capacity = hfn_names_count(g->modules) + 1;
    o.thread_capacity = rows;
    o.string_bytes = STRING_BYTES;
    status = hfn_live_create(out, &o, &g->m.env, err);
    for (uint32_t i = 0; status == HOTFN_OK && i < hfn_names_count(g->modules); i++) {
        status = add_module(g, *out, i, &at, err);
    }
    return status;
}

/* Name the row of a run after its file; its ids are the position of the run plus 1. */
static void name_row(const hfn_merge *m, uint32_t row, hfn_thread_cell *cell)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;

    hotfn_record_get_info(m->records[row], &info);
    cell->tid = cell->pid = row + 1;
    cell->thread_count = info.thread_count;
    snprintf(cell->name, sizeof cell->name, "%.15s",
             hfn_merge_rows(m) == 1 ? "merged" : file_name(m->records[row]));
}

static void put_sums(const merger *g, const uint32_t *slots, const hfn_row_memory *memory)
{
    for (uint32_t r = 0; r < g->m.record_count; r++) {
        uint64_t *row = (uint64_t *)(void *)(memory->rows + (uint64_t)r * memory->row_bytes);

        for (uint32_t i = 0; i < g->m.records[r]->function_count; i++) {
            hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
            uint32_t slot = slots[g->m.places[r][i]];

            hotfn_record_get_function(g->m.records[r], i, &f);
            if (f.counted && slot != HOTFN_NO_SLOT) {
                row[slot] += f.calls;
            }
        }
    }
}

/* Merge one value of each function and record into the only row.  A function that a record has
 * twice, since its program mapped the image twice, has one value. */
static bool put_values(const merger *g, const uint32_t *slots, const hfn_row_memory *memory)
{
    uint64_t *row = (uint64_t *)(void *)memory->rows;
    size_t bytes = (size_t)g->m.function_count * (g->m.record_count * 8 + 4 + 4);
    uint64_t *values = hfn_allocate_zeroed(&g->m.env, bytes);
    uint32_t *counts, *latest; /* [function]: its values so far, and the record of the last one */

    if (!values) {
        return false;
    }
    counts = (uint32_t *)(values + (size_t)g->m.function_count * g->m.record_count);
    latest = counts + g->m.function_count;
    for (uint32_t r = 0; r < g->m.record_count; r++) {
        for (uint32_t i = 0; i < g->m.records[r]->function_count; i++) {
            hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
            uint32_t place = g->m.places[r][i];

            hotfn_record_get_function(g->m.records[r], i, &f);
            if (!f.counted) {
                continue;
            }
            counts[place] += counts[place] == 0 || latest[place] != r;
            latest[place] = r;
            values[(size_t)place * g->m.record_count + counts[place] - 1] += f.calls;
        }
    }
    for (uint32_t i = 0; i < g->m.function_count; i++) {
        if (slots[i] != HOTFN_NO_SLOT) {
            row[slots[i]] =
                hfn_merge_values(&g->m, values + (size_t)i * g->m.record_count, counts[i]);
        }
    }
    hfn_free_memory(&g->m.env, values, bytes);
    return true;
}

static hotfn_status put_counts(merger *g, hfn_live *live)
{
    hfn_row_memory memory = hfn_live_get_rows(live);
    uint32_t *slots = hfn_allocate_zeroed(&g->m.env, g->m.function_count * sizeof *slots);
    uint32_t at = 0, rows = hfn_merge_rows(&g->m);
    bool ok = slots != NULL;

    if (!ok) {
        hfn_free_memory(&g->m.env, slots, g->m.function_count * sizeof *slots);
        return HOTFN_E_NO_MEMORY;
    }
    for (uint32_t m = 0; m < hfn_live_get_module_count(live); m++) {
        hotfn_record_module module = HOTFN_RECORD_MODULE_INIT;
        const uint32_t *of_module = hfn_live_get_slots(live, m);

        hfn_live_get_module(live, m, &module);
        for (uint32_t i = 0; i < module.function_count; i++) {
            slots[at++] = of_module[i];
        }
    }
    memory.header->cells_used = rows;
    for (uint32_t i = 0; i < rows; i++) {
        name_row(&g->m, i, &memory.cells[i]);
    }
    if (g->m.mode == HOTFN_MERGE_SUM) {
        put_sums(g, slots, &memory);
    } else {
        ok = put_values(g, slots, &memory);
    }
    hfn_free_memory(&g->m.env, slots, g->m.function_count * sizeof *slots);
    return ok ? HOTFN_OK : HOTFN_E_NO_MEMORY;
}

/* ---- The new record. */

/* The new record begins with the first run; its length is the sum of the runs', or their mean. */
static void set_period(const hfn_merge *m, hotfn_record *out)
{
    uint64_t start = UINT64_MAX, length = 0;

    for (uint32_t i = 0; i < m->record_count; i++) {
        hotfn_record_info info = HOTFN_RECORD_INFO_INIT;

        hotfn_record_get_info(m->records[i], &info);
        start = info.start_ns < start ? info.start_ns : start;
        length += info.end_ns > info.start_ns ? info.end_ns - info.start_ns : 0;
    }
    length = m->mode == HOTFN_MERGE_SUM ? length : length / m->record_count;
    hfn_write_le64(out->header + HFN_AT_START_NS, start);
    hfn_write_le64(out->header + HFN_AT_END_NS, start + length);
    hfn_write_le32(out->header + HFN_AT_PID, 0);
}

/* Store in the new record the losses that repairs of the merged records reported. */
static bool note_repairs(const hfn_merge *m, hotfn_record *out)
{
    bool ok = true;

    for (uint32_t i = 0; ok && i < m->record_count; i++) {
        hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
        char text[1024];

        hotfn_record_get_info(m->records[i], &info);
        if (!info.repaired[0]) {
            continue;
        }
        snprintf(text, sizeof text, "%.200s: %.800s", file_name(m->records[i]), info.repaired);
        ok = hfn_record_note_repair(out, text);
    }
    return ok;
}

/* Add times and budgets to the record of the counts, a temporary file, and write to: to may be one
 * of the merged records. */
static hotfn_status add_times_and_write(const hfn_merge *m, const char *counts, const char *to,
                                        hotfn_error *err)
{
    hotfn_record *out = NULL;
    hotfn_status status = hotfn_record_open(&out, counts, &m->env, err);

    if (status != HOTFN_OK) {
        return status;
    }
    set_period(m, out);
    status = note_repairs(m, out) && hfn_merge_times(m, out) && hfn_merge_budgets(m, out)
                 ? hfn_record_write(out, to, err)
                 : HOTFN_E_NO_MEMORY;
    hotfn_record_close(out);
    return status;
}

static hotfn_status write_merged(merger *g, const char *to, hotfn_error *err)
{
    hfn_live *live = NULL;
    size_t name_bytes = strlen(to) + 32;
    char *counts = hfn_allocate_zeroed(&g->m.env, name_bytes);
    hotfn_status status = counts ? HOTFN_OK : HOTFN_E_NO_MEMORY;

    hfn_progress progress =
        hfn_progress_begin(&g->m.env, "merging records into", to, g->m.record_count);
    for (uint32_t i = 0; status == HOTFN_OK && i < g->m.record_count; i++) {
        hfn_progress_reach(&progress, i);
        status = add_record(g, i) ? HOTFN_OK : HOTFN_E_NO_MEMORY;
    }
    hfn_progress_end(&progress);
    if (status == HOTFN_OK) {
        status = order_functions(g) ? make_live(g, &live, err) : HOTFN_E_NO_MEMORY;
    }
    if (status == HOTFN_OK) {
        status = put_counts(g, live);
    }
    if (status == HOTFN_OK) {
        snprintf(counts, name_bytes, "%s.%lx.counts", to, (unsigned long)hfn_os_get_process_id());
        status = hfn_live_finish(live, counts, HOTFN_RECORD_MERGED, 0, NULL, NULL, err);
        if (status == HOTFN_OK) {
            status = add_times_and_write(&g->m, counts, to, err);
        }
        hfn_os_remove_file(counts);
    }
    hfn_free_memory(&g->m.env, counts, name_bytes);
    hfn_live_close(live);
    return status == HOTFN_E_NO_MEMORY
               ? hfn_report_error(err, status, to, HOTFN_NO_OFFSET, "not enough memory")
               : status;
}

static void free_merger(merger *g)
{
    hotfn_env env = g->m.env;

    for (uint32_t i = 0; i < g->m.record_count; i++) {
        if (g->m.places && g->m.places[i]) {
            hfn_free_memory(&env, g->m.places[i],
                            g->m.records[i]->function_count * sizeof(uint32_t));
        }
        if (g->m.records) {
            hotfn_record_close(g->m.records[i]);
        }
    }
    hfn_free_memory(&env, g->m.places, g->m.record_count * sizeof *g->m.places);
    hfn_free_memory(&env, g->m.records, g->m.record_count * sizeof *g->m.records);
    hfn_free_memory(&env, g->m.sorted, g->m.record_count * sizeof *g->m.sorted);
    hfn_free_memory(&env, g->module_record, g->module_capacity * 4);
    hfn_free_memory(&env, g->module_index, g->index_capacity * 4);
    hfn_free_memory(&env, g->list, g->list_capacity * sizeof *g->list);
    hfn_free_memory(&env, g->final, g->m.function_count * sizeof *g->final);
    hfn_names_destroy(g->modules);
    hfn_names_destroy(g->functions);
}

hotfn_status hotfn_record_merge(const char *const *paths, uint32_t count, const char *to,
                                uint32_t mode, const hotfn_env *env, hotfn_error *err)
{
    if (!paths || !to) {
        return hfn_report_null(err, __func__);
    }

    merger g = { .m = { .env = hfn_env_fill(env), .mode = mode, .record_count = count } };
    hotfn_status status = HOTFN_OK;

    if (count == 0 || count > MAX_RECORDS || mode > HOTFN_MERGE_MEAN_CALLED) {
        return hfn_report_error(err, HOTFN_E_OPTION, to, HOTFN_NO_OFFSET,
                                "a merge needs 1 to %u records and one of the modes HOTFN_MERGE_*",
                                MAX_RECORDS);
    }
    g.m.records = hfn_allocate_zeroed(&g.m.env, count * sizeof *g.m.records);
    g.m.places = hfn_allocate_zeroed(&g.m.env, count * sizeof *g.m.places);
    g.m.sorted = hfn_allocate_zeroed(&g.m.env, count * sizeof *g.m.sorted);
    g.modules = hfn_names_create(&g.m.env);
    g.functions = hfn_names_create(&g.m.env);
    if (!g.m.records || !g.m.places || !g.m.sorted || !g.modules || !g.functions) {
        status = hfn_report_no_memory(err, to);
    }
    hfn_progress progress = hfn_progress_begin(&g.m.env, "reading records for", to, count);
    for (uint32_t i = 0; status == HOTFN_OK && i < count; i++) {
        hfn_progress_reach(&progress, i);
        status = hotfn_record_open(&g.m.records[i], paths[i], env, err);
    }
    hfn_progress_end(&progress);
    if (status == HOTFN_OK) {
        status = write_merged(&g, to, err);
    }
    free_merger(&g);
    return status;
}
