/* SPDX-License-Identifier: MIT */
/*
 * Recognises images that set thread pointers themselves.  A stub finds the counters of its thread
 * relative to the thread pointer, in a word of the C library's thread block; in a thread with
 * another block it would read and write any memory.  So calls of such an image are counted without
 * it (hooks/shared.c) and not timed.
 * The C library, and Go, whose threads have a block of the C library where it is used, are exempt
 * (runtimes.c).  So are PE images: only the system sets thread pointers of Windows, and its system
 * calls have other numbers.
 */
#include "verdicts/analysis.h"

#include <string.h>

void hfn_own_threads_record(hfn_analysis *a, const hfn_region *region, uint64_t at,
                            const hfn_instruction *in)
{
    uint32_t found;

    if (a->info.format == HOTFN_FORMAT_PE) {
        return;
    }
    found = a->arch->find_thread_evidence(region->bytes, region->end - region->rva,
                                          at - region->rva, in);
    if (found && !(a->runtimes & HFN_RUNTIME_OWNS_THREADS)) {
        __atomic_fetch_or(&a->thread_evidence, found, __ATOMIC_RELAXED);
    }
}

/* The C library's functions by which a program makes threads. */
static void find_calls(void *user, const hfn_image_slot *slot)
{
    hfn_analysis *a = user;

    if (slot->target_rva != UINT64_MAX) {
        return;
    }
    if (strcmp(slot->name, "clone") == 0 || strcmp(slot->name, "__clone") == 0) {
        a->thread_evidence |= HFN_THREAD_MADE;
    } else if (strcmp(slot->name, "syscall") == 0 && (a->thread_evidence & HFN_THREAD_BY_NUMBER)) {
        a->thread_evidence |= HFN_THREAD_POINTER_SET;
    }
}

void hfn_own_threads_finish(hfn_analysis *a)
{
    if (a->thread_evidence & (HFN_THREAD_FLAGS | HFN_THREAD_BY_NUMBER)) {
        hfn_image_each_slot(a->image, find_calls, a);
    }
    a->has_own_threads = (a->thread_evidence & HFN_THREAD_POINTER_SET) ||
                         (a->thread_evidence & (HFN_THREAD_MADE | HFN_THREAD_FLAGS)) ==
                             (HFN_THREAD_MADE | HFN_THREAD_FLAGS);
}
