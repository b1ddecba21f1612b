/* SPDX-License-Identifier: MIT */
/*
 * The format that ICreateTypeLib2 writes ("MSFT"); its fields are named as in wine's
 * dlls/oleaut32/typelib.h.  All offsets are read through spans:
 *
 *   header: flags, count of types
 *   offsets of types, one word each      (not used: types have a fixed size)
 *   directory of segments: types, ..., GUIDs, ..., names
 *   type: position of its GUID, name, base type, and where its functions are
 *   functions: bytes, records of variable size, then a word each of ids, names, offsets of records
 *
 * Resources of a module: PE format, .rsrc section.
 */
#include "runtimes/com_typelib.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum {
    SIGNATURE = 0x5446534D, /* "MSFT" */
    AT_VARFLAGS = 0x14,
    AT_TYPE_COUNT = 0x20,
    HEADER_BYTES = 0x54,
    HAS_HELP_LIBRARY = 0x100, /* of varflags: one more word */
    SYSTEM_MASK = 0xF,        /* of varflags */
    SYSTEM_WIN64 = 3,
    SEGMENT_BYTES = 16,
    SEGMENT_TYPES = 0,
    SEGMENT_GUIDS = 5,
    SEGMENT_NAMES = 7,
    SEGMENT_DESCRIPTIONS = 9,
    TYPE_BYTES = 0x64,
    MAX_BASES = 16,
    KIND_MASK = 0xF,
    KIND_INTERFACE = 3,
    KIND_DISPATCH = 4,
    FLAG_DUAL = 0x40,
    TYPE_DISPATCH = 9, /* VT_DISPATCH */
    TYPE_UNKNOWN = 13,
    TYPE_HRESULT = 0x19,
    TYPE_POINTER = 0x1A,
    TYPE_REFERENCE = 0x1D, /* VT_USERDEFINED */
    PARAMETER_BYTES = 12,
    PARAMETER_OUT = 2, /* PARAMFLAG_FOUT */
    SEGMENT_IMPORTS = 1,
    IMPORT_BYTES = 12,
    IMPORTED_BY_GUID = 0x10000,
    MIN_RECORD_BYTES = 24,
};

typedef struct typelib {
    hfn_span all, types, imports, guids, names, descriptions;
    uint32_t pointer_bytes;
} typelib;

typedef struct type_entry {
    uint32_t kind, functions_at, function_count, variable_count, guid_at, flags, name_at, base;
} type_entry;

/* 0 beyond the end. */
static uint32_t get_u32(hfn_span s, uint64_t at)
{
    uint32_t value = 0;

    hfn_span_u32(s, at, &value);
    return value;
}

static hfn_span get_segment(hfn_span all, uint64_t directory, uint32_t index)
{
    uint64_t at = directory + (uint64_t)index * SEGMENT_BYTES;

    return hfn_span_sub(all, get_u32(all, at), get_u32(all, at + 4));
}

static bool open_library(typelib *out, hfn_span all)
{
    uint32_t flags = get_u32(all, AT_VARFLAGS);
    uint64_t directory = HEADER_BYTES + (flags & HAS_HELP_LIBRARY ? 4 : 0) +
                         (uint64_t)get_u32(all, AT_TYPE_COUNT) * 4;

    *out = (typelib){ .all = all,
                      .types = get_segment(all, directory, SEGMENT_TYPES),
                      .imports = get_segment(all, directory, SEGMENT_IMPORTS),
                      .guids = get_segment(all, directory, SEGMENT_GUIDS),
                      .names = get_segment(all, directory, SEGMENT_NAMES),
                      .descriptions = get_segment(all, directory, SEGMENT_DESCRIPTIONS),
                      .pointer_bytes = (flags & SYSTEM_MASK) == SYSTEM_WIN64 ? 8 : 4 };
    return get_u32(all, 0) == SIGNATURE && out->types.size > 0 && out->names.size > 0;
}

static bool read_type(type_entry *out, const typelib *lib, uint64_t at)
{
    hfn_span t = hfn_span_sub(lib->types, at, TYPE_BYTES);

    *out = (type_entry){ get_u32(t, 0) & KIND_MASK, get_u32(t, 0x04), get_u32(t, 0x18) & 0xFFFF,
                         get_u32(t, 0x18) >> 16,    get_u32(t, 0x2C), get_u32(t, 0x30),
                         get_u32(t, 0x34),          get_u32(t, 0x54) };
    return t.size > 0;
}

/* A name of the table: two words, its length in a byte of the third, and its text. */
static void copy_name(char *out, size_t out_bytes, const typelib *lib, uint32_t at)
{
    uint32_t length = get_u32(lib->names, (uint64_t)at + 8) & 0xFF;
    hfn_span text = hfn_span_sub(lib->names, (uint64_t)at + 12, length);

    if (at != UINT32_MAX && text.size > 0) {
        snprintf(out, out_bytes, "%.*s", (int)length, (const char *)text.data);
        for (char *c = out; *c; c++) {
            *c = *c > ' ' && *c < 0x7F ? *c : '?';
        }
    }
}

/* ---- Methods. */

static bool read_guid(hfn_guid *out, const typelib *lib, uint32_t at)
{
    hfn_span guid = hfn_span_sub(lib->guids, at, sizeof *out);

    if (guid.size > 0) {
        memcpy(out, guid.data, sizeof *out);
    }
    return guid.size > 0;
}

static bool is_interface(uint32_t kind)
{
    return kind == KIND_INTERFACE || kind == KIND_DISPATCH;
}

/* The IID of the type that is referred to: in this library, or in another one. */
static bool find_referred(hfn_guid *out, const typelib *lib, uint32_t reference)
{
    hfn_span entry = hfn_span_sub(lib->imports, reference & ~3u, IMPORT_BYTES);
    type_entry type;

    if (!(reference & 3)) {
        return read_type(&type, lib, reference) && is_interface(type.kind) &&
               read_guid(out, lib, type.guid_at);
    }
    return get_u32(entry, 0) & IMPORTED_BY_GUID && is_interface(get_u32(entry, 0) >> 24) &&
           read_guid(out, lib, get_u32(entry, 8));
}

/* If the type is a pointer: the word that describes what it points to, which has the highest bit if
 * that is a simple type; else 0. */
static uint32_t follow_pointer(const typelib *lib, uint32_t type)
{
    bool is_pointer = !(type >> 31) && (get_u32(lib->descriptions, type) & 0xFFF) == TYPE_POINTER;

    return is_pointer ? get_u32(lib->descriptions, (uint64_t)type + 4) : 0;
}

/* The IID, if the type is a pointer to a pointer to an interface. */
static bool find_output(hfn_guid *out, const typelib *lib, uint32_t type)
{
    uint32_t pointee = follow_pointer(lib, type), described = follow_pointer(lib, pointee);

    if (pointee >> 31) {
        bool is_unknown = (pointee & 0xFFF) == TYPE_UNKNOWN;

        *out = is_unknown ? hfn_iid_unknown : hfn_iid_dispatch;
        return is_unknown || (pointee & 0xFFF) == TYPE_DISPATCH;
    }
    return pointee != 0 && !(described >> 31) &&
           (get_u32(lib->descriptions, described) & 0xFFF) == TYPE_REFERENCE &&
           find_referred(out, lib, get_u32(lib->descriptions, (uint64_t)described + 4));
}

/* Parameters are the end of a method's record. */
static void add_outputs(hfn_com_method *m, const typelib *lib, hfn_span record)
{
    uint32_t count = get_u32(record, 0x14) & 0xFFFF, found = 0;
    uint64_t bytes = (uint64_t)count * PARAMETER_BYTES;

    for (uint32_t i = 0; bytes <= record.size && i < count && found < HFN_COM_MAX_OUTPUTS; i++) {
        uint64_t at = record.size - bytes + (uint64_t)i * PARAMETER_BYTES;
        hfn_guid iid;

        if (get_u32(record, at + 8) & PARAMETER_OUT &&
            find_output(&iid, lib, get_u32(record, at))) {
            m->outputs[found++] = (hfn_com_output){ i + 1, iid };
        }
    }
}

static void add_method(hfn_com_interface *out, const typelib *lib, hfn_span record, uint32_t name)
{
    static const char *const prefixes[] = { "", "", "get_", "", "put_", "", "", "", "putref_" };
    uint32_t slot = (get_u32(record, 0x0C) & 0xFFFC) / lib->pointer_bytes;
    uint32_t arguments = (get_u32(record, 0x14) & 0xFFFF) + 1;
    uint32_t type = get_u32(record, 0x04); /* of the result; simple types have the highest bit */
    uint32_t invoked = get_u32(record, 0x10) >> 3 & 0xF;
    char text[HFN_COM_METHOD_BYTES] = "";

    if (record.size > 0 && slot >= HFN_COM_UNKNOWN_METHODS && slot < HFN_COM_MAX_METHODS) {
        hfn_com_method *m = &out->methods[slot];

        copy_name(text, sizeof text, lib, name);
        snprintf(m->name, sizeof m->name, "%s%.48s",
                 text[0] && invoked < HFN_COUNT_OF(prefixes) ? prefixes[invoked] : "", text);
        m->arguments = (uint8_t)(arguments < UINT8_MAX ? arguments : UINT8_MAX);
        m->result =
            type >> 31 && (type & 0xFFF) == TYPE_HRESULT ? HFN_COM_HRESULT : HFN_COM_OTHER_RESULT;
        add_outputs(m, lib, record);
        out->count = slot >= out->count ? slot + 1 : out->count;
    }
}

static void add_methods(hfn_com_interface *out, const typelib *lib, const type_entry *type)
{
    uint64_t begin = (uint64_t)type->functions_at + 4, bytes = get_u32(lib->all, begin - 4);
    /* names follow the ids of functions and variables */
    uint64_t names = begin + bytes + 4 * ((uint64_t)type->function_count + type->variable_count);
    uint64_t at = begin;

    for (uint64_t i = 0; i < type->function_count && at < begin + bytes; i++) {
        uint32_t record_bytes = get_u32(lib->all, at) & 0xFFFF;

        add_method(out, lib, hfn_span_sub(lib->all, at, record_bytes),
                   get_u32(lib->all, names + 4 * i));
        at += record_bytes >= MIN_RECORD_BYTES ? record_bytes : bytes;
    }
}

/* ---- Interfaces. */

/* Add the methods of a base that another library has; only standard ones are known. */
static void add_imported(hfn_com_interface *out, const typelib *lib, uint32_t reference)
{
    hfn_span entry = hfn_span_sub(lib->imports, reference & ~3u, IMPORT_BYTES);
    hfn_guid iid;

    if (get_u32(entry, 0) & IMPORTED_BY_GUID && read_guid(&iid, lib, get_u32(entry, 8))) {
        hfn_com_add_standard(out, &iid);
    }
}

/* Bases first, since an interface has their methods before its own. */
static void add_bases(hfn_com_interface *out, const typelib *lib, uint32_t reference)
{
    uint32_t bases[MAX_BASES], count = 0;
    type_entry type;

    while (count < MAX_BASES && !(reference & 3) && read_type(&type, lib, reference)) {
        bases[count++] = reference;
        reference = type.base;
    }
    if (reference & 1 && reference != UINT32_MAX) {
        add_imported(out, lib, reference);
    }
    while (count-- > 0) {
        read_type(&type, lib, bases[count]);
        add_methods(out, lib, &type);
    }
}

static bool find_type(type_entry *out, const typelib *lib, const hfn_guid *iid)
{
    for (uint64_t at = 0; read_type(out, lib, at); at += TYPE_BYTES) {
        hfn_guid guid;

        if (is_interface(out->kind) && read_guid(&guid, lib, out->guid_at) &&
            hfn_guid_equals(&guid, iid)) {
            return true;
        }
    }
    return false;
}

bool hfn_typelib_find(hfn_com_interface *out, hfn_span library, const hfn_guid *iid)
{
    typelib lib;
    type_entry type;

    if (!open_library(&lib, library) || !find_type(&type, &lib, iid)) {
        return false;
    }
    copy_name(out->name, sizeof out->name, &lib, type.name_at);
    if (type.kind == KIND_DISPATCH) {
        hfn_com_add_standard(out, &hfn_iid_dispatch);
    }
    if (type.kind == KIND_INTERFACE || type.flags & FLAG_DUAL) {
        add_bases(out, &lib, type.base);
        add_methods(out, &lib, &type);
    }
    return true;
}

/* ---- Resources of a module. */

#define IS_FOLDER UINT32_C(0x80000000)

enum { SECTION_HEADER_BYTES = 40, ENTRY_BYTES = 8 };

/* The offset of an RVA in the span; 0: it is in no section. */
static uint64_t find_offset(hfn_span module, uint64_t header, bool is_loaded, uint32_t rva)
{
    uint32_t count = get_u32(module, header + 6) & 0xFFFF;
    uint64_t section = header + 24 + (get_u32(module, header + 20) & 0xFFFF);

    if (is_loaded) {
        return rva;
    }
    for (; count > 0; count--, section += SECTION_HEADER_BYTES) {
        uint32_t begin = get_u32(module, section + 12), bytes = get_u32(module, section + 16);

        if (rva >= begin && rva - begin < bytes) {
            return (uint64_t)get_u32(module, section + 20) + (rva - begin);
        }
    }
    return 0;
}

static bool is_typelib_name(hfn_span resources, uint32_t at)
{
    static const uint8_t text[] = "\7\0T\0Y\0P\0E\0L\0I\0B"; /* length and UTF-16 */
    hfn_span found = hfn_span_sub(resources, at, sizeof text);

    return found.size > 0 && memcmp(found.data, text, sizeof text) == 0;
}

/* The word of the folder's entry that is the type library's folder (is_type), or has the number
 * (0: any). */
static uint32_t find_entry(hfn_span resources, uint32_t folder, bool is_type, uint32_t number)
{
    uint64_t at = (uint64_t)(folder & ~IS_FOLDER), words = at + 12;
    uint32_t count = get_u32(resources, words);

    count = (count & 0xFFFF) + (count >> 16);
    for (at += 16; count > 0; count--, at += ENTRY_BYTES) {
        uint32_t id = get_u32(resources, at), found = get_u32(resources, at + 4);
        bool has_name = (id & IS_FOLDER) != 0;

        if (is_type ? has_name && is_typelib_name(resources, id & ~IS_FOLDER)
                    : number == 0 || id == number) {
            return found;
        }
    }
    return 0;
}

hfn_span hfn_typelib_in_module(hfn_span module, bool is_loaded, uint32_t number)
{
    enum { PE32_PLUS = 0x20B, RESOURCES = 2 };
    static const hfn_span none = { NULL, 0, false };
    uint64_t header = get_u32(module, 0x3C);
    bool is_wide = (get_u32(module, header + 24) & 0xFFFF) == PE32_PLUS;
    uint64_t directory = header + 24 + (is_wide ? 112 : 96) + 8 * RESOURCES;
    uint32_t rva = get_u32(module, directory), type, library, data;
    hfn_span resources = hfn_span_sub(module, find_offset(module, header, is_loaded, rva),
                                      get_u32(module, directory + 4));

    if (rva == 0 || (type = find_entry(resources, IS_FOLDER, true, 0)) == 0 ||
        (library = find_entry(resources, type, false, number)) == 0 ||
        (data = find_entry(resources, library, false, 0)) == 0 || data & IS_FOLDER) {
        return none;
    }
    return hfn_span_sub(module, find_offset(module, header, is_loaded, get_u32(resources, data)),
                        get_u32(resources, (uint64_t)data + 4));
}
