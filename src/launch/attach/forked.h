/* SPDX-License-Identifier: MIT */
/* Removes hooks from processes that the target has forked while it was attached to: each has a copy
 * of the hooked code, and shares the journal. */
#ifndef HFN_LAUNCH_FORKED_H
#define HFN_LAUNCH_FORKED_H

#include "launch/attach/journal.h"

#include <hotfn/env.h>

/* The journal as it was before the removal from the target, which marks in the shared one what it
 * has unmapped there. */
typedef struct hfn_forked {
    hotfn_env env;
    uint32_t target_pid;
    hfn_journal journal; /* header NULL: none */
} hfn_forked;

/* Copy the journal; hfn_forked_finish must follow. */
void hfn_forked_begin(hfn_forked *forked, const hotfn_env *env, uint32_t target_pid,
                      const hfn_journal *journal);
/* Once the target is restored or has ended: release the processes that hold the journal.  What
 * cannot be released is logged.  buffer: [HFN_REMOVAL_BUFFER_BYTES]. */
void hfn_forked_release(hfn_forked *forked, uint8_t *buffer);
void hfn_forked_finish(hfn_forked *forked);

#endif
