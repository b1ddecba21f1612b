/* SPDX-License-Identifier: MIT */
/* Fits lines to a terminal.  Names are cut in the middle, because the end of a name identifies it
 * as well as its beginning; sentences are broken between words, with continuation lines
 * indented. */
#include "column_widths.h"

#include <hotfn/export.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTINUATION_INDENT 4

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80; /* not a continuation byte of UTF-8 */
}

static uint32_t count_characters(const char *text, size_t bytes)
{
    uint32_t count = 0;
    for (size_t i = 0; i < bytes && text[i]; i++) {
        count += begins_character(text[i]);
    }
    return count;
}

/* NO_COLOR disables colours unless it is empty, and so does a dumb terminal. */
bool fit_wants_color(void)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return isatty(1) && !(no && no[0]) && terminal && strcmp(terminal, "dumb") != 0;
}

void fit_cut(FILE *out, const char *text, uint32_t columns)
{
    uint32_t count = count_characters(text, SIZE_MAX), at = 0;
    uint32_t head = count > columns ? columns / 2 : count;
    uint32_t tail = count > columns ? count - (columns - head) + 1 : count;
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        at += begins_character(*text);
        if (at <= head || at > tail) {
            fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
        } else if (at == head + 1 && begins_character(*text) && columns > 0) {
            fputs("\xe2\x80\xa6", out);
        }
    }
}

void fit_name(FILE *out, const char *name, uint32_t columns)
{
    char folded[16384];
    snprintf(folded, sizeof folded, "%s", name);
    hotfn_fold_name(folded, columns);
    fit_cut(out, strlen(name) < sizeof folded ? folded : name, columns);
}

/* A word that is longer than a line is not broken. */
static void break_line(FILE *out, const char *line, uint32_t columns)
{
    uint32_t indent = (uint32_t)strspn(line, " "), column = 0;
    while (*line) {
        size_t blanks = strspn(line, " "), word = strcspn(line + blanks, " ");
        uint32_t width = count_characters(line + blanks, word);
        if (column > 0 && word > 0 && column + blanks + width > columns) {
            fprintf(out, "\n%*s", (int)(indent + CONTINUATION_INDENT), "");
            column = indent + CONTINUATION_INDENT;
        } else if (word > 0) {
            fprintf(out, "%*s", (int)blanks, "");
            column += (uint32_t)blanks;
        }
        fwrite(line + blanks, 1, word, out);
        column += width;
        line += blanks + word;
    }
}

void fit_lines(char *text, uint32_t columns, uint32_t keep)
{
    for (char *line = text, *end; line && *line; line = end + 1) {
        end = line + strcspn(line, "\n");
        bool is_last = *end == 0;
        *end = 0;
        if (count_characters(line, SIZE_MAX) <= columns) {
            fputs(line, stdout);
        } else if (keep > 0 && keep < columns && keep < strlen(line)) {
            printf("%.*s", (int)keep, line);
            fit_name(stdout, line + keep, columns - keep);
        } else {
            break_line(stdout, line, columns);
        }
        fputs(is_last ? "" : "\n", stdout);
        if (is_last) {
            break;
        }
    }
}
