/* SPDX-License-Identifier: MIT */
/* Shortens C++ and Rust names that are wider than a table's column.  Instances of one template
 * begin and end alike, so the contents of brackets are replaced by an ellipsis: the longest of the
 * innermost pairs first, in each pair first the arguments after the first and then the first one
 * too, until the name fits:
 * `vector<int, allocator<int> >::push_back(int const&)` becomes `vector<int, ...>::push_back(...)`.
 * The page does the same (html/common.js). */
#include "exporters/table.h"

#include <string.h>

#define MAX_DEPTH 64
#define FOLDED "\xe2\x80\xa6"
#define FOLDED_BYTES 3u

static bool is_letter(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* The length of an operator's name such as `operator<<` at `at`, whose characters are not brackets;
 * 0 if there is none. */
static size_t operator_length(const char *name, size_t at)
{
    static const char word[] = "operator";
    static const char *const signs[] = { "<=>", "<<=", ">>=", "->*", "<<", ">>", "->",
                                         "<=",  ">=",  "()",  "<",   ">",  "" };
    size_t length = sizeof word - 1, i = 0;
    if ((at > 0 && is_letter(name[at - 1])) || strncmp(name + at, word, length) != 0 ||
        is_letter(name[at + length])) {
        return 0;
    }
    while (strncmp(name + at + length, signs[i], strlen(signs[i])) != 0) {
        i++;
    }
    return length + strlen(signs[i]);
}

/* Find the longest pair of brackets that holds no other pair worth folding.  False if there is none
 * or the brackets do not match. */
static bool find_innermost(const char *name, size_t *begin, size_t *end)
{
    struct {
        size_t at;
        bool is_outer;
    } open[MAX_DEPTH];
    size_t depth = 0, most = 0, skipped;
    for (size_t i = 0; name[i]; i++) {
        char c = name[i];
        if ((skipped = operator_length(name, i)) > 0) {
            i += skipped - 1;
        } else if (c == '<' || c == '(') {
            if (depth == MAX_DEPTH) {
                return false;
            }
            open[depth].at = i;
            open[depth++].is_outer = false;
        } else if (c == ')' || (c == '>' && (i == 0 || name[i - 1] != '-'))) {
            if (depth == 0 || name[open[depth - 1].at] != (c == ')' ? '(' : '<')) {
                return false;
            }
            size_t from = open[--depth].at, bytes = i - from - 1;
            if (bytes < FOLDED_BYTES || memcmp(name + from + 1, FOLDED, FOLDED_BYTES) == 0) {
                continue;
            }
            if (!open[depth].is_outer && bytes > most) {
                most = bytes;
                *begin = from + 1;
                *end = i;
            }
            if (depth > 0) {
                open[depth - 1].is_outer = true;
            }
        }
    }
    return depth == 0 && most > 0;
}

/* Return the offset of the second argument between the brackets, or `begin` if there is none or it
 * is folded already. */
static size_t find_second_argument(const char *name, size_t begin, size_t end)
{
    size_t depth = 0;
    for (size_t i = begin; i + 2 < end; i++) {
        depth += name[i] == '<' || name[i] == '(';
        depth -= depth > 0 && (name[i] == '>' || name[i] == ')');
        if (depth == 0 && name[i] == ',' && name[i + 1] == ' ') {
            return end - (i + 2) > FOLDED_BYTES ? i + 2 : begin;
        }
    }
    return begin;
}

void hotfn_fold_name(char *name, uint32_t columns)
{
    if (!name) {
        return;
    }

    size_t begin = 0, end = 0;
    while (hfn_table_characters(name) > columns && find_innermost(name, &begin, &end)) {
        begin = find_second_argument(name, begin, end);
        memmove(name + begin + FOLDED_BYTES, name + end, strlen(name + end) + 1);
        memcpy(name + begin, FOLDED, FOLDED_BYTES);
    }
}

void hfn_table_function(hfn_sink *sink, const char *name, size_t width)
{
    char folded[8192];
    size_t bytes = strlen(name);
    if (width == 0 || bytes >= sizeof folded) {
        hfn_table_name(sink, name, width);
        return;
    }
    memcpy(folded, name, bytes + 1);
    hotfn_fold_name(folded, (uint32_t)width);
    hfn_table_name(sink, folded, width);
}
