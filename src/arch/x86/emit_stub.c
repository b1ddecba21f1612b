/* SPDX-License-Identifier: MIT */
/*
 * Emits the heads of stubs for x86-64.  A count stub changes no register, no live flag and nothing
 * above the stack pointer.  It pushes rcx, or uses a scratch register if one is dead at the entry.
 * It writes nothing below the stack pointer, which the kernel of Windows may overwrite.
 * `jrcxz` tests the row pointer without changing flags.  Heads use push and pop to be short,
 * because stubs compete with the program's code for the instruction cache
 * (docs/design/hooks-stubs.md).
 */
#include "arch/x86/emit_stub.h"

#include "base/byte_order.h"

#include <string.h>

enum { RED_ZONE_BYTES = 128, CALL_BYTES = 5, SLOW_BYTES = 6, CALL_DATA_BYTES = 16 };
enum { SCRATCH_GATE_AT = 5 }; /* in the count gate */
/* THREAD_SEGMENT: prefix of the segment with the thread's own data (System V x86-64 psABI, 3.4.6;
 * TEB).  HOME_BYTES: space above the return address that belongs to the callee, below its arguments
 * on the stack (Microsoft, "x64 calling convention"). */
#if defined(_WIN32)
enum { THREAD_SEGMENT = 0x65, HOME_BYTES = 32 }; /* gs */
#else
enum { THREAD_SEGMENT = 0x64, HOME_BYTES = 0 }; /* fs */
#endif

/* ---- Writing. */

static uint8_t *put_bytes(uint8_t *out, const void *bytes, uint32_t count)
{
    memcpy(out, bytes, count);
    return out + count;
}

#define PUT(out, ...)                                                                              \
    put_bytes(out, (const uint8_t[]){ __VA_ARGS__ },                                               \
              (uint32_t)sizeof((const uint8_t[]){ __VA_ARGS__ }))

static uint8_t *put_u32(uint8_t *out, uint32_t value)
{
    hfn_write_le32(out, value);
    return out + 4;
}

static uint8_t *put_u64(uint8_t *out, uint64_t value)
{
    hfn_write_le64(out, value);
    return out + 8;
}

static uint8_t *put_lower(uint8_t *out)
{
    return PUT(out, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea rsp, [rsp - 128] */
}

static uint8_t *put_raise(uint8_t *out)
{
    return put_u32(PUT(out, 0x48, 0x8d, 0xa4, 0x24), RED_ZONE_BYTES); /* lea rsp, [rsp + 128] */
}

/* call target, in code at address `at` */
static uint8_t *put_call(uint8_t *out, uint64_t at, uint64_t target)
{
    return put_u32(PUT(out, 0xe8), (uint32_t)(target - (at + CALL_BYTES)));
}

static void put_jump(uint8_t *out, uint64_t at, uint64_t target)
{
    PUT(put_u32(PUT(out, 0xe9), (uint32_t)(target - (at + CALL_BYTES))), 0xcc);
}

/* ---- Count. */

/* The scratch register plus 1; 0 if there is none, or if flags are live, which `test` would
 * write. */
static uint32_t get_scratch(uint32_t flags)
{
    return (flags & HFN_STUB_FLAGS_LIVE) ? 0 : flags >> HFN_STUB_SCRATCH_SHIFT & 31;
}

static uint8_t *put_increment(uint8_t *out, int32_t displacement)
{
    return put_u32(PUT(out, 0x48, 0xff, 0x81), (uint32_t)displacement); /* inc qword [rcx + d] */
}

static uint8_t *put_flag_free_increment(uint8_t *out, int32_t displacement)
{
    out = PUT(out, 0x52);                                              /* push rdx            */
    out = put_u32(PUT(out, 0x48, 0x8b, 0x91), (uint32_t)displacement); /* mov rdx, [rcx + d]  */
    out = PUT(out, 0x48, 0x8d, 0x52, 0x01);                            /* lea rdx, [rdx + 1]  */
    out = put_u32(PUT(out, 0x48, 0x89, 0x91), (uint32_t)displacement); /* mov [rcx + d], rdx  */
    return PUT(out, 0x5a);                                             /* pop rdx             */
}

static uint8_t get_row_segment(const hfn_stub_request *request)
{
    return request->row_in_gs ? 0x65 : THREAD_SEGMENT;
}

/* slow: call gate
 * body: mov scratch, fs:[row]; test scratch, scratch; jz slow; inc qword [scratch + d]
 * Only the call steps over a red zone. */
static uint8_t *put_scratch_count(uint8_t *out, uint64_t at, const hfn_stub_request *request,
                                  uint8_t scratch)
{
    uint8_t low = scratch & 7, high = scratch >> 3; /* high: REX.R or REX.B */
    bool red_zone = (request->flags & HFN_STUB_RED_ZONE) != 0;
    uint64_t gate = request->gate + SCRATCH_GATE_AT;

    if (red_zone) {
        out = put_raise(put_call(put_lower(out), at + 5, gate));
    } else {
        out = put_call(out, at, gate);
    }
    /* mov scratch, thread:[row] */
    out = PUT(out, get_row_segment(request), 0x48 | high << 2, 0x8b, 0x04 | low << 3, 0x25);
    out = put_u32(out, (uint32_t)request->row_displacement);
    out = PUT(out, 0x48 | high << 2 | high, 0x85, 0xc0 | low << 3 | low); /* test r, r */
    out = PUT(out, 0x74, red_zone ? 0xe0 : 0xed);                         /* jz slow           */
    return put_u32(PUT(out, 0x48 | high, 0xff, 0x80 | low), (uint32_t)request->slot_displacement);
}

/* slow: call gate; pop rcx
 * body: push rcx; mov rcx, fs:[row]; jrcxz slow; count; pop rcx
 * After the slow path `body` runs again. */
static uint8_t *put_count_body(uint8_t *out, uint64_t at, const hfn_stub_request *request)
{
    out = put_call(out, at, request->gate);
    out = PUT(out, 0x59);                                             /* pop rcx               */
    out = PUT(out, 0x51);                                             /* push rcx              */
    out = PUT(out, get_row_segment(request), 0x48, 0x8b, 0x0c, 0x25); /* mov rcx, thread:[row] */
    out = put_u32(out, (uint32_t)request->row_displacement);
    out = PUT(out, 0xe3, 0xee); /* jrcxz slow        */
    out = (request->flags & HFN_STUB_FLAGS_LIVE)
              ? put_flag_free_increment(out, request->slot_displacement)
              : put_increment(out, request->slot_displacement);
    return PUT(out, 0x59); /* pop rcx           */
}

static void emit_count(uint8_t *out, const hfn_stub_request *request)
{
    uint32_t scratch = get_scratch(request->flags);

    if (scratch != 0) {
        put_scratch_count(out, request->address, request, (uint8_t)(scratch - 1));
        return;
    }
    if (!(request->flags & HFN_STUB_RED_ZONE)) {
        put_count_body(out, request->address, request);
        return;
    }
    out = put_lower(out);
    out = PUT(out, 0xeb, SLOW_BYTES); /* jmp body */
    put_raise(put_count_body(out, request->address + 7, request));
}

/* ---- Time.  The caller's return address stays where it is, and the body runs below a frame of the
 * stub:
 *   count; lea rsp, [rsp - room]; mov qword [rsp + 32], slot; call enter; call body; call exit
 *   lea rsp, [rsp + room]; ret
 *   body: the moved instructions
 * Arguments on the stack are copied before `call body`, the last one first, and removed after
 * it: push [rsp + room + home + 8 * words], once for each word; lea rsp, [rsp - home];
 * lea rsp, [rsp + home + 8 * words].  The body is called with the same stack alignment modulo 64 as
 * the entry, since code built with -mpreferred-stack-boundary=6 relies on its callers for aligned
 * vectors (libx264 does).  Timed functions have neither live flags nor a red zone. */

enum { TIME_TAIL_AT = 26, TIME_TAIL_BYTES = 35, SKIP_BYTES = 9, SKIP_SCRATCH_BYTES = 10 };
enum { TIME_FRAME_BYTES = 40, WORD_BYTES = 8, LEA_BYTES = 5, TIME_BODY_CALLED_AT = 24 };
enum { TIME_ENTERED_AT = 19, JUMP_BYTES = 2 };
enum { APART_SHIFT = 24 }; /* HFN_FRAME_APART_SHIFT */

/* Words that are copied; those of the home space are not.  An even number keeps the stack aligned.
 * One word more than the arguments can always be read: it belongs to a caller's frame, since that
 * caller's return address is above it. */
static uint32_t get_copied_words(uint32_t flags)
{
    uint32_t words = flags >> HFN_STUB_ARGUMENTS_SHIFT & 31;

    return words > HOME_BYTES / WORD_BYTES ? (words - HOME_BYTES / WORD_BYTES + 1) & ~1u : 0;
}

/* Bytes between the body's return address and the frame. */
static uint32_t get_argument_bytes(uint32_t flags)
{
    return get_copied_words(flags) * WORD_BYTES + HOME_BYTES;
}

/* Size of the frame with padding, so that frame, arguments and return address are a multiple of
 * 64. */
static uint32_t get_time_room(uint32_t flags)
{
    return TIME_FRAME_BYTES + (128 - (TIME_FRAME_BYTES + get_argument_bytes(flags) + 8)) % 64;
}

/* Further bytes of code for arguments and home space. */
static uint32_t copy_bytes(uint32_t flags)
{
    return get_copied_words(flags) * HFN_STUB_PUSH_BYTES + (HOME_BYTES > 0 ? LEA_BYTES : 0) +
           (get_argument_bytes(flags) > 0 ? LEA_BYTES : 0);
}

static uint32_t time_tail_bytes(uint32_t flags)
{
    return TIME_TAIL_BYTES + copy_bytes(flags);
}

static uint8_t *put_move_stack(uint8_t *out, uint32_t distance)
{
    return PUT(out, 0x48, 0x8d, 0x64, 0x24, (uint8_t)distance); /* lea rsp, [rsp + distance] */
}

/* body: address of the moved instructions */
static void put_time_tail(uint8_t *out, uint64_t at, uint64_t body, const hfn_stub_request *request)
{
    uint32_t words = get_copied_words(request->flags), room = get_time_room(request->flags);
    uint32_t arguments = get_argument_bytes(request->flags);
    /* the entry probe of a sample reads the caller's return address */
    uint32_t apart = request->kind == HFN_STUB_SAMPLE ? (room - TIME_FRAME_BYTES) / 16 : 0;
    const uint8_t *begin = out;

    out = put_move_stack(out, 0 - room);
    out = put_u32(PUT(out, 0x48, 0xc7, 0x44, 0x24, 32), request->slot | apart << APART_SHIFT);
    out = put_call(out, at + 14, request->time_enter);
    for (uint32_t i = 0; i < words; i++) {
        out = PUT(out, 0xff, 0x74, 0x24, (uint8_t)(room + arguments)); /* push [rsp + distance] */
    }
    if (HOME_BYTES > 0) {
        out = put_move_stack(out, 0 - (uint32_t)HOME_BYTES);
    }
    out = put_call(out, at + (uint64_t)(out - begin), body);
    if (arguments > 0) {
        out = put_move_stack(out, arguments);
    }
    out = put_call(out, at + (uint64_t)(out - begin), request->time_exit);
    if (request->flags & HFN_STUB_TAIL_EXIT) {
        put_jump(out, at + (uint64_t)(out - begin),
                 request->address - HFN_TAIL_EXIT_BYTES + HFN_TAIL_EXIT_END_AT);
        return;
    }
    PUT(put_move_stack(out, room), 0xc3);
}

static void emit_time(uint8_t *out, const hfn_stub_request *request)
{
    uint64_t at = request->address + TIME_TAIL_AT;
    uint32_t scratch = get_scratch(request->flags);
    hfn_stub_request plain = *request;

    plain.flags = 0;
    if (scratch != 0) {
        put_scratch_count(out, request->address, &plain, (uint8_t)(scratch - 1));
    } else {
        put_count_body(out, request->address, &plain);
    }
    put_time_tail(out + TIME_TAIL_AT, at, at + time_tail_bytes(request->flags), request);
}

/* Most calls are not timed, so their path is straight and the timing tail precedes the entry:
 * tail; count, whose register still points to the row: sub dword [row + skip], 1; jb tail */
static void emit_sample(uint8_t *out, const hfn_stub_request *request)
{
    uint64_t at = request->address + time_tail_bytes(request->flags);
    uint32_t scratch = get_scratch(request->flags);
    uint8_t reg = scratch != 0 ? (uint8_t)(scratch - 1) : 0;
    uint8_t *tail = out;
    hfn_stub_request plain = *request;

    plain.flags = 0;
    out += time_tail_bytes(request->flags);
    if (scratch != 0) {
        out = PUT(put_scratch_count(out, at, &plain, reg), 0x40 | reg >> 3, 0x83, 0xa8 | (reg & 7));
        out = PUT(put_u32(out, (uint32_t)request->skip_displacement), 0x01);
    } else {
        out = PUT(put_count_body(out, at, &plain) - 1, 0x83, 0xa9); /* overwrites its pop rcx */
        out = PUT(put_u32(out, (uint32_t)request->skip_displacement), 0x01, 0x59);
    }
    out = PUT(out, 0x72, (uint8_t)(tail - (out + 2)));
    put_time_tail(tail, request->address, request->address + (uint64_t)(out - tail), request);
}

/* ---- Call: lea rsp, [rsp - 128]; call gate; jmp over data; callback, user
 *            lea rsp, [rsp + 128] */

static void emit_call(uint8_t *out, const hfn_stub_request *request)
{
    out = put_lower(out);
    out = put_call(out, request->address + 5, request->gate);
    out = PUT(out, 0xeb, CALL_DATA_BYTES);
    out = put_u64(put_u64(out, request->callback), request->user);
    put_raise(out);
}

/* clang-format off */
static const hfn_stub_shape count_shapes[4] = {
    [0] = { 26, 6, 4, { { 0, 8 }, { 6, 0 }, { 7, 8 }, { 26, 0 } } },
    [HFN_STUB_FLAGS_LIVE] =
        { 39, 6, 6, { { 0, 8 }, { 6, 0 }, { 7, 8 }, { 19, 16 }, { 38, 8 }, { 39, 0 } } },
    [HFN_STUB_RED_ZONE] =
        { 41, 0, 6, { { 5, 128 }, { 7, 136 }, { 13, 128 }, { 14, 136 }, { 33, 128 }, { 41, 0 } } },
    [HFN_STUB_RED_ZONE | HFN_STUB_FLAGS_LIVE] =
        { 54, 0, 8, { { 5, 128 }, { 7, 136 }, { 13, 128 }, { 14, 136 }, { 26, 144 }, { 45, 136 },
                      { 46, 128 }, { 54, 0 } } },
};
static const hfn_stub_shape scratch_count_shapes[2] = {
    { 26, 5, 0, { { 0, 0 } } },
    { 39, 18, 2, { { 5, 128 }, { 18, 0 } } }, /* red zone */
};
static const hfn_stub_shape call_shape = { 36, 0, 2, { { 5, 128 }, { 36, 0 } } };
/* clang-format on */

static const hfn_stub_shape *get_count_shape(uint32_t flags)
{
    return get_scratch(flags) ? &scratch_count_shapes[(flags & HFN_STUB_RED_ZONE) != 0]
                              : &count_shapes[flags & 3];
}

static void add_step(hfn_stub_shape *shape, uint32_t at, uint32_t lowered_bytes)
{
    shape->steps[shape->step_count++] = (hfn_stub_step){ (uint8_t)at, (uint8_t)lowered_bytes };
}

/* Add the steps of a tail that begins at `at`. */
static void add_tail_steps(hfn_stub_shape *shape, uint32_t at, uint32_t flags)
{
    uint32_t words = get_copied_words(flags), room = get_time_room(flags);
    uint32_t arguments = get_argument_bytes(flags);

    add_step(shape, at + LEA_BYTES, room);
    at += TIME_ENTERED_AT;
    if (words > 0) {
        add_step(shape, at + HFN_STUB_PUSH_BYTES, room + WORD_BYTES);
        add_step(shape, words - 1, HFN_STUB_PUSHES);
        at += words * HFN_STUB_PUSH_BYTES;
    }
    if (HOME_BYTES > 0) {
        at += LEA_BYTES;
        add_step(shape, at, room + arguments);
    }
    at += CALL_BYTES;
    if (arguments > 0) {
        at += LEA_BYTES;
        add_step(shape, at, room);
    }
    add_step(shape, at + CALL_BYTES + LEA_BYTES, 0);
}

/* Add the steps of a count that begins at `at`; its last one, after its pop, is at `end`. */
static void add_count_steps(hfn_stub_shape *shape, const hfn_stub_shape *count, uint32_t at,
                            uint32_t end)
{
    for (uint32_t i = 0; i + 1 < count->step_count; i++) {
        add_step(shape, at + count->steps[i].at, count->steps[i].lowered_bytes);
    }
    if (count->step_count > 0) {
        add_step(shape, end, 0);
    }
}

static hfn_stub_shape get_time_shape(uint32_t flags)
{
    const hfn_stub_shape *count = get_count_shape(flags & UINT32_C(0xff00));
    hfn_stub_shape shape = { .entry_at = count->entry_at };

    add_count_steps(&shape, count, 0, TIME_TAIL_AT);
    add_tail_steps(&shape, TIME_TAIL_AT, flags);
    shape.head_bytes = (uint8_t)(TIME_TAIL_AT + time_tail_bytes(flags));
    return shape;
}

static hfn_stub_shape get_sample_shape(uint32_t flags)
{
    const hfn_stub_shape *count = get_count_shape(flags & UINT32_C(0xff00));
    uint32_t tail = time_tail_bytes(flags);
    uint32_t skip = get_scratch(flags) ? SKIP_SCRATCH_BYTES : SKIP_BYTES;
    hfn_stub_shape shape = { .entry_at = (uint8_t)(tail + count->entry_at) };

    shape.head_bytes = (uint8_t)(tail + count->head_bytes + skip);
    add_tail_steps(&shape, 0, flags);
    add_count_steps(&shape, count, tail, shape.head_bytes - (uint32_t)JUMP_BYTES);
    return shape;
}

hfn_stub_shape hfn_x86_get_stub_shape(hfn_stub_kind kind, uint32_t flags)
{
    hfn_stub_shape shape = { .head_bytes = 0 };

    switch (kind) {
    case HFN_STUB_COUNT: return *get_count_shape(flags);
    case HFN_STUB_CALL: return call_shape;
    case HFN_STUB_REPLACE:
    case HFN_STUB_FILTER: return *hfn_x86_get_replace_shape(kind);
    case HFN_STUB_TIME: shape = get_time_shape(flags); break;
    case HFN_STUB_SAMPLE: shape = get_sample_shape(flags); break;
    default: return shape;
    }
    if (flags & HFN_STUB_TAIL_EXIT) {
        hfn_x86_add_tail_exit_shape(&shape, get_time_room(flags));
    }
    return shape;
}

static void emit_with_tail_exit(uint8_t *out, const hfn_stub_request *request)
{
    hfn_stub_request behind = *request;
    uint32_t pushed = get_copied_words(request->flags) * HFN_STUB_PUSH_BYTES;
    uint64_t tail = request->kind == HFN_STUB_TIME ? TIME_TAIL_AT : 0;

    behind.address += HFN_TAIL_EXIT_BYTES;
    hfn_x86_emit_tail_exit(out, request,
                           behind.address + tail + TIME_BODY_CALLED_AT + pushed +
                               (HOME_BYTES > 0 ? LEA_BYTES : 0),
                           get_time_room(request->flags), get_argument_bytes(request->flags));
    if (request->kind == HFN_STUB_TIME) {
        emit_time(out + HFN_TAIL_EXIT_BYTES, &behind);
    } else {
        emit_sample(out + HFN_TAIL_EXIT_BYTES, &behind);
    }
}

void hfn_x86_emit_stub(uint8_t *out, const hfn_stub_request *request)
{
    bool is_timed = request->kind == HFN_STUB_TIME || request->kind == HFN_STUB_SAMPLE;

    if (is_timed && (request->flags & HFN_STUB_TAIL_EXIT)) {
        emit_with_tail_exit(out, request);
        return;
    }
    if (request->kind == HFN_STUB_COUNT) {
        emit_count(out, request);
    } else if (request->kind == HFN_STUB_CALL) {
        emit_call(out, request);
    } else if (request->kind == HFN_STUB_REPLACE) {
        hfn_x86_emit_replace(out, request);
    } else if (request->kind == HFN_STUB_FILTER) {
        hfn_x86_emit_filter(out, request);
    } else if (request->kind == HFN_STUB_TIME) {
        emit_time(out, request);
    } else if (request->kind == HFN_STUB_SAMPLE) {
        emit_sample(out, request);
    }
}

/* ---- Gates. */

/* A stub that has pushed rcx gets it back here; a stub with a scratch register has not changed it
 * and enters at the second instruction. */
uint32_t hfn_x86_emit_count_gate(uint8_t *out, uint64_t slow_path)
{
    out = PUT(out, 0x48, 0x8b, 0x4c, 0x24, 0x08);         /* mov rcx, [rsp + 8] */
    put_u64(PUT(out, 0xff, 0x25, 0, 0, 0, 0), slow_path); /* jmp [rip + 0]      */
    return HFN_X86_COUNT_GATE_BYTES;
}

void hfn_x86_emit_time_gate(uint8_t *out, uint64_t target)
{
    put_u64(PUT(out, 0xff, 0x25, 0, 0, 0, 0), target); /* jmp [rip + 0] */
}

/* x87, SSE, AVX and AVX-512, which compiled code may use without the kernel's permission.  MPX,
 * PKRU and AMX are not included. */
#define COMPILED_STATE UINT32_C(0xe7)
#define AMX_STATE (UINT32_C(3) << 17)
enum { LEGACY_AREA_BYTES = 512, XSAVE_HEADER_BYTES = 64 };

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

static uint32_t read_enabled_state(void)
{
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* CPUID leaf 0xd reports the size of the standard form of all enabled components and the end of
 * each (Intel SDM vol. 1, 13.2); the compacted form is never longer.  AMX is not saved because
 * of its size. */
static uint32_t area_bytes(uint32_t enabled)
{
    uint32_t a, b, c, d, end = LEGACY_AREA_BYTES + XSAVE_HEADER_BYTES;

    if (!(enabled & AMX_STATE)) {
        __cpuid_count(0xd, 0, a, b, c, d);
        return (b + 63) & ~UINT32_C(63);
    }
    for (uint32_t component = 2; component < 8; component++) {
        if (!(enabled & COMPILED_STATE & 1u << component)) {
            continue;
        }
        __cpuid_count(0xd, component, a, b, c, d);
        end = a + b > end ? a + b : end;
    }
    return (end + 63) & ~UINT32_C(63);
}

/* CPUID traps in a virtual machine and then takes tens of microseconds, so it is executed
 * rarely. */
hfn_x86_vector_state hfn_x86_get_host_vector_state(void)
{
    hfn_x86_vector_state state = { 0, LEGACY_AREA_BYTES, 0 };
    uint32_t a, b, c, d;

    __cpuid(1, a, b, c, d);
    if (!(c & bit_OSXSAVE)) {
        return state;
    }
    state.mask = read_enabled_state() & COMPILED_STATE;
    state.area_bytes = area_bytes(read_enabled_state());
    __cpuid_count(0xd, 1, a, b, c, d); /* this leaf exists with OSXSAVE */
    state.method = (a & 2) ? 2 : 1;    /* XSAVEC */
    return state;
}
#else
hfn_x86_vector_state hfn_x86_get_host_vector_state(void)
{
    return (hfn_x86_vector_state){ 0, LEGACY_AREA_BYTES, 0 };
}
#endif

static uint8_t *put_save_registers(uint8_t *out)
{
    out = PUT(out, 0x55, 0x48, 0x89, 0xe5);             /* push rbp; mov rbp, rsp             */
    out = PUT(out, 0x9c, 0xfc);                         /* pushfq; cld                        */
    out = PUT(out, 0x50, 0x51, 0x52, 0x53, 0x56, 0x57); /* push rax, rcx, rdx, rbx, rsi, rdi  */
    out = PUT(out, 0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53); /* push r8, r9, r10, r11    */
    out = PUT(out, 0x48, 0x8b, 0x5d, 0x08);  /* mov rbx, [rbp + 8]                 */
    return PUT(out, 0x48, 0x83, 0xe4, 0xc0); /* and rsp, -64                       */
}

static uint8_t *put_restore_registers(uint8_t *out)
{
    out = PUT(out, 0x48, 0x8d, 0x65, 0xa8); /* lea rsp, [rbp - 88]                */
    out = PUT(out, 0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58); /* pop r11, r10, r9, r8     */
    out = PUT(out, 0x5f, 0x5e, 0x5b, 0x5a, 0x59, 0x58); /* pop rdi, rsi, rbx, rdx, rcx, rax   */
    return PUT(out, 0x9d, 0x5d, 0xc3);                  /* popfq; pop rbp; ret                */
}

static uint8_t *put_state_mask(uint8_t *out, const hfn_x86_vector_state *vector)
{
    out = put_u32(PUT(out, 0xb8), vector->mask); /* mov eax, mask */
    return PUT(out, 0x31, 0xd2);                 /* xor edx, edx  */
}

/* xrstor reads the header, so the bytes of it that xsave does not write must be zero. */
static uint8_t *put_save_vectors(uint8_t *out, const hfn_x86_vector_state *vector)
{
    static const uint8_t save[3][5] = { { 0x48, 0x0f, 0xae, 0x04, 0x24 },   /* fxsave64 [rsp] */
                                        { 0x48, 0x0f, 0xae, 0x24, 0x24 },   /* xsave64 [rsp]  */
                                        { 0x48, 0x0f, 0xc7, 0x24, 0x24 } }; /* xsavec64 [rsp] */

    out = put_u32(PUT(out, 0x48, 0x81, 0xec), vector->area_bytes); /* sub rsp, area */
    if (vector->method != 0) {
        out = PUT(out, 0x31, 0xc0); /* xor eax, eax */
        for (uint32_t i = 0; i < XSAVE_HEADER_BYTES; i += 8) {
            out = put_u32(PUT(out, 0x48, 0x89, 0x84, 0x24), LEGACY_AREA_BYTES + i);
        }
        out = put_state_mask(out, vector);
    }
    return put_bytes(out, save[vector->method], sizeof save[0]);
}

static uint8_t *put_restore_vectors(uint8_t *out, const hfn_x86_vector_state *vector)
{
    if (vector->method == 0) {
        return PUT(out, 0x48, 0x0f, 0xae, 0x0c, 0x24); /* fxrstor64 [rsp] */
    }
    out = put_state_mask(out, vector);
    return PUT(out, 0x48, 0x0f, 0xae, 0x2c, 0x24); /* xrstor64 [rsp] */
}

/* The saved registers, from r11 up to rax (put_save_registers), lie this far below rbp. */
enum { SAVED_BYTES = 88, SAVED_RAX_AT = 72, FRAME_POINTER_AT = 88 };

/* Call callback(user, saved registers) by the convention of the system's compilers.  rbx holds the
 * return address: the stub's jump over {callback, user}. */
static uint8_t *put_callback(uint8_t *at)
{
#if defined(_WIN32)
    at = PUT(at, 0x48, 0x8b, 0x4b, 0x0a);                  /* mov rcx, [rbx + 10] */
    at = PUT(at, 0x48, 0x8d, 0x55, (uint8_t)-SAVED_BYTES); /* lea rdx, [rbp - 88] */
    at = PUT(at, 0x48, 0x83, 0xec, HOME_BYTES);            /* sub rsp, 32         */
    at = PUT(at, 0xff, 0x53, 0x02);                        /* call [rbx + 2]      */
    return PUT(at, 0x48, 0x83, 0xc4, HOME_BYTES);          /* add rsp, 32         */
#else
    at = PUT(at, 0x48, 0x8b, 0x7b, 0x0a);                       /* mov rdi, [rbx + 10] */
    at = PUT(at, 0x48, 0x8d, 0x75, (uint8_t)-SAVED_BYTES);      /* lea rsi, [rbp - 88] */
    return PUT(at, 0xff, 0x53, 0x02);                           /* call [rbx + 2]      */
#endif
}

uint32_t hfn_x86_emit_call_gate(uint8_t *out, const hfn_x86_vector_state *vector, bool filters)
{
    uint8_t *at = put_callback(put_save_vectors(put_save_registers(out), vector));

    if (filters) {
        at = PUT(at, 0x85, 0xc0, 0x75, 0x05); /* test eax, eax; jnz over the next one */
        at =
            PUT(at, 0x48, 0x83, 0x45, 0x08, HFN_X86_FILTER_SKIP_BYTES); /* add qword [rbp + 8], # */
    }
    at = put_restore_registers(put_restore_vectors(at, vector));
    return (uint32_t)(at - out);
}

/* Arguments in registers: x86-64 psABI, 3.2.3; Microsoft, "x64 calling convention".  Those on the
 * stack begin above the return address and HOME_BYTES; the return address lies above rbp, the
 * gate's return address and the bytes by which the stub lowered the stack. */
uint64_t hfn_x86_get_argument(const void *saved, uint32_t index)
{
#if defined(_WIN32)
    static const uint8_t places[] = { 64, 56, 24, 16 }; /* rcx, rdx, r8, r9 */
#else
    static const uint8_t places[] = { 32, 40, 56, 64, 24, 16 }; /* rdi, rsi, rdx, rcx, r8, r9 */
#endif
    enum {
        IN_REGISTERS = (int)sizeof places,
        STACK_ARGUMENTS_AT = FRAME_POINTER_AT + 16 + RED_ZONE_BYTES + 8 + HOME_BYTES
    };
    const uint8_t *bytes = saved;

    return hfn_read_le64(index < IN_REGISTERS
                             ? bytes + places[index]
                             : bytes + STACK_ARGUMENTS_AT + 8u * (index - IN_REGISTERS));
}

void hfn_x86_set_result(void *saved, uint64_t value)
{
    hfn_write_le64((uint8_t *)saved + SAVED_RAX_AT, value);
}

uint32_t hfn_x86_write_call_gate_cfi(uint8_t *out, uint32_t gate_bytes)
{
    uint8_t *at = PUT(out, 0x41, 0x0e, 16, 0x86, 2); /* push rbp: CFA = rsp + 16, rbp at CFA - 16 */

    at = PUT(at, 0x43, 0x0d, 6);                        /* mov rbp, rsp: CFA = rbp + 16        */
    at = PUT(at, 0x46, 0x83, 7);                        /* push rbx: at CFA - 56               */
    at = PUT(at, 0x02, (uint8_t)(gate_bytes - 1 - 10)); /* pop rbp: CFA = rsp + 8              */
    at = PUT(at, 0x0c, 7, 8);
    return (uint32_t)(at - out);
}

/* jmp rel32, or call rel32 in place of a call, whose return address stays the same. */
uint32_t hfn_x86_emit_patch(uint8_t *out, const uint8_t *original, uint64_t at, uint64_t target)
{
    uint8_t *end = put_u32(PUT(out, original && original[0] == 0xe8 ? 0xe8 : 0xe9),
                           (uint32_t)(target - (at + CALL_BYTES)));

    return (uint32_t)(end - out);
}

/* DW_CFA_def_cfa_offset */
uint32_t hfn_x86_write_step_cfi(uint8_t *out, uint32_t lowered_bytes)
{
    uint32_t offset = 8 + lowered_bytes;
    uint8_t *at = PUT(out, 0x0e);

    if (offset >= 0x80) {
        return (uint32_t)(PUT(at, (uint8_t)(offset | 0x80), (uint8_t)(offset >> 7)) - out);
    }
    return (uint32_t)(PUT(at, (uint8_t)offset) - out);
}

/* CFA = rsp + 8; the return address lies at CFA - 8: x86-64 psABI, figure 3.36. */
uint32_t hfn_x86_write_cie_state(uint8_t *out)
{
    return (uint32_t)(PUT(out, 0x0c, 7, 8, 0x90, 1) - out);
}
