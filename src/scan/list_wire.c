/* SPDX-License-Identifier: MIT */
/* Function lists in the wire format of protocol buffers (protobuf.dev, "Encoding"), as described in
 * docs/hotfn.proto.  Unknown fields are skipped, as the format requires. */
#include "scan/list_file.h"

#include "base/status.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { LIST_VERSION = 1, LIST_MODULE, LIST_MACHINE, LIST_ID_KIND, LIST_ID, LIST_FUNCTION };
enum { FUNCTION_INDEX = 1, FUNCTION_RVA, FUNCTION_SIZE, FUNCTION_NAME };
enum { VERSION = 1 };

/* ---- Writing.  As proto3 requires, fields that are 0 or empty are omitted, except the version. */

static size_t varint_bytes(uint64_t value)
{
    size_t bytes = 1;

    for (; value > 0x7f; value >>= 7) {
        bytes++;
    }
    return bytes;
}

static void put_varint(hfn_list_bytes *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;

    for (; value > 0x7f; value >>= 7) {
        bytes[count++] = (uint8_t)(value | 0x80);
    }
    bytes[count++] = (uint8_t)value;
    hfn_list_put(out, bytes, count);
}

static void put_number(hfn_list_bytes *out, uint32_t field, uint64_t value)
{
    if (value == 0) {
        return;
    }
    put_varint(out, field << 3 | WIRE_VARINT);
    put_varint(out, value);
}

static void put_bytes(hfn_list_bytes *out, uint32_t field, const void *bytes, size_t count)
{
    if (count == 0) {
        return;
    }
    put_varint(out, field << 3 | WIRE_BYTES);
    put_varint(out, count);
    hfn_list_put(out, bytes, count);
}

static size_t number_bytes(uint64_t value)
{
    return value ? 1 + varint_bytes(value) : 0;
}

static void put_function(hfn_list_bytes *out, const hfn_list_item *f)
{
    size_t name = strlen(f->name);
    size_t count = number_bytes(f->index) + number_bytes(f->rva) + number_bytes(f->byte_count) +
                   (name ? 1 + varint_bytes(name) + name : 0);

    put_varint(out, LIST_FUNCTION << 3 | WIRE_BYTES);
    put_varint(out, count);
    put_number(out, FUNCTION_INDEX, f->index);
    put_number(out, FUNCTION_RVA, f->rva);
    put_number(out, FUNCTION_SIZE, f->byte_count);
    put_bytes(out, FUNCTION_NAME, f->name, name);
}

void hfn_list_write_wire(const hotfn_list *list, hfn_list_bytes *out)
{
    put_number(out, LIST_VERSION, VERSION);
    put_bytes(out, LIST_MODULE, list->info.module, strlen(list->info.module));
    put_number(out, LIST_MACHINE, list->info.machine);
    put_number(out, LIST_ID_KIND, list->info.id_kind);
    put_bytes(out, LIST_ID, list->info.id, list->info.id_bytes);
    for (uint32_t i = 0; i < list->info.entry_count; i++) {
        put_function(out, &list->items[i]);
    }
}

/* ---- Reading. */

typedef struct field {
    uint64_t number, value; /* value is set for WIRE_VARINT */
    hfn_span bytes;         /* set for WIRE_BYTES           */
    uint32_t wire;
} field;

typedef struct reader {
    hotfn_list *list;
    hfn_span whole;
    const char *name;
    hotfn_error *err;
} reader;

static hotfn_status report_broken_list(const reader *r, const uint8_t *at, const char *reason)
{
    return hfn_report_error(r->err, HOTFN_E_FORMAT, r->name, (uint64_t)(at - r->whole.data),
                            "this is not a function list: %s", reason);
}

/* Read the field at *at and advance *at behind it.  False if the bytes are not a field. */
static bool read_next_field(hfn_span message, uint64_t *at, field *f)
{
    uint64_t key, count = 0;

    if (!hfn_span_uleb(message, at, &key)) {
        return false;
    }
    *f = (field){ .number = key >> 3, .wire = (uint32_t)key & 7 };
    switch (f->wire) {
    case WIRE_VARINT: return hfn_span_uleb(message, at, &f->value);
    case WIRE_64: count = 8; break;
    case WIRE_32: count = 4; break;
    case WIRE_BYTES:
        if (!hfn_span_uleb(message, at, &count)) {
            return false;
        }
        break;
    default: return false;
    }
    if (!hfn_span_has(message, *at, count)) {
        return false;
    }
    f->bytes = hfn_span_sub(message, *at, count);
    *at += count;
    return f->number != 0;
}

/* Copy a text.  NULL, with *status set, if it contains a NUL or there is no memory. */
static const char *copy_text(const reader *r, hfn_span bytes, hotfn_status *status)
{
    const char *copy;

    if (bytes.size == 0) {
        return "";
    }
    if (memchr(bytes.data, 0, bytes.size)) {
        *status = report_broken_list(r, bytes.data, "it has a name that contains a NUL");
        return NULL;
    }
    copy = hfn_arena_copy(&r->list->texts, (const char *)bytes.data, bytes.size);
    if (!copy) {
        *status = hfn_report_no_memory(r->err, r->name);
    }
    return copy;
}

static hotfn_status read_function(const reader *r, hfn_span message)
{
    hfn_list_item item = { .name = "", .module = r->list->info.module };
    hotfn_status status = HOTFN_OK;
    uint64_t at = 0;
    field f;

    while (at < message.size) {
        if (!read_next_field(message, &at, &f)) {
            return report_broken_list(r, message.data + at, "it has an entry that cannot be read");
        }
        if (f.number == FUNCTION_INDEX && f.wire == WIRE_VARINT) {
            item.index = (uint32_t)f.value;
        } else if (f.number == FUNCTION_RVA && f.wire == WIRE_VARINT) {
            item.rva = f.value;
        } else if (f.number == FUNCTION_SIZE && f.wire == WIRE_VARINT) {
            item.byte_count = f.value;
        } else if (f.number == FUNCTION_NAME && f.wire == WIRE_BYTES) {
            item.name = copy_text(r, f.bytes, &status);
        }
        if (status != HOTFN_OK) {
            return status;
        }
    }
    return hfn_list_append(r->list, &item, r->err);
}

static hotfn_status read_field(const reader *r, const field *f)
{
    hotfn_list_info *info = &r->list->info;
    hotfn_status status = HOTFN_OK;
    const char *text;

    if (f->number == LIST_VERSION && f->wire == WIRE_VARINT && f->value != VERSION) {
        return hfn_report_error(r->err, HOTFN_E_UNSUPPORTED, r->name, 0,
                                "the function list has version %llu; this hotfn reads version 1",
                                (unsigned long long)f->value);
    }
    if (f->number == LIST_MACHINE && f->wire == WIRE_VARINT) {
        info->machine = (uint32_t)f->value;
    } else if (f->number == LIST_ID_KIND && f->wire == WIRE_VARINT) {
        info->id_kind = (uint32_t)f->value;
    } else if (f->number == LIST_MODULE && f->wire == WIRE_BYTES) {
        text = copy_text(r, f->bytes, &status);
        if (text) {
            info->module = text;
        }
    } else if (f->number == LIST_ID && f->wire == WIRE_BYTES) {
        if (f->bytes.size > sizeof info->id) {
            return report_broken_list(r, f->bytes.data, "it has an id of more than 32 bytes");
        }
        memset(info->id, 0, sizeof info->id);
        if (f->bytes.size) {
            memcpy(info->id, f->bytes.data, f->bytes.size);
        }
        info->id_bytes = (uint32_t)f->bytes.size;
    } else if (f->number == LIST_FUNCTION && f->wire == WIRE_BYTES) {
        status = read_function(r, f->bytes);
    }
    return status;
}

hotfn_status hfn_list_read_wire(hotfn_list *list, hfn_span bytes, const char *name,
                                hotfn_error *err)
{
    reader r = { list, bytes, name, err };
    hotfn_status status = HOTFN_OK;
    uint64_t at = 0;
    field f;

    while (status == HOTFN_OK && at < bytes.size) {
        if (!read_next_field(bytes, &at, &f)) {
            return report_broken_list(&r, bytes.data + at,
                                      "it is truncated, or another kind of file");
        }
        status = read_field(&r, &f);
    }
    return status;
}
