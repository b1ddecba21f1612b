/* SPDX-License-Identifier: MIT */
/* Wrapping of the notes around the table on a terminal: lines are broken between words, and
 * continuation lines are indented further.  A word that is longer than a line is not broken. */
#include "exporters/table.h"

#define EXTRA_INDENT 4

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80; /* of a UTF-8 sequence */
}

static void put_word(hfn_wrap *w)
{
    if (w->bytes == 0) {
        return;
    }
    if (w->column > 0 && w->column + w->blanks + w->characters > w->width) {
        hfn_sink_format(w->to, "\n%*s", (int)w->indent + EXTRA_INDENT, "");
        w->column = w->indent + EXTRA_INDENT;
    } else {
        hfn_sink_format(w->to, "%*s", (int)w->blanks, "");
        w->indent = w->column == 0 ? w->blanks : w->indent;
        w->column += w->blanks;
    }
    hfn_sink_bytes(w->to, w->word, w->bytes);
    w->column += w->characters;
    w->blanks = w->bytes = w->characters = 0;
}

static void add_character(hfn_wrap *w, char c)
{
    if (c == ' ' || c == '\n') {
        put_word(w);
        w->blanks += c == ' ';
        if (c == '\n') {
            hfn_sink_text(w->to, "\n");
            w->column = w->blanks = 0;
        }
        return;
    }
    if (w->bytes == sizeof w->word) {
        put_word(w);
    }
    w->word[w->bytes++] = c;
    w->in_escape |= c == '\033';
    w->characters += !w->in_escape && !is_continuation(c);
    w->in_escape &= c != 'm';
}

static int32_t write_wrapped(void *user, const void *bytes, size_t count)
{
    hfn_wrap *w = user;
    const char *text = bytes;
    for (size_t i = 0; i < count; i++) {
        add_character(w, text[i]);
    }
    return w->to->failed;
}

void hfn_wrap_begin(hfn_wrap *w, hfn_sink *to, size_t width)
{
    *w = (hfn_wrap){ .to = to, .width = width };
    w->sink.write = write_wrapped;
    w->sink.user = w;
}

void hfn_wrap_end(hfn_wrap *w)
{
    hfn_sink_flush(&w->sink);
    put_word(w);
}
