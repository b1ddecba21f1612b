/* SPDX-License-Identifier: MIT */
/*
 * A signal frame is recognised by its return address (the restorer of a handler of this process),
 * its alignment and its code segment.  A stale frame below the live part of a stack looks the same;
 * no handler returns through it, so that changing its PC has no effect.
 *
 * Linux, arch/x86: struct rt_sigframe is the restorer's address, struct ucontext, siginfo; the
 * frame begins 8 bytes below a multiple of 16.  On i386 it begins 4 bytes below one, siginfo
 * precedes the context, and handlers without SA_SIGINFO get an older frame.  On AArch64 a patch is
 * one instruction, so that no thread resumes inside one.
 */
#include "os/linux/signal_frames.h"

#include "base/compiler.h"
#include "os/linux/maps.h"
#include "os/linux/raw.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

/* Offsets of fields in a frame. */
typedef struct frame_shape {
    uint16_t sp_at, pc_at, segment_at, byte_count;
} frame_shape;

#if defined(__i386__)
/* Index 0, the old frame: 2 words, then the registers.  Index 1, with siginfo: 4 words, siginfo of
 * 128 bytes, then struct ucontext as on x86-64. */
static const frame_shape shapes[2] = { { 36, 64, 68, 72 }, { 192, 220, 224, 228 } };
enum { BELOW_16 = 4, USER_CODE_SEGMENT = 0x23 };
#else
/* 8 + offsetof(struct ucontext, uc_mcontext) 40 + 15 registers */
static const frame_shape shapes[2] = { { 168, 176, 192, 200 }, { 168, 176, 192, 200 } };
enum { BELOW_16 = 8, USER_CODE_SEGMENT = 0x33 };
#endif

enum {
    FRAME_BYTES = 228, /* of the largest frame */
    VDSO_BYTES = 8192,
    SIGNALS = 64,
    MAX_STACKS = 8,                   /* per thread                                       */
    MAX_STACK_BYTES = 8 * 1024 * 1024 /* searched per stack: handlers are near its top    */
};

static void add_restorer(hfn_restorers *out, uint64_t address, bool is_old)
{
    for (uint32_t i = 0; i < out->count; i++) {
        if (out->addresses[i] == address) {
            return;
        }
    }
    if (address == 0 || out->count == HFN_RESTORERS_MAX) {
        return;
    }
    out->is_old[out->count] = is_old;
    out->addresses[out->count++] = address;
}

/* i386: a handler without a restorer returns to one of two places in the vDSO, whose bytes are
 * stable, since debuggers recognise them (arch/x86/entry/vdso, sigreturn.S). */
static void find_in_vdso(hfn_restorers *out)
{
#if defined(__i386__)
    /* pop %eax; mov $119, %eax; int $0x80 */
    static const uint8_t old[] = { 0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80 };
    /* mov $173, %eax; int $0x80 */
    static const uint8_t with_info[] = { 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80 };
    const uint8_t *vdso = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);

    for (uint32_t i = 0; vdso && i + sizeof old <= VDSO_BYTES; i++) {
        if (vdso[i] == old[0] && memcmp(vdso + i, old, sizeof old) == 0) {
            add_restorer(out, hfn_raw_pointer(vdso + i), true);
        }
        if (vdso[i] == with_info[0] && memcmp(vdso + i, with_info, sizeof with_info) == 0) {
            add_restorer(out, hfn_raw_pointer(vdso + i), false);
        }
    }
#else
    (void)out;
#endif
}

void hfn_linux_find_restorers(hfn_restorers *out)
{
    out->count = 0;
#if defined(__aarch64__)
    return;
#endif
    find_in_vdso(out);
    for (uint64_t number = 1; number <= SIGNALS; number++) {
        hfn_kernel_action action = { 0 };
        if (hfn_raw_syscall4(SYS_rt_sigaction, number, 0, hfn_raw_pointer(&action),
                             sizeof action.mask) == 0) {
            add_restorer(out, (uintptr_t)action.restorer, !(action.flags & SA_SIGINFO));
        }
    }
}

/* ---- One stack. */

typedef struct stack {
    uint64_t at, end; /* end 0: no stack there */
} stack;

static bool find_stack_end(void *user, const hfn_map *map)
{
    stack *s = user;

    if (s->at < map->begin) {
        return false;
    }
    if (s->at >= map->end) {
        return true;
    }
    if ((map->protection & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE)) {
        s->end = map->end - s->at < MAX_STACK_BYTES ? map->end : s->at + MAX_STACK_BYTES;
    }
    return false;
}

HFN_UNCHECKED static uintptr_t word_at(uint64_t address)
{
    return *(const volatile uintptr_t *)(uintptr_t)address;
}

HFN_UNCHECKED static void set_word(uint64_t address, uint64_t value)
{
    *(volatile uintptr_t *)(uintptr_t)address = (uintptr_t)value;
}

/* The shape of the frame at address; NULL if none is there. */
static const frame_shape *frame_at(const hfn_restorers *restorers, uint64_t address)
{
    uintptr_t word = word_at(address);

    for (uint32_t i = 0; i < restorers->count; i++) {
        const frame_shape *shape = &shapes[!restorers->is_old[i]];
        if (restorers->addresses[i] == word &&
            (word_at(address + shape->segment_at) & UINT16_MAX) == USER_CODE_SEGMENT) {
            return shape;
        }
    }
    return NULL;
}

/* ---- All stacks of a thread. */

void hfn_linux_adjust_frames(const hfn_restorers *restorers, uint64_t sp, hfn_adjust_pc_fn adjust,
                             void *user)
{
    stack stacks[MAX_STACKS] = { { sp, 0 } };
    uint32_t count = restorers->count > 0;

    for (uint32_t i = 0; i < count; i++) {
        stack *s = &stacks[i];
        if (!hfn_linux_each_map_from(s->at, find_stack_end, s) || s->end < FRAME_BYTES) {
            continue;
        }
        for (uint64_t at = (s->at + 15) / 16 * 16 + 16 - BELOW_16; at <= s->end - FRAME_BYTES;
             at += 16) {
            const frame_shape *shape = frame_at(restorers, at);
            uint64_t interrupted, pc, adjusted;
            if (!shape) {
                continue;
            }
            pc = word_at(at + shape->pc_at);
            adjusted = adjust(user, pc);
            if (adjusted != pc) {
                set_word(at + shape->pc_at, adjusted);
            }
            interrupted = word_at(at + shape->sp_at);
            if ((interrupted < s->at || interrupted >= s->end) && count < MAX_STACKS) {
                stacks[count++] = (stack){ interrupted, 0 };
            }
        }
    }
}
