/* SPDX-License-Identifier: MIT */
/*
 * Reads the symbol path of Windows debuggers (Microsoft, 'Symbol path for Windows debuggers'):
 * elements separated by ';', each a folder, srv*STORE*...*SERVER, symsrv*DLL*STORE*...*SERVER or
 * cache*STORE.  Only folders are used; servers are ignored.
 */
#include "symbol_sources.h"

#include "source_lines.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const variables[2] = { "_NT_SYMBOL_PATH", "HOTFN_SYMBOL_PATH" };

/* An upper bound of the number of folders that the text names. */
static uint32_t count_max_folders(const char *text)
{
    uint32_t count = 1;

    for (; *text; text++) {
        count += *text == ';' || *text == '*';
    }
    return count;
}

static void add_folder(symbol_sources *s, const char *folder)
{
    if (folder[0] && !strstr(folder, "://")) {
        s->dirs[s->count++] = folder;
    }
}

/* Add the folders of one element; writes zeros over its separators. */
static void add_element(symbol_sources *s, char *element)
{
    char *rest = strchr(element, '*');

    if (!rest) {
        add_folder(s, element);
        return;
    }
    *rest++ = 0;
    if (strcasecmp(element, "symsrv") == 0) { /* skip DLL */
        rest = strchr(rest, '*');
        rest = rest ? rest + 1 : NULL;
    } else if (strcasecmp(element, "srv") != 0 && strcasecmp(element, "cache") != 0) {
        return;
    }
    while (rest) {
        char *next = strchr(rest, '*');
        if (next) {
            *next++ = 0;
        }
        add_folder(s, rest);
        rest = next;
    }
}

static void add_path(symbol_sources *s, char *text)
{
    while (text) {
        char *next = strchr(text, ';');
        if (next) {
            *next++ = 0;
        }
        add_element(s, text);
        text = next;
    }
}

bool symbol_sources_init(symbol_sources *s, int argc)
{
    size_t room = (size_t)argc;

    memset(s, 0, sizeof *s);
    s->options.size = (uint32_t)sizeof s->options;
    for (size_t i = 0; i < 2; i++) {
        const char *value = getenv(variables[i]);
        s->texts[i] = strdup(value ? value : "");
        if (!s->texts[i]) {
            return false;
        }
        room += count_max_folders(s->texts[i]);
    }
    s->dirs = calloc(room, sizeof *s->dirs);
    return s->dirs != NULL;
}

void symbol_sources_free(symbol_sources *s)
{
    free(s->dirs);
    free(s->texts[0]);
    free(s->texts[1]);
    memset(s, 0, sizeof *s);
}

bool symbol_sources_read_option(symbol_sources *s, int option, const char *argument)
{
    switch (option) {
    case SYMBOLS_NO_SEPARATE: s->options.flags |= HOTFN_SYMBOLS_NO_SEPARATE; return true;
    case SYMBOLS_DIR:
        s->dirs[s->given_count++] = argument;
        return hotfn_tool_add_source_dir(argument);
    case SYMBOLS_PDB: s->pdb = argument; return true;
    case SYMBOLS_MAP: s->map = argument; return true;
    case SYMBOLS_FORCE: s->options.flags |= HOTFN_SYMBOLS_FORCE; return true;
    default: return false;
    }
}

void symbol_sources_add_environment(symbol_sources *s)
{
    s->count = s->given_count;
    for (size_t i = 0; i < 2; i++) {
        add_path(s, s->texts[i]);
    }
}

hotfn_symbols_options symbol_sources_options(const symbol_sources *s, bool is_pe)
{
    hotfn_symbols_options options = s->options;

    options.symbol_dirs = s->dirs;
    options.symbol_dir_count = is_pe ? s->count : s->given_count;
    return options;
}
