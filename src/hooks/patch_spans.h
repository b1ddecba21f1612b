/* SPDX-License-Identifier: MIT */
/* The parts of the text that a commit or a removal makes writable, in whole pages that no two
 * spans share. */
#ifndef HFN_HOOKS_PATCH_SPANS_H
#define HFN_HOOKS_PATCH_SPANS_H

#include "hooks/hookset.h"
#include "os/os.h"

typedef struct hfn_patch_span {
    hfn_os_writable_text text;
    uint64_t begin, end; /* page aligned */
    bool is_open;
    uint8_t *is_private; /* one bit for each page that was copied; NULL: none */
} hfn_patch_span;

typedef struct hfn_patch_spans {
    const hotfn_env *env;
    hfn_patch_span *list; /* sorted */
    size_t count, capacity;
} hfn_patch_spans;

void hfn_patch_spans_init(hfn_patch_spans *spans, const hotfn_env *env);
/* Make the text writable for the hooks with (flags & mask) == wanted of the batches in this state.
 * False if there is no memory. */
bool hfn_patch_spans_open(hfn_patch_spans *spans, const hotfn_hooks *hooks, hfn_batch_state state,
                          uint32_t mask, uint32_t wanted);
/* Whether all spans are writable. */
bool hfn_patch_spans_are_open(const hfn_patch_spans *spans);
/* The writable text that contains the address; NULL if the system did not allow it. */
hfn_os_writable_text *hfn_patch_spans_find(const hfn_patch_spans *spans, uint64_t address);
/* Record that pages are private copies now.  Returns the size of those that were not before. */
uint64_t hfn_patch_spans_mark_private(hfn_patch_spans *spans, uint64_t begin, uint64_t end);
/* Restore the protection of all spans and free the list. */
void hfn_patch_spans_finish(hfn_patch_spans *spans);

#endif
