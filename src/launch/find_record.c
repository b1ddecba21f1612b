/* SPDX-License-Identifier: MIT */
/* Finds the live record of a process that is counted. */
#include "base/status.h"
#include "os/remote.h"

#include <hotfn/switch.h>

hotfn_status hotfn_launch_find_record(char *path, uint64_t path_bytes, uint32_t pid,
                                      hotfn_error *err)
{
    if (!path) {
        return hfn_report_null(err, __func__);
    }
    return hfn_os_remote_find_record(pid, path, (size_t)path_bytes)
               ? HOTFN_OK
               : hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                  "no record of process %u can be read: start the process with "
                                  "hotfn run, or name the record",
                                  pid);
}
