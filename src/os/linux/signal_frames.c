/* SPDX-License-Identifier: MIT */
/*
 * A signal frame is known by what its handler returns to (the restorer of a handler of this process),
 * by its alignment and by the code segment in it.  What is left of a frame on a stack that was used
 * again looks the same; nobody returns to that, so that changing its PC changes nothing.
 *
 * Linux, arch/x86: struct rt_sigframe is the restorer's address, struct ucontext, siginfo; the frame
 * begins 8 bytes below a multiple of 16.  On AArch64 a patch is one instruction: nobody goes on inside.
 */
#include "os/linux/signal_frames.h"

#include "base/compiler.h"
#include "os/linux/maps.h"
#include "os/linux/raw.h"

#include <sys/mman.h>

enum {
    SP_AT = 168, /* 8 + offsetof(struct ucontext, uc_mcontext) 40 + 15 registers */
    PC_AT = 176,
    SEGMENT_AT = 192,
    FRAME_BYTES = 200,
    USER_CODE_SEGMENT = 0x33,
    SIGNALS = 64,
    STACKS_MAX = 8,                   /* that one thread's frames lead to              */
    STACK_BYTES_MAX = 8 * 1024 * 1024 /* looked at, of each: handlers stand at its top */
};

void hfn_linux_find_restorers(hfn_restorers *out)
{
    out->count = 0;
#if defined(__aarch64__)
    return;
#endif
    for (uint64_t number = 1; number <= SIGNALS; number++) {
        hfn_kernel_action action = { 0 };
        uint64_t address;
        uint32_t i = 0;
        if (hfn_raw4(SYS_rt_sigaction, number, 0, hfn_raw_pointer(&action), sizeof action.mask))
            continue;
        address = (uint64_t)(uintptr_t)action.restorer;
        while (i < out->count && out->addresses[i] != address)
            i++;
        if (address != 0 && i == out->count && i < HFN_RESTORERS_MAX)
            out->addresses[out->count++] = address;
    }
}

/* ---- One stack. */

typedef struct stack {
    uint64_t at, end; /* end 0: no stack there */
} stack;

static bool take_stack(void *user, const hfn_map *map)
{
    stack *s = user;

    if (s->at < map->begin)
        return false;
    if (s->at >= map->end)
        return true;
    if ((map->protection & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE))
        s->end = map->end - s->at < STACK_BYTES_MAX ? map->end : s->at + STACK_BYTES_MAX;
    return false;
}

HFN_UNCHECKED static uint64_t word_at(uint64_t address)
{
    return *(const volatile uint64_t *)(uintptr_t)address;
}

HFN_UNCHECKED static void set_word(uint64_t address, uint64_t value)
{
    *(volatile uint64_t *)(uintptr_t)address = value;
}

static bool is_restorer(const hfn_restorers *restorers, uint64_t word)
{
    bool is = false;

    for (uint32_t i = 0; i < restorers->count; i++)
        is |= restorers->addresses[i] == word;
    return is;
}

static bool is_frame(const hfn_restorers *restorers, uint64_t address)
{
    return is_restorer(restorers, word_at(address)) &&
           (word_at(address + SEGMENT_AT) & UINT16_MAX) == USER_CODE_SEGMENT;
}

/* ---- All of a thread. */

void hfn_linux_adjust_frames(const hfn_restorers *restorers, uint64_t sp, hfn_adjust_pc_fn adjust,
                             void *user)
{
    stack stacks[STACKS_MAX] = { { sp, 0 } };
    uint32_t count = restorers->count > 0;

    for (uint32_t i = 0; i < count; i++) {
        stack *s = &stacks[i];
        if (!hfn_linux_each_map_from(s->at, take_stack, s) || s->end < FRAME_BYTES)
            continue;
        for (uint64_t at = (s->at + 15) / 16 * 16 + 8; at <= s->end - FRAME_BYTES; at += 16) {
            uint64_t interrupted, pc, adjusted;
            if (!is_frame(restorers, at))
                continue;
            pc = word_at(at + PC_AT);
            adjusted = adjust(user, pc);
            if (adjusted != pc)
                set_word(at + PC_AT, adjusted);
            interrupted = word_at(at + SP_AT);
            if ((interrupted < s->at || interrupted >= s->end) && count < STACKS_MAX)
                stacks[count++] = (stack){ interrupted, 0 };
        }
    }
}
