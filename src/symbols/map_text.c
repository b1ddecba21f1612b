/* SPDX-License-Identifier: MIT */
/* Lines and words.  The length of a line is bounded: no linker writes a longer line, and a gigabyte
 * without a line end is refused before all of it is read. */
#include "symbols/map_text.h"

#include "base/status.h"

#include <string.h>

#define MAX_LINE_BYTES ((size_t)1 << 20)

hotfn_status hfn_map_fail(const hfn_map_lines *lines, const char *what)
{
    return hfn_report_error(lines->err, HOTFN_E_FORMAT, lines->path,
                            (uint64_t)(lines->line - lines->begin), "line %u %s", lines->number,
                            what);
}

hotfn_status hfn_map_lines_begin(hfn_map_lines *lines, hfn_span bytes, const char *path,
                                 const hotfn_env *env, hotfn_error *err)
{
    const char *text = (const char *)bytes.data;

    memset(lines, 0, sizeof *lines);
    if (bytes.size == 0) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, 0, "an empty file is no linker map");
    }
    if (bytes.size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0 ||
                            text[0] == 0 || text[1] == 0)) {
        return hfn_report_error(
            err, HOTFN_E_FORMAT, path, 0,
            "this is UTF-16 text, or not text at all: give the map as the linker wrote it "
            "(iconv -f UTF-16 -t UTF-8)");
    }
    *lines = (hfn_map_lines){ .begin = text, .at = text, .line = text, .path = path, .err = err };
    lines->end = text + bytes.size;
    lines->progress = hfn_progress_begin(env, "reading symbols of", path, bytes.size);
    if (bytes.size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        lines->at += 3;
    }
    return HOTFN_OK;
}

static bool is_blank(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r')) {
        at++;
    }
    return at == end;
}

bool hfn_map_next_line(hfn_map_lines *l, hfn_text *out)
{
    size_t left = (size_t)(l->end - l->at);
    const char *end;

    if (left == 0 || l->status != HOTFN_OK) {
        return false;
    }
    l->line = l->at;
    l->number++;
    hfn_progress_reach(&l->progress, (uint64_t)(l->at - l->begin));
    end = memchr(l->at, '\n', left < MAX_LINE_BYTES ? left : MAX_LINE_BYTES);
    if (!end && left >= MAX_LINE_BYTES) {
        l->status = hfn_map_fail(l, "is longer than 1 MiB: no linker writes that");
        return false;
    }
    if (!end && !l->allow_truncated && !is_blank(l->at, l->end)) {
        l->status = hfn_map_fail(l, "has no end: the map was truncated, or is still being written");
        return false;
    }
    l->at = end ? end + 1 : l->end;
    if (!end) {
        end = l->end;
    }
    while (end > l->line && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    *out = (hfn_text){ l->line, end };
    return true;
}

bool hfn_text_take(hfn_text *t, const char *word)
{
    if (!hfn_text_begins(*t, word)) {
        return false;
    }
    t->at += strlen(word);
    return true;
}

/* The value of a hexadecimal digit, 255 for any other character. */
static const uint8_t digits[256] = {
#define NONE4 255, 255, 255, 255
#define NONE16 NONE4, NONE4, NONE4, NONE4
    NONE16, NONE16, NONE16, 0,      1,      2,      3,      4,      5,      6,      7,   8,
    9,      NONE4,  255,    255,    255,    10,     11,     12,     13,     14,     15,  255,
    NONE4,  NONE4,  NONE16, 255,    10,     11,     12,     13,     14,     15,     255, NONE4,
    NONE4,  NONE16, NONE16, NONE16, NONE16, NONE16, NONE16, NONE16, NONE16, NONE16,
};

bool hfn_text_take_hex(hfn_text *t, uint64_t *out)
{
    const char *at = t->at;
    uint64_t value = 0;
    unsigned digit;

    while (at < t->end && (digit = digits[(uint8_t)*at]) < 16) {
        value = value << 4 | digit;
        at++;
    }
    if (at == t->at || at - t->at > 16) {
        return false;
    }
    t->at = at;
    *out = value;
    return true;
}

bool hfn_text_take_0x(hfn_text *t, uint64_t *out)
{
    hfn_text rest = { t->at + 2, t->end };

    if (t->end - t->at < 3 || t->at[0] != '0' || t->at[1] != 'x' ||
        !hfn_text_take_hex(&rest, out)) {
        return false;
    }
    *t = rest;
    return true;
}

bool hfn_text_take_decimal(hfn_text *t, uint64_t *out)
{
    const char *at = t->at;
    uint64_t value = 0;

    while (at < t->end && *at >= '0' && *at <= '9' && at - t->at < 20) {
        value = value * 10 + (uint64_t)(*at++ - '0');
    }
    if (at == t->at || at - t->at > 19) {
        return false;
    }
    t->at = at;
    *out = value;
    return true;
}

size_t hfn_text_take_blanks(hfn_text *t)
{
    const char *from = t->at;

    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t')) {
        t->at++;
    }
    return (size_t)(t->at - from);
}

hfn_text hfn_text_take_word(hfn_text *t)
{
    hfn_text word = { t->at, t->at };

    while (word.end < t->end && *word.end != ' ' && *word.end != '\t') {
        word.end++;
    }
    t->at = word.end;
    return word;
}

bool hfn_text_begins(hfn_text t, const char *word)
{
    size_t length = strlen(word);

    return hfn_text_length(t) >= length && memcmp(t.at, word, length) == 0;
}

bool hfn_text_ends(hfn_text t, const char *word)
{
    size_t length = strlen(word);

    return hfn_text_length(t) >= length && memcmp(t.end - length, word, length) == 0;
}

bool hfn_text_is(hfn_text t, const char *word)
{
    return hfn_text_length(t) == strlen(word) && hfn_text_begins(t, word);
}

const char *hfn_text_find(hfn_text t, const char *word)
{
    size_t length = strlen(word);
    const char *at = t.at;

    while (at && hfn_text_length((hfn_text){ at, t.end }) >= length) {
        at = memchr(at, word[0], (size_t)(t.end - at) - length + 1);
        if (at && memcmp(at, word, length) == 0) {
            return at;
        }
        at = at ? at + 1 : NULL;
    }
    return NULL;
}
