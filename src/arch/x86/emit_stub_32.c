/* SPDX-License-Identifier: MIT */
/*
 * Emits the heads of i386 stubs.  A counter has 64 bits: one `inc` adds to its low word, and
 * another one to the high word if the low word becomes 0, so that a signal handler that counts
 * between any two instructions loses nothing.  No register is free by convention (regparm,
 * fastcall, gcc's -fipa-ra), so a stub uses a register that is proven dead, or saves ecx on the
 * stack. All code is within reach of a jump, and i386 has no red zone.  A timed function finds a
 * copy of its arguments above its return address.
 */
#include "arch/x86/emit_stub.h"
#include "base/byte_order.h"

#include "arch/x86/emit.h"

#include <stddef.h>

enum { CALL_BYTES = 5, CALL_DATA_BYTES = 8, ECX = 1 };
/* THREAD_SEGMENT: prefix of the segment with the thread's own data (ELF TLS ABI, "i386"; TEB). */
#if defined(_WIN32)
enum { THREAD_SEGMENT = 0x64 }; /* fs */
#else
enum { THREAD_SEGMENT = 0x65 }; /* gs */
#endif

#define PUT(w, ...)                                                                                \
    hfn_x86_put_bytes(w, (const uint8_t[]){ __VA_ARGS__ },                                         \
                      (uint32_t)sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put_call(hfn_x86_writer *w, uint64_t address, uint64_t target)
{
    uint64_t end = address + w->length + CALL_BYTES;

    hfn_x86_put_u8(w, 0xe8);
    hfn_x86_put_u32(w, (uint32_t)(target - end));
}

/* ---- Count. */

/* The scratch register plus 1; 0 if there is none, or if flags are live, which `test` would
 * write. */
static uint32_t get_scratch(uint32_t flags)
{
    return (flags & HFN_STUB_FLAGS_LIVE) ? 0 : flags >> HFN_STUB_SCRATCH_SHIFT & 31;
}

/* inc dword [row + displacement] */
static void put_increment(hfn_x86_writer *w, uint8_t row, int32_t displacement)
{
    PUT(w, 0xff, 0x80 | row);
    hfn_x86_put_u32(w, (uint32_t)displacement);
}

/* mov row, thread:[displacement] */
static void put_load_row(hfn_x86_writer *w, uint8_t row, int32_t displacement)
{
    PUT(w, THREAD_SEGMENT, 0x8b, 0x05 | row << 3);
    hfn_x86_put_u32(w, (uint32_t)displacement);
}

/* wrap: inc high word; jmp done
 * slow: call gate
 * body: mov scratch, thread:[row]; test scratch, scratch; jz slow; inc low word; jz wrap
 * done: */
static void put_scratch_count(hfn_x86_writer *w, const hfn_stub_request *request, uint8_t scratch)
{
    put_increment(w, scratch, request->slot_displacement + 4);
    PUT(w, 0xeb, 24); /* jmp done */
    put_call(w, request->address, request->gate);
    put_load_row(w, scratch, request->row_displacement);
    PUT(w, 0x85, 0xc0 | scratch << 3 | scratch, 0x74, 0xf0); /* test scratch, scratch; jz slow */
    put_increment(w, scratch, request->slot_displacement);
    PUT(w, 0x74, 0xe0); /* jz wrap */
}

/* wrap: inc high word; jmp done
 * slow: call gate; pop ecx
 * body: push ecx; mov ecx, thread:[row]; jecxz slow; (pushfd;) inc low word; jz wrap
 * done: (popfd;) pop ecx */
static void put_count(hfn_x86_writer *w, const hfn_stub_request *request)
{
    bool keeps = request->flags & HFN_STUB_FLAGS_LIVE;

    put_increment(w, ECX, request->slot_displacement + 4);
    PUT(w, 0xeb, keeps ? 25 : 24); /* jmp done */
    put_call(w, request->address, request->gate);
    PUT(w, 0x59, 0x51); /* pop ecx; push ecx */
    put_load_row(w, ECX, request->row_displacement);
    PUT(w, 0xe3, 0xf0); /* jecxz slow */
    if (keeps) {
        PUT(w, 0x9c); /* pushfd */
    }
    put_increment(w, ECX, request->slot_displacement);
    PUT(w, 0x74, keeps ? 0xdf : 0xe0); /* jz wrap */
    if (keeps) {
        PUT(w, 0x9d); /* popfd */
    }
    PUT(w, 0x59); /* pop ecx */
}

/* ---- Time.  The caller's return address and arguments stay where they are; the body runs below a
 * frame of the stub and room for a copy of the arguments, which the entry probe makes:
 *   count; push slot; lea esp, [esp - frame - room]; mov [esp], words; call enter; call body
 *   (write back the words that the body may have stored to, because the caller may read them)
 *   lea esp, [esp + room - popped]; call exit; lea esp, [esp + frame]; ret popped
 *   body: the moved instructions
 * The body is called with the same stack alignment modulo 64 as the entry, which code may rely
 * on. */

enum {
    FRAME_BYTES = 36,
    TIME_TAIL_BYTES = 48, /* without writing back */
    WORD_BACK_BYTES = 11, /* of one word; EAX_BACK_BYTES: of restoring eax */
    EAX_BACK_BYTES = 4,
    SKIP_BYTES = 7,
};

typedef struct stack_arguments {
    uint32_t words, room, popped; /* room and popped in bytes */
    uint32_t stored;              /* bit n: write word n back */
} stack_arguments;

static stack_arguments get_arguments(uint32_t flags)
{
    uint32_t words = flags >> HFN_STUB_ARGUMENTS_SHIFT & 31,
             pops = flags >> (HFN_STUB_ARGUMENTS_SHIFT + 5) & 7;

    return (stack_arguments){ words, (words + 9) / 16 * 64 + 24,
                              pops == HFN_STUB_POPS_ALL ? words * 4 : pops * 4,
                              flags >> HFN_STUB_STORED_SHIFT };
}

static uint32_t get_tail_bytes(stack_arguments a)
{
    uint32_t count = 0;

    for (uint32_t left = a.stored; left != 0; left &= left - 1) {
        count++;
    }
    return TIME_TAIL_BYTES + (count > 0 ? count * WORD_BACK_BYTES + EAX_BACK_BYTES : 0);
}

static void put_lea_esp(hfn_x86_writer *w, uint32_t distance)
{
    PUT(w, 0x8d, 0xa4, 0x24);
    hfn_x86_put_u32(w, distance);
}

/* Write the copies of stored words back.  The result in eax is kept in the first copy; flags and
 * all other registers do not change. */
static void put_write_back(hfn_x86_writer *w, stack_arguments a)
{
    uint8_t first = 0;

    for (uint32_t i = 0; a.stored >> i != 0; i++) {
        uint32_t copy = 4 * i - a.popped; /* the words are above the stack pointer */
        if (!(a.stored >> i & 1)) {
            continue;
        }
        if ((a.stored & ((1u << i) - 1)) == 0) {
            first = (uint8_t)copy;
            PUT(w, 0x87, 0x44, 0x24, first); /* xchg eax, [esp + copy] */
        } else {
            PUT(w, 0x8b, 0x44, 0x24, (uint8_t)copy); /* mov eax, [esp + copy] */
        }
        PUT(w, 0x89, 0x84, 0x24); /* mov [esp + original], eax */
        hfn_x86_put_u32(w, copy + a.room + FRAME_BYTES + 4);
    }
    if (a.stored != 0) {
        PUT(w, 0x8b, 0x44, 0x24, first); /* mov eax, [esp + first] */
    }
}

/* body: address of the moved instructions */
static void put_time_tail(hfn_x86_writer *w, const hfn_stub_request *request, uint64_t body)
{
    stack_arguments a = get_arguments(request->flags);

    PUT(w, 0x68); /* push slot */
    hfn_x86_put_u32(w, request->slot);
    put_lea_esp(w, 4 - FRAME_BYTES - a.room);
    PUT(w, 0xc7, 0x04, 0x24); /* mov dword [esp], words */
    hfn_x86_put_u32(w, a.words);
    put_call(w, request->address, request->time_enter);
    put_call(w, request->address, body);
    put_write_back(w, a);
    put_lea_esp(w, a.room - a.popped);
    put_call(w, request->address, request->time_exit);
    PUT(w, 0x8d, 0x64, 0x24, FRAME_BYTES); /* lea esp, [esp + frame] */
    if (a.popped != 0) {
        PUT(w, 0xc2, (uint8_t)a.popped, 0x00); /* ret n */
    } else {
        PUT(w, 0xc3, 0xcc, 0xcc);
    }
}

static void put_any_count(hfn_x86_writer *w, const hfn_stub_request *request)
{
    uint32_t scratch = get_scratch(request->flags);

    if (scratch != 0) {
        put_scratch_count(w, request, (uint8_t)(scratch - 1));
    } else {
        put_count(w, request);
    }
}

/* The size of a conditional jump from this offset to the first byte. */
static uint32_t get_jump_bytes(uint32_t at)
{
    return at + 2 <= 128 ? 2 : 6;
}

/* jb to the first byte */
static void put_jump_to_tail(hfn_x86_writer *w)
{
    uint32_t distance = w->length + get_jump_bytes(w->length);

    if (distance <= 128) {
        PUT(w, 0x72, (uint8_t)(0 - distance));
    } else {
        PUT(w, 0x0f, 0x82);
        hfn_x86_put_u32(w, 0 - distance);
    }
}

/* Most calls are not timed, so their path is straight and the timing tail precedes the entry:
 * tail; count, whose register still points to the row: sub dword [row + skip], 1; jb tail */
static void put_sample(hfn_x86_writer *w, const hfn_stub_request *request, uint32_t head_bytes)
{
    uint32_t scratch = get_scratch(request->flags);
    uint8_t row = scratch != 0 ? (uint8_t)(scratch - 1) : ECX;

    put_time_tail(w, request, request->address + head_bytes);
    put_any_count(w, request);
    if (scratch == 0) {
        w->length--; /* overwrites its pop ecx */
    }
    PUT(w, 0x83, 0xa8 | row);
    hfn_x86_put_u32(w, (uint32_t)request->skip_displacement);
    hfn_x86_put_u8(w, 0x01);
    if (scratch == 0) {
        hfn_x86_put_u8(w, 0x59);
    }
    put_jump_to_tail(w);
}

/* ---- Call: call gate; jmp over data; callback, user */

static void put_call_stub(hfn_x86_writer *w, const hfn_stub_request *request)
{
    put_call(w, request->address, request->gate);
    PUT(w, 0xeb, CALL_DATA_BYTES);
    hfn_x86_put_u32(w, (uint32_t)request->callback);
    hfn_x86_put_u32(w, (uint32_t)request->user);
}

/* ---- Shapes. */

static const hfn_stub_shape *get_count_shape(uint32_t flags)
{
    static const hfn_stub_shape counts[2] = {
        { 33, 14, 4, { { 0, 4 }, { 14, 0 }, { 15, 4 }, { 33, 0 } } },
        { 35,
          14,
          7,
          { { 0, 8 }, { 8, 4 }, { 14, 0 }, { 15, 4 }, { 25, 8 }, { 34, 4 }, { 35, 0 } } },
    };
    static const hfn_stub_shape scratch_count = { .head_bytes = 32, .entry_at = 13 };

    return get_scratch(flags) ? &scratch_count : &counts[(flags & HFN_STUB_FLAGS_LIVE) != 0];
}

static void add_step(hfn_stub_shape *shape, uint32_t at, uint32_t lowered_bytes)
{
    shape->steps[shape->step_count++] = (hfn_stub_step){ (uint8_t)at, (uint8_t)lowered_bytes };
}

static void add_tail_steps(hfn_stub_shape *shape, uint32_t at, stack_arguments a)
{
    add_step(shape, at + 5, 4);
    add_step(shape, at + 12, FRAME_BYTES + a.room);
    add_step(shape, at + 29, FRAME_BYTES + a.room - a.popped);
    at += get_tail_bytes(a) - TIME_TAIL_BYTES;
    add_step(shape, at + 36, FRAME_BYTES);
    add_step(shape, at + 45, 0);
}

/* Add the count's steps from `at` on, except the last one, after its pop. */
static void add_count_steps(hfn_stub_shape *shape, const hfn_stub_shape *count, uint32_t at)
{
    for (uint32_t i = 0; i + 1 < count->step_count; i++) {
        add_step(shape, at + count->steps[i].at, count->steps[i].lowered_bytes);
    }
}

hfn_stub_shape hfn_x86_32_get_stub_shape(hfn_stub_kind kind, uint32_t flags)
{
    const hfn_stub_shape *count = get_count_shape(flags & ~HFN_STUB_FLAGS_LIVE);
    const stack_arguments arguments = get_arguments(flags);
    hfn_stub_shape shape = { .head_bytes = 0 };
    uint32_t jump_at;
    bool keeps_ecx = count->step_count > 0;

    switch (kind) {
    case HFN_STUB_COUNT: return *get_count_shape(flags);
    case HFN_STUB_CALL: shape.head_bytes = 15; return shape;
    case HFN_STUB_REPLACE:
    case HFN_STUB_FILTER: return *hfn_x86_32_get_replace_shape(kind);
    case HFN_STUB_TIME:
        shape.head_bytes = (uint8_t)(count->head_bytes + get_tail_bytes(arguments));
        shape.entry_at = count->entry_at;
        add_count_steps(&shape, count, 0);
        if (keeps_ecx) {
            add_step(&shape, count->head_bytes, 0);
        }
        add_tail_steps(&shape, count->head_bytes, arguments);
        return shape;
    case HFN_STUB_SAMPLE:
        jump_at = get_tail_bytes(arguments) + count->head_bytes + SKIP_BYTES;
        shape.head_bytes = (uint8_t)(jump_at + get_jump_bytes(jump_at));
        shape.entry_at = (uint8_t)(get_tail_bytes(arguments) + count->entry_at);
        add_tail_steps(&shape, 0, arguments);
        add_count_steps(&shape, count, get_tail_bytes(arguments));
        if (keeps_ecx) {
            add_step(&shape, jump_at, 0);
        }
        return shape;
    default: return shape;
    }
}

void hfn_x86_32_emit_stub(uint8_t *out, const hfn_stub_request *request)
{
    uint32_t head_bytes = hfn_x86_32_get_stub_shape(request->kind, request->flags).head_bytes;
    hfn_x86_writer w = hfn_x86_begin_writer(out, head_bytes);
    hfn_stub_request plain = *request;

    plain.flags &= ~HFN_STUB_FLAGS_LIVE; /* timed functions have no live flags */
    if (request->kind == HFN_STUB_REPLACE) {
        hfn_x86_32_emit_replace(out, request);
    } else if (request->kind == HFN_STUB_FILTER) {
        hfn_x86_32_emit_filter(out, request);
    } else if (request->kind == HFN_STUB_CALL) {
        put_call_stub(&w, request);
    } else if (request->kind == HFN_STUB_COUNT) {
        put_any_count(&w, request);
    } else if (request->kind == HFN_STUB_TIME) {
        put_any_count(&w, &plain);
        put_time_tail(&w, &plain, request->address + head_bytes);
    } else if (request->kind == HFN_STUB_SAMPLE) {
        put_sample(&w, &plain, head_bytes);
    }
}

/* ---- Gates. */

/* A single instruction, so that a signal always finds the stack pointer of the call. */
uint32_t hfn_x86_32_emit_count_gate(uint8_t *out, uint64_t slow_path)
{
    return hfn_x86_emit_patch(out, NULL, (uint64_t)(uintptr_t)out, slow_path);
}

enum { LEGACY_AREA_BYTES = 512, XSAVE_HEADER_BYTES = 64 };

static void put_state_mask(hfn_x86_writer *w, const hfn_x86_vector_state *vector)
{
    hfn_x86_put_u8(w, 0xb8); /* mov eax, mask; xor edx, edx */
    hfn_x86_put_u32(w, vector->mask);
    PUT(w, 0x31, 0xd2);
}

/* xrstor reads the header, so the bytes of it that xsave does not write must be zero. */
static void put_save_vectors(hfn_x86_writer *w, const hfn_x86_vector_state *vector)
{
    static const uint8_t save[3][4] = { { 0x0f, 0xae, 0x04, 0x24 },   /* fxsave [esp] */
                                        { 0x0f, 0xae, 0x24, 0x24 },   /* xsave [esp]  */
                                        { 0x0f, 0xc7, 0x24, 0x24 } }; /* xsavec [esp] */

    PUT(w, 0x81, 0xec); /* sub esp, area */
    hfn_x86_put_u32(w, vector->area_bytes);
    if (vector->method != 0) {
        PUT(w, 0x31, 0xc0); /* xor eax, eax */
        for (uint32_t i = 0; i < XSAVE_HEADER_BYTES; i += 4) {
            PUT(w, 0x89, 0x84, 0x24); /* mov [esp + i], eax */
            hfn_x86_put_u32(w, LEGACY_AREA_BYTES + i);
        }
        put_state_mask(w, vector);
    }
    hfn_x86_put_bytes(w, save[vector->method], sizeof save[0]);
}

static void put_restore_vectors(hfn_x86_writer *w, const hfn_x86_vector_state *vector)
{
    if (vector->method == 0) {
        PUT(w, 0x0f, 0xae, 0x0c, 0x24); /* fxrstor [esp] */
        return;
    }
    put_state_mask(w, vector);
    PUT(w, 0x0f, 0xae, 0x2c, 0x24); /* xrstor [esp] */
}

/* The saved registers, from ebx up to eax, lie this far below ebp. */
enum { SAVED_BYTES = 20, SAVED_EAX_AT = 12, STACK_ARGUMENTS_AT = SAVED_BYTES + 12 };

/* call callback(user), or callback(user, saved registers) */
static void put_callback(hfn_x86_writer *w, bool filters)
{
    if (!filters) {
        PUT(w, 0x83, 0xec, 0x0c); /* sub esp, 12 */
    } else {
        PUT(w, 0x83, 0xec, 0x08, 0x8d, 0x45, (uint8_t)-SAVED_BYTES, 0x50); /* lea eax; push eax */
    }
    PUT(w, 0xff, 0x73, 0x06, 0xff, 0x53, 0x02); /* push dword [ebx + 6]; call [ebx + 2] */
    PUT(w, 0x83, 0xc4, 0x10);                   /* add esp, 16                          */
    if (filters) {
        PUT(w, 0x85, 0xc0, 0x75, 0x04); /* test eax, eax; jnz over the next one */
        PUT(w, 0x83, 0x45, 0x04, HFN_X86_32_FILTER_SKIP_BYTES); /* add dword [ebp + 4], # */
    }
}

/* ebx holds the return address: the stub's jump over {callback, user}. */
uint32_t hfn_x86_32_emit_call_gate(uint8_t *out, const hfn_x86_vector_state *vector, bool filters)
{
    hfn_x86_writer w = hfn_x86_begin_writer(out, HFN_STUB_CALL_GATE_ROOM);

    PUT(&w, 0x55, 0x89, 0xe5);       /* push ebp; mov ebp, esp        */
    PUT(&w, 0x9c, 0xfc);             /* pushfd; cld                   */
    PUT(&w, 0x50, 0x51, 0x52, 0x53); /* push eax, ecx, edx, ebx       */
    PUT(&w, 0x8b, 0x5d, 0x04);       /* mov ebx, [ebp + 4]            */
    PUT(&w, 0x83, 0xe4, 0xc0);       /* and esp, -64                  */
    put_save_vectors(&w, vector);
    put_callback(&w, filters);
    put_restore_vectors(&w, vector);
    PUT(&w, 0x8d, 0x65, 0xec);       /* lea esp, [ebp - 20]           */
    PUT(&w, 0x5b, 0x5a, 0x59, 0x58); /* pop ebx, edx, ecx, eax        */
    PUT(&w, 0x9d, 0x5d, 0xc3);       /* popfd; pop ebp; ret           */
    return w.length;
}

/* All arguments are on the stack (i386 psABI, 2.2.3), above the return address. */
uint64_t hfn_x86_32_get_argument(const void *saved, uint32_t index)
{
    return hfn_read_le32((const uint8_t *)saved + STACK_ARGUMENTS_AT + 4u * index);
}

void hfn_x86_32_set_result(void *saved, uint64_t value)
{
    hfn_write_le32((uint8_t *)saved + SAVED_EAX_AT, (uint32_t)value);
}

uint32_t hfn_x86_32_write_call_gate_cfi(uint8_t *out, uint32_t gate_bytes)
{
    hfn_x86_writer w = hfn_x86_begin_writer(out, HFN_STUB_GATE_CFI_MAX);

    PUT(&w, 0x41, 0x0e, 8, 0x85, 2);              /* push ebp: CFA = esp + 8, ebp at CFA - 8 */
    PUT(&w, 0x42, 0x0d, 5);                       /* mov ebp, esp: CFA = ebp + 8             */
    PUT(&w, 0x46, 0x83, 7);                       /* push ebx: at CFA - 28                   */
    PUT(&w, 0x02, (uint8_t)(gate_bytes - 6 - 9)); /* pop ebx: a signal's frame may lie there */
    PUT(&w, 0xc3);
    PUT(&w, 0x45, 0xc5, 0x0c, 4, 4); /* pop ebp: the same, and CFA = esp + 4    */
    return w.length;
}

/* The return address is a word of 4 bytes, not of 8. */
uint32_t hfn_x86_32_write_step_cfi(uint8_t *out, uint32_t lowered_bytes)
{
    return hfn_x86_write_step_cfi(out, lowered_bytes - 4);
}

/* CFA = esp + 4; the return address lies at CFA - 4: i386 psABI, table 2.14. */
uint32_t hfn_x86_32_write_cie_state(uint8_t *out)
{
    hfn_x86_writer w = hfn_x86_begin_writer(out, HFN_STUB_CIE_STATE_MAX);

    PUT(&w, 0x0c, 4, 4, 0x88, 1);
    return w.length;
}
