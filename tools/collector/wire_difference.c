/* SPDX-License-Identifier: MIT */
/* The state of a run now is compared with the state that was sent last: rows are paired by module
 * and RVA, callers by their two rows.  The increment has the rows that grew, and those that an
 * entry of a caller needs. */
#include "wire_difference.h"

#include "sha256.h"

#include <stdlib.h>
#include <string.h>

/* Calls of one row from another, before and now. */
typedef struct edge {
    uint32_t caller, callee; /* rows of now */
    uint64_t sent, now;
} edge;

typedef struct difference {
    wire_run *now;
    const wire_run *sent;
    wire_row *rows;   /* by row of now: how much it grew                       */
    uint32_t *number; /* by row of now: its row of the increment + 1, or 0     */
    uint32_t *now_of; /* by row of sent: the row of now + 1, or 0              */
    edge *edges;
    uint32_t edge_count;
} difference;

/* ---- Rows. */

/* The growth since `sent`.  A number never shrinks: raise *now to `sent` if it is less. */
static uint64_t take_growth(uint64_t *now, uint64_t sent)
{
    *now = *now > sent ? *now : sent;
    return *now - sent;
}

static void compare_row(difference *d, uint32_t now, uint32_t sent)
{
    wire_row *n = &d->now->rows[now], *grown = &d->rows[now];
    const wire_row *s = &d->sent->rows[sent];

    d->now_of[sent] = now + 1;
    grown->calls = take_growth(&n->calls, s->calls);
    grown->total_ns = take_growth(&n->total_ns, s->total_ns);
    grown->self_ns = take_growth(&n->self_ns, s->self_ns);
    take_growth(&n->max_ns, s->max_ns);
    grown->max_ns = n->max_ns;
}

static bool is_same_module(const wire_module *a, const wire_module *b)
{
    return strcmp(a->image, b->image) == 0 && strcmp(a->file, b->file) == 0;
}

/* The same module in the sent state, or NULL.  The search begins at *at, which is then set to the
 * index after the module, because both states usually have their modules in the same order. */
static const wire_module *find_sent(const difference *d, const wire_module *m, uint32_t *at)
{
    uint32_t count = d->sent->module_count;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (*at + i) % count;
        if (is_same_module(m, &d->sent->modules[index])) {
            *at = index + 1;
            return &d->sent->modules[index];
        }
    }
    return NULL;
}

static void compare_rows(difference *d)
{
    uint32_t at = 0;

    memcpy(d->rows, d->now->rows, d->now->row_count * sizeof *d->rows);
    for (uint32_t i = 0; i < d->now->module_count; i++) {
        const wire_module *m = &d->now->modules[i], *s = find_sent(d, m, &at);
        for (uint32_t n = 0, k = 0; s && n < m->row_count && k < s->row_count;) {
            uint32_t now = m->first_row + n, sent = s->first_row + k;
            uint64_t now_rva = d->now->rows[now].rva, sent_rva = d->sent->rows[sent].rva;
            if (now_rva == sent_rva) {
                compare_row(d, now, sent);
            }
            n += now_rva <= sent_rva;
            k += sent_rva <= now_rva;
        }
    }
}

/* ---- Callers. */

static int compare_edges(const void *left, const void *right)
{
    const edge *a = left, *b = right;
    int order = (a->callee > b->callee) - (a->callee < b->callee);
    return order ? order : (a->caller > b->caller) - (a->caller < b->caller);
}

static void add_edges(difference *d)
{
    for (uint32_t i = 0; i < d->now->caller_count; i++) {
        const wire_caller *c = &d->now->callers[i];
        d->edges[d->edge_count++] = (edge){ c->caller, c->callee, 0, c->calls };
    }
    for (uint32_t i = 0; i < d->sent->caller_count; i++) {
        const wire_caller *c = &d->sent->callers[i];
        uint32_t callee = d->now_of[c->callee];
        uint32_t caller = c->caller == WIRE_NO_ROW ? 0 : d->now_of[c->caller];
        if (callee && (caller || c->caller == WIRE_NO_ROW)) {
            d->edges[d->edge_count++] =
                (edge){ caller ? caller - 1 : WIRE_NO_ROW, callee - 1, c->calls, 0 };
        }
    }
}

/* Join the edges of each pair of rows, and replace the callers of d->now by them. */
static bool join_edges(difference *d)
{
    uint32_t used = 0;

    qsort(d->edges, d->edge_count, sizeof *d->edges, compare_edges);
    for (uint32_t i = 0; i < d->edge_count; i++) {
        if (used > 0 && compare_edges(&d->edges[used - 1], &d->edges[i]) == 0) {
            d->edges[used - 1].sent += d->edges[i].sent;
            d->edges[used - 1].now += d->edges[i].now;
        } else {
            d->edges[used++] = d->edges[i];
        }
    }
    d->edge_count = used;
    wire_caller *callers = realloc(d->now->callers, ((size_t)used + 1) * sizeof *callers);
    if (!callers) {
        return false;
    }
    d->now->callers = callers;
    d->now->caller_count = used;
    for (uint32_t i = 0; i < used; i++) {
        take_growth(&d->edges[i].now, d->edges[i].sent);
        callers[i] = (wire_caller){ d->edges[i].caller, d->edges[i].callee, d->edges[i].now };
    }
    return true;
}

static bool has_grown(const edge *e)
{
    return e->now > e->sent;
}

/* ---- The increment. */

static void choose_rows(difference *d)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < d->now->row_count; i++) {
        const wire_row *row = &d->rows[i];
        d->number[i] = row->calls || row->total_ns || row->self_ns;
    }
    for (uint32_t i = 0; i < d->edge_count; i++) {
        const edge *e = &d->edges[i];
        if (has_grown(e)) {
            d->number[e->callee] = 1;
            if (e->caller != WIRE_NO_ROW) {
                d->number[e->caller] = 1;
            }
        }
    }
    for (uint32_t i = 0; i < d->now->row_count; i++) {
        d->number[i] = d->number[i] ? ++used : 0;
    }
}

static void write_head(byte_buffer *out, const wire_run *run, uint32_t module_count)
{
    buffer_append_text(out, "HFC1");
    buffer_append_number(out, run->flags);
    buffer_append(out, run->uuid, sizeof run->uuid);
    buffer_append_number(out, run->start_ns);
    buffer_append_number(out, run->end_ns);
    buffer_append_number(out, run->state);
    buffer_append_number(out, run->hooked);
    buffer_append_number(out, run->unhooked);
    buffer_append_number(out, module_count);
}

static void write_rows(byte_buffer *out, const difference *d, const wire_module *m)
{
    uint64_t before = 0;

    for (uint32_t i = m->first_row; i < m->first_row + m->row_count; i++) {
        const wire_row *row = &d->rows[i];
        if (!d->number[i]) {
            continue;
        }
        buffer_append_number(out, row->rva - before);
        buffer_append_number(out, row->calls);
        if (d->now->flags & WIRE_TIMED) {
            buffer_append_number(out, row->total_ns);
            buffer_append_number(out, row->self_ns);
            buffer_append_number(out, row->max_ns);
        }
        before = row->rva;
    }
}

static uint32_t count_rows(const difference *d, const wire_module *m)
{
    uint32_t count = 0;

    for (uint32_t i = m->first_row; i < m->first_row + m->row_count; i++) {
        count += d->number[i] != 0;
    }
    return count;
}

static void write_module(byte_buffer *out, const difference *d, const wire_module *m)
{
    const char *id = strchr(m->image, '-');
    size_t id_bytes = id ? strlen(id + 1) / 2 : 0;
    uint8_t bytes[32];

    buffer_append_number(out, m->flags);
    buffer_append_number(out, id ? strtoul(m->image, NULL, 10) : 0);
    buffer_append_number(out, id_bytes);
    out->failed |= id && !parse_hex(id + 1, bytes, id_bytes);
    buffer_append(out, bytes, id_bytes);
    buffer_append_number(out, strlen(m->file));
    buffer_append_text(out, m->file);
    buffer_append_number(out, count_rows(d, m));
    write_rows(out, d, m);
}

/* Modules without rows are omitted, except the program itself: it identifies the build. */
static bool is_written(const difference *d, const wire_module *m)
{
    return m->flags & WIRE_MAIN || count_rows(d, m) > 0;
}

static void write_increment(byte_buffer *out, const difference *d)
{
    uint32_t modules = 0, edges = 0;

    for (uint32_t i = 0; i < d->now->module_count; i++) {
        modules += is_written(d, &d->now->modules[i]);
    }
    write_head(out, d->now, modules);
    for (uint32_t i = 0; i < d->now->module_count; i++) {
        if (is_written(d, &d->now->modules[i])) {
            write_module(out, d, &d->now->modules[i]);
        }
    }
    for (uint32_t i = 0; i < d->edge_count; i++) {
        edges += has_grown(&d->edges[i]);
    }
    buffer_append_number(out, edges);
    for (uint32_t i = 0; i < d->edge_count; i++) {
        const edge *e = &d->edges[i];
        if (has_grown(e)) {
            buffer_append_number(out, e->caller == WIRE_NO_ROW ? 0 : d->number[e->caller]);
            buffer_append_number(out, d->number[e->callee] - 1);
            buffer_append_number(out, e->now - e->sent);
        }
    }
}

bool wire_encode_difference(byte_buffer *out, wire_run *now, const wire_run *sent)
{
    difference d = { .now = now, .sent = sent };

    d.rows = calloc((size_t)now->row_count + 1, sizeof *d.rows);
    d.number = calloc((size_t)now->row_count + 1, sizeof *d.number);
    d.now_of = calloc((size_t)sent->row_count + 1, sizeof *d.now_of);
    d.edges = calloc((size_t)now->caller_count + sent->caller_count + 1, sizeof *d.edges);
    bool ok = d.rows && d.number && d.now_of && d.edges;
    if (ok) {
        compare_rows(&d);
        add_edges(&d);
        ok = join_edges(&d);
    }
    if (ok) {
        choose_rows(&d);
        write_increment(out, &d);
    }
    free(d.rows);
    free(d.number);
    free(d.now_of);
    free(d.edges);
    return ok && !out->failed;
}
