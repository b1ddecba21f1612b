/* SPDX-License-Identifier: MIT */
/* The executable sections of an image with their bytes, and for each byte the marks of what was seen
 * to lead there.  The marks are the one result of the scan; any thread may add some at any time. */
#ifndef HFN_VERDICTS_CODE_H
#define HFN_VERDICTS_CODE_H

#include "base/memory.h"

#include <hotfn/lowlevel/image.h>

#define HFN_MARK_CALLED 1u    /* a direct call                                            */
#define HFN_MARK_TAKEN 2u     /* its address is in a pointer, an instruction or an export */
#define HFN_MARK_JUMPED 4u    /* a jump, or an entry of a jump table                      */
#define HFN_MARK_FROM_PART 8u /* one of the jumps comes from what may be a fragment      */

/* One executable section.  They are sorted and do not overlap. */
typedef struct hfn_region {
    uint64_t rva, end, tail_end; /* end to tail_end: no code, the rest of the last page */
    const uint8_t *bytes;        /* tail_end - rva of them             */
    uint8_t *marks;              /* four bits a byte, low nibble first */
} hfn_region;

typedef struct hfn_code {
    hfn_region *regions;
    uint32_t count;
    size_t capacity;
} hfn_code;

/* False if there is no memory.  Regions never hold more bytes than the file has, however its
 * headers lie. */
bool hfn_code_init(hfn_code *code, const hotfn_image *image, const hotfn_env *env);
void hfn_code_finish(hfn_code *code, const hotfn_env *env);

/* The region that holds rva, or NULL. */
const hfn_region *hfn_code_region(const hfn_code *code, uint64_t rva);

static inline bool hfn_region_has(const hfn_region *region, uint64_t rva)
{
    return rva - region->rva < region->end - region->rva;
}

/* Add marks to the byte at rva, which lies in the region.  Relaxed: they are read after the
 * scanning threads were joined. */
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

/* Where rva lies in no region, nothing happens. */
void hfn_code_mark(const hfn_code *code, uint64_t rva, uint32_t marks);
uint32_t hfn_code_marks(const hfn_code *code, uint64_t rva);

#endif
