/* SPDX-License-Identifier: MIT */
/* Converts the section:offset of a PDB's symbols to addresses of the image, and back. */
#ifndef HFN_SYMBOLS_PDB_OMAP_H
#define HFN_SYMBOLS_PDB_OMAP_H

#include "symbols/pdb_msf.h"

/*
 * A source address is an address in the image as it was linked; OMAP maps it to the address that a
 * tool for reordering code moved it to.  Without OMAP both are the same.
 */
typedef struct hfn_pdb_addresses {
    hfn_msf_stream section_stream, from_stream, to_stream; /* own the memory that the spans view */
    hfn_span sections;    /* IMAGE_SECTION_HEADERs of the image as it was linked */
    hfn_span from_source; /* OMAP entries, by source address; empty if none */
    hfn_span to_source;   /* by image address */
    uint64_t steps_left;  /* OMAP entries that may still be examined */
} hfn_pdb_addresses;

/* The stream numbers of the optional debug streams (HFN_MSF_NO_STREAM: none). */
typedef struct hfn_pdb_address_streams {
    uint32_t sections, original_sections, omap_to_source, omap_from_source;
} hfn_pdb_address_streams;

hotfn_status hfn_pdb_addresses_open(hfn_pdb_addresses *a, hfn_msf *msf,
                                    const hfn_pdb_address_streams *streams, hotfn_error *err);
void hfn_pdb_addresses_close(hfn_pdb_addresses *a);

/* The source address of section:offset.  False if there is no such section (number 0: an absolute
 * symbol). */
bool hfn_pdb_source_rva(const hfn_pdb_addresses *a, uint32_t section, uint32_t offset,
                        uint64_t *rva);
/* The address in the image of section:offset.  False if there is no such section, or if the code
 * was removed from the image. */
bool hfn_pdb_image_rva(hfn_pdb_addresses *a, uint32_t section, uint32_t offset, uint64_t *rva);
bool hfn_pdb_section_is_code(const hfn_pdb_addresses *a, uint32_t section);

/* The code of [source, source + bytes) lies at [image, image + bytes). */
typedef struct hfn_pdb_piece {
    uint64_t source, image, bytes;
} hfn_pdb_piece;
/*
 * The first piece of [source, end) that the image contains; adjacent pieces are joined.  False if
 * the image contains none of it, or if the ranges of all calls together overlap so much that
 * steps_left has reached 0.  The next piece begins at or after out->source + out->bytes.
 */
bool hfn_pdb_piece_at(hfn_pdb_addresses *a, uint64_t source, uint64_t end, hfn_pdb_piece *out);
/* The source address of an image address; false if it has none. */
bool hfn_pdb_to_source(const hfn_pdb_addresses *a, uint64_t image, uint64_t *source);

#endif
