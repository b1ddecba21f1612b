/* SPDX-License-Identifier: MIT */
/* Writes header and section table from a layout, and reads them into a layout.  Every number that
 * is read is checked against the real size of the file.  The sections themselves are not read
 * here. */
#include "live/layout.h"

#include "base/crc32c.h"
#include "base/status.h"

#include <inttypes.h>

#define MAX_SECTIONS 64u
#define MAX_ENTRY_BYTES 1024u

uint32_t hfn_section_element_bytes(uint32_t type)
{
    switch (type) {
    case HFN_SECTION_MODULES: return HFN_MODULE_BYTES;
    case HFN_SECTION_REASONS: return HFN_REASON_BYTES;
    case HFN_SECTION_SLOTS: return sizeof(uint32_t);
    case HFN_SECTION_STATES: return HFN_STATE_BYTES;
    case HFN_SECTION_FUNCTIONS: return HFN_FUNCTION_BYTES;
    case HFN_SECTION_NODES: return sizeof(hfn_time_node);
    case HFN_SECTION_NODE_ALLOCS: return sizeof(hotfn_alloc_cell);
    case HFN_SECTION_SLOW_CALLS: return sizeof(hfn_slow_call);
    case HFN_SECTION_TIMING_STATES:
    case HFN_SECTION_BUDGET_STATES:
    case HFN_SECTION_BUDGET_MEANS: return sizeof(uint32_t);
    default: return 0;
    }
}

uint32_t hfn_section_critical(uint32_t type)
{
    return type == HFN_SECTION_META || type >= HFN_SECTION_TIME_HEADER ? 0 : HFN_SECTION_CRITICAL;
}

void hfn_module_read(const uint8_t *element, hotfn_record_module *out)
{
    out->machine = hfn_read_le32(element + HFN_MODULE_MACHINE);
    out->id_kind = hfn_read_le32(element + HFN_MODULE_ID_KIND);
    out->id_bytes = hfn_read_le32(element + HFN_MODULE_ID_BYTES);
    out->first_slot = hfn_read_le32(element + HFN_MODULE_FIRST_SLOT);
    memcpy(out->id, element + HFN_MODULE_ID, sizeof out->id);
    out->file_device = hfn_read_le64(element + HFN_MODULE_DEVICE);
    out->file_inode = hfn_read_le64(element + HFN_MODULE_INODE);
    out->file_stamp = hfn_read_le64(element + HFN_MODULE_STAMP);
    out->code_bytes = hfn_read_le64(element + HFN_MODULE_CODE_BYTES);
    out->known_bytes = hfn_read_le64(element + HFN_MODULE_KNOWN_BYTES);
    out->note = (const char *)element + HFN_MODULE_NOTE;
}

/* ---- Writing. */

static uint32_t count_sections(const hfn_layout *layout)
{
    uint32_t count = 0;

    for (uint32_t type = 1; type < HFN_SECTION_TYPES; type++) {
        count += layout->sections[type].type != 0;
    }
    return count;
}

uint32_t hfn_header_bytes(const hfn_layout *layout)
{
    return HFN_HEADER_BYTES + count_sections(layout) * HFN_ENTRY_BYTES;
}

static void put_entry(uint8_t *at, const hfn_section *section)
{
    hfn_write_le32(at + HFN_ENTRY_TYPE, section->type);
    hfn_write_le32(at + HFN_ENTRY_FLAGS, section->flags);
    hfn_write_le64(at + HFN_ENTRY_OFFSET, section->offset);
    hfn_write_le64(at + HFN_ENTRY_BYTE_COUNT, section->bytes);
    hfn_write_le32(at + HFN_ENTRY_ELEMENT_BYTES, section->element_bytes);
    hfn_write_le32(at + HFN_ENTRY_CRC, section->crc);
    hfn_write_le64(at + HFN_ENTRY_ELEMENTS, section->elements);
}

static uint32_t compute_static_crc(const uint8_t *header, uint32_t table_bytes)
{
    uint32_t crc = hfn_compute_crc32c(0, header, HFN_AT_STATIC_CRC);
    return hfn_compute_crc32c(crc, header + HFN_HEADER_BYTES, table_bytes);
}

void hfn_header_write(uint8_t *header, const hfn_layout *layout, const uint8_t uuid[16],
                      uint64_t start_ns)
{
    uint8_t *entry = header + HFN_HEADER_BYTES;

    memcpy(header + HFN_AT_MAGIC, HFN_RECORD_MAGIC, 8);
    hfn_write_le32(header + HFN_AT_ENDIAN, HFN_RECORD_ENDIAN);
    hfn_write_le32(header + HFN_AT_MAJOR, HFN_RECORD_MAJOR);
    hfn_write_le32(header + HFN_AT_MINOR, HFN_RECORD_MINOR);
    hfn_write_le32(header + HFN_AT_HEADER_BYTES, HFN_HEADER_BYTES);
    hfn_write_le32(header + HFN_AT_ENTRY_BYTES, HFN_ENTRY_BYTES);
    memcpy(header + HFN_AT_UUID, uuid, 16);
    hfn_write_le64(header + HFN_AT_START_NS, start_ns);
    hfn_write_le64(header + HFN_AT_FILE_BYTES, layout->file_bytes);
    hfn_write_le32(header + HFN_AT_ROW_BYTES, layout->row_bytes);
    hfn_write_le32(header + HFN_AT_KIND, layout->kind);
    for (uint32_t type = 1; type < HFN_SECTION_TYPES; type++) {
        if (layout->sections[type].type != 0) {
            put_entry(entry, &layout->sections[type]);
            entry += HFN_ENTRY_BYTES;
        }
    }
    hfn_write_le32(header + HFN_AT_SECTION_COUNT, count_sections(layout));
    hfn_write_le32(header + HFN_AT_STATIC_CRC,
                   compute_static_crc(header, count_sections(layout) * HFN_ENTRY_BYTES));
}

static uint32_t compute_mutable_crc(const uint8_t *header)
{
    return hfn_compute_crc32c(0, header + HFN_AT_STATE, HFN_AT_MUTABLE_CRC - HFN_AT_STATE);
}

void hfn_header_seal(uint8_t *header)
{
    hfn_write_le32(header + HFN_AT_MUTABLE_CRC, compute_mutable_crc(header));
}

/* ---- Reading. */

static hotfn_status check_identity(hfn_span head, const char *path, hotfn_error *err)
{
    if (head.size < 8 || memcmp(head.data, HFN_RECORD_MAGIC, 8) != 0) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, 0, "this is no hotfn record (.hfr)%s",
                                head.size == 0 ? ": the file is empty" : "");
    }
    if (head.size < HFN_HEADER_BYTES) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, head.size,
                                "the record is truncated: its header has %d bytes",
                                HFN_HEADER_BYTES);
    }
    if (hfn_read_le32(head.data + HFN_AT_ENDIAN) == HFN_SWAP32(HFN_RECORD_ENDIAN)) {
        return hfn_report_error(
            err, HOTFN_E_MISMATCH, path, HFN_AT_ENDIAN,
            "the record was written with the other byte order, which this version "
            "does not read");
    }
    if (hfn_read_le32(head.data + HFN_AT_ENDIAN) != HFN_RECORD_ENDIAN) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, HFN_AT_ENDIAN,
                                "the record's header is damaged");
    }
    if (hfn_read_le32(head.data + HFN_AT_MAJOR) != HFN_RECORD_MAJOR) {
        return hfn_report_error(
            err, HOTFN_E_MISMATCH, path, HFN_AT_MAJOR,
            "the record has format version %u, this hotfn reads version %u: use the "
            "hotfn that wrote it",
            hfn_read_le32(head.data + HFN_AT_MAJOR), HFN_RECORD_MAJOR);
    }
    return HOTFN_OK;
}

static void get_entry(const uint8_t *at, hfn_section *out)
{
    out->type = hfn_read_le32(at + HFN_ENTRY_TYPE);
    out->flags = hfn_read_le32(at + HFN_ENTRY_FLAGS);
    out->offset = hfn_read_le64(at + HFN_ENTRY_OFFSET);
    out->bytes = hfn_read_le64(at + HFN_ENTRY_BYTE_COUNT);
    out->element_bytes = hfn_read_le32(at + HFN_ENTRY_ELEMENT_BYTES);
    out->crc = hfn_read_le32(at + HFN_ENTRY_CRC);
    out->elements = hfn_read_le64(at + HFN_ENTRY_ELEMENTS);
}

static hotfn_status check_entry(hfn_layout *out, const hfn_section *s, uint64_t where,
                                const char *path, hotfn_error *err)
{
    uint32_t size = hfn_section_element_bytes(s->type);

    if (s->type == 0 || s->type >= HFN_SECTION_TYPES) {
        return s->flags & HFN_SECTION_CRITICAL
                   ? hfn_report_error(
                         err, HOTFN_E_MISMATCH, path, where,
                         "a newer hotfn wrote section %u, which this version must not ignore",
                         s->type)
                   : HOTFN_OK;
    }
    if (out->sections[s->type].type != 0 || s->element_bytes != size ||
        (size && s->elements > s->bytes / size)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, where, "section %u is damaged", s->type);
    }
    out->sections[s->type] = *s;
    return HOTFN_OK;
}

static bool table_is_whole(hfn_span head, uint64_t *table_bytes)
{
    uint32_t count = hfn_read_le32(head.data + HFN_AT_SECTION_COUNT);
    uint32_t entry = hfn_read_le32(head.data + HFN_AT_ENTRY_BYTES);

    *table_bytes = (uint64_t)count * entry;
    return hfn_read_le32(head.data + HFN_AT_HEADER_BYTES) == HFN_HEADER_BYTES &&
           entry >= HFN_ENTRY_BYTES && entry <= MAX_ENTRY_BYTES && count <= MAX_SECTIONS &&
           hfn_span_has(head, HFN_HEADER_BYTES, *table_bytes);
}

static hotfn_status check_sums(hfn_span head, uint64_t table_bytes, const char *path,
                               hotfn_error *err)
{
    if (hfn_read_le32(head.data + HFN_AT_STATIC_CRC) !=
        compute_static_crc(head.data, (uint32_t)table_bytes)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, HFN_AT_STATIC_CRC,
                                "the record's header is damaged (checksum)");
    }
    if (hfn_read_le32(head.data + HFN_AT_KIND) == HFN_KIND_FINISHED &&
        hfn_read_le32(head.data + HFN_AT_MUTABLE_CRC) != compute_mutable_crc(head.data)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, HFN_AT_MUTABLE_CRC,
                                "the record's header is damaged (second checksum)");
    }
    return HOTFN_OK;
}

static hotfn_status read_table(hfn_layout *out, hfn_span head, uint64_t table_bytes,
                               uint64_t file_bytes, const char *path, hotfn_error *err)
{
    uint32_t entry_bytes = hfn_read_le32(head.data + HFN_AT_ENTRY_BYTES);
    hotfn_status status;
    hfn_section s;

    for (uint64_t at = HFN_HEADER_BYTES; at < HFN_HEADER_BYTES + table_bytes; at += entry_bytes) {
        get_entry(head.data + at, &s);
        status = check_entry(out, &s, at, path, err);
        if (status != HOTFN_OK) {
            return status;
        }
        if (s.offset > file_bytes || s.bytes > file_bytes - s.offset) {
            return hfn_report_error(err, HOTFN_E_FORMAT, path, file_bytes,
                                    "the record is truncated: its section of %" PRIu64
                                    " bytes at %" PRIu64
                                    " is incomplete (hotfn repair saves the complete parts)",
                                    s.bytes, s.offset);
        }
    }
    return HOTFN_OK;
}

hotfn_status hfn_header_read(hfn_layout *out, hfn_span head, uint64_t file_bytes, bool tolerant,
                             const char *path, hotfn_error *err)
{
    hotfn_status status = check_identity(head, path, err);
    uint64_t table_bytes;

    if (status != HOTFN_OK) {
        return status;
    }
    if (!table_is_whole(head, &table_bytes)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, HFN_AT_SECTION_COUNT,
                                "the record's table of sections is damaged");
    }
    status = tolerant ? HOTFN_OK : check_sums(head, table_bytes, path, err);
    if (status != HOTFN_OK) {
        return status;
    }
    memset(out, 0, sizeof *out);
    out->kind = hfn_read_le32(head.data + HFN_AT_KIND);
    out->row_bytes = hfn_read_le32(head.data + HFN_AT_ROW_BYTES);
    out->file_bytes = hfn_read_le64(head.data + HFN_AT_FILE_BYTES);
    return read_table(out, head, table_bytes, tolerant ? UINT64_MAX : file_bytes, path, err);
}
