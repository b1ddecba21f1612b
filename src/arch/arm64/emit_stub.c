/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a stub's head for AArch64.  A count stub spoils x16 and x17, which nobody expects to
 * survive a call (AAPCS64, 6.1.1; where somebody does, they are kept on the stack), and no flag: six instructions, seven for a slot that a load cannot
 * reach.  A signal handler that counts the same function between the load and the store is lost: the
 * manual says so.  x30 stays the caller's return address, signed or not; nothing is kept below sp.
 * Nothing here touches the process: the caller says where the bytes will stand.
 */
#include "arch/arm64/emit_stub.h"

#include "arch/arm64/decode.h"
#include "arch/arm64/emit.h"

#define ENTRY_AT 8u /* behind adr and b */

enum {
    MRS_X16_TPIDR = (int)0xD53BD050,
    CBZ_X16 = (int)0xB4000010,
    PUSH_X16_X17 = (int)0xA9BF47F0, /* stp x16, x17, [sp, #-16]! */
    POP_X16_X17 = (int)0xA8C147F0,  /* ldp x16, x17, [sp], #16   */
    ADD_X16_HIGH = (int)0x91400210, /* add x16, x16, #0, lsl #12 */
    ADD_X17_1 = (int)0x91000631,
    MOV_X17_X30 = (int)0xAA1E03F1,
    MOV_X30_X17 = (int)0xAA1103FE,
    BR_X16 = (int)0xD61F0200,
    BLR_X16 = (int)0xD63F0200,
    RET = (int)0xD65F03C0,
};

static void put_branch(hfn_arm64_writer *w, uint64_t at, uint64_t target, bool links)
{
    uint32_t word = 0;

    hfn_arm64_branch(&word, (int64_t)(target - at));
    hfn_arm64_put(w, word | (links ? 0x80000000u : 0));
}

static void put_u64(hfn_arm64_writer *w, uint64_t value)
{
    hfn_arm64_put(w, (uint32_t)value);
    hfn_arm64_put(w, (uint32_t)(value >> 32));
}

/* cbz x16, to the head's first instruction */
static void put_slow(hfn_arm64_writer *w)
{
    uint32_t word = (uint32_t)CBZ_X16;

    hfn_arm64_aim(&word, -(int64_t)w->length);
    hfn_arm64_put(w, word);
}

/* slow:  adr x17, body; b gate
 * entry: (stp x16, x17, [sp, #-16]!)
 * body:  mrs x16, tpidr_el0; ldr x16, [x16, #row]; cbz x16, slow; (add x16, x16, #high, lsl #12;)
 *        ldr x17, [x16, #slot]; add x17, x17, #1; str x17, [x16, #slot]; (ldp x16, x17, [sp], #16) */
static void put_count(hfn_arm64_writer *w, const hfn_stub_request *r)
{
    uint32_t slot = (uint32_t)r->slot_displacement;
    bool keeps = r->flags & HFN_STUB_FLAGS_LIVE;

    hfn_arm64_put(w, keeps ? 0x10000071 : 0x10000051); /* adr x17, 12; adr x17, 8 */
    put_branch(w, r->address + 4, r->gate, false);
    if (keeps)
        hfn_arm64_put(w, (uint32_t)PUSH_X16_X17);
    hfn_arm64_put(w, (uint32_t)MRS_X16_TPIDR);
    hfn_arm64_put(w, hfn_arm64_load(16, 16, (uint32_t)r->row_displacement));
    put_slow(w);
    if (r->flags & HFN_STUB_FAR_SLOT) {
        hfn_arm64_put(w, (uint32_t)ADD_X16_HIGH | slot >> 12 << 10);
        slot &= 4095;
    }
    hfn_arm64_put(w, hfn_arm64_load(17, 16, slot));
    hfn_arm64_put(w, (uint32_t)ADD_X17_1);
    hfn_arm64_put(w, hfn_arm64_store(17, 16, slot));
    if (keeps)
        hfn_arm64_put(w, (uint32_t)POP_X16_X17);
}

/* mov x17, x30; bl gate; b over data; callback, user; mov x30, x17 */
static void put_call(hfn_arm64_writer *w, const hfn_stub_request *r)
{
    hfn_arm64_put(w, (uint32_t)MOV_X17_X30);
    put_branch(w, r->address + 4, r->gate, true);
    put_branch(w, 0, 20, false);
    put_u64(w, r->callback);
    put_u64(w, r->user);
    hfn_arm64_put(w, (uint32_t)MOV_X30_X17);
}

const hfn_stub_shape *hfn_arm64_stub_shape(hfn_stub_kind kind, uint32_t flags)
{
    static const hfn_stub_shape counts[4] = {
        /* FAR_SLOT is 2 here, FLAGS_LIVE 1 */
        { .head_bytes = 32, .entry_at = ENTRY_AT },
        { 40, ENTRY_AT, 4, { { 0, 16 }, { 8, 0 }, { 12, 16 }, { 40, 0 } } },
        { .head_bytes = 36, .entry_at = ENTRY_AT },
        { 44, ENTRY_AT, 4, { { 0, 16 }, { 8, 0 }, { 12, 16 }, { 44, 0 } } },
    };
    static const hfn_stub_shape call = { .head_bytes = 32 };
    static const hfn_stub_shape nothing = { .head_bytes = 0 };

    switch (kind) {
    case HFN_STUB_COUNT:
        return &counts[(flags & HFN_STUB_FLAGS_LIVE ? 1 : 0) + (flags & HFN_STUB_FAR_SLOT ? 2 : 0)];
    case HFN_STUB_CALL: return &call;
    default: return &nothing;
    }
}

void hfn_arm64_emit_stub(uint8_t *out, const hfn_stub_request *request)
{
    hfn_arm64_writer w =
        hfn_arm64_writer_on(out, hfn_arm64_stub_shape(request->kind, request->flags)->head_bytes);

    if (request->kind == HFN_STUB_COUNT)
        put_count(&w, request);
    else if (request->kind == HFN_STUB_CALL)
        put_call(&w, request);
}

/* ---- Gates. */

/* ldr x16, 8; br x16; slow_path.  x17 says where to go on. */
uint32_t hfn_arm64_emit_count_gate(uint8_t *out, uint64_t slow_path)
{
    hfn_arm64_writer w = hfn_arm64_writer_on(out, 16);

    hfn_arm64_put(&w, hfn_arm64_load_literal(16, 8));
    hfn_arm64_put(&w, (uint32_t)BR_X16);
    put_u64(&w, slow_path);
    return w.length;
}

enum { FLAGS_AT = 160, VECTORS_AT = 176, FRAME_BYTES = 688 };

/* stp (or ldp) of two registers at [sp, #offset]. */
static void put_pair(hfn_arm64_writer *w, bool loads, uint32_t first, uint32_t second, uint32_t at)
{
    hfn_arm64_put(w, 0xA9000000 | (loads ? 0x400000u : 0) | at / 8 << 15 | second << 10 | 31u << 5 |
                         first);
}

static void put_frame(hfn_arm64_writer *w, bool loads)
{
    put_pair(w, loads, 29, 17, 0); /* x17: the return address of the function that is called */
    for (uint32_t i = 0; i < 16; i += 2)
        put_pair(w, loads, i, i + 1, 16 + 8 * i);
    put_pair(w, loads, 18, 30, 144);
    for (uint32_t i = 0; i < 32; i += 2) /* stp q, q, [sp, #] */
        hfn_arm64_put(w, 0xAD000000 | (loads ? 0x400000u : 0) | (VECTORS_AT + 16 * i) / 16 << 15 |
                             (i + 1) << 10 | 31u << 5 | i);
}

/* x30: the stub's branch over {callback, user}. */
uint32_t hfn_arm64_emit_call_gate(uint8_t *out)
{
    hfn_arm64_writer w = hfn_arm64_writer_on(out, HFN_STUB_CALL_GATE_ROOM);

    hfn_arm64_put(&w, 0xD10003FF | (uint32_t)FRAME_BYTES << 10); /* sub sp, sp, #frame */
    put_frame(&w, false);
    hfn_arm64_put(&w, 0xD53B4210);                        /* mrs x16, nzcv      */
    hfn_arm64_put(&w, hfn_arm64_store(16, 31, FLAGS_AT)); /* str x16, [sp, #]   */
    hfn_arm64_put(&w, 0x910003FD);                        /* mov x29, sp        */
    hfn_arm64_put(&w, 0xF840C3C0);                        /* ldur x0, [x30, #12] */
    hfn_arm64_put(&w, 0xF84043D0);                        /* ldur x16, [x30, #4] */
    hfn_arm64_put(&w, (uint32_t)BLR_X16);
    hfn_arm64_put(&w, hfn_arm64_load(16, 31, FLAGS_AT)); /* ldr x16, [sp, #]   */
    hfn_arm64_put(&w, 0xD51B4210);                       /* msr nzcv, x16      */
    put_frame(&w, true);
    hfn_arm64_put(&w, 0x910003FF | (uint32_t)FRAME_BYTES << 10); /* add sp, sp, #frame */
    hfn_arm64_put(&w, (uint32_t)RET);
    return w.length;
}

static uint8_t *put_uleb(uint8_t *at, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* DWARF for the Arm 64-bit Architecture, 4.1: x29 and x30 by number, sp is 31.  Behind its second
 * instruction the gate's frame returns to where the function will. */
uint32_t hfn_arm64_call_gate_cfi(uint8_t *out, uint32_t gate_bytes)
{
    uint8_t *at = out;

    *at++ = 0x40 | 4; /* advance: the frame is made */
    *at++ = 0x0e;
    at = put_uleb(at, FRAME_BYTES);
    *at++ = 0x40 | 4; /* advance: x29 and the return address are saved */
    *at++ = 0x80 | 29;
    at = put_uleb(at, FRAME_BYTES / 8);
    *at++ = 0x80 | 30;
    at = put_uleb(at, FRAME_BYTES / 8 - 1);
    *at++ = 0x02; /* advance to `ret` */
    *at++ = (uint8_t)(gate_bytes - 4 - 8);
    *at++ = 0x0e;
    *at++ = 0;
    return (uint32_t)(at - out);
}

/* A b in the place of anything but a bl, which stays one: its return address stays in place. */
uint32_t hfn_arm64_emit_patch(uint8_t *out, const uint8_t *original, uint64_t at, uint64_t target)
{
    bool links = hfn_arm64_form_of(hfn_arm64_word(original)) == HFN_ARM64_BL;
    hfn_arm64_writer w = hfn_arm64_writer_on(out, HFN_ARM64_BYTES);

    put_branch(&w, at, target, links);
    return w.length;
}

/* CFA = sp; the return address is in x30 where nothing else is said. */
uint32_t hfn_arm64_cie_state(uint8_t *out)
{
    out[0] = 0x0c;
    out[1] = 31;
    out[2] = 0;
    return 3;
}
