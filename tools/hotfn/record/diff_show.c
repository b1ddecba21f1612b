/* SPDX-License-Identifier: MIT */
/* A diff as a table for people, Markdown for a pull request, or JSON (hotfn.diff/1). */
#include "cli/listing.h"
#include "diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *readable(const char *name, char *out, size_t bytes)
{
    return hotfn_tool_demangle(NULL, name, out, bytes) > 0 ? out : name[0] ? name : "(no name)";
}

static const char *value_text(const diff *d, uint64_t value, char out[32])
{
    if (d->by == HOTFN_BY_CALLS) {
        return listing_grouped(value, out);
    }
    snprintf(out, 32, "%.6f ms", (double)value / 1e6);
    return out;
}

static const char *growth_text(double growth, char out[32])
{
    if (isinf(growth)) {
        snprintf(out, 32, "new");
    } else {
        snprintf(out, 32, growth < 10000 ? "%+.1f%%" : "%+.0f%%", growth);
    }
    return out;
}

static const char *what(const diff *d)
{
    return d->by == HOTFN_BY_CALLS ? "calls" : d->by == HOTFN_BY_TOTAL ? "total" : "self";
}

static const char *verdict(const diff_row *row, char out[32])
{
    return row->in_new ? growth_text(diff_growth(row->old_value, row->new_value), out) : "gone";
}

/* Names may hold anything: what would reach the terminal as a command is shown as "?". */
static void put_plain(const char *text, const char *also)
{
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c < 0x20 || c == 0x7f) {
            putchar('?');
        } else if (strchr(also, c)) {
            printf("\\%c", c);
        } else {
            putchar(c);
        }
    }
}

/* Those that differ stand first. */
static uint32_t differing_rows(const diff *d)
{
    uint32_t count = 0;
    while (count < d->row_count && d->rows[count].old_value != d->rows[count].new_value) {
        count++;
    }
    return count;
}

static uint32_t shown_rows(const diff *d)
{
    uint32_t count = differing_rows(d);
    return d->limit && d->limit < count ? d->limit : count;
}

/* Why the status is 3 is told even where it is not shown. */
static void put_rest(const diff *d)
{
    uint32_t shown = shown_rows(d), end = differing_rows(d), failing = 0;
    for (uint32_t i = shown; i < end; i++) {
        failing += diff_row_fails(d, &d->rows[i]);
    }
    if (end == 0) {
        printf("  no function differs\n");
    } else if (end > shown) {
        printf("  ... and %" PRIu32 " more that differ", end - shown);
        if (failing > 0) {
            printf(", %" PRIu32 " of them too much", failing);
        }
        printf(" (-n 0 shows all)\n");
    }
}

void diff_show_table(const diff *d)
{
    char old[32], new[32], growth[32], name[8192];
    printf("%s: %s -> %s\n\n%18s  %18s  %9s  %s\n", what(d), d->old_path, d->new_path, "old", "new",
           "change", "function");
    for (uint32_t i = 0; i < shown_rows(d); i++) {
        const diff_row *row = &d->rows[i];
        printf("%18s  %18s  %9s  ", value_text(d, row->old_value, old),
               value_text(d, row->new_value, new), verdict(row, growth));
        put_plain(readable(row->name, name, sizeof name), "");
        printf(" (");
        put_plain(row->module, "");
        printf(")%s\n", diff_row_fails(d, row) ? "  <- too much" : "");
    }
    put_rest(d);
    printf("\n%18s  %18s  %9s  all functions%s\n", value_text(d, d->old_sum, old),
           value_text(d, d->new_sum, new), growth_text(diff_growth(d->old_sum, d->new_sum), growth),
           diff_sum_fails(d) ? "  <- too much" : "");
}

void diff_show_markdown(const diff *d)
{
    char old[32], new[32], growth[32], name[8192];
    printf("| %s | old | new | change |\n|---|--:|--:|--:|\n", what(d));
    printf("| **all functions** | %s | %s | %s%s |\n", value_text(d, d->old_sum, old),
           value_text(d, d->new_sum, new), growth_text(diff_growth(d->old_sum, d->new_sum), growth),
           diff_sum_fails(d) ? " :x:" : "");
    for (uint32_t i = 0; i < shown_rows(d); i++) {
        const diff_row *row = &d->rows[i];
        printf("| ");
        put_plain(readable(row->name, name, sizeof name), "|<>*_`\\[]~&#");
        printf(" | %s | %s | %s%s |\n", value_text(d, row->old_value, old),
               value_text(d, row->new_value, new), verdict(row, growth),
               diff_row_fails(d, row) ? " :x:" : "");
    }
}

static void add_half(hotfn_json *object, const char *key, bool present, uint64_t calls,
                     uint64_t self, uint64_t total, bool timed)
{
    hotfn_json *half = present ? hotfn_json_create_object() : hotfn_json_create_text(NULL);
    if (present) {
        json_add_number(half, "calls", calls);
    }
    if (present && timed) {
        json_add_number(half, "self_ns", self);
        json_add_number(half, "total_ns", total);
    }
    hotfn_json_add(object, key, half);
}

void diff_show_json(const diff *d)
{
    hotfn_json_writer *out = json_open(stdout);
    hotfn_json_begin_object(out, NULL);
    json_write_text(out, "schema", "hotfn.diff/1");
    json_write_text(out, "by", what(d));
    json_write_number(out, "old", d->old_sum);
    json_write_number(out, "new", d->new_sum);
    json_write_bool(out, "fails", diff_sum_fails(d));
    hotfn_json_begin_array(out, "functions");
    for (uint32_t i = 0; i < d->row_count && (d->limit == 0 || i < d->limit); i++) {
        const diff_row *row = &d->rows[i];
        hotfn_json *o = hotfn_json_create_object();
        char name[8192];
        json_add_text(o, "name", row->name);
        json_add_text(o, "display", readable(row->name, name, sizeof name));
        json_add_text(o, "module", row->module);
        add_half(o, "old", row->in_old, row->old_calls, row->old_self, row->old_total, d->timed);
        add_half(o, "new", row->in_new, row->new_calls, row->new_self, row->new_total, d->timed);
        json_add_bool(o, "fails", diff_row_fails(d, row));
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
    hotfn_json_end(out);
    json_close(out);
}
