/* SPDX-License-Identifier: MIT */
/* Saves the counts of a run whose launcher was killed: only the target still maps the live
 * record. */
#ifndef HFN_LAUNCH_RESCUE_H
#define HFN_LAUNCH_RESCUE_H

#include "launch/attach/journal.h"

typedef struct hfn_rescue {
    const hfn_journal *journal;
    uint8_t *buffer; /* [buffer_bytes] */
    uint32_t buffer_bytes;
    hfn_os_file copy; /* of the live record; HFN_OS_NO_FILE: none was made */
} hfn_rescue;

/* Copy the live record from the process, whose memory is open. */
void hfn_rescue_copy(void *rescue, const hfn_remote *remote);
/* Write the copy as a finished record, and close it. */
hotfn_status hfn_rescue_finish(hfn_rescue *rescue, const char *path, const hotfn_env *env,
                               hotfn_error *err);

#endif
