/* SPDX-License-Identifier: MIT */
/* Where the commands that read a file find symbols: their common options, and the folders in
 * _NT_SYMBOL_PATH and HOTFN_SYMBOL_PATH. */
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
#define SYMBOL_SOURCE_OPTIONS                                                                      \
    { "no-separate", no_argument, NULL, SYMBOLS_NO_SEPARATE },                                     \
        { "symbol-dir", required_argument, NULL, SYMBOLS_DIR },                                    \
        { "pdb", required_argument, NULL, SYMBOLS_PDB },                                           \
        { "map", required_argument, NULL, SYMBOLS_MAP },                                           \
    {                                                                                              \
        "force", no_argument, NULL, SYMBOLS_FORCE                                                  \
    }

#define SYMBOL_SOURCE_USAGE                                                                        \
    "      --pdb FILE        symbols of a Windows image from this PDB\n"                           \
    "      --map FILE        symbols from the linker map of the same build\n"                      \
    "      --force           use a PDB or map even if it belongs to another build\n"               \
    "      --no-separate     do not search for a separate debug file or a PDB\n"                   \
    "      --symbol-dir DIR  also search DIR for debug files and PDBs (may be repeated)\n"

typedef struct symbol_sources {
    hotfn_symbols_options options; /* flags only; symbol_sources_options adds the folders */
    const char *pdb;               /* NULL: search for one                               */
    const char *map;               /* NULL: none; ignored if pdb is set                  */
    const char **dirs;             /* of the command line, then of the environment       */
    uint32_t given_count, count;   /* of the command line; of both                       */
    char *texts[2];                /* copies of the two environment variables, split in place */
} symbol_sources;

/* Allocate space for the folders of argc arguments and of the environment.  False if memory runs
 * out. */
bool symbol_sources_init(symbol_sources *s, int argc);
void symbol_sources_free(symbol_sources *s); /* accepts a zeroed structure */
/* Read one option; false if it is none of SYMBOL_SOURCE_OPTIONS. */
bool symbol_sources_read_option(symbol_sources *s, int option, const char *argument);
/* Call after the last option: adds the folders of the environment behind those of the options. */
void symbol_sources_add_environment(symbol_sources *s);
/* The options for loading symbols.  The folders of the environment apply to Windows images only. */
hotfn_symbols_options symbol_sources_options(const symbol_sources *s, bool is_pe);

#endif
