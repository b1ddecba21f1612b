/* SPDX-License-Identifier: MIT */
/* The internals of an image; only the files of src/image include this header. */
#ifndef HFN_IMAGE_INSIDE_H
#define HFN_IMAGE_INSIDE_H

#include "base/memory.h"
#include "base/status.h"
#include "image/elf_numbers.h"
#include "image/file.h"
#include "image/image.h"

/* A program header.  Addresses are link addresses. */
typedef struct hfn_segment {
    uint32_t type, flags, alignment;
    uint64_t offset, file_bytes;
    uint64_t address, memory_bytes;
    uint64_t tail_bytes; /* behind memory_bytes: hfn_image_tail_bytes */
} hfn_segment;

/* The range of a section, and the index of the section. */
typedef struct hfn_range {
    uint64_t rva, end;
    uint32_t section;
} hfn_range;

/* PE: a data directory, and the header fields that are needed to read the sections. */
typedef struct hfn_pe_range {
    uint32_t rva, byte_count;
} hfn_pe_range;

typedef struct hfn_pe_headers {
    uint64_t file_at, optional_at; /* file offsets */
    uint32_t entry, section_alignment, file_alignment, header_bytes;
    uint16_t machine, section_count, optional_bytes, characteristics;
} hfn_pe_headers;

typedef struct hfn_pe {
    uint32_t time_stamp, symbols_offset, symbol_count;
    hfn_span symbol_entries,
        symbol_names; /* the COFF symbol table; empty if missing or malformed */
    hfn_pe_range directories[16];
} hfn_pe;

struct hotfn_image {
    hotfn_env env;
    hfn_arena arena; /* all tables below */
    hfn_file file;
    hfn_span bytes;
    hotfn_image_info info;
    uint32_t word_bytes;
    hfn_pe pe;       /* zero for ELF */
    bool debug_only; /* a separate debug file: code sections without bytes */
    bool sections_synthetic;
    hfn_segment *segments; /* as in the file */
    uint32_t segment_count;
    hfn_segment *loads; /* PT_LOAD, by address */
    uint32_t load_count;
    hfn_elf_section *sections;
    uint32_t section_count;
    hfn_range *placed; /* loaded sections by rva, none empty */
    uint32_t placed_count;
    hfn_range *code; /* the executable sections among `placed` */
    uint32_t code_count;
};

/* elf.c: headers, segments, sections. */
hotfn_status hfn_elf_read(hotfn_image *image, hotfn_error *err);
/* elf_sections.c */
hotfn_status hfn_elf_read_sections(hotfn_image *image, uint64_t table_offset, uint64_t count,
                                   uint32_t entry_bytes, uint32_t names_index, hotfn_error *err);
bool hfn_elf_read_section(const hotfn_image *image, uint64_t at, hfn_elf_section *out,
                          uint32_t *name_offset);
hotfn_status hfn_elf_synthesise_sections(hotfn_image *image, hotfn_error *err);
/* pe.c, pe_sections.c, pe_pointers.c */
hotfn_status hfn_pe_read(hotfn_image *image, hotfn_error *err);
hotfn_status hfn_pe_read_sections(hotfn_image *image, const hfn_pe_headers *headers,
                                  hotfn_error *err);
void hfn_pe_find_symtab(hotfn_image *image); /* pe_directories.c; call before the sections */
void hfn_pe_each_pointer(const hotfn_image *image, hfn_pointer_fn visit, void *user);
/* address.c: call when loads and sections are complete. */
hotfn_status hfn_address_index(hotfn_image *image, hotfn_error *err);
/* image_id.c: fills info.id*. */
void hfn_image_find_id(hotfn_image *image);

hotfn_status hfn_image_no_memory(const hotfn_image *image, hotfn_error *err);

#endif
