/* SPDX-License-Identifier: MIT */
/* Maps memory for the stubs of a hook set, by the functions of its space (for another process), or
 * in this process. */
#include "hooks/space.h"

#include "hooks/hookset.h"

void hfn_hooks_use_space(hotfn_hooks *hooks, const hfn_hook_space *space)
{
    hooks->space = space;
}

uint64_t hfn_space_map_near(const hotfn_hooks *hooks, uint64_t near_begin, uint64_t near_end,
                            uint64_t byte_count, uint64_t range_bytes)
{
    const hfn_hook_space *s = hooks->space;

    return s ? s->map_near(s->user, near_begin, near_end, byte_count, range_bytes)
             : hfn_os_map_near(near_begin, near_end, byte_count, range_bytes);
}

bool hfn_space_map_at(const hotfn_hooks *hooks, uint64_t address, uint64_t byte_count)
{
    const hfn_hook_space *s = hooks->space;

    return s ? s->map_at(s->user, address, byte_count) : hfn_os_map_at(address, byte_count);
}

uint32_t hfn_space_find_gaps(const hotfn_hooks *hooks, uint64_t begin, uint64_t end,
                             hfn_os_gap *out, uint32_t capacity)
{
    const hfn_hook_space *s = hooks->space;

    return s ? s->find_gaps(s->user, begin, end, out, capacity)
             : hfn_os_find_gaps(begin, end, out, capacity);
}

void hfn_space_unmap(const hotfn_hooks *hooks, uint64_t address, uint64_t byte_count)
{
    const hfn_hook_space *s = hooks->space;

    if (s) {
        s->unmap(s->user, address, byte_count);
    } else {
        hfn_os_unmap(address, byte_count);
    }
}

bool hfn_space_make_executable(const hotfn_hooks *hooks, uint64_t address, uint64_t byte_count)
{
    const hfn_hook_space *s = hooks->space;

    return s ? s->make_executable(s->user, address, byte_count)
             : hfn_os_make_executable(address, byte_count);
}
