/* SPDX-License-Identifier: MIT */
/* Makes the spellings of one name and compares globs with them. */
#include "functions/match.h"

#include "functions/glob.h"

#include <string.h>

/* A readable name is seldom more than a few times longer than the mangled one.  Only a name that
 * was made to expand without end needs more room than this; it then has no readable spelling. */
enum { READABLE_BYTES_BASE = 64 * 1024, READABLE_BYTES_PER_BYTE = 16 };

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

void hfn_matcher_init(hfn_name_matcher *matcher, const hotfn_env *env)
{
    *matcher = (hfn_name_matcher){ .env = env };
    hfn_matcher_set_name(matcher, "");
}

void hfn_matcher_finish(hfn_name_matcher *matcher)
{
    hfn_free_memory(matcher->env, matcher->buffer, matcher->buffer_bytes);
    matcher->buffer = NULL;
    matcher->buffer_bytes = 0;
}

void hfn_matcher_set_name(hfn_name_matcher *matcher, const char *name)
{
    matcher->name = name;
    matcher->length = strlen(name);
    matcher->plain_length = hfn_name_plain_length(name);
    matcher->readable = NULL;
}

static bool reserve_buffer(hfn_name_matcher *matcher, size_t needed)
{
    if (needed <= matcher->buffer_bytes) {
        return true;
    }
    char *buffer = hfn_allocate_unset(matcher->env, needed);

    if (!buffer) {
        matcher->out_of_memory = true;
        return false;
    }
    hfn_matcher_finish(matcher);
    matcher->buffer = buffer;
    matcher->buffer_bytes = needed;
    return true;
}

/* Demangles the name without its version.  Returns the length, 0 if it has no readable spelling. */
static size_t demangle_plain(hfn_name_matcher *matcher)
{
    const hotfn_env *env = matcher->env;
    size_t plain_bytes = matcher->plain_length + 1;
    size_t readable_bytes = READABLE_BYTES_BASE + READABLE_BYTES_PER_BYTE * plain_bytes;

    if (!env->demangle_fn || !reserve_buffer(matcher, plain_bytes + readable_bytes)) {
        return 0;
    }
    memcpy(matcher->buffer, matcher->name, plain_bytes - 1);
    matcher->buffer[plain_bytes - 1] = 0;
    matcher->readable = matcher->buffer + plain_bytes;
    size_t length = env->demangle_fn(env->demangle_user, matcher->buffer,
                                     matcher->buffer + plain_bytes, readable_bytes);
    return length < readable_bytes ? length : 0;
}

/* A name that is not mangled is its own readable spelling: a PDB and a linker map hold such names,
 * some of them with parameters. */
static void make_readable(hfn_name_matcher *matcher)
{
    matcher->readable_length = demangle_plain(matcher);
    if (matcher->readable_length == 0) {
        matcher->readable = matcher->name;
        matcher->readable_length = matcher->plain_length;
    }
    matcher->short_length = hfn_name_short_length(matcher->readable, matcher->readable_length);
}

bool hfn_matcher_matches(hfn_name_matcher *matcher, const char *glob)
{
    if (hfn_glob_matches(glob, matcher->name, matcher->length) ||
        (matcher->plain_length < matcher->length &&
         hfn_glob_matches(glob, matcher->name, matcher->plain_length))) {
        return true;
    }
    if (!matcher->readable) {
        make_readable(matcher);
    }
    return hfn_glob_matches(glob, matcher->readable, matcher->readable_length) ||
           hfn_glob_matches(glob, matcher->readable, matcher->short_length);
}

bool hfn_matcher_matches_any(hfn_name_matcher *matcher, const char *glob, const char *names,
                             uint32_t count)
{
    const char *name = names;

    for (uint32_t i = 0; i < count && name[0]; i++, name += strlen(name) + 1) {
        hfn_matcher_set_name(matcher, name);
        if (hfn_matcher_matches(matcher, glob)) {
            return true;
        }
    }
    return false;
}
