/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH (all but the beginning): see thread_row.c.
 *
 * Code is exchanged by pages: a copy with the later bytes takes the place of the old pages in one system
 * call.  What a thread stands in stays the same, save the instructions that are exchanged, which are as
 * long before as after; the kernel makes every processor drop what it knows of the old pages.  No lock: who
 * comes while another is at it does the same again, from a copy of its own, and goes on when that is done.
 */
#include "counters/sole.h"

#include "counters/thread_row.h"
#include "os/linux/raw.h"

#include <linux/mman.h>
#include <stddef.h>
#include <sys/mman.h>

static struct {
    uint8_t *row;      /* the one thread's; NULL: none began so  */
    uint32_t ending;   /* there will be others                   */
    uint32_t ended;    /* there may be: all code was exchanged   */
    hotfn_turn *first; /* code to be exchanged, the newest first */
} sole;

void hfn_sole_begin(void)
{
    if (sole.row || hfn_thread_row)
        return;
    hfn_thread_row = hfn_thread_row_claim();
    if (hfn_thread_row != hfn_rows.discard)
        sole.row = hfn_thread_row;
}

void *hfn_sole_row(void)
{
    return __atomic_load_n(&sole.ended, __ATOMIC_ACQUIRE) ? NULL : sole.row;
}

/* ---- The exchange. */

static bool exchange(const hotfn_turn *code)
{
    uint64_t copy =
        hfn_raw_map(0, code->byte_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    const volatile uint64_t *from = (const volatile uint64_t *)(uintptr_t)code->begin;
    uint64_t *to = (uint64_t *)(uintptr_t)copy;
    long moved = -1;

    if (copy == 0)
        return false;
    for (uint64_t i = 0; i < code->byte_count / sizeof *to; i++)
        to[i] = from[i];
    for (uint32_t i = 0; i < code->change_count; i++)
        for (uint32_t n = 0; n < code->changes[i].byte_count; n++)
            ((uint8_t *)to)[code->changes[i].at + n] = code->changes[i].bytes[n];
    if (hfn_raw3(SYS_mprotect, copy, code->byte_count, PROT_READ | PROT_EXEC) == 0)
        moved = hfn_raw6(SYS_mremap, copy, code->byte_count, code->byte_count,
                         MREMAP_MAYMOVE | MREMAP_FIXED, code->begin, 0);
    if (moved != (long)code->begin)
        hfn_raw3(SYS_munmap, copy, code->byte_count, 0);
    return moved == (long)code->begin;
}

/* Where the system does not let us any more, calls may be lost: the report says so. */
static void exchange_all(void)
{
    bool done = true;

    for (const hotfn_turn *code = __atomic_load_n(&sole.first, __ATOMIC_SEQ_CST); code;
         code = code->next)
        done &= exchange(code);
    if (!done && hfn_rows.header)
        __atomic_fetch_add(&hfn_rows.header->threads_lost, 1, __ATOMIC_RELAXED);
}

void hfn_sole_end(void)
{
    if (!sole.row || __atomic_load_n(&sole.ended, __ATOMIC_ACQUIRE))
        return;
    /* Before the list is read: code that is not in it yet is exchanged by who keeps it. */
    __atomic_store_n(&sole.ending, 1, __ATOMIC_SEQ_CST);
    exchange_all();
    /* pairs with the acquire loads: who sees it sees the exchanged code */
    __atomic_store_n(&sole.ended, 1, __ATOMIC_RELEASE);
}

void hfn_sole_keep(hotfn_turn *code)
{
    code->next = sole.first;
    __atomic_store_n(&sole.first, code, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&sole.ending, __ATOMIC_SEQ_CST))
        exchange(code);
}
