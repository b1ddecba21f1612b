/* SPDX-License-Identifier: MIT */
/* Writes a comparison as a table. */
#include "cli/column_widths.h"
#include "cli/listing.h"
#include "diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGE_WIDTH 9

const char *diff_get_display_name(const char *name, uint32_t columns, char *out, size_t bytes)
{
    if (hotfn_tool_demangle(NULL, name, out, bytes) == 0) {
        snprintf(out, bytes, "%s", name[0] ? name : "(no name)");
    }
    if (columns > 0) {
        hotfn_fold_name(out, columns);
    }
    return out;
}

const char *diff_format_value(const diff *d, uint64_t value, char out[32])
{
    if (d->by == HOTFN_BY_CALLS) {
        return listing_grouped(value, out);
    }
    snprintf(out, 32, "%.6f ms", (double)value / 1e6);
    return out;
}

const char *diff_format_growth(double growth, char out[32])
{
    if (isinf(growth)) {
        snprintf(out, 32, "new");
    } else {
        snprintf(out, 32, growth < 10000 ? "%+.1f%%" : "%+.0f%%", growth);
    }
    return out;
}

const char *diff_get_order_name(const diff *d)
{
    return d->by == HOTFN_BY_CALLS ? "calls" : d->by == HOTFN_BY_TOTAL ? "total" : "self";
}

const char *diff_format_change(const diff_row *row, char out[32])
{
    return row->in_new
               ? diff_format_growth(diff_compute_growth(row->old_value, row->new_value), out)
               : "gone";
}

void diff_print_name(const char *text, const char *escaped)
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

uint32_t diff_count_shown(const diff *d)
{
    uint32_t count = diff_count_differing(d);
    return d->limit && d->limit < count ? d->limit : count;
}

/* Print how many differing functions the limit hides, and how many of them cause exit status 3. */
void diff_print_hidden_count(const diff *d)
{
    uint32_t shown = diff_count_shown(d), end = diff_count_differing(d), failing = 0;
    for (uint32_t i = shown; i < end; i++) {
        failing += diff_row_fails(d, &d->rows[i]);
    }
    if (end == 0) {
        printf("no function differs\n");
    } else if (end > shown) {
        printf("... and %" PRIu32 " more that differ", end - shown);
        if (failing > 0) {
            printf(", %" PRIu32 " of them grew too much", failing);
        }
        printf(" (-n 0 shows all)\n");
    }
}

/* ---- The layout. */

typedef struct layout {
    int old, new;
    uint32_t name; /* columns of the name, 0: unbounded */
    bool has_modules, has_remarks;
} layout;

static const char *get_remark(const diff *d, const diff_row *row)
{
    return diff_row_fails(d, row)      ? "  <- too much"
           : diff_row_is_noise(d, row) ? "  within noise"
                                       : "";
}

static int get_width(const diff *d, uint64_t value)
{
    char text[32];
    return (int)strlen(diff_format_value(d, value, text));
}

static layout choose_layout(const diff *d)
{
    const int widest_remark = (int)strlen("  within noise");
    layout l = { .old = 3, .new = 3 };
    size_t module = 0;
    for (uint32_t i = 0; i < diff_count_shown(d); i++) {
        const diff_row *row = &d->rows[i];
        l.has_modules |= strcmp(row->module, d->rows[0].module) != 0;
        l.has_remarks |= get_remark(d, row)[0] != 0;
        module = strlen(row->module) > module ? strlen(row->module) : module;
    }
    l.old = get_width(d, d->old_sum) > l.old ? get_width(d, d->old_sum) : l.old;
    l.new = get_width(d, d->new_sum) > l.new ? get_width(d, d->new_sum) : l.new;
    l.name = d->name_width;
    if (d->width > 0) {
        int taken = l.old + l.new + CHANGE_WIDTH + 6 + (l.has_modules ? (int)module + 3 : 0) +
                    (l.has_remarks ? widest_remark : 0);
        int room = (int)d->width - taken;
        l.name = room > 16 ? (uint32_t)room : 16;
    }
    return l;
}

static void print_paths(const diff_side *side)
{
    for (uint32_t i = 0; i < side->run_count; i++) {
        printf("%s%s", i > 0 ? " " : "", side->runs[i].path);
    }
}

static void print_head(const diff *d, const layout *l)
{
    printf("%s: ", diff_get_order_name(d));
    print_paths(&d->old);
    printf(" -> ");
    print_paths(&d->new);
    if (d->old.run_count + d->new.run_count > 2) {
        printf(" (means of %" PRIu32 " and %" PRIu32 " runs)", d->old.run_count, d->new.run_count);
    }
    printf("\n\n%*s  %*s  %*s  function", l->old, "old", l->new, "new", CHANGE_WIDTH, "change");
    if (!l->has_modules && diff_count_shown(d) > 0) {
        printf(" of ");
        diff_print_name(d->rows[0].module, "");
    }
    putchar('\n');
}

static void print_row(const diff *d, const layout *l, const diff_row *row)
{
    char old[32], new[32], growth[32], name[8192];
    printf("%*s  %*s  %*s  ", l->old, diff_format_value(d, row->old_value, old), l->new,
           diff_format_value(d, row->new_value, new), CHANGE_WIDTH,
           diff_format_change(row, growth));
    diff_print_name(diff_get_display_name(row->name, l->name, name, sizeof name), "");
    if (l->has_modules) {
        printf(" (");
        diff_print_name(row->module, "");
        putchar(')');
    }
    printf("%s\n", get_remark(d, row));
}

void diff_show_table(const diff *d)
{
    char old[32], new[32], growth[32];
    layout l = choose_layout(d);
    print_head(d, &l);
    for (uint32_t i = 0; i < diff_count_shown(d); i++) {
        print_row(d, &l, &d->rows[i]);
    }
    if (diff_count_shown(d) < diff_count_differing(d) || diff_count_differing(d) == 0) {
        printf("  ");
        diff_print_hidden_count(d);
    }
    printf("\n%*s  %*s  %*s  all functions%s\n", l.old, diff_format_value(d, d->old_sum, old),
           l.new, diff_format_value(d, d->new_sum, new), CHANGE_WIDTH,
           diff_format_growth(diff_compute_growth(d->old_sum, d->new_sum), growth),
           diff_sum_fails(d)      ? "  <- too much"
           : diff_sum_is_noise(d) ? "  within noise"
                                  : "");
}
