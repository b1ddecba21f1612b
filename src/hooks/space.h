/* SPDX-License-Identifier: MIT */
/*
 * Where a hook set gets the pages of its stubs, and how it stops the threads that may execute the
 * code that it changes.  By default both concern this process.
 *
 * A launcher that attaches changes a mirror instead: local copies of a module's code, all at one
 * distance from the originals, with room for stubs around them.  Patches and stubs contain only
 * relative addresses within a module and its stubs, so their bytes are the same in both places.
 */
#ifndef HFN_HOOKS_SPACE_H
#define HFN_HOOKS_SPACE_H

#include "os/os.h"

#include <hotfn/lowlevel/hooks.h>

/* Each call behaves as the call of os/ with the same name. */
typedef struct hfn_hook_space {
    uint64_t (*map_near)(void *user, uint64_t near_begin, uint64_t near_end, uint64_t byte_count,
                         uint64_t range_bytes);
    bool (*map_at)(void *user, uint64_t address, uint64_t byte_count);
    uint32_t (*find_gaps)(void *user, uint64_t begin, uint64_t end, hfn_os_gap *out,
                          uint32_t capacity);
    void (*unmap)(void *user, uint64_t address, uint64_t byte_count);
    bool (*make_executable)(void *user, uint64_t address, uint64_t byte_count);
    bool (*run_stopped)(void *user, hfn_adjust_pc_fn adjust, hfn_quiesced_fn work, void *work_user);
    void *user;
} hfn_hook_space;

/* The set uses the space, which the caller keeps, from now on.  Called before the first commit. */
void hfn_hooks_use_space(hotfn_hooks *hooks, const hfn_hook_space *space);

/* For commits: the calls of the set's space. */
uint64_t hfn_space_map_near(const hotfn_hooks *hooks, uint64_t near_begin, uint64_t near_end,
                            uint64_t byte_count, uint64_t range_bytes);
bool hfn_space_map_at(const hotfn_hooks *hooks, uint64_t address, uint64_t byte_count);
uint32_t hfn_space_find_gaps(const hotfn_hooks *hooks, uint64_t begin, uint64_t end,
                             hfn_os_gap *out, uint32_t capacity);
void hfn_space_unmap(const hotfn_hooks *hooks, uint64_t address, uint64_t byte_count);
bool hfn_space_make_executable(const hotfn_hooks *hooks, uint64_t address, uint64_t byte_count);

#endif
