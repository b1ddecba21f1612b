/* SPDX-License-Identifier: MIT */
/* What the readers of linker maps share: where they put what they read, and who checks it.
 * Addresses are the map's own until hfn_map_finish makes RVAs of them. */
#ifndef HFN_SYMBOLS_MAP_H
#define HFN_SYMBOLS_MAP_H

#include "symbols/inside.h"
#include "symbols/map_lines.h"
#include "symbols/map_text.h"

enum { /* of a section */
       HFN_MAP_CODE = 1,
       HFN_MAP_THREAD = 2,  /* thread-local: its variables have no one address */
       HFN_MAP_STUBS = 4,   /* linker stubs: .plt, __stubs                     */
       HFN_MAP_UNLOADED = 8 /* takes no memory: .comment, .debug_info          */
};

typedef struct hfn_map_section {
    uint64_t address, byte_count;
    hfn_text name; /* view */
    uint32_t line, flags;
} hfn_map_section;

/* What one object gave to a section: no symbol in it reaches beyond. */
typedef struct hfn_map_piece {
    uint64_t address, end;
    uint32_t line; /* 0 for data: merged constants do overlap */
} hfn_map_piece;

typedef struct hfn_map_pieces {
    hfn_map_piece *items;
    size_t capacity;
    uint32_t count;
} hfn_map_pieces;

/* A symbol that marks a place of the linker script: never a function, and of no size. Gone when
 * the map is finished. */
#define HFN_SYMBOL_MARK 128u

/* The count of omitted lines and the first of them; one warning at the end reports them. */
typedef struct hfn_map_fault {
    uint32_t count, first_line;
} hfn_map_fault;

enum { HFN_MAP_MODULE_CACHE = 256, HFN_MAP_RECENT = 65536 };

typedef struct hfn_linker_map {
    hotfn_symbols *symbols;   /* its table receives the rows       */
    const hotfn_image *image; /* NULL if it is not given         */
    hfn_map_lines lines;
    hotfn_error *err;
    uint32_t machine;      /* HOTFN_MACHINE_OTHER if the map does not say */
    uint32_t image_format; /* HOTFN_FORMAT_* that it is of; 0 either */
    uint64_t base, entry;  /* addresses                           */
    bool has_base, has_entry, has_timestamp;
    bool is_macho, forced, wants_data;
    bool by_number; /* sections are those of the image by number, not by name */
    uint32_t timestamp;
    hfn_map_section *sections;
    size_t section_capacity;
    uint32_t section_count;
    hfn_map_pieces pieces;
    hfn_map_line_table *source_lines; /* NULL until the first one     */
    uint32_t module;                  /* of the rows that follow                   */
    struct {
        hfn_text name;
        uint32_t number;
    } cache[HFN_MAP_MODULE_CACHE];
    uint32_t recent[HFN_MAP_RECENT]; /* rows, by number from 1 */
    hfn_map_fault unknown, stray, overlapping, contradicting;
} hfn_linker_map;

typedef struct hfn_map_row {
    hfn_text name;
    uint64_t address, byte_count; /* 0 if the map does not say */
    uint8_t kind;                 /* HOTFN_SYMBOL_*; 0: what the section says */
    uint8_t flags;                /* HOTFN_SYMBOL_GLOBAL ...   */
} hfn_map_row;

/* The readers. Each takes the whole file. */
hotfn_status hfn_map_read_msvc(hfn_linker_map *map);
hotfn_status hfn_map_read_lld(hfn_linker_map *map); /* and mold, whose columns differ */
hotfn_status hfn_map_read_gnu(hfn_linker_map *map); /* and gold */
hotfn_status hfn_map_read_apple(hfn_linker_map *map);

/* By its first lines; NULL if it is none. *format is the name for people and for JSON. */
typedef hotfn_status (*hfn_map_reader)(hfn_linker_map *map);
hfn_map_reader hfn_map_recognise(hfn_span bytes, const char **format);

/* map_collect.c. HOTFN_E_NO_MEMORY, or HOTFN_E_LIMIT. */
hotfn_status hfn_map_add_section(hfn_linker_map *map, hfn_text name, uint64_t address,
                                 uint64_t byte_count, uint32_t flags);
hotfn_status hfn_map_add_piece(hfn_linker_map *map, uint64_t address, uint64_t byte_count,
                               const hfn_map_section *section);
hotfn_status hfn_map_set_module(hfn_linker_map *map, hfn_text name);
/* section contains the row; NULL for a mark without a section.  A row outside it is omitted. */
hotfn_status hfn_map_add_row(hfn_linker_map *map, const hfn_map_row *row,
                             const hfn_map_section *section);
/* The source lines that follow are of the file of this name. */
hotfn_status hfn_map_set_file(hfn_linker_map *map, hfn_text name);
hotfn_status hfn_map_add_line(hfn_linker_map *map, uint64_t address, uint32_t line);
/* An assignment of a linker script ("name = .", "PROVIDE (name = .)"); others are passed over. */
hotfn_status hfn_map_add_assignment(hfn_linker_map *map, uint64_t address, hfn_text text);
hfn_map_section *hfn_map_last_section(hfn_linker_map *map); /* NULL if none */
/* By the section's name, as ELF and COFF linkers use them. */
uint32_t hfn_map_flags_of(hfn_text section_name);
void hfn_map_note(hfn_linker_map *map, hfn_map_fault *fault);

/* map_finish.c: compute RVAs, kinds and sizes; warn about omitted lines. */
hotfn_status hfn_map_finish(hfn_linker_map *map);
/* map_check.c: HOTFN_E_MISMATCH unless the image has the map's sections. */
hotfn_status hfn_map_check(const hfn_linker_map *map);

#endif
