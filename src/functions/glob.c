/* SPDX-License-Identifier: MIT */
/*
 * '*', '?', '[a-z]', '[!a-z]' and '\\' as in a shell's patterns (POSIX, XCU 2.13), on bytes,
 * without locale, and with '/' an ordinary character. At most (glob x text) steps: only the last
 * '*' is ever taken back.
 */
#include "functions/glob.h"

#include <hotfn/lowlevel/functions.h>
#include <string.h>

/* The byte at *glob, unquoted; moves on. */
static unsigned char next_literal(const char **glob)
{
    if (**glob == '\\' && (*glob)[1]) {
        (*glob)++;
    }
    return (unsigned char)*(*glob)++;
}

/* glob stands behind '['; *hit says whether it holds c. Returns what is behind ']', NULL if
 * there is none. A ']' that comes first is a member. */
static const char *match_bracket(const char *glob, unsigned char c, bool *hit)
{
    bool inverted = *glob == '!' || *glob == '^', found = false, first = true;

    if (inverted) {
        glob++;
    }
    for (; *glob && (*glob != ']' || first); first = false) {
        unsigned char low = next_literal(&glob), high = low;
        if (*glob == '-' && glob[1] && glob[1] != ']') {
            glob++;
            high = next_literal(&glob);
        }
        found |= low <= c && c <= high;
    }
    *hit = found != inverted;
    return *glob ? glob + 1 : NULL;
}

bool hfn_glob_is_sound(const char *glob)
{
    bool hit;

    while (glob && *glob) {
        if (*glob == '\\' && !glob[1]) {
            return false;
        }
        if (*glob == '[') {
            glob = match_bracket(glob + 1, 0, &hit);
        } else {
            next_literal(&glob);
        }
    }
    return glob != NULL;
}

/* Does the one piece at *glob (not '*') match c?  Moves on if it does. */
static bool match_one(const char **glob, unsigned char c)
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
    default: hit = next_literal(&next) == c; break;
    }
    if (hit) {
        *glob = next;
    }
    return hit;
}

bool hfn_glob_matches(const char *glob, const char *text, size_t length)
{
    const char *end = text + length, *behind_star = NULL, *star_end = NULL;

    for (;;) {
        if (*glob == '*') {
            behind_star = ++glob;
            star_end = text;
        } else if (text == end) {
            return *glob == 0;
        } else if (match_one(&glob, (unsigned char)*text)) {
            text++;
        } else if (behind_star) {
            glob = behind_star;
            text = ++star_end;
        } else {
            return false;
        }
    }
}

int32_t hotfn_glob_match(const char *glob, const char *text)
{
    if (!hfn_glob_is_sound(glob)) {
        return -1;
    }
    return hfn_glob_matches(glob, text, strlen(text));
}
