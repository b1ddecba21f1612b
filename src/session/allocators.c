/* SPDX-License-Identifier: MIT */
/* Find the allocation functions of a module, for a run that records memory (--with alloc): by their names,
 * which the C and C++ standards reserve, in modules that have malloc_usable_size as well. */
#include "base/status.h"
#include "counters/timing/alloc.h"
#include "live/live.h"
#include "session/process.h"

#include <string.h>

typedef struct known_name {
    const char *name;
    uint32_t kind;
} known_name;

/* Without reallocarray, which calls realloc. */
static const known_name known_names[] = {
    { "malloc", HFN_ALLOC_RETURNS },
    { "calloc", HFN_ALLOC_RETURNS },
    { "memalign", HFN_ALLOC_RETURNS },
    { "aligned_alloc", HFN_ALLOC_RETURNS },
    { "valloc", HFN_ALLOC_RETURNS },
    { "pvalloc", HFN_ALLOC_RETURNS },
    { "free", HFN_ALLOC_FREES },
    { "cfree", HFN_ALLOC_FREES },
    { "realloc", HFN_ALLOC_MOVES },
    { "posix_memalign", HFN_ALLOC_STORES },
    /* operator new, new[], delete, delete[]; # is size_t */
    { "_Znw#", HFN_ALLOC_RETURNS },
    { "_Zna#", HFN_ALLOC_RETURNS },
    { "_Znw#RKSt9nothrow_t", HFN_ALLOC_RETURNS },
    { "_Zna#RKSt9nothrow_t", HFN_ALLOC_RETURNS },
    { "_Znw#St11align_val_t", HFN_ALLOC_RETURNS },
    { "_Zna#St11align_val_t", HFN_ALLOC_RETURNS },
    { "_Znw#St11align_val_tRKSt9nothrow_t", HFN_ALLOC_RETURNS },
    { "_Zna#St11align_val_tRKSt9nothrow_t", HFN_ALLOC_RETURNS },
    { "_ZdlPv", HFN_ALLOC_FREES },
    { "_ZdaPv", HFN_ALLOC_FREES },
    { "_ZdlPv#", HFN_ALLOC_FREES },
    { "_ZdaPv#", HFN_ALLOC_FREES },
    { "_ZdlPvRKSt9nothrow_t", HFN_ALLOC_FREES },
    { "_ZdaPvRKSt9nothrow_t", HFN_ALLOC_FREES },
    { "_ZdlPvSt11align_val_t", HFN_ALLOC_FREES },
    { "_ZdaPvSt11align_val_t", HFN_ALLOC_FREES },
    { "_ZdlPv#St11align_val_t", HFN_ALLOC_FREES },
    { "_ZdaPv#St11align_val_t", HFN_ALLOC_FREES },
};

/* size_t is unsigned long where that has 64 bits, unsigned int in i386's C (Itanium C++ ABI, 5.1.5). */
static bool is_same(const char *known, const char *name)
{
    for (; *known && (*known == *name || (*known == '#' && (*name == 'm' || *name == 'j')));
         known++) {
        name++;
    }
    return *known == *name;
}

static uint32_t kind_of(const char *name)
{
    for (size_t i = 0; i < HFN_COUNT_OF(known_names); i++) {
        if (is_same(known_names[i].name, name)) {
            return known_names[i].kind;
        }
    }
    return 0;
}

int32_t hotfn_is_allocator(const char *name)
{
    return name ? kind_of(name) != 0 : 0;
}

/* The next of a function's names; NULL behind the last. */
static const char *next_name(const char *name)
{
    name += strlen(name) + 1;
    return *name ? name : NULL;
}

static uint64_t find_usable(const hfn_process *p, const hfn_loaded_module *m, uint32_t first,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (const char *name = hotfn_live_function_name(p->live, m->live_module, i); name;
             name = next_name(name)) {
            if (strcmp(name, "malloc_usable_size") == 0) {
                return m->base +
                       hfn_read_le64(hfn_live_section(p->live, HFN_SECTION_FUNCTIONS) +
                                     (uint64_t)(first + i) * HFN_FUNCTION_BYTES + HFN_FUNCTION_RVA);
            }
        }
    }
    return 0;
}

static void add_function(const hfn_process *p, const char *name, uint32_t slot, bool is_timed,
                         uint64_t usable)
{
    hfn_allocator allocator = { slot, 0, (uintptr_t)usable };

    for (const char *at = name; at && allocator.kind == 0; at = next_name(at)) {
        allocator.kind = kind_of(at);
    }
    if (allocator.kind == 0) {
        return;
    }
    if (!is_timed || !hfn_alloc_add(&allocator)) {
        hfn_log(&p->env, HOTFN_LOG_WARNING, "%s cannot be followed: its blocks are not seen", name);
    }
}

void hfn_process_find_allocators(const hfn_process *p, const hfn_loaded_module *m)
{
    const hfn_time_header *h = hfn_live_time_header(p->live);
    const uint32_t *slots = hotfn_live_slots(p->live, m->live_module);
    uint32_t first, count;
    uint64_t usable;
    uint8_t *entry;

    if (!h || !(h->flags & HOTFN_TIMING_ALLOC) || !slots ||
        !hfn_live_module(p->live, m->live_module, &entry, &first, &count)) {
        return;
    }
    usable = find_usable(p, m, first, count);
    for (uint32_t i = 0; usable != 0 && i < count; i++) {
        if (slots[i] != HOTFN_NO_SLOT) {
            add_function(p, hotfn_live_function_name(p->live, m->live_module, i), slots[i],
                         hfn_live_is_timed(p->live, first + i), usable);
        }
    }
}
