/* SPDX-License-Identifier: MIT */
/* Replaces the addresses at which stopped threads of another process will continue: their program
 * counters, and those in the signal frames on their stacks.  A frame is recognised by the code that
 * its first word points to (every x86-64 restorer calls rt_sigreturn) and by its code segment; its
 * layout is described in signal_frames.c. */
#include "base/memory.h"
#include "os/linux/remote_parts.h"

#include <string.h>
#include <sys/uio.h>

enum {
    CHUNK_WORDS = 4096,
    MAX_STACKS = 8,
    MAX_STACK_BYTES = 8 << 20,
    MAX_SMALL_BYTES = 1 << 17, /* handlers of such programs run on stacks of their own */
    ALTERNATE_WORD = 24 / 8,   /* the thread's alternate stack: address, flags, size */
    ALTERNATE_SIZE_WORD = 40 / 8,
    SP_WORD = 168 / 8,
    PC_WORD = 176 / 8,
    SEGMENT_WORD = 192 / 8,
    USER_CODE_SEGMENT = 0x33,
    RESTORER_BYTES = 9,
    PAGE_BYTES = 4096,
    CHUNK_PAGES = 8 * CHUNK_WORDS / PAGE_BYTES + 2,
};

typedef struct stack_pass {
    hfn_remote *remote;
    hfn_adjust_pc_fn adjust;
    void *user;
    uint64_t stacks[MAX_STACKS];
    uint32_t stack_count;
    bool ok;
    uint64_t words[CHUNK_WORDS + SEGMENT_WORD + 1];
} stack_pass;

/* mov $15, %rax or %eax; syscall */
static bool is_restorer(const hfn_remote *remote, uint64_t address)
{
    static const uint8_t wide[RESTORER_BYTES] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
    static const uint8_t narrow[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };
    uint8_t bytes[RESTORER_BYTES];

    return hfn_os_remote_read(remote, address, bytes, sizeof bytes) &&
           (memcmp(bytes, wide, sizeof wide) == 0 || memcmp(bytes, narrow, sizeof narrow) == 0);
}

/* Add the stack that a signal handler interrupted, unless it is the handler's stack at begin. */
static void add_stack(stack_pass *pass, uint64_t sp, uint64_t begin)
{
    if ((sp < begin || sp >= begin + MAX_STACK_BYTES) && sp != 0 &&
        pass->stack_count < MAX_STACKS) {
        pass->stacks[pass->stack_count++] = sp & ~UINT64_C(7);
    }
}

/* A frame on an alternate stack is live only while a handler runs there.  Go's alternate stacks lie
 * next to the stacks of its functions, full of the frames of handlers that have returned. */
static bool is_left_over(const uint64_t *frame, uint64_t at, uint64_t begin)
{
    uint64_t stack = frame[ALTERNATE_WORD], size = frame[ALTERNATE_SIZE_WORD];

    return at - stack < size && begin - stack >= size;
}

static void adjust_frame(stack_pass *pass, uint64_t at, const uint64_t *frame)
{
    uint64_t adjusted = pass->adjust(pass->user, frame[PC_WORD]);

    if (adjusted != frame[PC_WORD] &&
        !hfn_os_remote_write(pass->remote, at + 8 * PC_WORD, &adjusted, sizeof adjusted)) {
        pass->ok = false;
    }
}

/* Read as many pages as are mapped and readable, at most a chunk and a frame.  Unlike
 * /proc/PID/mem, this call honours protections: it ends at the guard page behind a stack. */
static uint32_t read_words(stack_pass *pass, uint64_t at)
{
    struct iovec to = { pass->words, sizeof pass->words }, from[CHUNK_PAGES];
    uint64_t end = at + sizeof pass->words;
    unsigned long count = 0;
    ssize_t got;

    for (uint64_t begin = at; begin < end && count < CHUNK_PAGES; count++) {
        uint64_t stop = (begin / PAGE_BYTES + 1) * PAGE_BYTES;
        stop = stop < end ? stop : end;
        from[count] = (struct iovec){ (void *)(uintptr_t)begin, stop - begin };
        begin = stop;
    }
    got = process_vm_readv((pid_t)pass->remote->pid, &to, 1, from, count, 0);
    return got > 0 ? (uint32_t)got / 8 : 0;
}

static void adjust_stack(stack_pass *pass, uint64_t begin)
{
    uint64_t max_bytes = pass->remote->has_small_stacks ? MAX_SMALL_BYTES : MAX_STACK_BYTES;

    for (uint64_t at = begin; at - begin < max_bytes; at += 8 * CHUNK_WORDS) {
        uint32_t count = read_words(pass, at);
        for (uint32_t i = 0; i + SEGMENT_WORD < count && i < CHUNK_WORDS; i++) {
            const uint64_t *frame = &pass->words[i];
            if ((frame[SEGMENT_WORD] & UINT16_MAX) == USER_CODE_SEGMENT && (at + 8 * i) % 16 == 8 &&
                !is_left_over(frame, at + 8 * i, begin) && is_restorer(pass->remote, frame[0])) {
                adjust_frame(pass, at + 8 * i, frame);
                add_stack(pass, frame[SP_WORD], begin);
            }
        }
        if (count < CHUNK_WORDS + SEGMENT_WORD + 1) {
            return;
        }
    }
}

static void adjust_thread(stack_pass *pass, uint32_t tid)
{
    hfn_remote_registers registers;
    uint64_t adjusted;

    if (!hfn_linux_read_registers(pass->remote, tid, &registers)) {
        pass->ok = false;
        return;
    }
    adjusted = pass->adjust(pass->user, registers.pc);
    if (adjusted != registers.pc && !hfn_linux_set_pc(pass->remote, tid, adjusted)) {
        pass->ok = false;
    }
    pass->stacks[0] = registers.sp & ~UINT64_C(7);
    pass->stack_count = 1;
    for (uint32_t i = 0; i < pass->stack_count; i++) {
        adjust_stack(pass, pass->stacks[i]);
    }
}

bool hfn_os_remote_adjust(hfn_remote *r, hfn_adjust_pc_fn adjust, void *user)
{
    stack_pass *pass = hfn_allocate_zeroed(&r->env, sizeof *pass);
    bool ok;

    if (!pass) {
        return false;
    }
    pass->remote = r;
    pass->adjust = adjust;
    pass->user = user;
    pass->ok = true;
    for (uint32_t i = 0; i < r->thread_count; i++) {
        if (r->threads[i].state == HFN_THREAD_STOPPED) {
            adjust_thread(pass, r->threads[i].tid);
        }
    }
    ok = pass->ok;
    hfn_free_memory(&r->env, pass, sizeof *pass);
    return ok;
}
