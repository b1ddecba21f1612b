/* SPDX-License-Identifier: MIT */
/* Encode a record in the compact format.  The functions of a module are sorted by RVA, and
 * functions at the same RVA are one. */
#include "wire_encode.h"

#include "wire.h"

#include <hotfn/lowlevel/timing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

typedef struct placed_function {
    uint64_t rva;
    uint32_t index;
} placed_function;

typedef struct encoder {
    const hotfn_record *record;
    byte_buffer *out;
    placed_function *order; /* the counted functions of a module, by RVA   */
    uint32_t *row_of;       /* by function: its row + 1, 0 if it has none */
    uint32_t row_count;
    bool timed, names, overflow;
} encoder;

static hotfn_status fail_encoding(hotfn_error *err, hotfn_status status, const char *text)
{
    if (err) {
        err->status = status;
        snprintf(err->text, sizeof err->text, "%s", text);
    }
    return status;
}

static int compare_places(const void *left, const void *right)
{
    const placed_function *a = left, *b = right;

    return a->rva != b->rva ? (a->rva < b->rva ? -1 : 1)
                            : (a->index > b->index) - (a->index < b->index);
}

/* List the functions to encode: of a run, those that were called; of a build, all counted ones. */
static uint32_t list_functions(encoder *e, const hotfn_record_module *m)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        uint32_t index = m->first_function + i;
        hotfn_record_get_function(e->record, index, &f);
        if (f.counted && (e->names || f.calls > 0)) {
            e->order[count++] = (placed_function){ f.rva, index };
        }
    }
    qsort(e->order, count, sizeof *e->order, compare_places);
    return count;
}

static void add_checked(encoder *e, uint64_t *sum, uint64_t value)
{
    e->overflow |= value > UINT64_MAX - *sum;
    *sum += value;
}

static void add_function(encoder *e, wire_row *row, uint32_t index)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;

    hotfn_record_get_function(e->record, index, &f);
    row->rva = f.rva;
    add_checked(e, &row->calls, f.calls);
    if (e->timed && hotfn_record_get_timing(e->record, index, &t) == HOTFN_OK) {
        add_checked(e, &row->total_ns, t.total_ns);
        add_checked(e, &row->self_ns, t.self_ns);
        row->max_ns = t.max_ns > row->max_ns ? t.max_ns : row->max_ns;
    }
}

/* Returns the RVA, from which the next row's is counted. */
static uint64_t write_counts(encoder *e, const placed_function *same, uint32_t same_count,
                             uint64_t before)
{
    wire_row row = { 0 };

    e->row_count++;
    for (uint32_t i = 0; i < same_count; i++) {
        add_function(e, &row, same[i].index);
        e->row_of[same[i].index] = e->row_count;
    }
    buffer_append_number(e->out, row.rva - before);
    buffer_append_number(e->out, row.calls);
    if (e->timed) {
        buffer_append_number(e->out, row.total_ns);
        buffer_append_number(e->out, row.self_ns);
        buffer_append_number(e->out, row.max_ns);
    }
    return row.rva;
}

static uint64_t write_name(encoder *e, uint32_t index, uint64_t before)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    char text[WIRE_MAX_NAME] = "";

    hotfn_record_get_function(e->record, index, &f);
    hotfn_record_get_display_name(e->record, index, text, sizeof text);
    buffer_append_number(e->out, f.rva - before);
    buffer_append_number(e->out, f.byte_count <= INT64_MAX ? f.byte_count : 0);
    buffer_append_number(e->out, strlen(text));
    buffer_append_text(e->out, text);
    return f.rva;
}

static uint32_t count_different(const encoder *e, uint32_t count)
{
    uint32_t different = 0;

    for (uint32_t i = 0; i < count; i++) {
        different += i == 0 || e->order[i].rva != e->order[i - 1].rva;
    }
    return different;
}

static void write_module(encoder *e, uint32_t index)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    uint64_t rva = 0;

    hotfn_record_get_module(e->record, index, &m);
    uint32_t count = list_functions(e, &m), id_bytes = m.id_bytes <= sizeof m.id ? m.id_bytes : 0;
    buffer_append_number(e->out, m.flags & HOTFN_MODULE_MAIN ? WIRE_MAIN : 0);
    buffer_append_number(e->out, m.id_kind);
    buffer_append_number(e->out, id_bytes);
    buffer_append(e->out, m.id, id_bytes);
    size_t length = strnlen(m.file, 127);
    buffer_append_number(e->out, length);
    buffer_append(e->out, m.file, length);
    buffer_append_number(e->out, count_different(e, count));
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && e->order[end].rva == e->order[i].rva; end++) {
        }
        rva = e->names ? write_name(e, e->order[i].index, rva)
                       : write_counts(e, e->order + i, end - i, rva);
    }
}

/* Modules without functions are omitted, except the program itself: it identifies the build. */
static bool is_written(const hotfn_record *record, uint32_t index)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

    return hotfn_record_get_module(record, index, &m) == HOTFN_OK &&
           (m.function_count > 0 || m.flags & HOTFN_MODULE_MAIN);
}

static void write_modules(encoder *e, uint32_t module_count)
{
    uint32_t written = 0;

    for (uint32_t i = 0; i < module_count; i++) {
        written += is_written(e->record, i);
    }
    buffer_append_number(e->out, written);
    for (uint32_t i = 0; i < module_count; i++) {
        if (is_written(e->record, i)) {
            write_module(e, i);
        }
    }
}

static void write_callers(encoder *e, uint32_t function_count)
{
    byte_buffer list = { 0 };
    uint64_t count = 0;

    for (uint32_t i = 0; i < function_count; i++) {
        uint32_t callers = e->row_of[i] ? hotfn_record_get_caller_count(e->record, i) : 0;
        for (uint32_t k = 0; k < callers; k++) {
            hotfn_record_caller c = HOTFN_RECORD_CALLER_INIT;
            if (hotfn_record_get_caller(e->record, i, k, &c) != HOTFN_OK || c.calls == 0) {
                continue;
            }
            buffer_append_number(&list, c.function < function_count ? e->row_of[c.function] : 0);
            buffer_append_number(&list, e->row_of[i] - 1);
            buffer_append_number(&list, c.calls);
            count++;
        }
    }
    buffer_append_number(e->out, count);
    buffer_append(e->out, list.data, list.used);
    e->out->failed |= list.failed;
    buffer_free(&list);
}

static uint64_t get_now_ns(void)
{
    struct timeval now; /* MinGW has no clock_gettime */

    gettimeofday(&now, NULL);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_usec * 1000;
}

static void write_head(encoder *e, const hotfn_record_info *info)
{
    uint32_t hooked = 0;

    for (uint32_t i = 0; i < info->function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_get_function(e->record, i, &f);
        hooked += f.state == HOTFN_STATE_HOOKED;
    }
    buffer_append_text(e->out, "HFC1");
    buffer_append_number(e->out, e->timed ? WIRE_TIMED : 0);
    buffer_append(e->out, info->uuid, sizeof info->uuid);
    buffer_append_number(e->out, info->start_ns);
    buffer_append_number(e->out, info->end_ns ? info->end_ns : get_now_ns());
    buffer_append_number(e->out, info->state);
    buffer_append_number(e->out, hooked);
    buffer_append_number(e->out, info->function_count - hooked);
}

static hotfn_status check_state(const hotfn_record_info *info, bool may_run, hotfn_error *err)
{
    switch (info->state) {
    case HOTFN_RECORD_FINISHED:
    case HOTFN_RECORD_KILLED: return HOTFN_OK;
    case HOTFN_RECORD_LIVE:
        return may_run ? HOTFN_OK
                       : fail_encoding(err, HOTFN_E_STATE,
                                       "the program still runs: send the record when it has ended");
    case HOTFN_RECORD_MERGED:
        return fail_encoding(
            err, HOTFN_E_STATE,
            "this record is a merge of several runs: send the records of the runs");
    default:
        return fail_encoding(err, HOTFN_E_STATE,
                             "this record is unfinished: send the result of hotfn repair");
    }
}

static hotfn_status encode_record(byte_buffer *out, const hotfn_record *record, bool names,
                                  bool may_run, hotfn_error *err)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_time_info times = HOTFN_RECORD_TIME_INFO_INIT;
    encoder e = { .record = record, .out = out, .names = names };

    hotfn_record_get_info(record, &info);
    hotfn_record_get_time_info(record, &times);
    e.timed = times.flags != 0;
    hotfn_status status = check_state(&info, may_run, err);
    if (status != HOTFN_OK) {
        return status;
    }
    e.order = calloc((size_t)info.function_count + 1, sizeof *e.order);
    e.row_of = calloc((size_t)info.function_count + 1, sizeof *e.row_of);
    out->failed |= !e.order || !e.row_of;
    if (!out->failed && names) {
        buffer_append_text(out, "HFN1");
        write_modules(&e, info.module_count);
    } else if (!out->failed) {
        write_head(&e, &info);
        write_modules(&e, info.module_count);
        write_callers(&e, info.function_count);
    }
    free(e.order);
    free(e.row_of);
    return out->failed  ? fail_encoding(err, HOTFN_E_NO_MEMORY, "not enough memory")
           : e.overflow ? fail_encoding(err, HOTFN_E_LIMIT,
                                        "the counts of a function do not fit into 64 bits")
                        : HOTFN_OK;
}

hotfn_status wire_encode_run(byte_buffer *out, const hotfn_record *record, bool may_run,
                             hotfn_error *err)
{
    return encode_record(out, record, false, may_run, err);
}

hotfn_status wire_encode_names(byte_buffer *out, const hotfn_record *record, bool may_run,
                               hotfn_error *err)
{
    return encode_record(out, record, true, may_run, err);
}

/* ---- Builds. */

static void write_build_head(byte_buffer *out, uint32_t id_kind, const uint8_t *id,
                             uint32_t id_bytes, const char *file, uint32_t row_count)
{
    buffer_append_text(out, "HFN1");
    buffer_append_number(out, 1);
    buffer_append_number(out, WIRE_MAIN);
    buffer_append_number(out, id_kind);
    buffer_append_number(out, id_bytes);
    buffer_append(out, id, id_bytes);
    buffer_append_number(out, strnlen(file, 127));
    buffer_append(out, file, strnlen(file, 127));
    buffer_append_number(out, row_count);
}

static void write_build_name(byte_buffer *out, uint64_t rva_step, uint64_t byte_count,
                             const char *name, const hotfn_env *env)
{
    char text[WIRE_MAX_NAME];
    size_t length = env && env->demangle_fn
                        ? env->demangle_fn(env->demangle_user, name, text, sizeof text)
                        : hotfn_demangle(name, text, sizeof text);
    const char *shown = length ? text : name;

    length = strnlen(shown, WIRE_MAX_NAME - 1);
    buffer_append_number(out, rva_step);
    buffer_append_number(out, byte_count <= INT64_MAX ? byte_count : 0);
    buffer_append_number(out, length);
    buffer_append(out, shown, length);
}

void wire_encode_functions(byte_buffer *out, const hotfn_image_info *info, const char *file,
                           const hotfn_functions *functions, const hotfn_env *env)
{
    uint32_t count = hotfn_functions_get_count(functions);
    uint64_t before = 0;

    write_build_head(out, info->id_kind, info->id, info->id_bytes, file, count);
    for (uint32_t i = 0; i < count; i++) {
        hotfn_function f = HOTFN_FUNCTION_INIT;
        hotfn_functions_get(functions, i, &f);
        write_build_name(out, f.rva - before, f.byte_count, f.name, env);
        before = f.rva;
    }
}

/* The best symbol of an address is the first. */
static bool find_next_symbol(const hotfn_symbols *symbols, uint32_t *at, hotfn_symbol *out,
                             uint64_t before, bool is_first)
{
    for (; hotfn_symbols_get(symbols, *at, out) == HOTFN_OK; ++*at) {
        if (is_first || out->rva > before) {
            ++*at;
            return true;
        }
    }
    return false;
}

void wire_encode_symbols(byte_buffer *out, const hotfn_symbols_info *info, const char *file,
                         const hotfn_symbols *symbols)
{
    hotfn_symbol symbol = HOTFN_SYMBOL_INIT;
    uint32_t count = 0, at = 0;
    uint64_t before = 0;

    while (find_next_symbol(symbols, &at, &symbol, before, count == 0)) {
        before = symbol.rva;
        count++;
    }
    write_build_head(out, info->id_kind, info->id, info->id_bytes, file, count);
    at = 0;
    before = 0;
    for (uint32_t i = 0; find_next_symbol(symbols, &at, &symbol, before, i == 0); i++) {
        write_build_name(out, symbol.rva - before, symbol.byte_count, symbol.name, NULL);
        before = symbol.rva;
    }
}
