/* SPDX-License-Identifier: MIT */
/* Write a comparison as a table, as Markdown for a pull request, or as JSON (hotfn.diff/1). */
#include "cli/listing.h"
#include "diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *get_display_name(const char *name, char *out, size_t bytes)
{
    return hotfn_tool_demangle(NULL, name, out, bytes) > 0 ? out : name[0] ? name : "(no name)";
}

static const char *format_value(const diff *d, uint64_t value, char out[32])
{
    if (d->by == HOTFN_BY_CALLS) {
        return listing_grouped(value, out);
    }
    snprintf(out, 32, "%.6f ms", (double)value / 1e6);
    return out;
}

static const char *format_growth(double growth, char out[32])
{
    if (isinf(growth)) {
        snprintf(out, 32, "new");
    } else {
        snprintf(out, 32, growth < 10000 ? "%+.1f%%" : "%+.0f%%", growth);
    }
    return out;
}

static const char *get_order_name(const diff *d)
{
    return d->by == HOTFN_BY_CALLS ? "calls" : d->by == HOTFN_BY_TOTAL ? "total" : "self";
}

static const char *format_change(const diff_row *row, char out[32])
{
    return row->in_new ? format_growth(diff_compute_growth(row->old_value, row->new_value), out)
                       : "gone";
}

/* Names may contain any byte: print control characters as "?", and the characters in `escaped`
 * after a backslash. */
static void print_name(const char *text, const char *escaped)
{
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c < 0x20 || c == 0x7f) {
            putchar('?');
        } else if (strchr(escaped, c)) {
            printf("\\%c", c);
        } else {
            putchar(c);
        }
    }
}

/* Rows that differ come first. */
static uint32_t count_differing_rows(const diff *d)
{
    uint32_t count = 0;
    while (count < d->row_count && d->rows[count].old_value != d->rows[count].new_value) {
        count++;
    }
    return count;
}

static uint32_t count_shown_rows(const diff *d)
{
    uint32_t count = count_differing_rows(d);
    return d->limit && d->limit < count ? d->limit : count;
}

/* Print how many differing functions the limit hides, and how many of them cause exit status 3. */
static void print_hidden_count(const diff *d)
{
    uint32_t shown = count_shown_rows(d), end = count_differing_rows(d), failing = 0;
    for (uint32_t i = shown; i < end; i++) {
        failing += diff_row_fails(d, &d->rows[i]);
    }
    if (end == 0) {
        printf("  no function differs\n");
    } else if (end > shown) {
        printf("  ... and %" PRIu32 " more that differ", end - shown);
        if (failing > 0) {
            printf(", %" PRIu32 " of them grew too much", failing);
        }
        printf(" (-n 0 shows all)\n");
    }
}

void diff_show_table(const diff *d)
{
    char old[32], new[32], growth[32], name[8192];
    printf("%s: %s -> %s\n\n%18s  %18s  %9s  %s\n", get_order_name(d), d->old_path, d->new_path,
           "old", "new", "change", "function");
    for (uint32_t i = 0; i < count_shown_rows(d); i++) {
        const diff_row *row = &d->rows[i];
        printf("%18s  %18s  %9s  ", format_value(d, row->old_value, old),
               format_value(d, row->new_value, new), format_change(row, growth));
        print_name(get_display_name(row->name, name, sizeof name), "");
        printf(" (");
        print_name(row->module, "");
        printf(")%s\n", diff_row_fails(d, row)   ? "  <- too much"
                        : diff_row_is_noise(row) ? "  within noise"
                                                 : "");
    }
    print_hidden_count(d);
    printf("\n%18s  %18s  %9s  all functions%s\n", format_value(d, d->old_sum, old),
           format_value(d, d->new_sum, new),
           format_growth(diff_compute_growth(d->old_sum, d->new_sum), growth),
           diff_sum_fails(d) ? "  <- too much" : "");
}

void diff_show_markdown(const diff *d)
{
    char old[32], new[32], growth[32], name[8192];
    printf("| %s | old | new | change |\n|---|--:|--:|--:|\n", get_order_name(d));
    printf("| **all functions** | %s | %s | %s%s |\n", format_value(d, d->old_sum, old),
           format_value(d, d->new_sum, new),
           format_growth(diff_compute_growth(d->old_sum, d->new_sum), growth),
           diff_sum_fails(d) ? " :x:" : "");
    for (uint32_t i = 0; i < count_shown_rows(d); i++) {
        const diff_row *row = &d->rows[i];
        printf("| ");
        print_name(get_display_name(row->name, name, sizeof name), "|<>*_`\\[]~&#");
        printf(" | %s | %s | %s%s |\n", format_value(d, row->old_value, old),
               format_value(d, row->new_value, new), format_change(row, growth),
               diff_row_fails(d, row)   ? " :x:"
               : diff_row_is_noise(row) ? " (within noise)"
                                        : "");
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
    json_write_text(out, "by", get_order_name(d));
    json_write_number(out, "old", d->old_sum);
    json_write_number(out, "new", d->new_sum);
    json_write_bool(out, "fails", diff_sum_fails(d));
    hotfn_json_begin_array(out, "functions");
    for (uint32_t i = 0; i < d->row_count && (d->limit == 0 || i < d->limit); i++) {
        const diff_row *row = &d->rows[i];
        hotfn_json *o = hotfn_json_create_object();
        char name[8192];
        json_add_text(o, "name", row->name);
        json_add_text(o, "display", get_display_name(row->name, name, sizeof name));
        json_add_text(o, "module", row->module);
        add_half(o, "old", row->in_old, row->old_calls, row->old_self, row->old_total, d->timed);
        add_half(o, "new", row->in_new, row->new_calls, row->new_self, row->new_total, d->timed);
        json_add_bool(o, "within_noise", diff_row_is_noise(row));
        json_add_bool(o, "fails", diff_row_fails(d, row));
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
    hotfn_json_end(out);
    json_close(out);
}
