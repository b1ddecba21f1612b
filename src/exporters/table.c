/* SPDX-License-Identifier: MIT */
/* The text table: rank, calls, share of all counted calls, module, function; then the functions
 * that were not counted, with reasons. */
#include "exporters/table.h"

#include "exporters/budget.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_REASONS 64
#define MIN_NAME 16        /* characters; a remark is dropped if the name would get fewer */
#define MAX_PLACE_WIDTH 30 /* wider ones break the alignment */
#define MAX_NAME_WIDTH 40
#define NOTE_NAME_WIDTH 40 /* on a terminal */

const char *hfn_table_color(const hfn_view *view, const char *code)
{
    return view->options.flags & HOTFN_EXPORT_COLOR ? code : "";
}

/* 1234567 as 1,234,567. */
const char *hfn_table_grouped(uint64_t value, char out[32])
{
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%" PRIu64, value);
    char *at = out;
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) {
            *at++ = ',';
        }
        *at++ = digits[i];
    }
    *at = 0;
    return out;
}

const char *hfn_table_s(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *hfn_table_calls(const hfn_view *view, uint32_t function, uint64_t calls, char out[33])
{
    out[0] = '>';
    hfn_table_grouped(calls, out + 1);
    return hfn_view_is_lower_bound(view, function) ? out : out + 1;
}

/* The length of the character at s, 0 if it is not printable.  A name may hold any bytes, and a
 * control character (C0 or C1) must not reach the terminal. */
static size_t printable_length(const char *s)
{
    size_t length = hfn_utf8_length((const unsigned char *)s);
    bool control = (unsigned char)s[0] < 0x20 || s[0] == 0x7f ||
                   (s[0] == '\xc2' && (unsigned char)s[1] < 0xa0);
    return control ? 0 : length;
}

size_t hfn_table_characters(const char *text)
{
    size_t count = 0;
    for (; *text; count++) {
        size_t n = hfn_utf8_length((const unsigned char *)text);
        text += n ? n : 1;
    }
    return count;
}

/* Names are shortened in the middle, because the end of a name identifies it as well as its
 * beginning. */
void hfn_table_name(hfn_sink *sink, const char *name, size_t width)
{
    size_t count = hfn_table_characters(name);
    bool cut = width > 0 && count > width;
    size_t head = cut ? width / 2 : count, tail = cut ? count - (width - 1 - head) : count;
    for (size_t i = 0; *name; i++) {
        size_t n = printable_length(name), step = hfn_utf8_length((const unsigned char *)name);
        if (i < head || i >= tail) {
            hfn_sink_bytes(sink, n ? name : "?", n ? n : 1);
        } else if (i == head) {
            hfn_sink_text(sink, "\xe2\x80\xa6");
        }
        name += step ? step : 1;
    }
}

size_t hfn_table_note_width(const hfn_view *view)
{
    return view->options.width > 0 ? NOTE_NAME_WIDTH : view->options.name_width;
}

enum { OVERWRITTEN_NAMES = 3 };

static void put_overwritten(const hfn_view *view, hfn_sink *sink)
{
    uint32_t total = view->info.overwritten_count, named = 0;
    char name[256];

    if (total == 0) {
        return;
    }
    hfn_sink_format(sink,
                    "\nWARNING: other code overwrote the hooks of %" PRIu32
                    " function%s, which are not counted: ",
                    total, total == 1 ? "" : "s");
    for (uint32_t i = 0; i < view->info.function_count && named < OVERWRITTEN_NAMES; i++) {
        hotfn_record_function f;
        hfn_view_function(view, i, &f);
        if (f.state == HOTFN_STATE_REFUSED && strcmp(f.reason, "overwritten") == 0) {
            hfn_sink_text(sink, named++ > 0 ? ", " : "");
            const char *shown = hfn_view_display(view, &f, name, sizeof name);
            hfn_table_function(sink, shown, hfn_table_note_width(view));
        }
    }
    hfn_sink_text(sink, total > named ? ", ..." : "");
}

/* The time for which the program itself ran.  hotfn's preparation before that is subtracted, and
 * reported if it was long. */
static void put_duration(hfn_sink *sink, const hotfn_record_info *info)
{
    uint64_t length = info->end_ns - info->start_ns;
    uint64_t own = info->preparation_ns < length ? info->preparation_ns : length;

    hfn_sink_format(sink, ", %.3f s", (double)(length - own) / 1e9);
    if (own >= HFN_LONG_PREPARATION_NS) {
        hfn_sink_format(sink, " after %.3f s of preparation", (double)own / 1e9);
    }
}

static void put_heading(const hfn_view *view, hfn_sink *sink)
{
    char calls[32];
    const hotfn_record_info *info = &view->info;
    hfn_table_put_children(view, sink);
    hfn_sink_text(sink, hfn_table_color(view, BOLD));
    hfn_table_name(sink, info->command[0] ? info->command : "(unknown command)",
                   view->options.width);
    hfn_sink_text(sink, hfn_table_color(view, PLAIN));
    hfn_sink_format(sink, "\n%s", hotfn_record_get_state_name(info->state));
    if (info->state != HOTFN_RECORD_LIVE && info->exit_code != 0) {
        hfn_sink_format(sink, info->exit_code < 0 ? " by signal %d" : " with status %d",
                        info->exit_code < 0 ? -info->exit_code : info->exit_code);
    }
    if (info->window_end_ns > info->window_start_ns) {
        hfn_sink_format(sink, ", window of %.3f s",
                        (double)(info->window_end_ns - info->window_start_ns) / 1e9);
    } else if (info->end_ns > info->start_ns) {
        put_duration(sink, info);
    }
    hfn_sink_format(sink, ", %s call%s counted", hfn_table_grouped(view->total_calls, calls),
                    hfn_table_s(view->total_calls));
    if (info->threads_lost) {
        hfn_sink_format(sink, ", CALLS OF %" PRIu32 " THREAD%s LOST", info->threads_lost,
                        info->threads_lost == 1 ? "" : "S");
    }
    put_overwritten(view, sink);
    if (info->unverified_count > 0 && info->state != HOTFN_RECORD_LIVE) {
        hfn_sink_format(sink,
                        "\nnot verified: the hooks of %" PRIu32
                        " process%s were not compared with memory at the end",
                        info->unverified_count, info->unverified_count == 1 ? "" : "es");
    }
    if (info->repaired[0]) {
        hfn_sink_text(sink, "\nrepaired; lost: ");
        hfn_table_name(sink, info->repaired, 0);
    }
    hfn_sink_text(sink, "\n\n");
}

/* Write the name, file:line if it is known and fits, and the remark if it leaves enough room for
 * the name.  Room 0: unlimited, except for the name itself. */
static void put_function(const hfn_view *view, hfn_sink *sink, const hotfn_record_function *f,
                         const hotfn_record_module *m, const char *remark, size_t room)
{
    char shown[8192], file[4096], place[320];
    uint32_t line = 0;
    const char *name = hfn_view_display(view, f, shown, sizeof shown);
    size_t behind = hfn_table_characters(remark), length = hfn_table_characters(name);
    size_t wanted = length < MIN_NAME ? length : MIN_NAME;
    if (room > 0 && behind + wanted > room) {
        remark = "";
    } else if (room > 0) {
        room -= behind;
    }
    hfn_table_function(sink, name, room > 0 ? room : view->options.name_width);
    if (hfn_view_line(view, f, m, file, sizeof file, &line)) {
        const char *slash = strrchr(file, '/'), *backslash = strrchr(file, '\\');
        slash = backslash > slash ? backslash : slash;
        snprintf(place, sizeof place, "%.300s:%" PRIu32, slash ? slash + 1 : file, line);
        if (room == 0 || length + 2 + hfn_table_characters(place) <= room) {
            hfn_sink_format(sink, "  %s", hfn_table_color(view, DIM));
            hfn_table_name(sink, place, 0);
            hfn_sink_text(sink, hfn_table_color(view, PLAIN));
        }
    }
    hfn_table_name(sink, remark, 0);
    hfn_sink_text(sink, "\n");
}

static void put_share(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                      uint64_t calls)
{
    char text[16];
    double share = view->total_calls ? 100.0 * (double)calls / (double)view->total_calls : 0;
    snprintf(text, sizeof text, "%.2f%%", share);
    hfn_layout_put(view, sink, l, HFN_COLUMN_SHARE, share >= 5 ? HOT : "", text);
}

/* Functions that the linker folded, or aliases, share an entry: their calls are counted together.
 * The names of one function in several spellings (constructors of C++) do not count. */
static uint32_t count_other_names(const hfn_view *view, const hotfn_record_function *f)
{
    char shown[8192], other[8192];
    uint32_t count = 0;
    hotfn_record_function alias = *f;
    const char *name = hfn_view_display(view, f, shown, sizeof shown);
    for (alias.name = f->names; f->name_count > 1 && alias.name[0];
         alias.name += strlen(alias.name) + 1) {
        count += strcmp(hfn_view_display(view, &alias, other, sizeof other), name) != 0;
    }
    return count;
}

static void put_row(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l, uint32_t rank)
{
    char text[33], remark[200] = "";
    hotfn_record_function f;
    hotfn_record_module m;
    hotfn_record_timing t;
    uint32_t index = view->order[rank];
    hfn_view_function(view, index, &f);
    hfn_view_module(view, f.module, &m);
    snprintf(text, sizeof text, "%" PRIu32, rank + 1);
    hfn_layout_put(view, sink, l, HFN_COLUMN_RANK, "", text);
    hfn_layout_put(view, sink, l, HFN_COLUMN_CALLS, view->time.flags ? "" : BOLD,
                   hfn_table_calls(view, index, f.calls, text));
    if (view->time.flags) {
        hfn_view_timing(view, index, &t);
        hfn_table_times(view, sink, l, &t);
        hfn_table_memory(view, sink, l, &t);
        hfn_table_time_remark(&t, remark, sizeof remark);
    } else {
        put_share(view, sink, l, f.calls);
    }
    hfn_layout_put_module(view, sink, l, m.file);
    if (f.flags & HOTFN_VERDICT_ENTRY_LOOP) {
        size_t used = strlen(remark);
        snprintf(remark + used, sizeof remark - used, " (entry is a loop)");
    }
    if (hfn_is_found_by_code(&f)) {
        size_t used = strlen(remark);
        snprintf(remark + used, sizeof remark - used, " (found by %s)", hfn_found_by_name(f.flags));
    }
    uint32_t others = count_other_names(view, &f);
    if (others > 0) {
        size_t used = strlen(remark);
        snprintf(remark + used, sizeof remark - used, " (shared by %" PRIu32 " more name%s)",
                 others, hfn_table_s(others));
    }
    put_function(view, sink, &f, &m, remark, l->room);
}

/* The number of functions that were called, at most limit.  They come first in any order. */
static uint32_t called_rows(const hfn_view *view, uint32_t limit)
{
    uint32_t rows = 0;
    while (rows < limit) {
        hotfn_record_function f;
        hfn_view_function(view, view->order[rows], &f);
        if (!f.counted || f.calls == 0) {
            break;
        }
        rows++;
    }
    return rows;
}

typedef struct tally {
    const char *text;
    uint32_t functions;
} tally;

typedef struct census {
    uint32_t hooked, called, fragments, excluded, refused;
    uint32_t reason_count;
    tally reasons[MAX_REASONS]; /* after sort_reasons: the most frequent first */
} census;

static void count_reason(census *c, const char *text)
{
    for (uint32_t i = 0; i < c->reason_count; i++) {
        if (strcmp(c->reasons[i].text, text) == 0) {
            c->reasons[i].functions++;
            return;
        }
    }
    if (c->reason_count < MAX_REASONS) {
        c->reasons[c->reason_count].text = text;
        c->reasons[c->reason_count++].functions = 1;
    }
}

static void count_states(const hfn_view *view, census *c)
{
    for (uint32_t i = 0; i < view->info.function_count; i++) {
        hotfn_record_function f;
        hfn_view_function(view, i, &f);
        c->hooked += f.state == HOTFN_STATE_HOOKED;
        c->called += f.counted && f.calls > 0;
        c->fragments += f.state == HOTFN_STATE_FRAGMENT;
        c->excluded += f.state == HOTFN_STATE_EXCLUDED;
        if (f.state == HOTFN_STATE_REFUSED || f.state == HOTFN_STATE_WAITING) {
            c->refused++;
            count_reason(c, f.reason_text[0] ? f.reason_text : f.reason[0] ? f.reason : "unknown");
        }
    }
}

static void sort_reasons(census *c)
{
    for (uint32_t i = 1; i < c->reason_count; i++) {
        tally t = c->reasons[i];
        uint32_t at = i;
        for (; at > 0 && c->reasons[at - 1].functions < t.functions; at--) {
            c->reasons[at] = c->reasons[at - 1];
        }
        c->reasons[at] = t;
    }
}

static void format_place(const hfn_view *view, const hotfn_record_function *f, char out[300])
{
    hotfn_record_module m;
    hfn_view_module(view, f->module, &m);
    snprintf(out, 300, "%.256s+0x%" PRIx64, m.file, f->rva);
}

static void put_padded(hfn_sink *sink, const char *text, size_t width)
{
    size_t length = hfn_table_characters(text);
    hfn_table_name(sink, text, 0);
    hfn_sink_format(sink, "%*s", length < width ? (int)(width - length) : 0, "");
}

static void put_padded_function(hfn_sink *sink, const char *name, size_t width, size_t most)
{
    size_t length = hfn_table_characters(name);
    hfn_table_function(sink, name, most);
    length = most > 0 && length > most ? most : length;
    hfn_sink_format(sink, "%*s", length < width ? (int)(width - length) : 0, "");
}

static bool is_listed(const hotfn_record_function *f)
{
    return f->state == HOTFN_STATE_REFUSED || f->state == HOTFN_STATE_WAITING;
}

/* List the refused functions.  Without a sink, only measure widths: of the places and of the names.
 * Returns their number. */
static uint32_t list_refused(const hfn_view *view, hfn_sink *sink, size_t widths[2])
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < view->count; i++) {
        char shown[8192], place[300];
        hotfn_record_function f;
        hfn_view_function(view, view->order[i], &f);
        if (!is_listed(&f)) {
            continue;
        }
        found++;
        format_place(view, &f, place);
        const char *name = hfn_view_display(view, &f, shown, sizeof shown);
        if (sink) {
            hfn_sink_text(sink, "  ");
            put_padded(sink, place, widths[0]);
            hfn_sink_text(sink, "  ");
            put_padded_function(sink, name, widths[1], hfn_table_note_width(view));
            hfn_sink_text(sink, "  ");
            hfn_table_name(sink, f.reason, 0);
            hfn_sink_format(sink, " at byte %" PRIu32 ": ", f.reason_offset);
            hfn_table_name(sink, f.reason_text, 0);
            hfn_sink_text(sink, "\n");
        } else {
            size_t a = hfn_table_characters(place), b = hfn_table_characters(name);
            widths[0] = a > widths[0] && a <= MAX_PLACE_WIDTH ? a : widths[0];
            widths[1] = b > widths[1] && b <= MAX_NAME_WIDTH ? b : widths[1];
        }
    }
    return found;
}

static void put_refused(const hfn_view *view, hfn_sink *sink)
{
    size_t widths[2] = { 0, 0 };
    if (!(view->options.flags & HOTFN_EXPORT_REFUSED) || list_refused(view, NULL, widths) == 0) {
        return;
    }
    hfn_sink_text(sink, "\nnot counted:\n");
    list_refused(view, sink, widths);
}

static void put_modules(const hfn_view *view, hfn_sink *sink)
{
    uint32_t not_selected = 0;
    for (uint32_t i = 0; i < view->info.module_count; i++) {
        hotfn_record_module m;
        hfn_view_module(view, i, &m);
        not_selected += (m.flags & HOTFN_MODULE_LEFT_OUT) != 0;
        if (m.flags & HOTFN_MODULE_FAILED) {
            hfn_table_name(sink, m.file, 0);
            hfn_sink_text(sink, " was not counted: ");
            hfn_table_name(sink, m.note, 0);
            hfn_sink_text(sink, "\n");
        } else if (m.note[0]) {
            hfn_table_name(sink, m.file, 0);
            hfn_sink_text(sink, ": ");
            hfn_table_name(sink, m.note, 0);
            hfn_sink_text(sink, "\n");
        }
    }
    if (not_selected) {
        hfn_sink_format(
            sink, "%" PRIu32 " module%s not selected (run with --module '*' to count %s too)\n",
            not_selected, hfn_table_s(not_selected), not_selected == 1 ? "it" : "them");
    }
}

static void put_reasons(const census *c, hfn_sink *sink)
{
    for (uint32_t i = 0; i < c->reason_count; i++) {
        hfn_sink_format(sink, "  %6" PRIu32 "  ", c->reasons[i].functions);
        hfn_table_name(sink, c->reasons[i].text, 0);
        hfn_sink_text(sink, "\n");
    }
    if (c->fragments) {
        hfn_sink_format(sink, "  %6" PRIu32 "  not entries: parts of other functions (fragments)\n",
                        c->fragments);
    }
}

/* Names by address are useless to a reader, so say where names come from. */
static void put_naming_hint(const hfn_view *view, hfn_sink *sink, uint32_t rows)
{
    uint32_t nameless = 0;
    for (uint32_t i = 0; i < rows; i++) {
        hotfn_record_function f;
        hotfn_record_module m;
        hfn_view_function(view, view->order[i], &f);
        hfn_view_module(view, f.module, &m);
        size_t length = strlen(m.file);
        nameless += strncmp(f.name, m.file, length) == 0 && strncmp(f.name + length, "+0x", 3) == 0;
    }
    if (nameless > rows / 2) {
        hfn_sink_text(sink,
                      "most functions have no name: install the program's -dbgsym package, or "
                      "run with --symbol-dir DIR (debug files) or --map FILE (linker map)\n");
    }
}

static void put_census(const hfn_view *view, hfn_sink *sink, uint32_t rows)
{
    census c = { 0 };
    count_states(view, &c);
    sort_reasons(&c);
    uint32_t called = called_rows(view, view->count);
    if (called > rows) {
        hfn_sink_format(sink, "  ... and %" PRIu32 " more function%s called (-n 0 shows all)\n",
                        called - rows, called - rows == 1 ? " that was" : "s that were");
    }
    hfn_sink_format(
        sink, "\n%" PRIu32 " function%s hooked, %" PRIu32 " of them called; %" PRIu32 " refused",
        c.hooked, hfn_table_s(c.hooked), c.called, c.refused);
    if (c.refused && !(view->options.flags & HOTFN_EXPORT_REFUSED)) {
        hfn_sink_text(sink, " (--why has the reasons)");
    }
    if (c.excluded) {
        hfn_sink_format(sink, ", %" PRIu32 " excluded", c.excluded);
    }
    if (hfn_view_coverage(view) >= 0) {
        hfn_sink_format(sink, "; known functions contain %.1f%% of the code",
                        hfn_view_coverage(view));
    }
    hfn_sink_text(sink, "\n");
    if (view->options.flags & HOTFN_EXPORT_REFUSED) {
        put_reasons(&c, sink);
    }
    put_naming_hint(view, sink, rows);
    put_modules(view, sink);
}

/* The notes below the rows. */
static bool put_notes(const hfn_view *view, hfn_sink *sink, const hfn_table_layout *l,
                      uint32_t rows)
{
    hfn_layout_notes(view, sink, l);
    put_census(view, sink, rows);
    hfn_budget_write_table(view, sink);
    if (view->time.flags && !hfn_table_time_notes(view, sink)) {
        return false;
    }
    if ((view->options.flags & HOTFN_EXPORT_EDGES) && !(view->time.flags & HOTFN_TIMING_TREE)) {
        hfn_sink_text(sink, "\nthe record has no callers: run with --mode time, without --flat and "
                            "--sample\n");
    }
    put_refused(view, sink);
    return true;
}

static bool write_table(const hfn_view *view, hfn_sink *sink)
{
    uint32_t rows = called_rows(view, view->limit);
    hfn_table_layout layout;
    hfn_wrap wrap;
    hfn_sink *prose = view->options.width > 0 ? &wrap.sink : sink;
    bool ok;
    hfn_layout_choose(view, rows, &layout);
    hfn_wrap_begin(&wrap, sink, view->options.width);
    put_heading(view, prose);
    hfn_wrap_end(&wrap);
    hfn_layout_titles(view, sink, &layout);
    for (uint32_t i = 0; i < rows && !sink->failed; i++) {
        put_row(view, sink, &layout, i);
    }
    ok = put_notes(view, prose, &layout, rows);
    hfn_wrap_end(&wrap);
    return ok;
}

const hfn_exporter hfn_exporter_table = {
    .name = "table",
    .extension = ".txt",
    .about = "a text table for the terminal",
    .needs = HOTFN_NEEDS_FLAT,
    .write = write_table,
};
