/* SPDX-License-Identifier: MIT */
/* Removing an attachment from a process by its journal, whichever process attached. */
#ifndef HFN_LAUNCH_REMOVAL_H
#define HFN_LAUNCH_REMOVAL_H

#include "launch/attach/journal.h"

/* Zero but for remote, journal, buffer and before_unmap. */
typedef struct hfn_removal {
    hfn_remote *remote; /* its memory is not open */
    hfn_journal *journal;
    uint8_t *buffer; /* [HFN_REMOVAL_BUFFER_BYTES] */
    /* Called while the target stands and nothing counts any more; NULL: not called. */
    void (*before_unmap)(void *user, const hfn_remote *remote);
    void *user;
    /* Results. */
    uint32_t foreign;    /* bytes that others had changed and that were not restored */
    uint64_t stopped_ns; /* how long all threads stood */
    bool is_restored;    /* the target has its own code */
    bool is_empty;       /* and nothing of hotfn is mapped any more */
    bool is_gone;        /* the process has ended, or runs another program */
    hfn_os_error error;  /* of the latest step that failed */
    /* Inside: the entries that are no patches; byte_count is where the journal has them. */
    hfn_journal_entry *marks;
    size_t mark_count, mark_capacity;
} hfn_removal;

enum { HFN_REMOVAL_BUFFER_BYTES = 1 << 20 };

/* Try until the target is restored and empty, at most about a second. */
void hfn_removal_run(hfn_removal *removal);

#endif
