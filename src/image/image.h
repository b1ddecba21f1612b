/* SPDX-License-Identifier: MIT */
/* The part of an image that the later folders use: its bytes by file offset or RVA, its sections,
 * and the target RVA of every pointer that the loader would write (relocations). */
#ifndef HFN_IMAGE_IMAGE_H
#define HFN_IMAGE_IMAGE_H

#include "base/span.h"

#include <hotfn/lowlevel/image.h>

/* ELF facts that symbols and functions need (native numbers of the gABI).  The sections of a PE
 * image are stored in the same form, so that callers need not distinguish the formats
 * (pe_sections.c). */
typedef struct hfn_elf_section {
    const char *name; /* view, never NULL ("" if its name lies outside) */
    uint32_t type, link, info;
    uint64_t flags, address, offset, size, entry_size;
    uint64_t file_bytes; /* size in the file; in PE it may be above or below size */
} hfn_elf_section;

hfn_span hfn_image_file(const hotfn_image *image); /* all file bytes, with its byte order   */
const hotfn_env *hfn_image_env(const hotfn_image *image);
const char *hfn_image_path(const hotfn_image *image);

uint32_t hfn_elf_section_count(const hotfn_image *image);
/* NULL past the end. */
const hfn_elf_section *hfn_elf_section_at(const hotfn_image *image, uint32_t index);
const hfn_elf_section *hfn_elf_section_named(const hotfn_image *image, const char *name);
/* The section's bytes in the file (empty if it lies outside, has none, or is compressed and cannot
 * be inflated). */
hfn_span hfn_elf_section_bytes(const hotfn_image *image, const hfn_elf_section *section);

/* Program header of type (first one) as [*rva, *rva + *byte_count); false if there is none. */
bool hfn_elf_segment_of_type(const hotfn_image *image, uint32_t type, uint64_t *rva,
                             uint64_t *byte_count);
uint32_t hfn_elf_word_bytes(const hotfn_image *image); /* 4 or 8   */

/* elf_dynamic.c: get the first value of tag in the dynamic section; false if it has none. */
bool hfn_elf_dynamic(const hotfn_image *image, uint64_t tag, uint64_t *value);
/* Returns the bytes of the table whose address is the value of tag and whose size is that of
 * size_tag; empty if either is missing. */
hfn_span hfn_elf_dynamic_span(const hotfn_image *image, uint64_t tag, uint64_t size_tag);
/* Returns the bytes from the address that is the value of tag to the end of its segment; empty if
 * there is no such tag. */
hfn_span hfn_elf_dynamic_table(const hotfn_image *image, uint64_t tag);
/* Count the entries of .dynsym by the hash tables (for images without sections); 0 if unknown. */
uint64_t hfn_elf_dynamic_symbol_count(const hotfn_image *image);

/* The RVA that position-independent i386 code keeps in a register to find its data: of the symbol
 * _GLOBAL_OFFSET_TABLE_ (System V psABI i386, 'Global Offset Table').  0 if there is none. */
uint64_t hfn_image_pic_base(const hotfn_image *image);

/* RVA of a link address; false if it lies in no segment. */
bool hfn_image_rva(const hotfn_image *image, uint64_t link_address, uint64_t *rva);
/* File bytes from rva to the end of the segment (or section) that contains it, including the
 * segment's tail; empty if there is none. */
hfn_span hfn_image_span(const hotfn_image *image, uint64_t rva);
/* Size of the tail of the executable segment that ends at end_rva, 0 if there is none.  The tail is
 * the rest of the segment's last page: the system maps it, it is 0, and no other segment uses
 * it. */
uint64_t hfn_image_tail_bytes(const hotfn_image *image, uint64_t end_rva);
/* Is rva inside an executable section, or in an image without sections an executable segment? */
bool hfn_image_is_code(const hotfn_image *image, uint64_t rva);
/* An index for hotfn_image_get_section; UINT32_MAX if none. */
uint32_t hfn_image_section_of(const hotfn_image *image, uint64_t rva);

/*
 * Call visit for each word that the loader fills with an address of this image: R_*_RELATIVE,
 * R_*_64/GLOB_DAT/JUMP_SLOT against a defined symbol, R_*_IRELATIVE, RELR; for an image without
 * relocations (fixed EXEC) every aligned word of writable and read-only data that holds an address
 * of an executable section. Also DT_INIT/FINI, init_array words, e_entry. Duplicates are fine.
 */
typedef void (*hfn_pointer_fn)(void *user, uint64_t target_rva);
void hfn_image_each_pointer(const hotfn_image *image, hfn_pointer_fn visit, void *user);

/* ELF: call visit for each word of the data that holds an address of this image, as above, with the
 * place of the word. */
typedef void (*hfn_word_fn)(void *user, uint64_t place_rva, uint64_t target_rva);
void hfn_image_each_word(const hotfn_image *image, hfn_word_fn visit, void *user);

/* Call visit with the name of each symbol that the image defines, also of data.  PE: none. */
typedef void (*hfn_name_fn)(void *user, const char *name);
void hfn_image_each_defined_name(const hotfn_image *image, hfn_name_fn visit, void *user);

/* A word of the GOT: code calls a function through it that may be in another image. */
typedef struct hfn_image_slot {
    uint64_t place_rva;  /* of the word                                              */
    uint64_t target_rva; /* this image's function of the name; UINT64_MAX: it has none */
    const char *name;    /* a view                                                   */
} hfn_image_slot;
typedef void (*hfn_slot_fn)(void *user, const hfn_image_slot *slot);
void hfn_image_each_slot(const hotfn_image *image, hfn_slot_fn visit, void *user);
/* Only the targets of R_*_IRELATIVE: resolvers of ifuncs, which a stripped image names nowhere
 * else. */
void hfn_image_each_resolver(const hotfn_image *image, hfn_pointer_fn visit, void *user);
/* Only the words of DT_INIT_ARRAY (fini false) or DT_FINI_ARRAY, in order. */
void hfn_image_each_array_word(const hotfn_image *image, bool fini, hfn_pointer_fn visit,
                               void *user);

#endif
