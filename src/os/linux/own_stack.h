/* SPDX-License-Identifier: MIT */
/* HOT PATH: the stack that a thread began on, without a system call and without libc. */
#ifndef HFN_OS_LINUX_OWN_STACK_H
#define HFN_OS_LINUX_OWN_STACK_H

#include <stddef.h>
#include <stdint.h>

typedef struct hfn_stack {
    uint64_t begin, end; /* none: both 0 */
} hfn_stack;

/* What glibc keeps of a thread (struct pthread, which begins with tcbhead_t: its first and third word are its own
 * address); NULL: nothing that is known. */
static inline const uintptr_t *hfn_thread_descriptor(void)
{
    uintptr_t tcb = 0, self = 0;

#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0; movq %%fs:16, %1" : "=&r"(tcb), "=r"(self));
#elif defined(__i386__)
    __asm__("movl %%gs:0, %0; movl %%gs:8, %1" : "=&r"(tcb), "=r"(self));
#endif
    return tcb == self ? (const uintptr_t *)self : NULL;
}

/* glibc puts it on top of a thread's stack, and keeps in it, one behind the other, where the stack begins, how long it is
 * and how much of it is a guard (stackblock, stackblock_size, guardsize of nptl/descr.h).  Where in it differs, so they are
 * known by what they say: that the stack ends just above them.  The main thread's say something else. */
static inline hfn_stack hfn_own_stack(void)
{
    enum { PAGE = 4096, LEAST = 16384 }; /* PTHREAD_STACK_MIN */
    const uintptr_t *self = hfn_thread_descriptor(), at = (uintptr_t)self;
    const uintptr_t *end = (const uintptr_t *)((at | (PAGE - 1)) + 1) - 2;

    for (const uintptr_t *word = self; self && word < end; word++) {
        uintptr_t below = at - word[0], above = word[1] - below;
        if (word[0] != 0 && word[0] < at && word[1] >= LEAST && word[1] > below && above <= PAGE &&
            word[2] % PAGE == 0 && word[2] < word[1]) {
            return (hfn_stack){ word[0], at };
        }
    }
    return (hfn_stack){ 0, 0 };
}

#endif
