/* SPDX-License-Identifier: MIT */
/* An error of this system is an errno. */
#include "os/error.h"

#include <errno.h>
#include <string.h>

const char *hfn_os_get_error_text(hfn_os_error error)
{
    return strerror(error);
}

bool hfn_os_is_missing(hfn_os_error error)
{
    return error == ENOENT;
}

bool hfn_os_is_gone(hfn_os_error error)
{
    return error == ESRCH;
}

bool hfn_os_is_timeout(hfn_os_error error)
{
    return error == ETIMEDOUT;
}

bool hfn_os_is_out_of_memory(hfn_os_error error)
{
    return error == ENOMEM;
}

int32_t hfn_os_save_errno(void)
{
    return errno;
}

void hfn_os_restore_errno(int32_t saved)
{
    errno = saved;
}
