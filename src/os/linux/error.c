/* SPDX-License-Identifier: MIT */
/* On Linux an hfn_os_error is an errno value. */
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

hfn_os_error hfn_os_get_out_of_memory(void)
{
    return ENOMEM;
}

bool hfn_os_is_denied(hfn_os_error error)
{
    return error == EACCES;
}

bool hfn_os_is_busy(hfn_os_error error)
{
    return error == EBUSY;
}
