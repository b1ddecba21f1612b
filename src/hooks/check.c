/* SPDX-License-Identifier: MIT */
/* Compare the patches of a hook set with memory.  The kernel reads the memory, because the text may
 * be unmapped or unreadable by now.  Calls no libc and takes no lock. */
#include "hooks/check.h"

#include "hooks/hookset.h"
#include "hooks/patch.h"
#include "os/hot_path.h"

/* A copy of the text around the latest patch; the next patches are usually in it, too.  Not on the
 * stack, which is small in many signal handlers. */
typedef struct text_copy {
    uint64_t begin;
    size_t byte_count;
    uint8_t *bytes; /* [COPY_BYTES] */
} text_copy;

enum { COPY_BYTES = 65536 };

/* NULL if the bytes cannot be read. */
static const uint8_t *read_text(text_copy *copy, uint64_t address, size_t byte_count)
{
    if (address < copy->begin || address + byte_count > copy->begin + copy->byte_count) {
        copy->begin = address;
        copy->byte_count = hfn_os_hot_read_bytes(address, copy->bytes, COPY_BYTES);
    }
    return byte_count <= copy->byte_count ? copy->bytes + (address - copy->begin) : NULL;
}

typedef enum comparison { PATCH_IN_PLACE, PATCH_OVERWRITTEN, PATCH_UNREADABLE } comparison;

static comparison compare_bytes(text_copy *copy, uint64_t address, const uint8_t *expected,
                                size_t byte_count)
{
    const uint8_t *found = read_text(copy, address, byte_count);

    for (size_t i = 0; found && i < byte_count; i++) {
        if (found[i] != expected[i]) {
            return PATCH_OVERWRITTEN;
        }
    }
    return found ? PATCH_IN_PLACE : PATCH_UNREADABLE;
}

static comparison compare_patch(text_copy *copy, const hfn_stub_walk *walk, uint64_t base)
{
    hfn_patch p = hfn_patch_make(&walk->hook, base, walk->entry);
    comparison found = compare_bytes(copy, p.site_at, p.site, walk->hook.patch_bytes);

    if (found == PATCH_IN_PLACE && p.island_at != 0) {
        found = compare_bytes(copy, p.island_at, p.island, sizeof p.island);
    }
    return found;
}

bool hfn_hooks_check(const hotfn_hooks *hooks, hotfn_refused_fn visit, void *user)
{
    text_copy copy = { .bytes = hfn_os_hot_map_pages(COPY_BYTES) };
    bool all_readable = true;

    if (!copy.bytes) {
        return false;
    }
    for (size_t i = 0; i < hooks->batch_count; i++) {
        const hfn_batch *batch = &hooks->batches[i];
        hfn_stub_walk walk = hfn_stub_walk_begin(hooks, batch);

        while (batch->state == HFN_BATCH_PATCHED && hfn_stub_walk_next(&walk)) {
            if (!(batch->hooks[walk.index] & HFN_HOOK_PATCHED)) {
                continue;
            }
            comparison found = compare_patch(&copy, &walk, hfn_batch_module(hooks, batch)->base);
            all_readable &= found != PATCH_UNREADABLE;
            if (found == PATCH_OVERWRITTEN) {
                visit(user, batch->module, walk.hook.function_index, HOTFN_REASON_OVERWRITTEN,
                      walk.hook.patch_offset);
            }
        }
    }
    hfn_os_hot_unmap_pages(copy.bytes, COPY_BYTES);
    return all_readable;
}
