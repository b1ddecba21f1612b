/* SPDX-License-Identifier: MIT */
/* Shortens C++ and Rust names that are wider than a table's column.  First the return type is
 * dropped, then leading scopes, as long as the last component keeps one scope.  Instances of one
 * template begin and end alike, so then the contents of brackets are replaced by an ellipsis: the
 * longest of the innermost pairs first, in each pair first the arguments after the first and then
 * the first one too: `vector<int, allocator<int> >::push_back(int const&)` becomes
 * `vector<int, ...>::push_back(...)`.  If the name is still too wide, it is cut at the left of its
 * last component, or in the middle of it.  The page does the same (html/common.js). */
#include "exporters/table.h"

#include "base/compiler.h"

#include <string.h>

#define MAX_DEPTH 64
#define FOLDED "\xe2\x80\xa6"
#define FOLDED_BYTES 3u
#define MIN_SCOPE 4 /* characters: the ellipsis, one character of the scope, and `::` */

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

/* ---- The components of a qualified name. */

/* The offset after the bracket group, the operator's name or the single character at `at`.  A group
 * that is not closed ends with the name. */
static size_t skip_element(const char *name, size_t at)
{
    size_t depth = 0, sign = operator_length(name, at);
    if (sign > 0) {
        return at + sign;
    }
    while (name[at]) {
        char c = name[at];
        depth += strchr("<({[", c) != NULL;
        depth -= depth > 0 && strchr(">)}]", c) && !(c == '>' && name[at - 1] == '-');
        at++;
        if (depth == 0) {
            break;
        }
        while ((sign = operator_length(name, at)) > 0) {
            at += sign;
        }
    }
    return at;
}

/* Return the offset of the component after the one at `at`, or 0.  The type of a conversion
 * operator (`operator std::string`) is no component. */
static size_t find_next_component(const char *name, size_t at)
{
    bool in_operator = false;
    while (name[at]) {
        in_operator = operator_length(name, at) > 0 || (in_operator && name[at] != '(');
        if (!in_operator && name[at] == ':' && name[at + 1] == ':') {
            return at + 2;
        }
        at = skip_element(name, at);
    }
    return 0;
}

/* Lambdas and closures ({lambda()#1}, {{closure}}) have no names: they belong to their scope. */
static bool has_own_name(const char *component)
{
    return component[0] != '{';
}

static uint32_t count_components(const char *name)
{
    uint32_t count = 0;
    size_t at = 0;
    do {
        count += has_own_name(name + at);
        at = find_next_component(name, at);
    } while (at > 0);
    return count;
}

static size_t find_last_component(const char *name)
{
    size_t last = 0, at = 0;
    while ((at = find_next_component(name, at)) > 0) {
        last = has_own_name(name + at) ? at : last;
    }
    return last;
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Return the offset of the qualified name behind the return type: behind the last blank before the
 * parameters.  0 if there is no return type, or another form as in `void (*f())()`. */
static size_t find_qualified_name(const char *name)
{
    size_t begin = 0, at = 0;
    while (name[at] && operator_length(name, at) == 0) {
        bool is_scope = begins_with(name + at, "(anonymous namespace)") ||
                        (at >= 8 && begins_with(name + at - 8, "decltype(")) ||
                        (at >= 9 && begins_with(name + at - 9, "decltype ("));
        if (name[at] == '(' && !is_scope) {
            return at > begin ? begin : 0;
        }
        begin = name[at] == ' ' ? at + 1 : begin;
        at = skip_element(name, at);
    }
    return name[at] ? begin : 0;
}

/* The length of "non-virtual thunk to ", "guard variable for " and the like, which are kept. */
static size_t measure_kept_words(const char *name)
{
    static const char *const ends[] = { " thunk to ", " for " };
    for (size_t i = 0; i < HFN_COUNT_OF(ends); i++) {
        const char *at = strstr(name, ends[i]);
        if (at && (size_t)(at - name) < strcspn(name, "(<{:")) {
            return (size_t)(at - name) + strlen(ends[i]);
        }
    }
    return 0;
}

static void drop_head(char *name, size_t bytes)
{
    memmove(name, name + bytes, strlen(name + bytes) + 1);
}

static void drop_scopes(char *name, uint32_t columns)
{
    char *path = name + measure_kept_words(name);
    if (hfn_table_characters(name) > columns) {
        drop_head(path, find_qualified_name(path));
    }
    while (hfn_table_characters(name) > columns && count_components(path) > 2) {
        drop_head(path, find_next_component(path, 0));
    }
}

/* ---- The last resort. */

static size_t find_character(const char *text, size_t index)
{
    size_t at = 0;
    for (; index > 0 && text[at]; index--) {
        size_t length = hfn_utf8_length((const unsigned char *)text + at);
        at += length > 0 ? length : 1;
    }
    return at;
}

/* Replace characters from index `head` on by an ellipsis, so many that at most columns > 0 remain.
 * The ellipsis takes no more bytes than the characters had. */
static void cut_characters(char *name, size_t head, size_t columns)
{
    size_t count = hfn_table_characters(name), tail = columns - head - 1;
    size_t begin = find_character(name, head), end = find_character(name, count - tail);
    while (end - begin < FOLDED_BYTES && name[end]) {
        end += find_character(name + end, 1);
    }
    if (end - begin < FOLDED_BYTES) {
        name[begin] = 0;
        return;
    }
    memcpy(name + begin, FOLDED, FOLDED_BYTES);
    drop_head(name + begin + FOLDED_BYTES, end - begin - FOLDED_BYTES);
}

static void cut_name(char *name, uint32_t columns)
{
    size_t last = find_last_component(name);
    if (columns == 0) {
        name[0] = 0;
    } else if (last > 0 && hfn_table_characters(name + last) + MIN_SCOPE <= columns) {
        cut_characters(name, 0, columns);
    } else {
        drop_head(name, last);
        if (hfn_table_characters(name) > columns) {
            cut_characters(name, columns / 2, columns);
        }
    }
}

void hotfn_fold_name(char *name, uint32_t columns)
{
    if (!name) {
        return;
    }

    size_t begin = 0, end = 0;
    drop_scopes(name, columns);
    while (hfn_table_characters(name) > columns && find_innermost(name, &begin, &end)) {
        begin = find_second_argument(name, begin, end);
        memmove(name + begin + FOLDED_BYTES, name + end, strlen(name + end) + 1);
        memcpy(name + begin, FOLDED, FOLDED_BYTES);
    }
    if (hfn_table_characters(name) > columns) {
        cut_name(name, columns);
    }
}

void hfn_table_function(hfn_sink *sink, const char *name, size_t width)
{
    char folded[8192];
    size_t bytes = strlen(name);
    if (width > 0 && bytes < sizeof folded) {
        memcpy(folded, name, bytes + 1);
        hotfn_fold_name(folded, (uint32_t)width);
        name = folded;
    }
    hfn_table_name(sink, name, width);
}
