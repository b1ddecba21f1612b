/* SPDX-License-Identifier: MIT */
/*
 * A signal frame is known by what its handler returns to (the restorer of a handler of this process),
 * by its alignment and by the code segment in it.  What is left of a frame on a stack that was used
 * again looks the same; nobody returns to that, so that changing its PC changes nothing.
 *
 * Linux, arch/x86: struct rt_sigframe is the restorer's address, struct ucontext, siginfo; the frame
 * begins 8 bytes below a multiple of 16.  On i386 it is 4 bytes below one, siginfo stands in front of
 * the context, and there is an older frame for handlers that ask for no siginfo.  On AArch64 a patch is one instruction: nobody goes on inside.
 */
#include "os/linux/signal_frames.h"

#include "base/compiler.h"
#include "os/linux/maps.h"
#include "os/linux/raw.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

/* Where things are in a frame. */
typedef struct frame_shape {
    uint16_t sp_at, pc_at, segment_at, byte_count;
} frame_shape;

#if defined(__i386__)
/* [1]: 4 words, siginfo of 128 bytes, then struct ucontext as on x86-64; [0]: 2 words, then registers. */
static const frame_shape shapes[2] = { { 36, 64, 68, 72 }, { 192, 220, 224, 228 } };
enum { BELOW_16 = 4, USER_CODE_SEGMENT = 0x23 };
#else
/* 8 + offsetof(struct ucontext, uc_mcontext) 40 + 15 registers */
static const frame_shape shapes[2] = { { 168, 176, 192, 200 }, { 168, 176, 192, 200 } };
enum { BELOW_16 = 8, USER_CODE_SEGMENT = 0x33 };
#endif

enum {
    FRAME_BYTES = 228, /* of the largest */
    VDSO_BYTES = 8192,
    SIGNALS = 64,
    STACKS_MAX = 8,                   /* that one thread's frames lead to              */
    STACK_BYTES_MAX = 8 * 1024 * 1024 /* looked at, of each: handlers stand at its top */
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

/* i386: where no handler names a restorer, it returns to one of two places in the vDSO, which have had
 * the same bytes for ever since debuggers know them by these (arch/x86/entry/vdso, sigreturn.S). */
static void find_in_vdso(hfn_restorers *out)
{
#if defined(__i386__)
    static const uint8_t old[] = { 0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80 }; /* pop; mov $119; int */
    static const uint8_t with_info[] = {
        0xb8, 0xad, 0, 0, 0, 0xcd, 0x80
    }; /* mov $173; int       */
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

static bool take_stack(void *user, const hfn_map *map)
{
    stack *s = user;

    if (s->at < map->begin) {
        return false;
    }
    if (s->at >= map->end) {
        return true;
    }
    if ((map->protection & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE)) {
        s->end = map->end - s->at < STACK_BYTES_MAX ? map->end : s->at + STACK_BYTES_MAX;
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

/* The shape of the frame at address, NULL if none is there. */
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

/* ---- All of a thread. */

void hfn_linux_adjust_frames(const hfn_restorers *restorers, uint64_t sp, hfn_adjust_pc_fn adjust,
                             void *user)
{
    stack stacks[STACKS_MAX] = { { sp, 0 } };
    uint32_t count = restorers->count > 0;

    for (uint32_t i = 0; i < count; i++) {
        stack *s = &stacks[i];
        if (!hfn_linux_each_map_from(s->at, take_stack, s) || s->end < FRAME_BYTES) {
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
            if ((interrupted < s->at || interrupted >= s->end) && count < STACKS_MAX) {
                stacks[count++] = (stack){ interrupted, 0 };
            }
        }
    }
}
