/* SPDX-License-Identifier: MIT */
/* --only-list: a text file that says which functions may be hooked at all, one a line, as
 * module+0xRVA or module!name; '#' begins a comment. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct only_line {
    char *module;
    char *name; /* NULL: by rva */
    uint64_t rva;
} only_line;

struct run_only {
    only_line *lines;
    size_t count;
    uint64_t *found;
};

static bool parse_line(char *text, only_line *line)
{
    char *bang = strchr(text, '!');
    char *plus = strrchr(text, '+');
    char *end;
    if (bang) {
        *bang = 0;
        line->name = bang + 1;
        line->module = text;
        return bang[1] != 0 && text[0] != 0;
    }
    if (!plus || plus == text) {
        return false;
    }
    *plus = 0;
    line->module = text;
    line->rva = strtoull(plus + 1, &end, 0);
    return end != plus + 1 && *end == 0;
}

static bool add_line(run_only *only, char *text)
{
    only_line line = { 0 };
    only_line *more = realloc(only->lines, (only->count + 1) * sizeof *more);
    if (!more) {
        return false;
    }
    only->lines = more;
    char *copy = strdup(text);
    if (!copy || !parse_line(copy, &line)) {
        free(copy);
        return false;
    }
    only->lines[only->count++] = line;
    return true;
}

run_only *run_only_read(const char *path)
{
    char text[4096];
    unsigned long number = 0;
    FILE *file = fopen(path, "re");
    run_only *only = calloc(1, sizeof *only);
    if (!file || !only) {
        fprintf(stderr, "hotfn run: %s: %s\n", path, strerror(errno));
        free(only);
        return NULL;
    }
    while (fgets(text, sizeof text, file)) {
        number++;
        text[strcspn(text, "\r\n")] = 0;
        if (text[0] == 0 || text[0] == '#') {
            continue;
        }
        if (!add_line(only, text)) {
            fprintf(stderr, "hotfn run: %s:%lu: write module+0xRVA or module!name\n", path, number);
            fclose(file);
            run_only_free(only);
            return NULL;
        }
    }
    fclose(file);
    return only;
}

void run_only_free(run_only *only)
{
    for (size_t i = 0; only && i < only->count; i++) {
        free(only->lines[i].module);
    }
    if (only) {
        free(only->lines);
        free(only->found);
        free(only);
    }
}

static bool has_name(const hotfn_record_function *f, const char *name)
{
    for (const char *at = f->name; at[0]; at += strlen(at) + 1) {
        if (strcmp(at, name) == 0) {
            return true;
        }
    }
    return false;
}

static uint64_t rva_of(const hotfn_scan *scan, const char *name)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    for (uint32_t i = 0; hotfn_scan_get_function(scan, i, &f) == HOTFN_OK; i++) {
        if (has_name(&f, name)) {
            return f.rva;
        }
    }
    return UINT64_MAX;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

const uint64_t *run_only_for(run_only *only, const hotfn_scan *scan, const char *path,
                             uint32_t *count)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    free(only->found);
    only->found = calloc(only->count + 1, sizeof *only->found);
    *count = 0;
    for (size_t i = 0; only->found && i < only->count; i++) {
        const only_line *line = &only->lines[i];
        if (strcmp(line->module, file) == 0) {
            only->found[(*count)++] = line->name ? rva_of(scan, line->name) : line->rva;
        }
    }
    static const uint64_t none;
    if (!only->found) {
        return &none;
    }
    qsort(only->found, *count, sizeof *only->found, compare);
    return only->found;
}
