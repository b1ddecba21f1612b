/* SPDX-License-Identifier: MIT */
/* Whether code of a process is still that of the file from which it was mapped.  After dlclose the
 * same addresses may have another library, data, or nothing, and then they are not changed. */
#ifndef HFN_LAUNCH_CODE_FILES_H
#define HFN_LAUNCH_CODE_FILES_H

#include "os/remote.h"

/* Initially zero. */
typedef struct hfn_code_files {
    hfn_remote_code *pages; /* by address */
    size_t count, capacity;
} hfn_code_files;

/* List the files of the process, whose threads are stopped; false if they cannot be listed. */
bool hfn_code_files_list(hfn_code_files *files, const hfn_remote *remote);
void hfn_code_files_free(hfn_code_files *files, const hotfn_env *env);
/* Is [begin, end), a part of `code`, mapped from the same part of the same file? */
bool hfn_code_files_have(const hfn_code_files *files, const hfn_remote_code *code, uint64_t begin,
                         uint64_t end);

#endif
