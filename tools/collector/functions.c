/* SPDX-License-Identifier: MIT */
/* Load the functions of a build, search them, and pair those of two builds. */
#include "functions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static size_t append_text(function_list *f, sqlite3_stmt *q, int column)
{
    size_t at = f->texts.used;
    const char *text = (const char *)sqlite3_column_text(q, column);

    if (!text) {
        return SIZE_MAX;
    }
    buffer_append(&f->texts, text, (size_t)sqlite3_column_bytes(q, column) + 1);
    return at;
}

static bool load_files(store *s, int64_t build, function_list *f)
{
    sqlite3_stmt *q =
        store_get_statement(s, "SELECT file FROM module WHERE build = ?1 ORDER BY number");
    bool ok = store_bind(q, "i", build);
    int step = SQLITE_ERROR;

    while (ok && (step = sqlite3_step(q)) == SQLITE_ROW) {
        size_t *more = realloc(f->files, (f->module_count + 1u) * sizeof *more);
        ok = more != NULL;
        if (ok) {
            f->files = more;
            f->files[f->module_count++] = append_text(f, q, 0);
        }
    }
    if (q) {
        sqlite3_reset(q);
    }
    return ok && step == SQLITE_DONE;
}

static bool load_rows(store *s, int64_t build, function_list *f)
{
    sqlite3_stmt *q = store_get_statement(
        s,
        "SELECT function.number, module, rva, byte_count, name.text FROM function LEFT JOIN name ON "
        "name.id = function.name WHERE build = ?1");
    bool ok = store_bind(q, "i", build);
    int step = SQLITE_ERROR;

    while (ok && (step = sqlite3_step(q)) == SQLITE_ROW) {
        int64_t number = sqlite3_column_int64(q, 0), module = sqlite3_column_int64(q, 1);
        if (number < 0 || number >= f->count || module < 0 || module >= f->module_count) {
            continue; /* added after the count was read */
        }
        f->modules[number] = (uint32_t)module;
        f->rvas[number] = (uint64_t)sqlite3_column_int64(q, 2);
        f->byte_counts[number] = (uint64_t)sqlite3_column_int64(q, 3);
        f->names[number] = append_text(f, q, 4);
    }
    if (q) {
        sqlite3_reset(q);
    }
    return ok && step == SQLITE_DONE;
}

bool load_functions(store *s, int64_t build, uint32_t count, function_list *f, refusal *why)
{
    size_t room = (size_t)count + 1;

    *f = (function_list){ .count = count };
    f->rvas = calloc(room, sizeof *f->rvas);
    f->byte_counts = calloc(room, sizeof *f->byte_counts);
    f->modules = calloc(room, sizeof *f->modules);
    f->names = malloc(room * sizeof *f->names);
    if (!f->rvas || !f->byte_counts || !f->modules || !f->names) {
        return refuse_request(why, 503, "the collector has not enough memory: ask again later");
    }
    memset(f->names, 255, room * sizeof *f->names);
    if (!load_files(s, build, f) || !load_rows(s, build, f)) {
        return refuse_for_database(why, s);
    }
    return !f->texts.failed ||
           refuse_request(why, 503, "the collector has not enough memory: ask again later");
}

void free_functions(function_list *f)
{
    free(f->rvas);
    free(f->byte_counts);
    free(f->modules);
    free(f->names);
    free(f->files);
    buffer_free(&f->texts);
    *f = (function_list){ 0 };
}

const char *get_function_file(const function_list *f, uint32_t number)
{
    return f->modules[number] < f->module_count
               ? (const char *)f->texts.data + f->files[f->modules[number]]
               : "";
}

const char *get_function_name(const function_list *f, uint32_t number, char *buffer, size_t bytes)
{
    if (f->names[number] != SIZE_MAX) {
        return (const char *)f->texts.data + f->names[number];
    }
    snprintf(buffer, bytes, "%s+0x%" PRIx64, get_function_file(f, number), f->rvas[number]);
    return buffer;
}

static bool contains_word(const char *text, const char *word, size_t length)
{
    for (; *text; text++) {
        if (strncasecmp(text, word, length) == 0) {
            return true;
        }
    }
    return length == 0;
}

bool function_matches(const function_list *f, uint32_t number, const char *words)
{
    char buffer[256];
    const char *name = get_function_name(f, number, buffer, sizeof buffer);
    const char *file = get_function_file(f, number);

    while (*words) {
        size_t length = strcspn(words, " ");
        if (!contains_word(name, words, length) && !contains_word(file, words, length)) {
            return false;
        }
        words += length;
        words += strspn(words, " ");
    }
    return true;
}

/* ---- Pairs. */

typedef struct named_function {
    const char *file, *name;
    uint32_t number;
} named_function;

static int compare_named(const void *left, const void *right)
{
    const named_function *a = left, *b = right;
    int order = strcmp(a->name, b->name);

    order = order ? order : strcmp(a->file, b->file);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static named_function *sort_named(const function_list *f, uint32_t *count)
{
    named_function *list = calloc((size_t)f->count + 1, sizeof *list);

    *count = 0;
    for (uint32_t i = 0; list && i < f->count; i++) {
        if (f->names[i] != SIZE_MAX) {
            list[(*count)++] = (named_function){ get_function_file(f, i),
                                                 (const char *)f->texts.data + f->names[i], i };
        }
    }
    if (list) {
        qsort(list, *count, sizeof *list, compare_named);
    }
    return list;
}

bool pair_functions(const function_list *a, const function_list *b, uint32_t *out)
{
    uint32_t a_count, b_count, i = 0, k = 0;
    named_function *from = sort_named(a, &a_count), *to = sort_named(b, &b_count);
    bool ok = from && to;

    memset(out, 255, b->count * sizeof *out);
    while (ok && i < a_count && k < b_count) {
        int order = strcmp(from[i].name, to[k].name);
        order = order ? order : strcmp(from[i].file, to[k].file);
        if (order == 0) {
            out[to[k].number] = from[i].number;
        }
        i += order <= 0;
        k += order >= 0;
    }
    free(from);
    free(to);
    return ok;
}
