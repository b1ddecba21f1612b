/* SPDX-License-Identifier: MIT */
/* The word of each thread that points to the thread's row.  Stubs and code inside the program's
 * threads reach it by one load: a thread-local variable, or on Windows a slot of the thread's
 * block, whose place is a segment and a displacement. */
#ifndef HFN_OS_ROW_WORD_H
#define HFN_OS_ROW_WORD_H

#include <stdbool.h>
#include <stdint.h>

#if defined(_WIN32)

/* Displacement of the word in the thread's block; 0: hfn_os_reserve_row_word was not called. */
extern uint32_t hfn_os_row_word_at;

#if defined(__clang__)
#define HFN_THREAD_BLOCK __attribute__((address_space(HFN_THREAD_SEGMENT)))
#if defined(__x86_64__)
#define HFN_THREAD_SEGMENT 256 /* gs */
#else
#define HFN_THREAD_SEGMENT 257 /* fs */
#endif
#elif defined(__x86_64__)
#define HFN_THREAD_BLOCK __seg_gs
#else
#define HFN_THREAD_BLOCK __seg_fs
#endif
#define hfn_thread_row (*(uint8_t * HFN_THREAD_BLOCK *)(uintptr_t)hfn_os_row_word_at)

/* The address of the calling thread's word. */
uint64_t hfn_os_get_row_word_address(void);

#elif defined(HFN_CORE)

/* The core (counters/core) has no thread-local variables: the word lies in the C library's thread
 * descriptor, so far from the thread pointer.  The launcher writes it. */
extern int64_t hfn_core_word_at;

static inline uint8_t *hfn_core_get_thread_row(void)
{
    uint8_t *row;

    __asm__ volatile("movq %%fs:(%1), %0" : "=r"(row) : "r"(hfn_core_word_at));
    return row;
}
#define hfn_thread_row hfn_core_get_thread_row()

#else

extern __thread uint8_t *hfn_thread_row __attribute__((tls_model("initial-exec")));

static inline uint64_t hfn_os_get_row_word_address(void)
{
    return (uint64_t)(uintptr_t)&hfn_thread_row;
}

#endif

/* Does a claim of a row call a library of the program's process (ntdll)? */
#if defined(_WIN32)
#define HFN_CLAIM_CALLS_LIBRARY 1
#else
#define HFN_CLAIM_CALLS_LIBRARY 0
#endif

/* Called before the first use of the word; false if the system has no word left. */
bool hfn_os_reserve_row_word(void);

#endif
