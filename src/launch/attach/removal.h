/* SPDX-License-Identifier: MIT */
/* Removes an attachment from a process with the help of its journal, even if another launcher made
 * the attachment. */
#ifndef HFN_LAUNCH_REMOVAL_H
#define HFN_LAUNCH_REMOVAL_H

#include "launch/attach/journal.h"

/* Initially zero except remote, journal, buffer, before_unmap and user. */
typedef struct hfn_removal {
    hfn_remote *remote; /* its memory is not open */
    hfn_journal *journal;
    uint8_t *buffer; /* [HFN_REMOVAL_BUFFER_BYTES] */
    /* Called while the target is stopped and no hook counts any more; NULL: not called. */
    void (*before_unmap)(void *user, const hfn_remote *remote);
    void *user;
    /* Results. */
    uint32_t foreign;    /* bytes that other code had changed and that were not restored */
    uint64_t stopped_ns; /* the time for which all threads were stopped */
    bool is_restored;    /* the original code is in place */
    bool is_empty;       /* and no memory of hotfn is mapped any more */
    bool is_gone;        /* the process has ended, or runs another program */
    hfn_os_error error;  /* of the latest step that failed */
    /* Private: the entries that are not patches; their byte_count is their position in the
     * journal. */
    hfn_journal_entry *marks;
    size_t mark_count, mark_capacity;
} hfn_removal;

enum { HFN_REMOVAL_BUFFER_BYTES = 1 << 20 };

/* Try until the target is restored and empty, at most about a second. */
void hfn_removal_run(hfn_removal *removal);

#endif
