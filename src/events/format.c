/* SPDX-License-Identifier: MIT */
/* The datagrams of events: a header and items; all numbers are little-endian.  The first 32 bits of
 * an item are its kind (8 bits) and the number of a function or module (24 bits). */
#include "events/format.h"

#include "base/byte_order.h"
#include "base/span.h"
#include "base/status.h"

#define KIND_BITS 8
#define ALL_FLAGS (HOTFN_EVENTS_END | HOTFN_EVENTS_REPLACED)
#define MAX_ID_BYTES 32u

enum { CALL_BYTES = 12, THREAD_BYTES = 12, FUNCTION_BYTES = 24, MODULE_BYTES = 16, RUN_BYTES = 20 };

/* The size of an item without its id and text; 0 for an unknown kind. */
static uint32_t count_fixed_bytes(uint32_t kind)
{
    switch (kind) {
    case HOTFN_EVENTS_ENTRY:
    case HOTFN_EVENTS_EXIT: return CALL_BYTES;
    case HOTFN_EVENTS_THREAD: return THREAD_BYTES;
    case HOTFN_EVENTS_FUNCTION: return FUNCTION_BYTES;
    case HOTFN_EVENTS_MODULE: return MODULE_BYTES;
    case HOTFN_EVENTS_RUN: return RUN_BYTES;
    default: return 0;
    }
}

/* ---- Writing. */

void hfn_events_begin(hfn_events_writer *w, uint32_t limit)
{
    w->limit = limit;
    w->used = HOTFN_EVENTS_HEADER_BYTES;
    w->event_count = 0;
    w->has_thread = w->has_names = false;
}

static void write_item(uint8_t *at, const hotfn_events_item *item, uint16_t text_bytes)
{
    uint32_t number = item->kind == HOTFN_EVENTS_MODULE ? item->module : item->function;

    hfn_write_le32(at, item->kind | number << KIND_BITS);
    switch (item->kind) {
    case HOTFN_EVENTS_THREAD:
        hfn_write_le32(at + 4, item->thread);
        hfn_write_le32(at + 8, item->depth);
        break;
    case HOTFN_EVENTS_FUNCTION:
        hfn_write_le32(at + 4, item->module);
        hfn_write_le64(at + 8, item->rva);
        hfn_write_le32(at + 16, (uint32_t)item->byte_count);
        hfn_write_le16(at + 20, text_bytes);
        hfn_write_le16(at + 22, 0);
        break;
    case HOTFN_EVENTS_MODULE:
        hfn_write_le32(at + 4, item->flags);
        hfn_write_le32(at + 8, item->id_kind);
        hfn_write_le16(at + 12, (uint16_t)item->id_bytes);
        hfn_write_le16(at + 14, text_bytes);
        break;
    case HOTFN_EVENTS_RUN:
        hfn_write_le32(at + 4, item->pid);
        hfn_write_le64(at + 8, item->time_ns);
        hfn_write_le16(at + 16, text_bytes);
        hfn_write_le16(at + 18, 0);
        break;
    default: hfn_write_le64(at + 4, item->time_ns); break;
    }
}

bool hfn_events_put(hfn_events_writer *w, const hotfn_events_item *item)
{
    uint32_t fixed = count_fixed_bytes(item->kind);
    uint32_t id = item->kind == HOTFN_EVENTS_MODULE ? item->id_bytes : 0;
    uint32_t text = item->text_bytes < HOTFN_EVENTS_MAX_TEXT_BYTES ? item->text_bytes
                                                                   : HOTFN_EVENTS_MAX_TEXT_BYTES;
    uint8_t *at = w->bytes + w->used;

    if (w->limit - w->used < fixed + id + text) {
        return false;
    }
    write_item(at, item, (uint16_t)text);
    if (id > 0) {
        memcpy(at + fixed, item->id, id);
    }
    if (text > 0) {
        memcpy(at + fixed + id, item->text, text);
    }
    w->used += fixed + id + text;
    w->event_count += item->kind == HOTFN_EVENTS_ENTRY || item->kind == HOTFN_EVENTS_EXIT;
    w->has_thread |= item->kind == HOTFN_EVENTS_THREAD;
    w->has_names |= item->kind > HOTFN_EVENTS_THREAD;
    return true;
}

void hfn_events_seal(hfn_events_writer *w, const hotfn_events_header *h)
{
    memcpy(w->bytes + HFN_EVENTS_AT_MAGIC, HFN_EVENTS_MAGIC, HFN_EVENTS_AT_VERSION);
    hfn_write_le16(w->bytes + HFN_EVENTS_AT_VERSION, HOTFN_EVENTS_VERSION);
    hfn_write_le16(w->bytes + HFN_EVENTS_AT_FLAGS, (uint16_t)h->flags);
    hfn_write_le64(w->bytes + HFN_EVENTS_AT_STREAM, h->stream);
    hfn_write_le64(w->bytes + HFN_EVENTS_AT_SEQUENCE, h->sequence);
    hfn_write_le64(w->bytes + HFN_EVENTS_AT_SKIPPED, h->skipped_count);
}

/* ---- Reading. */

/* Read the fields before id and text.  False if the item is malformed. */
static bool read_fixed(hfn_span s, uint64_t at, hotfn_events_item *out, uint16_t *text_bytes)
{
    uint32_t word = 0, number, byte_count = 0;
    uint16_t id_bytes = 0, zero = 0;
    bool ok = hfn_span_u32(s, at, &word);

    out->kind = word & ((1u << KIND_BITS) - 1);
    number = word >> KIND_BITS;
    switch (out->kind) {
    case HOTFN_EVENTS_ENTRY:
    case HOTFN_EVENTS_EXIT:
        out->function = number;
        return ok && hfn_span_u64(s, at + 4, &out->time_ns);
    case HOTFN_EVENTS_THREAD:
        return ok && number == 0 && hfn_span_u32(s, at + 4, &out->thread) &&
               hfn_span_u32(s, at + 8, &out->depth);
    case HOTFN_EVENTS_FUNCTION:
        out->function = number;
        ok = ok && hfn_span_u32(s, at + 4, &out->module) && hfn_span_u64(s, at + 8, &out->rva) &&
             hfn_span_u32(s, at + 16, &byte_count) && hfn_span_u16(s, at + 20, text_bytes) &&
             hfn_span_u16(s, at + 22, &zero);
        out->byte_count = byte_count;
        return ok && zero == 0 && out->module <= HOTFN_EVENTS_MAX_NUMBER;
    case HOTFN_EVENTS_MODULE:
        out->module = number;
        ok = ok && hfn_span_u32(s, at + 4, &out->flags) && hfn_span_u32(s, at + 8, &out->id_kind) &&
             hfn_span_u16(s, at + 12, &id_bytes) && hfn_span_u16(s, at + 14, text_bytes);
        out->id_bytes = id_bytes;
        return ok && id_bytes <= MAX_ID_BYTES;
    case HOTFN_EVENTS_RUN:
        return ok && number == 0 && hfn_span_u32(s, at + 4, &out->pid) &&
               hfn_span_u64(s, at + 8, &out->time_ns) && hfn_span_u16(s, at + 16, text_bytes) &&
               hfn_span_u16(s, at + 18, &zero) && zero == 0;
    default: return false;
    }
}

static bool read_item(hfn_span s, uint64_t *offset, hotfn_events_item *out)
{
    uint16_t text_bytes = 0;

    if (!read_fixed(s, *offset, out, &text_bytes)) {
        return false;
    }
    uint64_t id_at = *offset + count_fixed_bytes(out->kind), text_at = id_at + out->id_bytes;
    hfn_span text = hfn_span_sub(s, text_at, text_bytes);

    if (!hfn_span_has(s, text_at, text_bytes) || text_bytes > HOTFN_EVENTS_MAX_TEXT_BYTES ||
        (text_bytes > 0 && memchr(text.data, 0, text_bytes))) {
        return false;
    }
    out->id = out->id_bytes ? s.data + id_at : NULL;
    out->text = text_bytes ? (const char *)text.data : "";
    out->text_bytes = text_bytes;
    *offset = text_at + text_bytes;
    return true;
}

static bool read_header(hfn_span s, hotfn_events_header *out)
{
    uint16_t flags = 0;

    if (!hfn_span_u16(s, HFN_EVENTS_AT_FLAGS, &flags) ||
        !hfn_span_u64(s, HFN_EVENTS_AT_STREAM, &out->stream) ||
        !hfn_span_u64(s, HFN_EVENTS_AT_SEQUENCE, &out->sequence) ||
        !hfn_span_u64(s, HFN_EVENTS_AT_SKIPPED, &out->skipped_count)) {
        return false;
    }
    out->flags = flags;
    return (flags & ~ALL_FLAGS) == 0 && flags != HOTFN_EVENTS_REPLACED;
}

static bool check_items(hfn_span s)
{
    bool has_thread = false;

    for (uint64_t at = HOTFN_EVENTS_HEADER_BYTES; at < s.size;) {
        hotfn_events_item item = HOTFN_EVENTS_ITEM_INIT;

        if (!read_item(s, &at, &item)) {
            return false;
        }
        has_thread |= item.kind == HOTFN_EVENTS_THREAD;
        if (item.kind < HOTFN_EVENTS_THREAD && !has_thread) {
            return false;
        }
    }
    return true;
}

hotfn_status hotfn_events_open(hotfn_events_header *out, const void *bytes, uint64_t byte_count)
{
    hfn_span s = { .data = bytes, .size = byte_count };
    hotfn_events_header header = HOTFN_EVENTS_HEADER_INIT;
    uint16_t version = 0;

    if (!out || !bytes) {
        return HOTFN_E_OPTION;
    }
    if (byte_count < HOTFN_EVENTS_HEADER_BYTES || byte_count > HOTFN_EVENTS_MAX_BYTES ||
        memcmp(s.data, HFN_EVENTS_MAGIC, HFN_EVENTS_AT_VERSION) != 0) {
        return HOTFN_E_FORMAT;
    }
    hfn_span_u16(s, HFN_EVENTS_AT_VERSION, &version);
    if (version != HOTFN_EVENTS_VERSION) {
        return HOTFN_E_MISMATCH;
    }
    if (!read_header(s, &header) || !check_items(s)) {
        return HOTFN_E_FORMAT;
    }
    return hfn_copy_result(out, &header, sizeof header);
}

hotfn_status hotfn_events_next(hotfn_events_item *out, uint64_t *offset, const void *bytes,
                               uint64_t byte_count)
{
    hfn_span s = { .data = bytes, .size = byte_count };
    hotfn_events_item item = HOTFN_EVENTS_ITEM_INIT;

    if (!out || !offset || !bytes) {
        return HOTFN_E_OPTION;
    }
    uint64_t at = *offset ? *offset : HOTFN_EVENTS_HEADER_BYTES;

    if (at >= byte_count) {
        return HOTFN_E_NOT_FOUND;
    }
    if (!read_item(s, &at, &item)) {
        return HOTFN_E_FORMAT;
    }
    if (!hfn_copy_out(out, &item, sizeof item)) {
        return HOTFN_E_OPTION;
    }
    *offset = at;
    return HOTFN_OK;
}
