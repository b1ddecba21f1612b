/* SPDX-License-Identifier: MIT */
/* The stub of a system call (arch/call_site.h).  The call destroys rcx, so the stub may use it:
 *
 *            instructions before the call
 *   check:   lea -56(%rax), %ecx;  jrcxz clone       and the same for fork and clone3
 *   plain:   syscall
 *   behind:  instructions behind the call
 *            jmp  end
 *   clone:   test $CLONE_VFORK, %edi;  jnz plain;  jmp fork
 *   clone3:  cmp $64, %rsi;  jb plain                its size: the argument can be read
 *            testl $CLONE_VFORK, (%rdi);  jnz plain
 *   fork:    syscall;  mov %rax, %rcx;  jrcxz child;  jmp behind
 *   child:   wrgsbase of 0;  jmp behind
 */
#include "arch/call_site.h"

#include "base/byte_order.h"

#include <string.h>

enum { SYSCALL_BYTES = 2, JUMP_BYTES = 5, PADDING = 0xcc };

typedef struct writer {
    hfn_call_stub *stub;
    uint64_t begin, address; /* of the site's first instruction, and of the stub */
} writer;

static void add_step(writer *w, uint64_t original_at)
{
    hfn_call_stub *s = w->stub;

    s->steps[s->step_count++] = (hfn_call_step){ (uint8_t)s->length, (int16_t)original_at };
}

static void put_bytes(writer *w, const void *bytes, uint32_t count)
{
    memcpy(w->stub->bytes + w->stub->length, bytes, count);
    w->stub->length += count;
}

#define PUT(w, ...)                                                                                \
    put_bytes(w, (const uint8_t[]){ __VA_ARGS__ },                                                 \
              (uint32_t)sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* A short jump to a place that is written already, or whose distance is filled in later. */
static uint32_t put_short(writer *w, uint8_t opcode, uint32_t target)
{
    uint32_t at = w->stub->length;

    PUT(w, opcode, (uint8_t)(target - (at + SYSCALL_BYTES)));
    return at;
}

static void set_short(writer *w, uint32_t at)
{
    w->stub->bytes[at + 1] = (uint8_t)(w->stub->length - (at + 2));
}

static void put_relative(writer *w, const uint8_t *opcode, uint32_t opcode_bytes, uint64_t target)
{
    uint8_t field[4];

    put_bytes(w, opcode, opcode_bytes);
    hfn_write_le32(field, (uint32_t)(target - (w->address + w->stub->length + sizeof field)));
    put_bytes(w, field, sizeof field);
}

static void put_jump(writer *w, uint64_t target)
{
    put_relative(w, (const uint8_t[]){ 0xe9 }, 1, target);
}

/* An instruction that the patch replaced: with no PC-relative field, or a short branch. */
static void put_moved(writer *w, const uint8_t *bytes, const hfn_instruction *in, uint64_t at)
{
    uint64_t target = w->begin + at + in->target;

    add_step(w, at);
    if (in->relative_bytes == 0) {
        put_bytes(w, bytes, in->length);
    } else if (in->flow == HFN_FLOW_JUMP) {
        put_jump(w, target);
    } else {
        put_relative(w, (const uint8_t[]){ 0x0f, (uint8_t)(0x10 + bytes[0]) }, 2, target);
    }
}

/* Copy the instructions of [from, to), offsets in the original.  Returns where they end. */
static uint64_t put_range(writer *w, const uint8_t *original, uint64_t from, uint64_t to)
{
    const hfn_arch *arch = hfn_arch_find(hfn_patching_x86_64.machine);
    hfn_instruction in;

    while (from < to && arch && arch->decode(original + from, to - from, 0, 0, &in)) {
        put_moved(w, original + from, &in, from);
        from += in.length;
    }
    return from;
}

/* Returns the positions of the three jumps to the calls that begin a thread or process. */
static void put_check(writer *w, uint64_t call, uint32_t jumps[3])
{
    w->stub->call_at = w->stub->length;
    add_step(w, call);
    PUT(w, 0x8d, 0x48, 0xc8); /* lea -56(%rax), %ecx: clone */
    add_step(w, call);
    jumps[0] = put_short(w, 0xe3, 0);
    add_step(w, call);
    PUT(w, 0x8d, 0x48, 0xc7); /* 57: fork */
    add_step(w, call);
    jumps[1] = put_short(w, 0xe3, 0);
    add_step(w, call);
    PUT(w, 0x8d, 0x88, 0x4d, 0xfe, 0xff, 0xff); /* 435: clone3 */
    add_step(w, call);
    jumps[2] = put_short(w, 0xe3, 0);
}

static void put_clone(writer *w, uint64_t call, uint32_t plain, const uint32_t jumps[3])
{
    uint32_t to_fork;

    set_short(w, jumps[0]);
    add_step(w, call);
    PUT(w, 0xf7, 0xc7, 0x00, 0x40, 0x00, 0x00); /* test $CLONE_VFORK, %edi */
    add_step(w, call);
    put_short(w, 0x75, plain);
    add_step(w, call);
    to_fork = put_short(w, 0xeb, 0);
    set_short(w, jumps[2]);
    add_step(w, call);
    PUT(w, 0x48, 0x83, 0xfe, 0x40); /* cmp $64, %rsi */
    add_step(w, call);
    put_short(w, 0x72, plain);
    add_step(w, call);
    PUT(w, 0xf7, 0x07, 0x00, 0x40, 0x00, 0x00); /* testl $CLONE_VFORK, (%rdi) */
    add_step(w, call);
    put_short(w, 0x75, plain);
    set_short(w, to_fork);
    set_short(w, jumps[1]);
}

/* Without wrgsbase, a segment whose base is 0 is loaded (Linux, arch/x86/include/asm/segment.h,
 * __USER_DS). */
static void put_fork(writer *w, uint64_t call, bool has_wrgsbase)
{
    uint32_t behind = w->stub->behind_at, to_child;

    add_step(w, call);
    PUT(w, 0x0f, 0x05);
    w->stub->forking_at = w->stub->length;
    add_step(w, call + SYSCALL_BYTES);
    PUT(w, 0x48, 0x89, 0xc1); /* mov %rax, %rcx */
    add_step(w, call + SYSCALL_BYTES);
    to_child = put_short(w, 0xe3, 0);
    add_step(w, call + SYSCALL_BYTES);
    put_short(w, 0xeb, behind);
    set_short(w, to_child);
    add_step(w, call + SYSCALL_BYTES);
    PUT(w, 0xb9, has_wrgsbase ? 0 : 0x2b, 0, 0, 0); /* mov $0, %ecx */
    add_step(w, call + SYSCALL_BYTES);
    if (has_wrgsbase) {
        PUT(w, 0xf3, 0x48, 0x0f, 0xae, 0xd9);
    } else {
        PUT(w, 0x8e, 0xe9); /* mov %ecx, %gs */
    }
    add_step(w, call + SYSCALL_BYTES);
    put_short(w, 0xeb, behind);
}

void hfn_make_call_stub(hfn_call_stub *out, const hfn_child_call *site, const uint8_t *original,
                        uint64_t begin, uint64_t address, bool has_wrgsbase)
{
    writer w = { out, begin, address };
    uint64_t call = site->call - site->begin, end = site->end - site->begin;
    uint32_t jumps[3], plain;

    memset(out, 0, sizeof *out);
    put_range(&w, original, 0, call);
    put_check(&w, call, jumps);
    plain = out->length;
    add_step(&w, call);
    PUT(&w, 0x0f, 0x05);
    out->behind_at = out->length;
    put_range(&w, original, call + SYSCALL_BYTES, end);
    add_step(&w, end);
    put_jump(&w, begin + end);
    put_clone(&w, call, plain, jumps);
    put_fork(&w, call, has_wrgsbase);
}

void hfn_emit_call_patch(uint8_t *out, const hfn_child_call *site, uint64_t begin, uint64_t stub)
{
    memset(out, PADDING, site->end - site->begin);
    out[0] = 0xe9;
    hfn_write_le32(out + 1, (uint32_t)(stub - (begin + JUMP_BYTES)));
}
