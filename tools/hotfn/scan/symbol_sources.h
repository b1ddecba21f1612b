/* SPDX-License-Identifier: MIT */
/* The symbol sources of the commands that read a file: the options that they share, and the
 * folders that _NT_SYMBOL_PATH and HOTFN_SYMBOL_PATH name. */
#ifndef HOTFN_TOOL_SYMBOL_SOURCES_H
#define HOTFN_TOOL_SYMBOL_SOURCES_H

#include <getopt.h>
#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <stdbool.h>

enum {
    SYMBOLS_NO_SEPARATE = 512, /* above the values of every command's own options */
    SYMBOLS_DIR,
    SYMBOLS_PDB,
    SYMBOLS_MAP,
    SYMBOLS_FORCE
};

/* Entries for the option table of a command. */
#define SYMBOL_SOURCE_WORDS                                                                        \
    { "no-separate", no_argument, NULL, SYMBOLS_NO_SEPARATE },                                     \
        { "symbol-dir", required_argument, NULL, SYMBOLS_DIR },                                    \
        { "pdb", required_argument, NULL, SYMBOLS_PDB },                                           \
        { "map", required_argument, NULL, SYMBOLS_MAP },                                           \
    {                                                                                              \
        "force", no_argument, NULL, SYMBOLS_FORCE                                                  \
    }

#define SYMBOL_SOURCE_USAGE                                                                        \
    "      --pdb FILE        symbols of a Windows image from this PDB\n"                           \
    "      --map FILE        symbols from the linker map of this very link\n"                      \
    "      --force           take a PDB or map although it is of another build\n"                  \
    "      --no-separate     do not look for a separate debug file or a PDB\n"                     \
    "      --symbol-dir DIR  look for debug files and PDBs there too (may be repeated)\n"

typedef struct symbol_sources {
    hotfn_symbols_options options; /* flags only; folders by symbol_sources_options */
    const char *pdb;               /* NULL: what is found                           */
    const char *map;               /* NULL: none; a PDB goes before it              */
    const char **dirs;             /* of the command line, then of the environment  */
    uint32_t given_count, count;
    char *texts[2]; /* copies of the two variables, cut into folders */
} symbol_sources;

/* Room for all that argc words may name.  False if there is no memory. */
bool symbol_sources_init(symbol_sources *s, int argc);
void symbol_sources_finish(symbol_sources *s); /* a zeroed one is fine */
/* False if the word is none of those above. */
bool symbol_sources_take(symbol_sources *s, int word, const char *argument);
/* Behind the last word: the folders of the environment come last. */
void symbol_sources_end(symbol_sources *s);
/* For a load; the folders of the environment are meant for Windows images. */
hotfn_symbols_options symbol_sources_options(const symbol_sources *s, bool is_pe);

#endif
