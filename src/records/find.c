/* SPDX-License-Identifier: MIT */
/* Names of functions: the readable one, and look-up by name and by RVA. */
#include "base/status.h"
#include "functions/match.h"
#include "records/reader.h"

#include <inttypes.h>
#include <stdio.h>

const char *hfn_record_display_name(const hotfn_record *r, const hotfn_env *env,
                                    const hotfn_record_function *f, char *out, size_t out_bytes)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

    if (!f->name[0]) {
        hotfn_record_get_module(r, f->module, &m);
        snprintf(out, out_bytes, "%.1000s+0x%" PRIx64, m.file, f->rva);
        return out;
    }
    return env->demangle_fn && env->demangle_fn(env->demangle_user, f->name, out, out_bytes) > 0
               ? out
               : f->name;
}

hotfn_status hotfn_record_get_display_name(const hotfn_record *r, uint32_t index, char *out,
                                           size_t out_bytes)
{
    if (!r || !out || out_bytes == 0) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    char nameless[1000 + 20]; /* file name, "+0x" and 16 digits */
    const char *name;

    if (hotfn_record_get_function(r, index, &f) != HOTFN_OK) {
        return HOTFN_E_NOT_FOUND;
    }
    name = f.name[0] ? hfn_record_display_name(r, &r->env, &f, out, out_bytes)
                     : hfn_record_display_name(r, &r->env, &f, nameless, sizeof nameless);
    if (name != out) {
        snprintf(out, out_bytes, "%s", name);
    }
    return name == out || strlen(name) < out_bytes ? HOTFN_OK : HOTFN_E_LIMIT;
}

/* A demangler does not report how much room it needs, so each name has the same room. */
enum { MAX_READABLE_BYTES = 65536 };

/* Write the name of a function with its NUL; returns its bytes, or 0 if it does not fit. */
static size_t append_name(const hotfn_record *r, uint32_t kind, uint32_t index, char *out,
                          size_t out_bytes)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    char nameless[1000 + 20]; /* file name, "+0x" and 16 digits */
    const char *name;
    size_t bytes;

    hotfn_record_get_function(r, index, &f);
    name = f.name;
    if (kind == HOTFN_NAMES_READABLE && !f.name[0]) {
        name = hfn_record_display_name(r, &r->env, &f, nameless, sizeof nameless);
    } else if (kind == HOTFN_NAMES_READABLE && r->env.demangle_fn) {
        if (out_bytes < MAX_READABLE_BYTES) {
            return 0;
        }
        name = hfn_record_display_name(r, &r->env, &f, out, MAX_READABLE_BYTES);
    }
    bytes = strlen(name) + 1;
    if (bytes > out_bytes) {
        return 0;
    }
    if (name != out) {
        memcpy(out, name, bytes);
    }
    return bytes;
}

hotfn_status hotfn_record_get_names(const hotfn_record *r, uint32_t kind, uint32_t first,
                                    uint32_t *count, char *text, uint64_t *text_bytes)
{
    if (!r || !count || !text || !text_bytes || kind > HOTFN_NAMES_READABLE) {
        return HOTFN_E_OPTION;
    }

    uint32_t wanted = *count, written = 0;
    uint64_t used = 0;

    if (first > r->function_count || wanted > r->function_count - first) {
        return HOTFN_E_NOT_FOUND;
    }
    while (written < wanted) {
        size_t bytes =
            append_name(r, kind, first + written, text + used, (size_t)(*text_bytes - used));

        if (bytes == 0) {
            break;
        }
        used += bytes;
        written++;
    }
    if (written == 0 && wanted > 0) {
        return HOTFN_E_LIMIT;
    }
    *count = written;
    *text_bytes = used;
    return HOTFN_OK;
}

/* ---- By name. */

/* The functions that were found for a name. */
typedef struct found_functions {
    uint32_t count;
    uint32_t first, second; /* indices; second is set from a count of 2 on */
} found_functions;

static void add_found(found_functions *found, uint32_t index)
{
    if (found->count == 0) {
        found->first = index;
    } else if (found->count == 1) {
        found->second = index;
    }
    found->count++;
}

static bool has_linker_name(const hotfn_record_function *f, const char *name)
{
    const char *at = f->name;

    for (uint32_t i = 0; i < f->name_count && at[0]; i++) {
        if (strcmp(at, name) == 0) {
            return true;
        }
        at += strlen(at) + 1;
    }
    return false;
}

static void find_linker_name(const hotfn_record *r, const char *name, found_functions *found)
{
    for (uint32_t i = 0; i < r->function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

        hotfn_record_get_function(r, i, &f);
        if (has_linker_name(&f, name)) {
            add_found(found, i);
        }
    }
}

/* The glob that matches exactly name; to be freed with 2 * strlen(name) + 1 bytes. */
static char *quote_as_glob(const hotfn_env *env, const char *name)
{
    char *glob = hfn_allocate_zeroed(env, 2 * strlen(name) + 1), *at = glob;

    for (; glob && *name; name++) {
        if (strchr("*?[]\\", *name)) {
            *at++ = '\\';
        }
        *at++ = *name;
    }
    return glob;
}

/* Any spelling of the name counts, as in selections and reports.  False: no memory. */
static bool find_spelling(const hotfn_record *r, const char *name, found_functions *found)
{
    char *glob = quote_as_glob(&r->env, name);
    hfn_name_matcher matcher;

    if (!glob) {
        return false;
    }
    hfn_matcher_init(&matcher, &r->env);
    for (uint32_t i = 0; i < r->function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

        hotfn_record_get_function(r, i, &f);
        if (hfn_matcher_matches_any(&matcher, glob, f.name, f.name_count)) {
            add_found(found, i);
        }
    }
    hfn_matcher_finish(&matcher);
    hfn_free_memory(&r->env, glob, 2 * strlen(name) + 1);
    return !matcher.out_of_memory;
}

static hotfn_status fail_ambiguous(const hotfn_record *r, const char *name,
                                   const found_functions *found, hotfn_error *err)
{
    const uint32_t indices[] = { found->first, found->second };
    hotfn_record_module m[2] = { HOTFN_RECORD_MODULE_INIT, HOTFN_RECORD_MODULE_INIT };
    hotfn_record_function f[2] = { HOTFN_RECORD_FUNCTION_INIT, HOTFN_RECORD_FUNCTION_INIT };

    for (int i = 0; i < 2; i++) {
        hotfn_record_get_function(r, indices[i], &f[i]);
        hotfn_record_get_module(r, f[i].module, &m[i]);
    }
    return hfn_report_error(err, HOTFN_E_OPTION, r->path, HOTFN_NO_OFFSET,
                            "the name '%.150s' is ambiguous: %" PRIu32
                            " functions have it, among them %.60s+0x%" PRIx64
                            " and %.60s+0x%" PRIx64,
                            name, found->count, m[0].file, f[0].rva, m[1].file, f[1].rva);
}

hotfn_status hotfn_record_find_function(const hotfn_record *r, const char *name, uint32_t *out,
                                        hotfn_error *err)
{
    if (!r || !name || !out) {
        return hfn_report_null(err, __func__);
    }

    found_functions found = { 0, 0, 0 };

    if (name[0]) {
        find_linker_name(r, name, &found);
    }
    if (name[0] && found.count == 0 && !find_spelling(r, name, &found)) {
        return hfn_report_no_memory(err, r->path);
    }
    if (found.count == 0) {
        return hfn_report_error(err, HOTFN_E_NOT_FOUND, r->path, HOTFN_NO_OFFSET,
                                "the record has no function '%.200s'", name);
    }
    if (found.count > 1) {
        return fail_ambiguous(r, name, &found, err);
    }
    *out = found.first;
    return HOTFN_OK;
}

/* ---- By RVA. */

hotfn_status hotfn_record_find_function_at(const hotfn_record *r, uint32_t module, uint64_t rva,
                                           uint32_t *out)
{
    if (!r || !out) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    uint32_t best = HOTFN_NO_FUNCTION;
    uint64_t best_rva = 0;

    if (hotfn_record_get_module(r, module, &m) != HOTFN_OK) {
        return HOTFN_E_NOT_FOUND;
    }
    for (uint32_t i = m.first_function; i < m.first_function + m.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

        hotfn_record_get_function(r, i, &f);
        if (rva < f.rva || rva - f.rva >= (f.byte_count ? f.byte_count : 1)) {
            continue;
        }
        if (best == HOTFN_NO_FUNCTION ||
            f.rva > best_rva) { /* if functions overlap, the later entry */
            best = i;
            best_rva = f.rva;
        }
    }
    if (best == HOTFN_NO_FUNCTION) {
        return HOTFN_E_NOT_FOUND;
    }
    *out = best;
    return HOTFN_OK;
}
