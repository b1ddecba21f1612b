/* SPDX-License-Identifier: MIT */
/*
 * Emits the heads of the stubs that replace or filter a function, for x86-64 and i386.
 *
 *   REPLACE   jmp replacement
 *             moved instructions             <- where a call of the original function begins
 *
 *   FILTER    lower the stack; call gate     ; the gate calls filter(user, saved registers)
 *             jmp resume                     ; after a result that is not 0
 *             filter, user
 *             raise the stack; ret           ; after 0: the gate returns here
 *   resume:   raise the stack; moved instructions
 *
 * On i386 arguments lie at the stack pointer and there is no red zone, so the stack is not lowered.
 */
#include "arch/x86/emit.h"
#include "arch/x86/emit_stub.h"

#define PUT(w, ...)                                                                                \
    hfn_x86_put_bytes(w, (const uint8_t[]){ __VA_ARGS__ },                                         \
                      (uint32_t)sizeof((const uint8_t[]){ __VA_ARGS__ }))

enum { RAISE_BYTES = 8, JUMP_BYTES = 5 };

static void put_u64(hfn_x86_writer *w, uint64_t value)
{
    hfn_x86_put_u32(w, (uint32_t)value);
    hfn_x86_put_u32(w, (uint32_t)(value >> 32));
}

static void put_near(hfn_x86_writer *w, uint8_t opcode, uint64_t at, uint64_t target)
{
    hfn_x86_put_u8(w, opcode);
    hfn_x86_put_u32(w, (uint32_t)(target - (at + JUMP_BYTES)));
}

/* ---- x86-64. */

enum { REPLACE_HEAD_64 = 14, FILTER_HEAD_64 = 45 };

static void put_raise(hfn_x86_writer *w)
{
    PUT(w, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00); /* lea rsp, [rsp + 128] */
}

void hfn_x86_emit_replace(uint8_t *out, const hfn_stub_request *request)
{
    hfn_x86_writer w = hfn_x86_begin_writer(out, REPLACE_HEAD_64);

    PUT(&w, 0xff, 0x25, 0x00, 0x00, 0x00, 0x00); /* jmp [rip + 0] */
    put_u64(&w, request->callback);
}

void hfn_x86_emit_filter(uint8_t *out, const hfn_stub_request *request)
{
    hfn_x86_writer w = hfn_x86_begin_writer(out, FILTER_HEAD_64);

    PUT(&w, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea rsp, [rsp - 128] */
    put_near(&w, 0xe8, request->address + w.length, request->gate);
    PUT(&w, 0xeb, 2 * sizeof(uint64_t) + RAISE_BYTES + 1); /* jmp resume */
    put_u64(&w, request->callback);
    put_u64(&w, request->user);
    put_raise(&w);
    PUT(&w, 0xc3);
    put_raise(&w);
}

const hfn_stub_shape *hfn_x86_get_replace_shape(hfn_stub_kind kind)
{
    static const hfn_stub_shape replace = { REPLACE_HEAD_64, 0, 0, { { 0, 0 } } };
    static const hfn_stub_shape filter = {
        FILTER_HEAD_64, 0, 4, { { 5, 128 }, { 36, 0 }, { 37, 128 }, { FILTER_HEAD_64, 0 } }
    };

    return kind == HFN_STUB_REPLACE ? &replace : &filter;
}

/* ---- i386. */

enum { REPLACE_HEAD_32 = 5, FILTER_HEAD_32 = 16 };

void hfn_x86_32_emit_replace(uint8_t *out, const hfn_stub_request *request)
{
    hfn_x86_writer w = hfn_x86_begin_writer(out, REPLACE_HEAD_32);

    put_near(&w, 0xe9, request->address, request->callback);
}

void hfn_x86_32_emit_filter(uint8_t *out, const hfn_stub_request *request)
{
    hfn_x86_writer w = hfn_x86_begin_writer(out, FILTER_HEAD_32);

    put_near(&w, 0xe8, request->address, request->gate);
    PUT(&w, 0xeb, 2 * sizeof(uint32_t) + 1); /* jmp resume */
    hfn_x86_put_u32(&w, (uint32_t)request->callback);
    hfn_x86_put_u32(&w, (uint32_t)request->user);
    PUT(&w, 0xc3);
}

const hfn_stub_shape *hfn_x86_32_get_replace_shape(hfn_stub_kind kind)
{
    static const hfn_stub_shape replace = { REPLACE_HEAD_32, 0, 0, { { 0, 0 } } };
    static const hfn_stub_shape filter = { FILTER_HEAD_32, 0, 0, { { 0, 0 } } };

    return kind == HFN_STUB_REPLACE ? &replace : &filter;
}
