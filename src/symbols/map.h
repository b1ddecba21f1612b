/* SPDX-License-Identifier: MIT */
/* The interface between the readers of linker maps, the tables that they fill, and the checks.
 * Addresses are those in the map until hfn_map_finish converts them to RVAs. */
#ifndef HFN_SYMBOLS_MAP_H
#define HFN_SYMBOLS_MAP_H

#include "symbols/inside.h"
#include "symbols/map_lines.h"
#include "symbols/map_text.h"

enum { /* flags of a section */
       HFN_MAP_CODE = 1,
       HFN_MAP_THREAD = 2,  /* thread-local: each thread has its own copy */
       HFN_MAP_STUBS = 4,   /* linker stubs: .plt, __stubs                     */
       HFN_MAP_UNLOADED = 8 /* not in memory: .comment, .debug_info */
};

typedef struct hfn_map_section {
    uint64_t address, byte_count;
    hfn_text name; /* view */
    uint32_t line, flags;
} hfn_map_section;

/* The part of a section that comes from one object file: no symbol in it reaches beyond its end. */
typedef struct hfn_map_piece {
    uint64_t address, end;
    uint32_t line; /* 0 for data, where overlaps are normal (merged constants) */
} hfn_map_piece;

typedef struct hfn_map_pieces {
    hfn_map_piece *items;
    size_t capacity;
    uint32_t count;
} hfn_map_pieces;

/* The flag of a symbol that the linker or its script defines: such a symbol is never a function and
 * has no size.  hfn_map_finish clears the flag. */
#define HFN_SYMBOL_LINKER_DEFINED 128u

/* The number of omitted lines and the first of them; hfn_map_finish reports them in one warning. */
typedef struct hfn_map_fault {
    uint32_t count, first_line;
} hfn_map_fault;

enum { HFN_MAP_MODULE_CACHE = 256, HFN_MAP_RECENT = 65536 };

typedef struct hfn_linker_map {
    hotfn_symbols *symbols;   /* its table receives the rows       */
    const hotfn_image *image; /* NULL if the caller gave none */
    hfn_map_lines lines;
    hotfn_error *err;
    uint32_t machine;      /* HOTFN_MACHINE_OTHER if unknown */
    uint32_t image_format; /* HOTFN_FORMAT_* that the map is for; 0: any */
    uint64_t base, entry;  /* addresses                           */
    bool has_base, has_entry, has_timestamp;
    bool is_macho, forced, wants_data;
    bool by_number; /* sections match those of the image by number, not by name */
    uint32_t timestamp;
    hfn_map_section *sections;
    size_t section_capacity;
    uint32_t section_count;
    hfn_map_pieces pieces;
    hfn_map_line_table *source_lines; /* NULL if there are none yet */
    uint32_t module;                  /* the module of the following rows */
    struct {
        hfn_text name;
        uint32_t number;
    } cache[HFN_MAP_MODULE_CACHE];
    uint32_t recent[HFN_MAP_RECENT]; /* row numbers from 1, by hash */
    hfn_map_fault unknown, stray, overlapping, contradicting;
} hfn_linker_map;

typedef struct hfn_map_row {
    hfn_text name;
    uint64_t address, byte_count; /* 0 if the map does not say */
    uint8_t kind;                 /* HOTFN_SYMBOL_*; 0: by the section */
    uint8_t flags;                /* HOTFN_SYMBOL_GLOBAL ...   */
} hfn_map_row;

/* The readers. Each reads the whole file. */
hotfn_status hfn_map_read_msvc(hfn_linker_map *map);
hotfn_status hfn_map_read_lld(hfn_linker_map *map); /* and mold, whose columns differ */
hotfn_status hfn_map_read_gnu(hfn_linker_map *map); /* and gold */
hotfn_status hfn_map_read_apple(hfn_linker_map *map);

/* Selects the reader by the first lines; NULL if the file is not a map. *format receives the name
 * of the format, for messages and JSON. */
typedef hotfn_status (*hfn_map_reader)(hfn_linker_map *map);
hfn_map_reader hfn_map_recognise(hfn_span bytes, const char **format);

/* map_collect.c. HOTFN_E_NO_MEMORY, or HOTFN_E_LIMIT. */
hotfn_status hfn_map_add_section(hfn_linker_map *map, hfn_text name, uint64_t address,
                                 uint64_t byte_count, uint32_t flags);
hotfn_status hfn_map_add_piece(hfn_linker_map *map, uint64_t address, uint64_t byte_count,
                               const hfn_map_section *section);
hotfn_status hfn_map_set_module(hfn_linker_map *map, hfn_text name);
/* Adds a row of section, NULL for a symbol of the script without a section.  A row outside its
 * section is omitted and counted. */
hotfn_status hfn_map_add_row(hfn_linker_map *map, const hfn_map_row *row,
                             const hfn_map_section *section);
/* Sets the file of the following source lines. */
hotfn_status hfn_map_set_file(hfn_linker_map *map, hfn_text name);
hotfn_status hfn_map_add_line(hfn_linker_map *map, uint64_t address, uint32_t line);
/* Adds the symbol of an assignment of a linker script ("name = .", "PROVIDE (name = .)"); other
 * assignments are skipped. */
hotfn_status hfn_map_add_assignment(hfn_linker_map *map, uint64_t address, hfn_text text);
hfn_map_section *hfn_map_last_section(hfn_linker_map *map); /* NULL if none */
/* The flags of a section with this name in ELF and COFF files. */
uint32_t hfn_map_flags_of(hfn_text section_name);
void hfn_map_count_fault(hfn_linker_map *map, hfn_map_fault *fault);

/* map_finish.c: computes RVAs, kinds and sizes; warns about omitted lines. */
hotfn_status hfn_map_finish(hfn_linker_map *map);
/* map_check.c: HOTFN_E_MISMATCH if the map does not belong to the image. */
hotfn_status hfn_map_check(const hfn_linker_map *map);

#endif
