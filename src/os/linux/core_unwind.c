/* SPDX-License-Identifier: MIT */
/* HOT PATH: the replacements of the C library's functions by which unwinders find tables, in
 * the core.  They run in the thread that unwinds, which may be in a signal handler: no libc, no
 * lock. */
#include "os/core_unwind.h"

#include "base/compiler.h"
#include "os/linux/stub_object.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>

hfn_core_unwind hfn_core_tables;

extern uint64_t hfn_core_frames;

/* glibc >= 2.35, <dlfcn.h>: struct dl_find_object. */
typedef struct found_object {
    uint64_t flags;
    void *map_start, *map_end;
    void *link_map;
    void *eh_frame;
    uint64_t reserved[7];
} found_object;

typedef int (*find_object_fn)(void *pc, found_object *result);
typedef int (*phdr_fn)(struct dl_phdr_info *info, size_t size, void *data);
typedef int (*iterate_fn)(phdr_fn visit, void *data);

int hfn_core_find_object(void *pc, found_object *result);
int hfn_core_iterate_phdr(phdr_fn visit, void *data);

static const hfn_core_region *get_regions(void)
{
    return (const hfn_core_region *)(uintptr_t)hfn_core_tables.regions;
}

const hfn_core_region *hfn_core_find_region(uint64_t pc)
{
    const hfn_core_region *regions = get_regions();
    uint64_t low = 0, high = hfn_core_tables.region_count;

    while (low < high) { /* the first region that ends after pc */
        uint64_t middle = low + (high - low) / 2;
        if (regions[middle].end <= pc) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < hfn_core_tables.region_count && regions[low].begin <= pc ? &regions[low] : NULL;
}

/* Not memset, which the core does not have. */
static void clear_words(void *at, size_t byte_count)
{
    volatile uint64_t *word = at;

    for (size_t i = 0; i < byte_count / sizeof *word; i++) {
        word[i] = 0;
    }
}

/* The core stays mapped while an original runs, as it does for the frame of a call. */
static void count_caller(int64_t change)
{
    __atomic_fetch_add(&hfn_core_frames, (uint64_t)change, __ATOMIC_RELAXED);
}

/* glibc >= 2.35, <dlfcn.h>: int _dl_find_object(void *pc, struct dl_find_object *result). */
int hfn_core_find_object(void *pc, found_object *result)
{
    const hfn_core_region *region = hfn_core_find_region((uint64_t)(uintptr_t)pc);
    int answer;

    if (HFN_LIKELY(!region)) {
        count_caller(1);
        answer = ((find_object_fn)(uintptr_t)hfn_core_tables.find_object)(pc, result);
        count_caller(-1);
        return answer;
    }
    clear_words(result, sizeof *result);
    result->map_start = (void *)(uintptr_t)region->begin;
    result->map_end = (void *)(uintptr_t)region->end;
    result->eh_frame = (void *)(uintptr_t)region->eh_frame_hdr;
    return 0;
}

static int visit_region(const hfn_core_region *region, phdr_fn visit, void *data)
{
    hfn_stub_object object;

    clear_words(&object, sizeof object);
    hfn_describe_stubs(&object, region->begin, region->end, region->eh_frame_hdr);
    return visit(&object.info, sizeof object.info, data);
}

int hfn_core_iterate_phdr(phdr_fn visit, void *data)
{
    int answer;

    count_caller(1);
    answer = ((iterate_fn)(uintptr_t)hfn_core_tables.iterate_phdr)(visit, data);
    for (uint64_t i = 0; answer == 0 && i < hfn_core_tables.region_count; i++) {
        answer = visit_region(&get_regions()[i], visit, data);
    }
    count_caller(-1);
    return answer;
}
