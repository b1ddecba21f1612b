/* SPDX-License-Identifier: MIT */
/* The forms of one name that a glob may mean. */
#include "functions/name_forms.h"

#include "functions/glob.h"

#include <string.h>

size_t hfn_name_plain_length(const char *name)
{
    const char *version = name[0] == '?' ? NULL : strchr(name, '@'); /* '?': Microsoft's C++ */

    return version && version > name ? (size_t)(version - name) : strlen(name);
}

size_t hfn_name_short_length(const char *readable, size_t length)
{
    size_t at = length, depth = 0;

    while (at > 0 && readable[at - 1] != ')') {
        at--;
    }
    while (at > 0) {
        at--;
        depth += readable[at] == ')';
        depth -= readable[at] == '(';
        if (depth == 0) {
            return at > 0 ? at : length;
        }
    }
    return length;
}

bool hfn_name_matches(const char *glob, const char *name)
{
    size_t length = strlen(name), plain = hfn_name_plain_length(name);

    return hfn_glob_matches(glob, name, length) ||
           (plain < length && hfn_glob_matches(glob, name, plain));
}

bool hfn_readable_name_matches(const char *glob, const char *readable)
{
    size_t length = strlen(readable);

    return hfn_glob_matches(glob, readable, length) ||
           hfn_glob_matches(glob, readable, hfn_name_short_length(readable, length));
}
