/* SPDX-License-Identifier: MIT */
/* Function lists as text: each line is `module+0xRVA` or `module!name`.  '#' begins a comment at
 * the start of a line or after a blank. */
#include "scan/list_file.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    hotfn_list *list;
    const char *name;
    hotfn_error *err;
    hfn_span whole;
    unsigned line;
} reader;

void hfn_list_write_text(const hotfn_list *list, hfn_list_bytes *out)
{
    char place[40];
    static const char head[] =
        "# functions to hook: module+0xRVA or module!name, one on each line\n";

    hfn_list_put(out, head, sizeof head - 1);
    for (uint32_t i = 0; i < list->info.entry_count; i++) {
        const hfn_list_item *item = &list->items[i];
        int length = snprintf(place, sizeof place, "+0x%" PRIx64, item->rva);
        hfn_list_put(out, item->module, strlen(item->module));
        if (item->rva != HOTFN_LIST_NO_RVA) {
            hfn_list_put(out, place, (size_t)length);
        }
        hfn_list_put(out, item->rva == HOTFN_LIST_NO_RVA ? "!" : " # ",
                     item->rva == HOTFN_LIST_NO_RVA ? 1 : 3);
        hfn_list_put(out, item->name, strlen(item->name));
        hfn_list_put(out, "\n", 1);
    }
}

static bool parse_hex(const char *at, const char *end, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t value = 0;

    if (end - at < 3 || end - at > 18 || at[0] != '0' || (at[1] != 'x' && at[1] != 'X')) {
        return false;
    }
    for (at += 2; at < end; at++) {
        char lower = *at >= 'A' && *at <= 'F' ? (char)(*at - 'A' + 'a') : *at;
        const char *digit = memchr(digits, lower, 16);
        if (!digit) {
            return false;
        }
        value = value << 4 | (uint64_t)(digit - digits);
    }
    *out = value;
    return true;
}

static const char *find_last_character(const char *at, const char *end, char wanted)
{
    while (end > at) {
        if (*--end == wanted) {
            return end;
        }
    }
    return NULL;
}

static hotfn_status read_entry(const reader *r, const char *at, const char *end)
{
    hfn_list_item item = { .rva = HOTFN_LIST_NO_RVA, .name = "" };
    const char *bang = memchr(at, '!', (size_t)(end - at));
    const char *plus = bang ? NULL : find_last_character(at, end, '+');
    const char *separator = bang ? bang : plus;

    if (!separator || separator == at || separator + 1 == end ||
        memchr(at, 0, (size_t)(end - at)) || (plus && !parse_hex(plus + 1, end, &item.rva))) {
        return hfn_report_error(r->err, HOTFN_E_FORMAT, r->name,
                                (uint64_t)(at - (const char *)r->whole.data),
                                "line %u: write module+0xRVA or module!name", r->line);
    }
    item.module = hfn_arena_copy(&r->list->texts, at, (size_t)(separator - at));
    if (bang) {
        item.name = hfn_arena_copy(&r->list->texts, bang + 1, (size_t)(end - bang - 1));
    }
    if (!item.module || !item.name) {
        return hfn_report_no_memory(r->err, r->name);
    }
    return hfn_list_append(r->list, &item, r->err);
}

/* The end of a line without its comment and trailing blanks. */
static const char *find_trimmed_end(const char *at, const char *end)
{
    const char *mark = at;

    while (mark < end && !(*mark == '#' && (mark == at || mark[-1] == ' ' || mark[-1] == '\t'))) {
        mark++;
    }
    while (mark > at && (mark[-1] == ' ' || mark[-1] == '\t' || mark[-1] == '\r')) {
        mark--;
    }
    return mark;
}

hotfn_status hfn_list_read_text(hotfn_list *list, hfn_span bytes, const char *name,
                                hotfn_error *err)
{
    reader r = { list, name, err, bytes, 0 };
    const char *at = (const char *)bytes.data, *end = at + bytes.size;
    hotfn_status status = HOTFN_OK;

    list->info.flags = HOTFN_LIST_TEXT;
    while (status == HOTFN_OK && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *next = stop ? stop + 1 : end;
        const char *last = find_trimmed_end(at, stop ? stop : end);
        r.line++;
        while (at < last && (*at == ' ' || *at == '\t')) {
            at++;
        }
        if (at < last) {
            status = read_entry(&r, at, last);
        }
        at = next;
    }
    return status;
}
