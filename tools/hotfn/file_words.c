/* SPDX-License-Identifier: MIT */
/* Reads a verb's words: the common ones here, the others by the verb's own function. */
#include "file_words.h"

#include "verbs.h"

#include <stdlib.h>

static bool take_glob(const file_verb *verb, const char **globs, uint32_t *count, const char *glob)
{
    if (hotfn_glob_match(glob, "") < 0) {
        fprintf(stderr, "hotfn %s: not a glob (close its [ or quote it with \\): '%s'\n",
                verb->name, glob);
        return false;
    }
    globs[(*count)++] = glob;
    return true;
}

static bool take_word(file_wish *w, const file_verb *verb, int argc, int word)
{
    int taken;

    switch (word) {
    case 'f': return take_glob(verb, w->globs, &w->selection.include_count, optarg);
    case 'x': return take_glob(verb, w->globs + argc, &w->selection.exclude_count, optarg);
    case FILE_JSON: w->json = true; return true;
    default: break;
    }
    taken = verb->take(verb->user, word, optarg);
    if (taken == 0 && !symbol_sources_take(&w->sources, word, optarg)) {
        verb->usage(stderr, TOOL_USAGE);
        return false;
    }
    return taken >= 0;
}

int file_words_read(file_wish *w, const file_verb *verb, int argc, char **argv, bool *done)
{
    int word;

    *w = (file_wish){ .selection = HOTFN_SELECTION_INIT };
    w->globs = calloc((size_t)argc * 2, sizeof *w->globs); /* never more of a kind than words */
    if (!w->globs || !symbol_sources_init(&w->sources, argc))
        return TOOL_FAILED;
    optind = 1;
    while ((word = getopt_long(argc, argv, verb->letters, verb->words, NULL)) != -1) {
        if (word == FILE_HELP) {
            *done = true;
            return verb->usage(stdout, TOOL_OK);
        }
        if (!take_word(w, verb, argc, word))
            return TOOL_USAGE;
    }
    if (optind != argc - 1)
        return verb->usage(stderr, TOOL_USAGE);
    w->file = argv[optind];
    w->selection.include = w->globs;
    w->selection.exclude = w->globs + argc;
    symbol_sources_end(&w->sources);
    return TOOL_OK;
}

void file_words_finish(file_wish *w)
{
    symbol_sources_finish(&w->sources);
    free(w->globs);
}
