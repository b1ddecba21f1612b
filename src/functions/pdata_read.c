/* SPDX-License-Identifier: MIT */
/*
 * x64: an entry has three RVAs; the last is that of an UNWIND_INFO, which may be chained to that of
 * the function that the range is a part of.  ARM64: an entry has an RVA and either packed unwind
 * data or the RVA of an .xdata record; both contain the length.  Only fields that distinguish
 * functions from fragments or locate handlers are read, not those for unwinding.
 */
#include "functions/pdata_read.h"

#include <string.h>

enum {
    CHAIN_MAX = 32, /* the limit in Windows */
    X64_ENTRY_BYTES = 12,
    ARM64_ENTRY_BYTES = 8,
    FLAG_HANDLERS = 3, /* UNW_FLAG_EHANDLER, UNW_FLAG_UHANDLER */
    FLAG_CHAINED = 4,
    CODE_MACHINE_FRAME = 10, /* UWOP_PUSH_MACHFRAME */
    ARM64_END_C = 0xe5,      /* the range has no prologue of its own */
};

void hfn_pdata_open(hfn_pdata *out, const hotfn_image *image)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    memset(out, 0, sizeof *out);
    out->image = image;
    hotfn_image_get_info(image, &info);
    out->machine = info.machine;
    if (info.format != HOTFN_FORMAT_PE) {
        return;
    }
    if (info.machine == HOTFN_MACHINE_X86_64) {
        out->entry_bytes = X64_ENTRY_BYTES;
    } else if (info.machine == HOTFN_MACHINE_ARM64) {
        out->entry_bytes = ARM64_ENTRY_BYTES;
    } else {
        return;
    }
    out->table = hfn_pe_directory(image, HFN_PE_EXCEPTIONS, &out->table_rva);
    out->count =
        (uint32_t)(out->table.size / out->entry_bytes); /* the size of a directory has 32 bits */
}

/* A RUNTIME_FUNCTION of x64, with its UNWIND_INFO resolved. */
typedef struct x64_function {
    uint32_t begin, end, unwind;
} x64_function;

typedef struct x64_unwind {
    hfn_span bytes; /* from the record to the end of its section */
    uint64_t rva;
    uint8_t flags, prologue_bytes, code_count;
    uint64_t tail; /* offset of the fields behind the codes */
} x64_unwind;

static bool read_x64_function(hfn_span s, uint64_t at, x64_function *out)
{
    return hfn_span_u32(s, at, &out->begin) && hfn_span_u32(s, at + 4, &out->end) &&
           hfn_span_u32(s, at + 8, &out->unwind);
}

static bool read_x64_unwind(const hotfn_image *image, uint64_t rva, x64_unwind *out)
{
    uint8_t first = 0;

    out->rva = rva;
    out->bytes = hfn_image_span(image, rva);
    if (!hfn_span_u8(out->bytes, 0, &first) || !hfn_span_u8(out->bytes, 1, &out->prologue_bytes) ||
        !hfn_span_u8(out->bytes, 2, &out->code_count) || (first & 7) == 0 || (first & 7) > 2) {
        return false;
    }
    out->flags = first >> 3;
    out->tail = 4 + 2 * ((uint64_t)out->code_count + (out->code_count & 1));
    return hfn_span_has(out->bytes, 0, out->tail);
}

/* An odd unwind address refers to another RUNTIME_FUNCTION, whose unwind information is shared. */
static bool resolve_x64(const hfn_pdata *p, x64_function *f)
{
    for (int hop = 0; hop < CHAIN_MAX; hop++) {
        x64_function other;
        if (!(f->unwind & 1)) {
            return true;
        }
        if (!read_x64_function(hfn_image_span(p->image, f->unwind - 1), 0, &other)) {
            return false;
        }
        f->unwind = other.unwind;
    }
    return false;
}

/* True if the first byte lies inside a frame that other code made: there are codes without a
 * prologue, or the frame of an interrupt. */
static bool x64_begins_inside(const x64_unwind *u)
{
    uint8_t code = 0;

    if (u->code_count > 0 && u->prologue_bytes == 0) {
        return true;
    }
    for (uint32_t i = 0; i < u->code_count; i++) {
        if (hfn_span_u8(u->bytes, 5 + 2 * (uint64_t)i, &code) && u->code_count == 1 &&
            (code & 15) == CODE_MACHINE_FRAME) {
            return true;
        }
    }
    return false;
}

/* Follows the chain to the function that the range is a part of. */
static bool follow_chain(const hfn_pdata *p, const x64_unwind *first, hfn_pdata_entry *out,
                         uint64_t *broken_at)
{
    x64_unwind u = *first;
    x64_function f = { 0, 0, 0 };

    for (int hop = 0; hop < CHAIN_MAX; hop++) {
        if (!(u.flags & FLAG_CHAINED)) {
            out->parent = f.begin;
            return true;
        }
        *broken_at = u.rva;
        if (!read_x64_function(u.bytes, u.tail, &f) || !resolve_x64(p, &f) ||
            !read_x64_unwind(p->image, f.unwind, &u)) {
            return false;
        }
    }
    return false; /* a cycle */
}

static bool read_x64(const hfn_pdata *p, uint32_t index, hfn_pdata_entry *out, uint64_t *broken_at)
{
    x64_function f;
    x64_unwind u;
    uint32_t handler;

    read_x64_function(p->table, (uint64_t)index * X64_ENTRY_BYTES, &f);
    if (f.begin == 0 && f.end == 0) {
        return false;
    }
    *broken_at = p->table_rva + (uint64_t)index * X64_ENTRY_BYTES;
    if (f.end <= f.begin || !resolve_x64(p, &f)) {
        return false;
    }
    out->rva = out->parent = f.begin;
    out->byte_count = f.end - f.begin;
    if (!read_x64_unwind(p->image, f.unwind, &u)) {
        return false;
    }
    out->prologue_bytes = u.prologue_bytes;
    if (u.flags & FLAG_CHAINED) {
        out->inside = true;
        return follow_chain(p, &u, out, broken_at);
    }
    out->inside = x64_begins_inside(&u);
    if ((u.flags & FLAG_HANDLERS) && hfn_span_u32(u.bytes, u.tail, &handler) && handler) {
        out->handler = handler;
        out->language_data = u.rva + u.tail + 4;
    }
    return true;
}

/* Packed unwind data: flag 1 is a function with a standard prologue, 2 a fragment without one. */
static void read_packed(uint32_t packed, hfn_pdata_entry *out)
{
    out->byte_count = (uint64_t)(packed >> 2 & 0x7ff) * 4;
    out->inside = (packed & 3) == 2;
}

/* An .xdata record: header, epilogue scopes, unwind codes, handler. */
static bool read_xdata(const hfn_pdata *p, uint64_t rva, hfn_pdata_entry *out)
{
    hfn_span s = hfn_image_span(p->image, rva);
    uint32_t head = 0, more = 0, handler = 0, epilogues, code_words;
    uint64_t codes = 4;
    uint8_t code = 0;

    if (!hfn_span_u32(s, 0, &head) || (head >> 18 & 3) != 0) {
        return false;
    }
    out->byte_count = (uint64_t)(head & 0x3ffff) * 4;
    epilogues = head >> 22 & 31;
    code_words = head >> 27;
    if (epilogues == 0 && code_words == 0) {
        if (!hfn_span_u32(s, 4, &more)) {
            return false;
        }
        epilogues = more & 0xffff;
        code_words = more >> 16 & 0xff;
        codes = 8;
    }
    if (!(head >> 21 & 1)) { /* E is clear: each epilogue has a scope word */
        codes += 4 * (uint64_t)epilogues;
    }
    if (!hfn_span_has(s, codes, 4 * (uint64_t)code_words)) {
        return false;
    }
    out->inside = code_words && hfn_span_u8(s, codes, &code) && code == ARM64_END_C;
    codes += 4 * (uint64_t)code_words;
    if ((head >> 20 & 1) && hfn_span_u32(s, codes, &handler) && handler) {
        out->handler = handler;
        out->language_data = rva + codes + 4;
    }
    return true;
}

static bool read_arm64(const hfn_pdata *p, uint32_t index, hfn_pdata_entry *out,
                       uint64_t *broken_at)
{
    uint64_t at = (uint64_t)index * ARM64_ENTRY_BYTES;
    uint32_t begin = 0, unwind = 0;

    hfn_span_u32(p->table, at, &begin);
    hfn_span_u32(p->table, at + 4, &unwind);
    if (begin == 0) {
        return false;
    }
    *broken_at = p->table_rva + at;
    out->rva = out->parent = begin;
    if ((unwind & 3) == 3) {
        return false;
    }
    if (unwind & 3) {
        read_packed(unwind, out);
    } else {
        *broken_at = unwind;
        if (!read_xdata(p, unwind, out)) {
            return false;
        }
    }
    return out->byte_count > 0;
}

bool hfn_pdata_read(const hfn_pdata *p, uint32_t index, hfn_pdata_entry *out, uint64_t *broken_at)
{
    memset(out, 0, sizeof *out);
    *broken_at = 0;
    if (p->machine == HOTFN_MACHINE_X86_64 ? !read_x64(p, index, out, broken_at)
                                           : !read_arm64(p, index, out, broken_at)) {
        return false;
    }
    *broken_at = p->table_rva + (uint64_t)index * p->entry_bytes;
    return hfn_image_is_code(p->image, out->rva);
}
