/* SPDX-License-Identifier: MIT */
/* Reads the options of a command: the common ones here, the others by the command's own
 * function. */
#include "file_words.h"

#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    file_wish *wish;
    const words *own;
    const char **excludes;
} reading;

static const char *take_glob(const char **globs, uint32_t *count, const char *glob)
{
    globs[(*count)++] = glob;
    return words_glob(glob);
}

static const char *take_word(void *user, int word, const char *argument)
{
    reading *r = user;
    file_wish *w = r->wish;

    switch (word) {
    case 'f': return take_glob(w->globs, &w->selection.include_count, argument);
    case 'x': return take_glob(r->excludes, &w->selection.exclude_count, argument);
    case FILE_JSON: w->json = true; return NULL;
    default: break;
    }
    return symbol_sources_take(&w->sources, word, argument)
               ? NULL
               : r->own->take(r->own->user, word, argument);
}

int file_words_read(file_wish *w, const words *own, int argc, char **argv)
{
    int status;

    *w = (file_wish){ .selection = HOTFN_SELECTION_INIT };
    w->globs = calloc((size_t)argc * 2, sizeof *w->globs); /* never more of a kind than words */
    if (!w->globs || !symbol_sources_init(&w->sources, argc)) {
        return TOOL_FAILED;
    }
    reading r = { w, own, w->globs + argc };
    status = words_read(&(words){ own->usage, own->letters, own->table, take_word, &r, 1, 1 }, argc,
                        argv);
    w->file = argv[optind];
    w->selection.include = w->globs;
    w->selection.exclude = r.excludes;
    symbol_sources_end(&w->sources);
    return status;
}

void file_words_finish(file_wish *w)
{
    symbol_sources_finish(&w->sources);
    free(w->globs);
}

bool file_words_left(const char *of, const file_wish *w, const char *unmatched,
                     const uint8_t *selected, uint32_t count)
{
    if (!unmatched) {
        return true;
    }
    fprintf(stderr, "hotfn %s: %s: no function matches '%s'; `hotfn list` shows them all\n", of,
            w->file, unmatched);
    return memchr(selected, 1, count) != NULL;
}
