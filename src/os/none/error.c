/* SPDX-License-Identifier: MIT */
/* Every call that can fail fails with UNAVAILABLE. */
#include "os/error.h"
#include "os/none/unavailable.h"

const char *hfn_os_get_error_text(hfn_os_error error)
{
    return error == OUT_OF_MEMORY ? "out of memory" : "not available on this system";
}

bool hfn_os_is_missing(hfn_os_error error)
{
    (void)error;
    return false;
}

bool hfn_os_is_gone(hfn_os_error error)
{
    (void)error;
    return false;
}

bool hfn_os_is_timeout(hfn_os_error error)
{
    (void)error;
    return false;
}

bool hfn_os_is_out_of_memory(hfn_os_error error)
{
    return error == OUT_OF_MEMORY;
}

hfn_os_error hfn_os_get_out_of_memory(void)
{
    return OUT_OF_MEMORY;
}

bool hfn_os_is_denied(hfn_os_error error)
{
    (void)error;
    return false;
}

bool hfn_os_is_busy(hfn_os_error error)
{
    (void)error;
    return false;
}
