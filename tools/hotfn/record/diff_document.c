/* SPDX-License-Identifier: MIT */
/* Writes a comparison as Markdown for a comment on a change, or as JSON (hotfn.diff/1). */
#include "cli/listing.h"
#include "diff.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Markdown: a summary and a table. */

static void print_summary(const diff *d)
{
    char old[32], new[32], growth[32];
    uint32_t failing = 0, noise = 0, differing = diff_count_differing(d);
    for (uint32_t i = 0; i < differing; i++) {
        failing += diff_row_fails(d, &d->rows[i]);
        noise += diff_row_is_noise(d, &d->rows[i]);
    }
    printf("**%s: %s \xe2\x86\x92 %s (%s)**%s, %" PRIu32 " function%s differ%s",
           diff_get_order_name(d), diff_format_value(d, d->old_sum, old),
           diff_format_value(d, d->new_sum, new),
           diff_format_growth(diff_compute_growth(d->old_sum, d->new_sum), growth),
           diff_sum_fails(d)      ? " :x:"
           : diff_sum_is_noise(d) ? " (within noise)"
                                  : "",
           differing, differing == 1 ? "" : "s", differing == 1 ? "s" : "");
    if (noise > 0) {
        printf(", %" PRIu32 " of them within noise", noise);
    }
    if (d->fail_above >= 0) {
        printf(", %" PRIu32 " grew by more than %g%%", failing, d->fail_above);
    }
    if (d->old.run_count + d->new.run_count > 2) {
        printf("; means of %" PRIu32 " and %" PRIu32 " runs", d->old.run_count, d->new.run_count);
    }
    printf("\n\n");
}

void diff_show_markdown(const diff *d)
{
    char old[32], new[32], growth[32], name[8192];
    print_summary(d);
    if (diff_count_shown(d) > 0) {
        printf("| function | old | new | change |\n|---|--:|--:|--:|\n");
    }
    for (uint32_t i = 0; i < diff_count_shown(d); i++) {
        const diff_row *row = &d->rows[i];
        printf("| ");
        diff_print_name(diff_get_display_name(row->name, d->name_width, name, sizeof name),
                        "|<>*_`\\[]~&#");
        printf(" | %s | %s | %s%s |\n", diff_format_value(d, row->old_value, old),
               diff_format_value(d, row->new_value, new), diff_format_change(row, growth),
               diff_row_fails(d, row)      ? " :x:"
               : diff_row_is_noise(d, row) ? " (within noise)"
                                           : "");
    }
    putchar('\n');
    diff_print_hidden_count(d);
}

/* ---- JSON. */

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

static void write_function(const diff *d, hotfn_json_writer *out, const diff_row *row)
{
    hotfn_json *o = hotfn_json_create_object();
    char name[8192];
    json_add_text(o, "name", row->name);
    json_add_text(o, "display", diff_get_display_name(row->name, 0, name, sizeof name));
    json_add_text(o, "module", row->module);
    add_half(o, "old", row->in_old, row->old_calls, row->old_self, row->old_total, d->timed);
    add_half(o, "new", row->in_new, row->new_calls, row->new_self, row->new_total, d->timed);
    json_add_bool(o, "within_noise", diff_row_is_noise(d, row));
    json_add_bool(o, "fails", diff_row_fails(d, row));
    hotfn_json_write(out, NULL, o);
}

void diff_show_json(const diff *d)
{
    hotfn_json_writer *out = json_open(stdout);
    hotfn_json_begin_object(out, NULL);
    json_write_text(out, "schema", "hotfn.diff/1");
    json_write_text(out, "by", diff_get_order_name(d));
    json_write_number(out, "old_runs", d->old.run_count);
    json_write_number(out, "new_runs", d->new.run_count);
    json_write_number(out, "old", d->old_sum);
    json_write_number(out, "new", d->new_sum);
    json_write_bool(out, "within_noise", diff_sum_is_noise(d));
    json_write_bool(out, "fails", diff_sum_fails(d));
    hotfn_json_begin_array(out, "functions");
    for (uint32_t i = 0; i < d->row_count && (d->limit == 0 || i < d->limit); i++) {
        write_function(d, out, &d->rows[i]);
    }
    hotfn_json_end(out);
    hotfn_json_end(out);
    json_close(out);
}
