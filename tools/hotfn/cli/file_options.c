/* SPDX-License-Identifier: MIT */
/* Reads the options that list, scan and kit have in common; all others go to the command's own
 * function. */
#include "file_options.h"

#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    file_options *options;
    const cli_options *own;
    const char **excludes;
} reading;

static const char *take_glob(const char **globs, uint32_t *count, const char *glob)
{
    globs[(*count)++] = glob;
    return cli_check_glob(glob);
}

static const char *read_option(void *user, int option, const char *argument)
{
    reading *r = user;
    file_options *w = r->options;

    switch (option) {
    case 'f': return take_glob(w->globs, &w->selection.include_count, argument);
    case 'x': return take_glob(r->excludes, &w->selection.exclude_count, argument);
    case FILE_JSON: w->json = true; return NULL;
    default: break;
    }
    return symbol_sources_read_option(&w->sources, option, argument)
               ? NULL
               : r->own->read_option(r->own->user, option, argument);
}

int file_options_read(file_options *w, const cli_options *own, int argc, char **argv)
{
    int status;

    *w = (file_options){ .selection = HOTFN_SELECTION_INIT };
    /* The includes, then the excludes; there are at most argc of each. */
    w->globs = calloc((size_t)argc * 2, sizeof *w->globs);
    if (!w->globs || !symbol_sources_init(&w->sources, argc)) {
        return TOOL_FAILED;
    }
    reading r = { w, own, w->globs + argc };
    status = cli_read_options(
        &(cli_options){ own->usage, own->letters, own->table, read_option, &r, 1, 1 }, argc, argv);
    w->file = argv[optind];
    w->selection.include = w->globs;
    w->selection.exclude = r.excludes;
    symbol_sources_add_environment(&w->sources);
    return status;
}

void file_options_free(file_options *w)
{
    symbol_sources_free(&w->sources);
    free(w->globs);
}

bool file_options_check_matches(const char *command, const file_options *w, const char *unmatched,
                                const uint8_t *selected, uint32_t count)
{
    if (!unmatched) {
        return true;
    }
    fprintf(stderr, "hotfn %s: %s: no function matches '%s'; `hotfn list` shows them all\n",
            command, w->file, unmatched);
    return memchr(selected, 1, count) != NULL;
}
