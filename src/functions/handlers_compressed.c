/* SPDX-License-Identifier: MIT */
/*
 * Reads FuncInfo4, the compressed C++ exception data (ehdata4_export.h of Microsoft's C++ library):
 * a byte of flags, then the RVAs of the maps that the flags announce.  Such data has no magic
 * number, so it is read twice: first to check that every number is plausible, then to visit the
 * unwind actions, the catch blocks and the addresses where execution continues after them.
 */
#include "functions/handlers_compressed.h"

enum {
    FLAG_CATCH = 1,
    FLAG_BBT = 4,
    FLAG_UNWIND_MAP = 8,
    FLAG_TRY_MAP = 16,
    FLAG_RESERVED = 128,
    HANDLER_ADJECTIVES = 1,
    HANDLER_TYPE = 2,
    HANDLER_OBJECT = 4,
    HANDLER_RVAS = 8, /* continuation addresses are RVAs, not offsets in the function */
};

/* A reading position in the image; `good` becomes false at the first fault and stays so. */
typedef struct cursor {
    const hotfn_image *image;
    const hfn_handler_visitor *visitor; /* NULL: only check */
    uint64_t function_rva;
    uint64_t *steps_left;
    hfn_span bytes;
    uint64_t at;
    bool good;
} cursor;

static cursor at_rva(const cursor *from, uint64_t rva)
{
    cursor c = *from;

    c.bytes = hfn_image_span(c.image, rva);
    c.at = 0;
    return c;
}

static uint8_t read_byte(cursor *c)
{
    uint8_t value = 0;

    c->good = c->good && hfn_span_u8(c->bytes, c->at++, &value);
    return value;
}

static uint32_t read_rva(cursor *c)
{
    uint32_t value = 0;

    c->good = c->good && hfn_span_u32(c->bytes, c->at, &value);
    c->at += 4;
    return value;
}

/* The number of trailing one bits in the first byte is the number of bytes that follow; if it is 4
 * or more, the number is the next 32-bit word. */
static uint32_t read_number(cursor *c)
{
    uint8_t first = read_byte(c);
    uint32_t value = first, more = 0;

    while (more < 4 && (first >> more & 1)) {
        more++;
    }
    if (more == 4) {
        return read_rva(c);
    }
    for (uint32_t i = 1; i <= more; i++) {
        value |= (uint32_t)read_byte(c) << (8 * i);
    }
    return value >> (more + 1);
}

static bool spend_step(cursor *c)
{
    c->good = c->good && *c->steps_left > 0;
    *c->steps_left -= c->good;
    return c->good;
}

static void visit_call(cursor *c, uint32_t rva)
{
    c->good = c->good && hfn_image_is_code(c->image, rva);
    if (c->good && c->visitor) {
        c->visitor->calls(c->visitor->user, rva);
    }
}

static void visit_jump(cursor *c, uint64_t rva)
{
    c->good = c->good && hfn_image_is_code(c->image, rva);
    if (c->good && c->visitor) {
        c->visitor->jumps(c->visitor->user, rva);
    }
}

/* An entry of kind 0 has no action, 3 has an action, 1 and 2 have an action and an object. */
static bool read_unwind_map(cursor c)
{
    uint32_t count = read_number(&c);

    for (uint32_t i = 0; i < count && spend_step(&c); i++) {
        uint32_t kind = read_number(&c) & 3;
        if (kind != 0) {
            visit_call(&c, read_rva(&c));
        }
        if (kind == 1 || kind == 2) {
            read_number(&c);
        }
    }
    return c.good;
}

static bool read_catches(cursor c)
{
    uint32_t count = read_number(&c);

    for (uint32_t i = 0; i < count && spend_step(&c); i++) {
        uint8_t head = read_byte(&c);
        uint32_t addresses = head >> 4 & 3;
        if (head & HANDLER_ADJECTIVES) {
            read_number(&c);
        }
        if (head & HANDLER_TYPE) {
            read_rva(&c);
        }
        if (head & HANDLER_OBJECT) {
            read_number(&c);
        }
        visit_call(&c, read_rva(&c));
        c.good = c.good && addresses < 3 && head >> 6 == 0;
        for (uint32_t k = 0; k < addresses && c.good; k++) {
            visit_jump(&c, head & HANDLER_RVAS ? read_rva(&c) : c.function_rva + read_number(&c));
        }
    }
    return c.good;
}

static bool read_try_map(cursor c)
{
    uint32_t count = read_number(&c);

    for (uint32_t i = 0; i < count && spend_step(&c); i++) {
        uint32_t low = read_number(&c), high = read_number(&c), catch_high = read_number(&c);
        uint32_t catches = read_rva(&c);
        c.good = c.good && low <= high && high <= catch_high && read_catches(at_rva(&c, catches));
    }
    return c.good;
}

static bool read_info(cursor c)
{
    uint8_t flags = read_byte(&c);

    if (flags & FLAG_BBT) {
        read_number(&c);
    }
    if (!c.good || (flags & FLAG_RESERVED) || !(flags & (FLAG_UNWIND_MAP | FLAG_TRY_MAP))) {
        return false; /* not a FuncInfo4, or one without actions and catch blocks */
    }
    if ((flags & FLAG_UNWIND_MAP) && !read_unwind_map(at_rva(&c, read_rva(&c)))) {
        return false;
    }
    return !(flags & FLAG_TRY_MAP) || read_try_map(at_rva(&c, read_rva(&c)));
}

void hfn_handlers_compressed(const hotfn_image *image, uint64_t info_rva, uint64_t function_rva,
                             uint64_t *steps_left, const hfn_handler_visitor *visitor)
{
    cursor c = {
        .image = image, .function_rva = function_rva, .steps_left = steps_left, .good = true
    };

    c = at_rva(&c, info_rva);
    if (!read_info(c)) {
        return;
    }
    c.visitor = visitor;
    read_info(c);
}
