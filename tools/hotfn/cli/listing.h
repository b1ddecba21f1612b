/* SPDX-License-Identifier: MIT */
/* The common part of `symbols`, `list`, `scan` and `kit`: an open file, facts about it, and
 * readable names. */
#ifndef HOTFN_TOOL_LISTING_H
#define HOTFN_TOOL_LISTING_H

#include "cli/json_output.h"
#include "scan/symbol_sources.h"

#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <stdbool.h>
#include <stdio.h>

/* A file with its symbols; `listing_close` takes a zeroed one too. */
typedef struct listing {
    hotfn_env env; /* the tools' own, warnings to stderr */
    hotfn_image *image;
    hotfn_symbols *symbols;
    hotfn_image_info info;
    const char *format; /* of the file: "elf", "pe", "pdb", "gnu-ld-map" ... */
} listing;

bool listing_open(listing *l, const char *path, const symbol_sources *sources, hotfn_error *err);
/* The same, but the file may hold symbols only (a PDB, a map): image is then NULL, info from the
 * file. */
bool listing_open_symbols(listing *l, const char *path, const symbol_sources *sources,
                          hotfn_error *err);
void listing_close(listing *l);

/* 1,234,567 */
const char *listing_grouped(uint64_t value, char out[32]);

/* Write the first members of every listing: schema, version, image, format, machine, id. */
void listing_write_head(hotfn_json_writer *out, const listing *l, const char *schema);

/* Write the readable form of name to text, with its '@version', and return text; return name
 * itself if it cannot be demangled. */
const char *listing_display(const listing *l, const char *name, char *text, size_t text_bytes);

#endif
