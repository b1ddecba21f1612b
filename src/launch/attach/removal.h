/* SPDX-License-Identifier: MIT */
/* Removes an attachment from a process with the help of its journal, even if another launcher made
 * the attachment. */
#ifndef HFN_LAUNCH_REMOVAL_H
#define HFN_LAUNCH_REMOVAL_H

#include "launch/attach/code_files.h"
#include "launch/attach/journal.h"

/* Initially zero except remote, journal, buffer, before_unmap and user. */
typedef struct hfn_removal {
    hfn_remote *remote; /* its memory is not open */
    hfn_journal *journal;
    uint8_t *buffer; /* [HFN_REMOVAL_BUFFER_BYTES] */
    /* Called while the target is stopped and no hook counts any more; NULL: not called. */
    void (*before_unmap)(void *user, const hfn_remote *remote);
    void *user;
    bool forces; /* make room for another attach, even if timed calls have not returned */
    /* Results. */
    uint32_t foreign;    /* bytes that other code had changed and that were not restored */
    uint64_t stopped_ns; /* the time for which all threads were stopped */
    bool is_restored;    /* the original code is in place */
    bool is_empty;       /* and no memory of hotfn is mapped any more */
    bool is_left;        /* timed calls have not returned: the pages stay, and two patches of the C
                          * library, until a later removal finds that they have; if it forces,
                          * only code stays, for good */
    bool is_filtered;    /* the process filters its system calls, so its pages stay, unused */
    bool is_gone;        /* the process has ended, or runs another program */
    hfn_os_error error;  /* of the latest step that failed */
    /* Private: the entries that are not patches; their byte_count is their position in the
     * journal. */
    hfn_journal_entry *marks;
    size_t mark_count, mark_capacity;
    hfn_remote_code *codes; /* whose pages have patches */
    size_t code_count, code_capacity;
    hfn_code_files files; /* that the stopped process has mapped */
    bool gives_up;        /* open calls are not waited for any longer */
} hfn_removal;

enum { HFN_REMOVAL_BUFFER_BYTES = 1 << 20 };

/* Try until the target is restored and empty: about two seconds, or ten if its threads cannot be
 * stopped. */
void hfn_removal_run(hfn_removal *removal);
/* Log what stays, if is_left or is_filtered. */
void hfn_removal_report_left(const hfn_removal *removal, const hotfn_env *env);

#endif
