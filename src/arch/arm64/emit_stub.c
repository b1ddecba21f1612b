/* SPDX-License-Identifier: MIT */
/*
 * Emits the heads of stubs for AArch64.  A count stub changes no flag, and of the registers only
 * x16 and x17, which need not survive a call (AAPCS64, 6.1.1); where the function uses them, they
 * are saved on the stack.  It has six instructions, seven if one load cannot reach the slot.  If a
 * signal handler counts the same function between the load and the store, its count is lost
 * (hotfn-run(1) documents this).  x30 stays the caller's return address, signed or not; nothing is
 * stored below sp.
 */
#include "arch/arm64/emit_stub.h"

#include "arch/arm64/decode.h"
#include "arch/arm64/emit.h"
#include "arch/arm64/relocate.h"
#include "base/byte_order.h"

#define ENTRY_AT 8u /* after adr and b */

enum {
    MRS_X16_TPIDR = (int)0xD53BD050,
    CBZ_X16 = (int)0xB4000010,
    PUSH_X16_X17 = (int)0xA9BF47F0, /* stp x16, x17, [sp, #-16]! */
    POP_X16_X17 = (int)0xA8C147F0,  /* ldp x16, x17, [sp], #16   */
    ADD_X16_HIGH = (int)0x91400210, /* add x16, x16, #0, lsl #12 */
    ADD_X17_1 = (int)0x91000631,
    MOV_X17_X30 = (int)0xAA1E03F1,
    MOV_X30_X17 = (int)0xAA1103FE,
    STP_FRAME = (int)0xA9BF7BFD,   /* stp x29, x30, [sp, #-16]! */
    LDP_FRAME = (int)0xA9437BFD,   /* ldp x29, x30, [sp, #48]   */
    LOWER_48 = (int)0xD100C3FF,    /* sub sp, sp, #48           */
    RAISE_64 = (int)0x910103FF,    /* add sp, sp, #64           */
    SET_FRAME = (int)0x9100C3FD,   /* add x29, sp, #48          */
    LOWER = (int)0xD10003FF,       /* sub sp, sp, #0            */
    RAISE = (int)0x910003FF,       /* add sp, sp, #0            */
    PUT_SLOT = (int)0xA9027BF0,    /* stp x16, x30, [sp, #32]   */
    MOVZ_W = (int)0x52800000,      /* movz w0, #0               */
    MOVK_W_HIGH = (int)0x72A00000, /* movk w0, #0, lsl #16     */
    ADD_X16_X17 = (int)0x8B110210,
    LDR_W17 = (int)0xB9400211, /* ldr w17, [x16] */
    STR_W17 = (int)0xB9000211, /* str w17, [x16] */
    SUB_W17_1 = (int)0x51000631,
    TBZ_W17_31 = (int)0x36F80011,
    BR_X16 = (int)0xD61F0200,
    BLR_X16 = (int)0xD63F0200,
    RET = (int)0xD65F03C0,
};

static void put_branch(hfn_arm64_writer *w, uint64_t at, uint64_t target, bool links)
{
    uint32_t word = 0;

    hfn_arm64_make_branch(&word, (int64_t)(target - at));
    hfn_arm64_put_word(w, word | (links ? 0x80000000u : 0));
}

static void put_u64(hfn_arm64_writer *w, uint64_t value)
{
    hfn_arm64_put_word(w, (uint32_t)value);
    hfn_arm64_put_word(w, (uint32_t)(value >> 32));
}

/* cbz x16 to the head's first instruction */
static void put_slow(hfn_arm64_writer *w)
{
    uint32_t word = (uint32_t)CBZ_X16;

    hfn_arm64_set_branch_distance(&word, -(int64_t)w->length);
    hfn_arm64_put_word(w, word);
}

/* slow:  adr x17, body; b gate
 * entry: (stp x16, x17, [sp, #-16]!)
 * body:  mrs x16, tpidr_el0; ldr x16, [x16, #row]; cbz x16, slow; (add x16, x16, #high, lsl #12;)
 *        ldr x17, [x16, #slot]; add x17, x17, #1; str x17, [x16, #slot]
 *        (ldp x16, x17, [sp], #16) */
static void put_count(hfn_arm64_writer *w, const hfn_stub_request *r)
{
    uint32_t slot = (uint32_t)r->slot_displacement;
    bool keeps = r->flags & HFN_STUB_FLAGS_LIVE;

    hfn_arm64_put_word(w, keeps ? 0x10000071 : 0x10000051); /* adr x17, 12; adr x17, 8 */
    put_branch(w, r->address + 4, r->gate, false);
    if (keeps) {
        hfn_arm64_put_word(w, (uint32_t)PUSH_X16_X17);
    }
    hfn_arm64_put_word(w, (uint32_t)MRS_X16_TPIDR);
    hfn_arm64_put_word(w, hfn_arm64_make_load(16, 16, (uint32_t)r->row_displacement));
    put_slow(w);
    if (r->flags & HFN_STUB_FAR_SLOT) {
        hfn_arm64_put_word(w, (uint32_t)ADD_X16_HIGH | slot >> 12 << 10);
        slot &= 4095;
    }
    hfn_arm64_put_word(w, hfn_arm64_make_load(17, 16, slot));
    hfn_arm64_put_word(w, (uint32_t)ADD_X17_1);
    hfn_arm64_put_word(w, hfn_arm64_make_store(17, 16, slot));
    if (keeps) {
        hfn_arm64_put_word(w, (uint32_t)POP_X16_X17);
    }
}

/* ---- Time.  The caller's return address is saved in a frame of the stub, and the body is called:
 *   count; stp x29, x30, [sp, #-16]!; sub sp, sp, #48; add x29, sp, #48; slot to w16
 *   stp x16, x30, [sp, #32]; bl enter; bl body; bl exit
 *   ldp x29, x30, [sp, #48]; add sp, sp, #64; (autiasp;) ret
 *   body: (paciasp;) the moved instructions
 * Arguments on the stack are copied before `bl body`, in pairs, and removed after it:
 *   sub sp, sp, #8 * words; ldp x16, x17, [sp, #64 + 8 * words]; stp x16, x17, [sp]; ...
 *   add sp, sp, #8 * words
 * If the function's own `paciasp` (`pacibsp`) precedes the patch, x30 is signed with the entry's sp
 * and authenticated with it before the return; the body gets an x30 signed with its own sp. */

enum { TIME_WORDS = 12, SAMPLE_WORDS = 7, FRAME_LOWERED = 64 };

static void put_number(hfn_arm64_writer *w, uint32_t reg, uint32_t value)
{
    hfn_arm64_put_word(w, (uint32_t)MOVZ_W | (value & 0xffff) << 5 | reg);
    hfn_arm64_put_word(w, (uint32_t)MOVK_W_HIGH | value >> 16 << 5 | reg);
}

/* Write a branch to offset `to` of the head. */
static void put_within(hfn_arm64_writer *w, uint32_t word, uint32_t to)
{
    hfn_arm64_set_branch_distance(&word, (int64_t)to - w->length);
    hfn_arm64_put_word(w, word);
}

/* stp (or ldp) of two registers at [sp, #offset]. */
static void put_pair(hfn_arm64_writer *w, bool loads, uint32_t first, uint32_t second, uint32_t at)
{
    hfn_arm64_put_word(w, 0xA9000000 | (loads ? 0x400000u : 0) | at / 8 << 15 | second << 10 |
                              31u << 5 | first);
}

/* An even number keeps the stack aligned. */
static uint32_t get_argument_words(uint32_t flags)
{
    return ((flags >> HFN_STUB_ARGUMENTS_SHIFT & 31) + 1) & ~1u;
}

/* Further bytes of code to copy arguments: two instructions a pair, and two around them. */
#define COPY_BYTES(words) ((words) ? 8 + 4 * (words) : 0)

static void put_copies(hfn_arm64_writer *w, uint32_t bytes)
{
    if (bytes > 0) {
        hfn_arm64_put_word(w, (uint32_t)LOWER | bytes << 10);
    }
    for (uint32_t at = 0; at < bytes; at += 16) {
        put_pair(w, true, 16, 17, FRAME_LOWERED + bytes + at);
        put_pair(w, false, 16, 17, at);
    }
}

static void put_time(hfn_arm64_writer *w, const hfn_stub_request *r)
{
    bool is_signed = r->flags & HFN_STUB_SIGNED, key_b = r->flags & HFN_STUB_KEY_B;
    uint32_t words = get_argument_words(r->flags), bytes = 8 * words;
    uint32_t body = w->length + HFN_ARM64_BYTES * (TIME_WORDS + is_signed) + COPY_BYTES(words);

    hfn_arm64_put_word(w, (uint32_t)STP_FRAME);
    hfn_arm64_put_word(w, (uint32_t)LOWER_48);
    hfn_arm64_put_word(w, (uint32_t)SET_FRAME);
    put_number(w, 16, r->slot);
    hfn_arm64_put_word(w, (uint32_t)PUT_SLOT);
    put_branch(w, r->address + w->length, r->time_enter, true);
    put_copies(w, bytes);
    put_within(w, 0x94000000, body);
    if (bytes > 0) {
        hfn_arm64_put_word(w, (uint32_t)RAISE | bytes << 10);
    }
    put_branch(w, r->address + w->length, r->time_exit, true);
    hfn_arm64_put_word(w, (uint32_t)LDP_FRAME);
    hfn_arm64_put_word(w, (uint32_t)RAISE_64);
    if (is_signed) {
        hfn_arm64_put_word(w, key_b ? HFN_ARM64_AUTIBSP : HFN_ARM64_AUTIASP);
    }
    hfn_arm64_put_word(w, (uint32_t)RET);
    if (is_signed) {
        hfn_arm64_put_word(w, key_b ? HFN_ARM64_PACIBSP : HFN_ARM64_PACIASP);
    }
}

/* Decrement the number of calls to skip, and jump to the moved instructions unless it was 0.
 * x16 points to the row, or to where the count has moved it: movz w17; movk w17; add x16, x16,
 * x17; ldr w17, [x16]; sub w17, w17, #1; str w17, [x16]; tbz w17, #31, moved */
static void put_sample(hfn_arm64_writer *w, const hfn_stub_request *r)
{
    uint32_t added = r->flags & HFN_STUB_FAR_SLOT ? (uint32_t)r->slot_displacement & ~4095u : 0;

    put_number(w, 17, (uint32_t)r->skip_displacement - added);
    hfn_arm64_put_word(w, (uint32_t)ADD_X16_X17);
    hfn_arm64_put_word(w, (uint32_t)LDR_W17);
    hfn_arm64_put_word(w, (uint32_t)SUB_W17_1);
    hfn_arm64_put_word(w, (uint32_t)STR_W17);
    put_within(w, (uint32_t)TBZ_W17_31, w->capacity);
}

/* mov x17, x30; bl gate; b over data; callback, user; mov x30, x17 */
static void put_call(hfn_arm64_writer *w, const hfn_stub_request *r)
{
    hfn_arm64_put_word(w, (uint32_t)MOV_X17_X30);
    put_branch(w, r->address + 4, r->gate, true);
    put_branch(w, 0, 20, false);
    put_u64(w, r->callback);
    put_u64(w, r->user);
    hfn_arm64_put_word(w, (uint32_t)MOV_X30_X17);
}

/* ---- Replace: (autiasp;) ldr x16, 8; br x16; replacement; (paciasp;) the moved instructions.  The
 * replacement is called, so x30 is not signed there; a call of the original begins at `paciasp`. */

static void put_authenticate(hfn_arm64_writer *w, uint32_t flags)
{
    if (flags & HFN_STUB_SIGNED) {
        hfn_arm64_put_word(w, flags & HFN_STUB_KEY_B ? HFN_ARM64_AUTIBSP : HFN_ARM64_AUTIASP);
    }
}

static void put_replace(hfn_arm64_writer *w, const hfn_stub_request *r)
{
    put_authenticate(w, r->flags);
    hfn_arm64_put_word(w, hfn_arm64_make_load_literal(16, 8));
    hfn_arm64_put_word(w, (uint32_t)BR_X16);
    put_u64(w, r->callback);
    if (r->flags & HFN_STUB_SIGNED) {
        hfn_arm64_put_word(w, r->flags & HFN_STUB_KEY_B ? HFN_ARM64_PACIBSP : HFN_ARM64_PACIASP);
    }
}

uint32_t hfn_arm64_get_original_at(uint32_t flags)
{
    return flags & HFN_STUB_SIGNED ? 20 : 16;
}

/* ---- Filter: as a call; after a result of 0 the gate returns behind the data.
 *   mov x17, x30; bl gate; b resume; filter, user
 *           mov x30, x17; (autiasp;) ret
 *   resume: mov x30, x17 */

enum { FILTER_SKIP_BYTES = 20, FILTER_RESUME_AT = 36 };

static void put_filter(hfn_arm64_writer *w, const hfn_stub_request *r)
{
    bool is_signed = r->flags & HFN_STUB_SIGNED;

    hfn_arm64_put_word(w, (uint32_t)MOV_X17_X30);
    put_branch(w, r->address + 4, r->gate, true);
    put_branch(w, w->length, FILTER_RESUME_AT + (is_signed ? 4u : 0u), false);
    put_u64(w, r->callback);
    put_u64(w, r->user);
    hfn_arm64_put_word(w, (uint32_t)MOV_X30_X17);
    put_authenticate(w, r->flags);
    hfn_arm64_put_word(w, (uint32_t)RET);
    hfn_arm64_put_word(w, (uint32_t)MOV_X30_X17);
}

/* ---- Shapes. */

/* clang-format off */
#define SIGNS HFN_STUB_SIGNS
/* Indexed by FAR_SLOT.  A keeping count stub has x16 and x17 on the stack while it counts. */
static const hfn_stub_shape counts[2] = { { .head_bytes = 32, .entry_at = ENTRY_AT },
                                          { .head_bytes = 36, .entry_at = ENTRY_AT } };
static const hfn_stub_shape signed_counts[2] = { { 32, ENTRY_AT, 1, { { 0, SIGNS } } },
                                                 { 36, ENTRY_AT, 1, { { 0, SIGNS } } } };
static const hfn_stub_shape keeping_counts[2] = {
    { 40, ENTRY_AT, 4, { { 0, 16 }, { 8, 0 }, { 12, 16 }, { 40, 0 } } },
    { 44, ENTRY_AT, 4, { { 0, 16 }, { 8, 0 }, { 12, 16 }, { 44, 0 } } },
};
static const hfn_stub_shape signed_keeping_counts[2] = {
    { 40, ENTRY_AT, 5, { { 0, 16 }, { 0, SIGNS }, { 8, 0 }, { 12, 16 }, { 40, 0 } } },
    { 44, ENTRY_AT, 5, { { 0, 16 }, { 0, SIGNS }, { 8, 0 }, { 12, 16 }, { 44, 0 } } },
};
/* n: bytes before the frame is made; w: words of arguments; e: bytes of code to copy them */
#define MADE(n) { (n) + 4, 16 }, { (n) + 8, FRAME_LOWERED }
#define COPIED(n, w) { (n) + 32, FRAME_LOWERED + 8 * (w) }, { (n) + 40 + 4 * (w), FRAME_LOWERED }
#define SIGNED_END(n, e) { (n) + (e) + 44, 0 }, { (n) + (e) + 48, SIGNS }, { (n) + (e) + 56, SIGNS }
#define TIME_SHAPES(n)                                                                             \
    { { (n) + 48, ENTRY_AT, 3, { MADE(n), { (n) + 44, 0 } } },                                     \
      COPYING(n, 2), COPYING(n, 4), COPYING(n, 6), COPYING(n, 8), COPYING(n, 10) }
#define COPYING(n, w)                                                                              \
    { (n) + 48 + COPY_BYTES(w), ENTRY_AT, 5, { MADE(n), COPIED(n, w), { (n) + 44 + COPY_BYTES(w), 0 } } }
#define SIGNED_TIME_SHAPES(n)                                                                      \
    { { (n) + 56, ENTRY_AT, 6, { { 0, SIGNS }, MADE(n), SIGNED_END(n, 0) } },                      \
      SIGNED_COPYING(n, 2), SIGNED_COPYING(n, 4), SIGNED_COPYING(n, 6), SIGNED_COPYING(n, 8),      \
      SIGNED_COPYING(n, 10) }
#define SIGNED_COPYING(n, w)                                                                       \
    { (n) + 56 + COPY_BYTES(w), ENTRY_AT, 8,                                                       \
      { { 0, SIGNS }, MADE(n), COPIED(n, w), SIGNED_END(n, COPY_BYTES(w)) } }
/* Indexed by FAR_SLOT and pairs of words. */
#define PAIRS (HFN_ARGUMENTS_MAX_64 / 16 + 1)
static const hfn_stub_shape times[2][PAIRS] = { TIME_SHAPES(32), TIME_SHAPES(36) };
static const hfn_stub_shape signed_times[2][PAIRS] = { SIGNED_TIME_SHAPES(32), SIGNED_TIME_SHAPES(36) };
static const hfn_stub_shape samples[2][PAIRS] = { TIME_SHAPES(60), TIME_SHAPES(64) };
static const hfn_stub_shape signed_samples[2][PAIRS] = { SIGNED_TIME_SHAPES(60), SIGNED_TIME_SHAPES(64) };
static const hfn_stub_shape call_shape = { .head_bytes = 32 };
static const hfn_stub_shape signed_call_shape = { 32, 0, 1, { { 0, SIGNS } } };
static const hfn_stub_shape replace_shape = { .head_bytes = 16 };
static const hfn_stub_shape signed_replace_shape =
    { 24, 0, 3, { { 0, SIGNS }, { 4, SIGNS }, { 24, SIGNS } } };
static const hfn_stub_shape filter_shape = { .head_bytes = 40 };
static const hfn_stub_shape signed_filter_shape =
    { 44, 0, 3, { { 0, SIGNS }, { 36, SIGNS }, { 40, SIGNS } } };
static const hfn_stub_shape empty_shape = { .head_bytes = 0 };
static const hfn_stub_shape signed_empty_shape = { 0, 0, 1, { { 0, SIGNS } } };
/* clang-format on */

/* Timed functions do not use x16 and x17 of their caller (verdicts/timing.c). */
const hfn_stub_shape *hfn_arm64_get_stub_shape(hfn_stub_kind kind, uint32_t flags)
{
    uint32_t far = flags & HFN_STUB_FAR_SLOT ? 1 : 0, pairs = get_argument_words(flags) / 2;
    bool keeps = flags & HFN_STUB_FLAGS_LIVE, is_signed = flags & HFN_STUB_SIGNED;

    switch (kind) {
    case HFN_STUB_COUNT:
        if (keeps) {
            return is_signed ? &signed_keeping_counts[far] : &keeping_counts[far];
        }
        return is_signed ? &signed_counts[far] : &counts[far];
    case HFN_STUB_CALL: return is_signed ? &signed_call_shape : &call_shape;
    case HFN_STUB_REPLACE: return is_signed ? &signed_replace_shape : &replace_shape;
    case HFN_STUB_FILTER: return is_signed ? &signed_filter_shape : &filter_shape;
    case HFN_STUB_TIME: return is_signed ? &signed_times[far][pairs] : &times[far][pairs];
    case HFN_STUB_SAMPLE: return is_signed ? &signed_samples[far][pairs] : &samples[far][pairs];
    default: return is_signed ? &signed_empty_shape : &empty_shape;
    }
}

void hfn_arm64_emit_stub(uint8_t *out, const hfn_stub_request *request)
{
    hfn_arm64_writer w = hfn_arm64_begin_writer(
        out, hfn_arm64_get_stub_shape(request->kind, request->flags)->head_bytes);
    hfn_stub_request count = *request;

    switch (request->kind) {
    case HFN_STUB_CALL: put_call(&w, request); return;
    case HFN_STUB_REPLACE: put_replace(&w, request); return;
    case HFN_STUB_FILTER: put_filter(&w, request); return;
    case HFN_STUB_EMPTY: return;
    case HFN_STUB_COUNT: break;
    default: count.flags &= ~HFN_STUB_FLAGS_LIVE; break;
    }
    put_count(&w, &count);
    if (request->kind == HFN_STUB_SAMPLE) {
        put_sample(&w, request);
    }
    if (request->kind != HFN_STUB_COUNT) {
        put_time(&w, request);
    }
}

/* ---- Gates. */

/* ldr x16, 8; br x16; slow_path.  x17 holds the address at which the stub continues. */
uint32_t hfn_arm64_emit_count_gate(uint8_t *out, uint64_t slow_path)
{
    hfn_arm64_writer w = hfn_arm64_begin_writer(out, 16);

    hfn_arm64_put_word(&w, hfn_arm64_make_load_literal(16, 8));
    hfn_arm64_put_word(&w, (uint32_t)BR_X16);
    put_u64(&w, slow_path);
    return w.length;
}

enum { REGISTERS_AT = 16, RETURN_AT = 152, FLAGS_AT = 160, VECTORS_AT = 176, FRAME_BYTES = 688 };

static void put_frame(hfn_arm64_writer *w, bool loads)
{
    put_pair(w, loads, 29, 17, 0); /* x17: the return address of the hooked function */
    for (uint32_t i = 0; i < 16; i += 2) {
        put_pair(w, loads, i, i + 1, REGISTERS_AT + 8 * i);
    }
    put_pair(w, loads, 18, 30, RETURN_AT - 8);
    for (uint32_t i = 0; i < 32; i += 2) { /* stp q, q, [sp, #] */
        hfn_arm64_put_word(w, 0xAD000000 | (loads ? 0x400000u : 0) |
                                  (VECTORS_AT + 16 * i) / 16 << 15 | (i + 1) << 10 | 31u << 5 | i);
    }
}

/* x30: address of the stub's branch over {callback, user}. */
uint32_t hfn_arm64_emit_call_gate(uint8_t *out, bool filters)
{
    hfn_arm64_writer w =
        hfn_arm64_begin_writer(out, filters ? HFN_STUB_FILTER_GATE_ROOM : HFN_STUB_CALL_GATE_ROOM);

    hfn_arm64_put_word(&w, 0xD10003FF | (uint32_t)FRAME_BYTES << 10); /* sub sp, sp, #frame */
    put_frame(&w, false);
    hfn_arm64_put_word(&w, 0xD53B4210);                             /* mrs x16, nzcv      */
    hfn_arm64_put_word(&w, hfn_arm64_make_store(16, 31, FLAGS_AT)); /* str x16, [sp, #]   */
    hfn_arm64_put_word(&w, 0x910003FD);                             /* mov x29, sp        */
    hfn_arm64_put_word(&w, 0xF840C3C0);                             /* ldur x0, [x30, #12] */
    hfn_arm64_put_word(&w, 0xF84043D0);                             /* ldur x16, [x30, #4] */
    if (filters) {
        hfn_arm64_put_word(&w, 0x910003E1); /* mov x1, sp */
    }
    hfn_arm64_put_word(&w, (uint32_t)BLR_X16);
    if (filters) {
        hfn_arm64_put_word(&w, 0x35000080); /* cbnz w0, over the next three */
        hfn_arm64_put_word(&w, hfn_arm64_make_load(16, 31, RETURN_AT));
        hfn_arm64_put_word(&w, 0x91000210 | FILTER_SKIP_BYTES << 10); /* add x16, x16, # */
        hfn_arm64_put_word(&w, hfn_arm64_make_store(16, 31, RETURN_AT));
    }
    hfn_arm64_put_word(&w, hfn_arm64_make_load(16, 31, FLAGS_AT)); /* ldr x16, [sp, #]   */
    hfn_arm64_put_word(&w, 0xD51B4210);                            /* msr nzcv, x16      */
    put_frame(&w, true);
    hfn_arm64_put_word(&w, 0x910003FF | (uint32_t)FRAME_BYTES << 10); /* add sp, sp, #frame */
    hfn_arm64_put_word(&w, (uint32_t)RET);
    return w.length;
}

/* Arguments are in x0 to x7, then on the stack (AAPCS64, 6.8.2). */
uint64_t hfn_arm64_get_argument(const void *saved, uint32_t index)
{
    enum { IN_REGISTERS = 8 };
    const uint8_t *bytes = saved;

    return hfn_read_le64(index < IN_REGISTERS ? bytes + REGISTERS_AT + 8u * index
                                              : bytes + FRAME_BYTES + 8u * (index - IN_REGISTERS));
}

void hfn_arm64_set_result(void *saved, uint64_t value)
{
    hfn_write_le64((uint8_t *)saved + REGISTERS_AT, value);
}

static uint8_t *put_uleb(uint8_t *at, uint32_t value)
{
    for (; value >= 0x80; value >>= 7) {
        *at++ = (uint8_t)(value | 0x80);
    }
    *at++ = (uint8_t)value;
    return at;
}

/* 'DWARF for the Arm 64-bit Architecture', 4.1: x29 and x30 by number, sp is 31.  After its second
 * instruction the gate's frame has the return address of the hooked function. */
uint32_t hfn_arm64_write_call_gate_cfi(uint8_t *out, uint32_t gate_bytes)
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
    *at++ = 0x03; /* advance to `ret` */
    hfn_write_le16(at, (uint16_t)(gate_bytes - 4 - 8));
    at += 2;
    *at++ = 0x0e;
    *at++ = 0;
    return (uint32_t)(at - out);
}

/* A b, or a bl in place of a bl, whose return address stays the same. */
uint32_t hfn_arm64_emit_patch(uint8_t *out, const uint8_t *original, uint64_t at, uint64_t target)
{
    bool links = original && hfn_arm64_get_form(hfn_read_le32(original)) == HFN_ARM64_BL;
    hfn_arm64_writer w = hfn_arm64_begin_writer(out, HFN_ARM64_BYTES);

    put_branch(&w, at, target, links);
    return w.length;
}

/* CFA = sp; the return address is in x30 by default. */
uint32_t hfn_arm64_write_cie_state(uint8_t *out)
{
    out[0] = 0x0c;
    out[1] = 31;
    out[2] = 0;
    return 3;
}

/* A step moves the CFA; inside a timing stub's frame x29 and x30 are saved below the CFA,
 * outside they are in their registers.  Signing: 'DWARF for the Arm 64-bit Architecture',
 * DW_CFA_AARCH64_negate_ra_state. */
uint32_t hfn_arm64_write_step_cfi(uint8_t *out, uint32_t lowered_bytes)
{
    uint8_t *at = out;

    if (lowered_bytes == HFN_STUB_SIGNS) {
        *at++ = HFN_ARM64_NEGATE_RA_STATE;
        return 1;
    }
    *at++ = 0x0e; /* DW_CFA_def_cfa_offset */
    at = put_uleb(at, lowered_bytes);
    if (lowered_bytes == FRAME_LOWERED) { /* DW_CFA_offset, in words of 8 */
        *at++ = 0x80 | 29, *at++ = 2;
        *at++ = 0x80 | 30, *at++ = 1;
    } else if (lowered_bytes == 0) { /* DW_CFA_restore */
        *at++ = 0xc0 | 29;
        *at++ = 0xc0 | 30;
    }
    return (uint32_t)(at - out);
}
