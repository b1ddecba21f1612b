/* SPDX-License-Identifier: MIT */
/*
 * Sources: LLVM docs, PDB: "The PDB DBI (Debug Info) Stream", Optional Debug Header Stream; "PE
 * Format", IMAGE_SECTION_HEADER; microsoft-pdb, OMAP_DATA in omap.h.  An OMAP entry is a pair of
 * 32-bit addresses and holds up to the next entry; entries are sorted by the first address.  A
 * second address of 0 means that the code was removed from the image.
 */
#include "symbols/pdb_omap.h"

#include "symbols/pdb_streams.h"

#include <string.h>

enum {
    SECTION_BYTES = 40, /* of IMAGE_SECTION_HEADER */
    AT_VIRTUAL_ADDRESS = 12,
    AT_CHARACTERISTICS = 36,
    OMAP_BYTES = 8,
    STEPS = 16, /* allowance of examined entries for each entry and each lookup */
};
#define SCN_CNT_CODE 0x20u
#define SCN_MEM_EXECUTE 0x20000000u

/* Opens the stream and views all of it. */
static hotfn_status open_whole(hfn_msf_stream *stream, hfn_span *out, hfn_msf *msf, uint32_t number,
                               const char *what, hotfn_error *err)
{
    hotfn_status status = hfn_msf_stream_open(stream, msf, number, err);

    return status == HOTFN_OK ? hfn_pdb_view(stream, 0, stream->size, out, err, what) : status;
}

static hotfn_status open_omap(hfn_msf_stream *stream, hfn_span *out, hfn_msf *msf, uint32_t number,
                              hotfn_error *err)
{
    hotfn_status status = open_whole(stream, out, msf, number, "OMAP", err);

    if (status != HOTFN_OK) {
        return status;
    }
    if (out->size % OMAP_BYTES != 0) {
        return hfn_pdb_fail(stream, out->size - 1, err, "the OMAP ends inside an entry");
    }
    for (uint64_t at = OMAP_BYTES; at < out->size; at += OMAP_BYTES) {
        if (hfn_pdb_u32(*out, at) < hfn_pdb_u32(*out, at - OMAP_BYTES)) {
            return hfn_pdb_fail(stream, at, err, "the OMAP is not sorted by address");
        }
    }
    return HOTFN_OK;
}

hotfn_status hfn_pdb_addresses_open(hfn_pdb_addresses *a, hfn_msf *msf,
                                    const hfn_pdb_address_streams *streams, hotfn_error *err)
{
    uint32_t sections = streams->sections;
    hotfn_status status = HOTFN_OK;

    memset(a, 0, sizeof *a);
    if (streams->omap_from_source != HFN_MSF_NO_STREAM) {
        if (streams->original_sections != HFN_MSF_NO_STREAM) {
            sections = streams->original_sections;
        }
        status = open_omap(&a->from_stream, &a->from_source, msf, streams->omap_from_source, err);
    }
    if (status == HOTFN_OK &&
        a->from_source.size > 0 && /* the way back is needed only if code was moved */
        streams->omap_to_source != HFN_MSF_NO_STREAM) {
        status = open_omap(&a->to_stream, &a->to_source, msf, streams->omap_to_source, err);
    }
    if (status == HOTFN_OK && sections == HFN_MSF_NO_STREAM) {
        status = hfn_report_error(
            err, HOTFN_E_UNSUPPORTED, msf->path, HOTFN_NO_OFFSET,
            "it has no section headers, without which its addresses cannot be resolved");
    }
    if (status == HOTFN_OK) {
        status =
            open_whole(&a->section_stream, &a->sections, msf, sections, "section headers", err);
    }
    a->steps_left = STEPS * (1 + a->from_source.size / OMAP_BYTES);
    if (status != HOTFN_OK) {
        hfn_pdb_addresses_close(a);
    }
    return status;
}

void hfn_pdb_addresses_close(hfn_pdb_addresses *a)
{
    hfn_msf_stream_close(&a->section_stream);
    hfn_msf_stream_close(&a->from_stream);
    hfn_msf_stream_close(&a->to_stream);
    memset(a, 0, sizeof *a);
}

bool hfn_pdb_source_rva(const hfn_pdb_addresses *a, uint32_t section, uint32_t offset,
                        uint64_t *rva)
{
    uint64_t at = (uint64_t)(section - 1) * SECTION_BYTES;

    if (section == 0 || at + SECTION_BYTES > a->sections.size) {
        return false;
    }
    *rva = (uint64_t)hfn_pdb_u32(a->sections, at + AT_VIRTUAL_ADDRESS) + offset;
    return true;
}

bool hfn_pdb_section_is_code(const hfn_pdb_addresses *a, uint32_t section)
{
    uint64_t at = (uint64_t)(section - 1) * SECTION_BYTES + AT_CHARACTERISTICS;

    return section != 0 && (hfn_pdb_u32(a->sections, at) & (SCN_CNT_CODE | SCN_MEM_EXECUTE));
}

/* The number of entries that begin at or before address. */
static uint64_t count_up_to(hfn_span omap, uint64_t address)
{
    uint64_t low = 0, high = omap.size / OMAP_BYTES;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (hfn_pdb_u32(omap, middle * OMAP_BYTES) <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool hfn_pdb_piece_at(hfn_pdb_addresses *a, uint64_t source, uint64_t end, hfn_pdb_piece *out)
{
    uint64_t count = a->from_source.size / OMAP_BYTES, i;
    hfn_pdb_piece piece = { source, source, end - source };

    if (a->from_source.size == 0) {
        *out = piece;
        return end > source;
    }
    piece.bytes = 0;
    i = count_up_to(a->from_source, source);
    a->steps_left += STEPS;
    for (i = i ? i - 1 : 0; i < count && a->steps_left > 0; i++, a->steps_left--) {
        uint64_t at = i * OMAP_BYTES, from = hfn_pdb_u32(a->from_source, at), image;
        uint64_t to = hfn_pdb_u32(a->from_source, at + 4);
        uint64_t next = i + 1 < count ? hfn_pdb_u32(a->from_source, at + OMAP_BYTES) : end;
        uint64_t begin = from > source ? from : source, stop = next < end ? next : end;
        if (begin >= end) {
            break;
        }
        image = to + (begin - from);
        if (piece.bytes && (!to || image != piece.image + piece.bytes) && stop > begin) {
            break;
        }
        if (!to || stop <= begin) {
            continue;
        }
        if (piece.bytes == 0) {
            piece = (hfn_pdb_piece){ begin, image, 0 };
        }
        piece.bytes += stop - begin;
    }
    if (piece.bytes == 0) {
        return false;
    }
    *out = piece;
    return true;
}

bool hfn_pdb_image_rva(hfn_pdb_addresses *a, uint32_t section, uint32_t offset, uint64_t *rva)
{
    hfn_pdb_piece piece;
    uint64_t source;

    if (!hfn_pdb_source_rva(a, section, offset, &source) ||
        !hfn_pdb_piece_at(a, source, source + 1, &piece)) {
        return false;
    }
    *rva = piece.image;
    return true;
}

bool hfn_pdb_to_source(const hfn_pdb_addresses *a, uint64_t image, uint64_t *source)
{
    uint64_t count, at;

    if (a->to_source.size == 0) {
        *source = image;
        return a->from_source.size == 0;
    }
    count = count_up_to(a->to_source, image);
    at = (count ? count - 1 : 0) * OMAP_BYTES;
    if (count == 0 || hfn_pdb_u32(a->to_source, at + 4) == 0) {
        return false;
    }
    *source = hfn_pdb_u32(a->to_source, at + 4) + (image - hfn_pdb_u32(a->to_source, at));
    return true;
}
