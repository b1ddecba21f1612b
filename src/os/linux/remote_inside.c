/* SPDX-License-Identifier: MIT */
/* Where the stopped threads of another process are, and where they will return to: their program
 * counters and the words on their stacks. */
#include "os/remote.h"

#include "base/memory.h"
#include "os/linux/remote_parts.h"

#include <sys/uio.h>

static bool is_in(const hfn_remote_range *ranges, uint32_t count, uint64_t address)
{
    for (uint32_t i = 0; i < count; i++) {
        if (address >= ranges[i].begin && address < ranges[i].end) {
            return true;
        }
    }
    return false;
}

/* Linux, arch/x86: struct rt_sigframe, as in signal_frames.c.  Any word on a stack that points into
 * a range counts, whatever it is.  Signal frames are searched only to find the stacks that handlers
 * on alternate stacks have interrupted. */
enum {
    CHUNK_WORDS = 4096,
    MAX_STACKS = 8,
    MAX_STACK_BYTES = 8 << 20,
    FRAME_SP_WORD = 168 / 8,
    FRAME_SEGMENT_WORD = 192 / 8,
    USER_CODE_SEGMENT = 0x33,
};

typedef struct stack_look {
    const hfn_remote *remote;
    const hfn_remote_range *ranges;
    uint32_t range_count;
    hfn_remote_range all; /* from the lowest begin to the highest end */
    uint64_t stacks[MAX_STACKS];
    uint32_t stack_count;
    uint64_t words[CHUNK_WORDS];
} stack_look;

/* Unlike /proc/PID/mem, this call honours protections: it ends at the guard page behind a stack. */
static uint32_t read_words(stack_look *look, uint64_t at)
{
    struct iovec to = { look->words, sizeof look->words };
    struct iovec from = { (void *)(uintptr_t)at, sizeof look->words };
    ssize_t got = process_vm_readv((pid_t)look->remote->pid, &to, 1, &from, 1, 0);

    if (got < 0) { /* less than a chunk remains: read to the end of the page */
        from.iov_len = 4096 - at % 4096;
        got = process_vm_readv((pid_t)look->remote->pid, &to, 1, &from, 1, 0);
    }
    return got > 0 ? (uint32_t)got / 8 : 0;
}

static void note_stack(stack_look *look, uint64_t sp, uint64_t begin, uint64_t end)
{
    if ((sp < begin || sp >= end) && sp != 0 && look->stack_count < MAX_STACKS) {
        look->stacks[look->stack_count++] = sp & ~UINT64_C(7);
    }
}

static bool stack_leads_in(stack_look *look, uint64_t begin)
{
    for (uint64_t at = begin; at - begin < MAX_STACK_BYTES;) {
        uint32_t count = read_words(look, at);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t word = look->words[i];
            if (word >= look->all.begin && word < look->all.end &&
                is_in(look->ranges, look->range_count, word)) {
                return true;
            }
            if (i >= FRAME_SEGMENT_WORD && (word & 0xffff) == USER_CODE_SEGMENT &&
                (at + 8 * (i - FRAME_SEGMENT_WORD)) % 16 == 8) {
                note_stack(look, look->words[i - FRAME_SEGMENT_WORD + FRAME_SP_WORD], begin,
                           begin + MAX_STACK_BYTES);
            }
        }
        if (count <= FRAME_SEGMENT_WORD) {
            break;
        }
        /* a frame may lie across two chunks */
        at += count == CHUNK_WORDS ? 8 * (uint64_t)(count - FRAME_SEGMENT_WORD) : 8 * count;
    }
    return false;
}

static bool thread_stands_in(stack_look *look, uint32_t tid)
{
    hfn_remote_registers registers;

    if (!hfn_linux_read_registers(look->remote, tid, &registers) ||
        is_in(look->ranges, look->range_count, registers.pc)) {
        return true;
    }
    look->stacks[0] = registers.sp & ~UINT64_C(7);
    look->stack_count = 1;
    if (read_words(look, look->stacks[0]) == 0) { /* forbidden (seccomp), or no stack */
        return true;
    }
    for (uint32_t i = 0; i < look->stack_count; i++) {
        if (stack_leads_in(look, look->stacks[i])) {
            return true;
        }
    }
    return false;
}

bool hfn_os_remote_is_inside(const hfn_remote *r, const hfn_remote_range *ranges,
                             uint32_t range_count)
{
    stack_look *look = hfn_allocate_zeroed(&r->env, sizeof *look);
    bool stands = false;

    if (!look) {
        return true;
    }
    look->remote = r;
    look->ranges = ranges;
    look->range_count = range_count;
    look->all = (hfn_remote_range){ UINT64_MAX, 0 };
    for (uint32_t i = 0; i < range_count; i++) {
        look->all.begin = ranges[i].begin < look->all.begin ? ranges[i].begin : look->all.begin;
        look->all.end = ranges[i].end > look->all.end ? ranges[i].end : look->all.end;
    }
    for (uint32_t i = 0; !stands && range_count > 0 && i < r->thread_count; i++) {
        stands =
            r->threads[i].state == HFN_THREAD_STOPPED && thread_stands_in(look, r->threads[i].tid);
    }
    hfn_free_memory(&r->env, look, sizeof *look);
    return stands;
}
