/* SPDX-License-Identifier: MIT */
/*
 * '*', '?', '[a-z]', '[!a-z]' and '\\' as in a shell's patterns (POSIX, XCU 2.13), on bytes,
 * without locale, and with '/' as an ordinary character.  The matcher backtracks only to the last
 * '*', so it takes at most (length of glob) x (length of text) steps.
 */
#include "functions/glob.h"

#include "base/status.h"

#include <hotfn/lowlevel/functions.h>
#include <string.h>

/* Returns the literal byte at *glob, without its backslash, and advances *glob past it. */
static unsigned char read_literal(const char **glob)
{
    if (**glob == '\\' && (*glob)[1]) {
        (*glob)++;
    }
    return (unsigned char)*(*glob)++;
}

/* Matches c against a bracket expression; glob points behind its '['.  *hit receives the result.
 * Returns the text behind ']', or NULL if there is none.  A leading ']' is a member of the set. */
static const char *match_bracket(const char *glob, unsigned char c, bool *hit)
{
    bool inverted = *glob == '!' || *glob == '^', found = false, first = true;

    if (inverted) {
        glob++;
    }
    for (; *glob && (*glob != ']' || first); first = false) {
        unsigned char low = read_literal(&glob), high = low;
        if (*glob == '-' && glob[1] && glob[1] != ']') {
            glob++;
            high = read_literal(&glob);
        }
        found |= low <= c && c <= high;
    }
    *hit = found != inverted;
    return *glob ? glob + 1 : NULL;
}

static bool is_well_formed(const char *glob)
{
    bool hit;

    while (glob && *glob) {
        if (*glob == '\\' && !glob[1]) {
            return false;
        }
        if (*glob == '[') {
            glob = match_bracket(glob + 1, 0, &hit);
        } else {
            read_literal(&glob);
        }
    }
    return glob != NULL;
}

/* Matches c against the element at *glob, which is not '*'; on success advances *glob past it. */
static bool match_element(const char **glob, unsigned char c)
{
    const char *next = *glob;
    bool hit = false;

    switch (*next) {
    case 0: return false;
    case '?':
        hit = true;
        next++;
        break;
    case '[': next = match_bracket(next + 1, c, &hit); break;
    default: hit = read_literal(&next) == c; break;
    }
    if (hit) {
        *glob = next;
    }
    return hit;
}

bool hfn_glob_matches(const char *glob, const char *text, size_t length)
{
    const char *end = text + length, *after_star = NULL, *star_end = NULL;

    for (;;) {
        if (*glob == '*') {
            after_star = ++glob;
            star_end = text;
        } else if (text == end) {
            return *glob == 0;
        } else if (match_element(&glob, (unsigned char)*text)) {
            text++;
        } else if (after_star) {
            glob = after_star;
            text = ++star_end;
        } else {
            return false;
        }
    }
}

hotfn_status hfn_glob_check(const char *glob, hotfn_error *err)
{
    if (glob && is_well_formed(glob)) {
        return HOTFN_OK;
    }
    return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                            "'%s' is not a glob: close its [ or quote it with \\",
                            glob ? glob : "");
}

bool hfn_glob_match_method(const char *glob, const char *name)
{
    const char *place = strchr(name, ' ');

    while (place && place[1] != '(') {
        place = strchr(place + 1, ' ');
    }
    return hfn_glob_matches(glob, name, strlen(name)) ||
           (place && hfn_glob_matches(glob, name, (size_t)(place - name)));
}

int32_t hotfn_glob_match(const char *glob, const char *text)
{
    if (!is_well_formed(glob)) {
        return -1;
    }
    return hfn_glob_matches(glob, text, strlen(text));
}
