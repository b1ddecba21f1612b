/* SPDX-License-Identifier: MIT */
/* The windows through which a commit or a removal writes: one a run of text, never two over a page. */
#ifndef HFN_HOOKS_WINDOWS_H
#define HFN_HOOKS_WINDOWS_H

#include "hooks/hookset.h"
#include "os/os.h"

typedef struct hfn_window {
    hfn_os_writable_text text;
    uint64_t begin, end; /* page aligned */
    bool is_open;
    uint8_t *is_private; /* a bit a page: it was copied; NULL: none yet */
} hfn_window;

typedef struct hfn_windows {
    const hotfn_env *env;
    hfn_window *list; /* sorted */
    size_t count, capacity;
} hfn_windows;

void hfn_windows_init(hfn_windows *windows, const hotfn_env *env);
/* Cover the hooks of batch whose flag bits are `wanted` under `mask`.  False if there is no memory. */
bool hfn_windows_cover(hfn_windows *windows, const hotfn_hooks *hooks, const hfn_batch *batch,
                       uint32_t mask, uint32_t wanted);
void hfn_windows_open(hfn_windows *windows);
/* All of them: every hook that they cover can be written. */
bool hfn_windows_are_open(const hfn_windows *windows);
/* The open window that holds the hook's site; NULL if the system did not let it open. */
hfn_os_writable_text *hfn_windows_at(const hfn_windows *windows, uint64_t address);
/* Pages of an open window are private copies now; how many bytes of them were not before. */
uint64_t hfn_windows_note_private(hfn_windows *windows, uint64_t begin, uint64_t end);
/* Close all and free the list. */
void hfn_windows_finish(hfn_windows *windows);

#endif
