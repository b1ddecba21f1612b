/* SPDX-License-Identifier: MIT */
/* The executable sections of an image, with marks for each byte that describe how it is reached.
 * The marks are the main result of decoding; any thread may add marks at any time. */
#ifndef HFN_VERDICTS_CODE_H
#define HFN_VERDICTS_CODE_H

#include "base/memory.h"

#include <hotfn/lowlevel/image.h>

#define HFN_MARK_CALLED 1u    /* target of a direct call                                  */
#define HFN_MARK_TAKEN 2u     /* its address is in a pointer, an instruction or an export */
#define HFN_MARK_JUMPED 4u    /* target of a jump or of an entry of a jump table          */
#define HFN_MARK_FROM_PART 8u /* one of the jumps is in code that may be a fragment       */

/* One executable section.  They are sorted and do not overlap. */
typedef struct hfn_region {
    uint64_t rva, end, tail_end; /* [end, tail_end): the rest of the last page, without code */
    const uint8_t *bytes;        /* [tail_end - rva]                   */
    uint8_t *marks;              /* four bits for each byte, low nibble first */
    uint64_t *starts;            /* a bit for each byte at which an instruction was decoded */
    uint64_t *walked; /* the same for code that belongs to no function (flags.c); may be NULL */
} hfn_region;

typedef struct hfn_code {
    hfn_region *regions;
    uint32_t count;
    size_t capacity;
} hfn_code;

/* Find the regions; false if there is no memory.  Regions never have more bytes than the file,
 * whatever its headers claim. */
bool hfn_code_init(hfn_code *code, const hotfn_image *image, const hotfn_env *env);
void hfn_code_finish(hfn_code *code, const hotfn_env *env);
/* Allocate region->walked if it is NULL; false if there is no memory. */
bool hfn_code_allocate_walked(hfn_code *code, const hfn_region *region, const hotfn_env *env);

/* The region that contains rva, or NULL. */
const hfn_region *hfn_code_region(const hfn_code *code, uint64_t rva);

static inline bool hfn_region_has(const hfn_region *region, uint64_t rva)
{
    return rva - region->rva < region->end - region->rva;
}

/* Add marks to a byte of the region.  Relaxed: joining the worker threads orders them before they
 * are read. */
static inline void hfn_region_mark(const hfn_region *region, uint64_t rva, uint32_t marks)
{
    uint64_t offset = rva - region->rva;
    uint8_t *byte = &region->marks[offset / 2];
    uint8_t bits = (uint8_t)(marks << (offset & 1) * 4);

    if ((__atomic_load_n(byte, __ATOMIC_RELAXED) & bits) != bits) {
        __atomic_fetch_or(byte, bits, __ATOMIC_RELAXED);
    }
}

static inline uint32_t hfn_region_marks(const hfn_region *region, uint64_t rva)
{
    uint64_t offset = rva - region->rva;

    return (uint32_t)(__atomic_load_n(&region->marks[offset / 2], __ATOMIC_RELAXED) >>
                      (offset & 1) * 4) &
           15u;
}

/* The first byte at or after rva with a mark, or the region's end. */
uint64_t hfn_region_next_marked(const hfn_region *region, uint64_t rva);

/* Record where instructions begin among the 64 bytes that contain `offset`, which is relative to
 * the region's first byte: one bit for each byte.  Relaxed, as above. */
static inline void hfn_region_add_starts(const hfn_region *region, uint64_t offset, uint64_t bits)
{
    if (bits) {
        __atomic_fetch_or(&region->starts[offset / 64], bits, __ATOMIC_RELAXED);
    }
}

static inline bool hfn_region_is_start(const hfn_region *region, uint64_t rva)
{
    uint64_t offset = rva - region->rva;

    return __atomic_load_n(&region->starts[offset / 64], __ATOMIC_RELAXED) >> offset % 64 & 1;
}

/* Add marks; does nothing if rva is in no region. */
void hfn_code_mark(const hfn_code *code, uint64_t rva, uint32_t marks);
uint32_t hfn_code_marks(const hfn_code *code, uint64_t rva);

#endif
