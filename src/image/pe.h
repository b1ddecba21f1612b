/* SPDX-License-Identifier: MIT */
/* The parts that only PE images have: data directories, the name of the PDB, the COFF symbol table,
 * and the words that the loader relocates. */
#ifndef HFN_IMAGE_PE_H
#define HFN_IMAGE_PE_H

#include "image/image.h"

/* PE Format, 'Optional Header Data Directories'. */
enum {
    HFN_PE_EXPORTS = 0,
    HFN_PE_EXCEPTIONS = 3,
    HFN_PE_RELOCATIONS = 5,
    HFN_PE_DEBUG = 6,
    HFN_PE_TLS = 9,
    HFN_PE_LOAD_CONFIG = 10,
    HFN_PE_IAT = 12,
    HFN_PE_DELAY_IMPORTS = 13,
    HFN_PE_CLR = 14,
    HFN_PE_DIRECTORIES = 16,
};

bool hfn_image_is_pe(const hotfn_image *image);

/* Returns the bytes of the directory that are in the file, and stores the RVA at which they begin;
 * empty if there are none. */
hfn_span hfn_pe_directory(const hotfn_image *image, uint32_t index, uint64_t *rva);
/* Does rva lie in the directory, as its header says? */
bool hfn_pe_directory_has(const hotfn_image *image, uint32_t index, uint64_t rva);

/* The PDB that the linker wrote for the image (a CodeView entry of the debug directory). */
typedef struct hfn_pe_pdb {
    uint8_t guid[16]; /* as the file holds it: three little-endian numbers, eight bytes */
    uint32_t age;
    const char *path; /* view; as on the build machine, "" if it is broken */
} hfn_pe_pdb;

/* Returns false if the image names no PDB. */
bool hfn_pe_pdb_of(const hotfn_image *image, hfn_pe_pdb *out);

/* Is all code of the image .NET code, which is compiled when it is first called? */
bool hfn_pe_is_managed(const hotfn_image *image);
/* Is its code written when it starts, as packers do? */
bool hfn_pe_is_packed(const hotfn_image *image);

/* The COFF symbol table, which GNU linkers still write although it is deprecated in images. */
typedef struct hfn_pe_symtab {
    hfn_span entries; /* of 18 bytes each                             */
    hfn_span names;   /* the string table, its 4-byte length included */
} hfn_pe_symtab;

/* Empty spans if there is none, or it lies outside the file. */
hfn_pe_symtab hfn_pe_symtab_of(const hotfn_image *image);

/* The link address in a word of the load configuration or the TLS directory, as an RVA. */
bool hfn_pe_word_rva(const hotfn_image *image, hfn_span directory, uint64_t at, uint64_t *rva);

/* Call visit for each field that the loader changes if the image is not at its link address. */
typedef void (*hfn_relocated_fn)(void *user, uint64_t rva, uint32_t byte_count);
void hfn_pe_each_relocated(const hotfn_image *image, hfn_relocated_fn visit, void *user);
/* The functions that the loader itself calls before the entry point. */
void hfn_pe_each_tls_callback(const hotfn_image *image, hfn_pointer_fn visit, void *user);
/* The stand-ins that the linker put into the slots of Control Flow Guard. */
void hfn_pe_each_guard_function(const hotfn_image *image, hfn_pointer_fn visit, void *user);

#endif
