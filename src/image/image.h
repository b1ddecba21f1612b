/* SPDX-License-Identifier: MIT */
/* What the later stations see of an image: its bytes by file offset or RVA, its sections, and every
 * pointer that the loader would write (relocations), as plain RVAs. */
#ifndef HFN_IMAGE_IMAGE_H
#define HFN_IMAGE_IMAGE_H

#include "base/span.h"

#include <hotfn/image.h>

/* ELF facts that symbols and functions need (native numbers of the gABI). */
typedef struct hfn_elf_section {
    const char *name; /* view, never NULL ("" if its name lies outside) */
    uint32_t type, link, info;
    uint64_t flags, address, offset, size, entry_size;
} hfn_elf_section;

hfn_span hfn_image_file(const hotfn_image *image);   /* all file bytes, with its byte order   */
const hotfn_env *hfn_image_env(const hotfn_image *image);
const char *hfn_image_path(const hotfn_image *image);

uint32_t hfn_elf_section_count(const hotfn_image *image);
const hfn_elf_section *hfn_elf_section_at(const hotfn_image *image, uint32_t index); /* NULL past the end */
const hfn_elf_section *hfn_elf_section_named(const hotfn_image *image, const char *name);
/* The section's bytes in the file (empty if it lies outside, has none, or is compressed and cannot
 * be inflated). */
hfn_span hfn_elf_section_bytes(const hotfn_image *image, const hfn_elf_section *section);

/* File bytes at rva up to the end of the segment (or section) that holds it; empty if none. */
hfn_span hfn_image_span(const hotfn_image *image, uint64_t rva);
bool hfn_image_is_code(const hotfn_image *image, uint64_t rva); /* inside an executable section/segment */
uint32_t hfn_image_section_of(const hotfn_image *image, uint64_t rva); /* hotfn_image_get_section index, UINT32_MAX */

/*
 * Call visit for each word that the loader fills with an address of this image: R_*_RELATIVE,
 * R_*_64/GLOB_DAT/JUMP_SLOT against a defined symbol, R_*_IRELATIVE, RELR; for an image without
 * relocations (fixed EXEC) every aligned word of writable and read-only data that holds an address of
 * an executable section.  Also DT_INIT/FINI, init_array words, e_entry.  Duplicates are fine.
 */
typedef void (*hfn_pointer_fn)(void *user, uint64_t target_rva);
void hfn_image_each_pointer(const hotfn_image *image, hfn_pointer_fn visit, void *user);

#endif
