/* SPDX-License-Identifier: MIT */
/* No other process exists, and most properties of this process are unknown. */
#include "os/process.h"

uint32_t hfn_os_get_process_id(void)
{
    return 0;
}

bool hfn_os_process_is_gone(uint32_t pid)
{
    (void)pid;
    return false;
}

uint64_t hfn_os_get_process_cpu_ns(uint32_t pid)
{
    (void)pid;
    return 0;
}

const char *hfn_os_get_program_path(void)
{
    return "";
}

bool hfn_os_get_program_name(char *out, size_t capacity)
{
    (void)out;
    (void)capacity;
    return false;
}

bool hfn_os_get_start_path(char *out, size_t capacity, bool *is_script)
{
    (void)out;
    (void)capacity;
    (void)is_script;
    return false;
}

void hfn_os_get_working_folder(char *out, size_t capacity)
{
    if (capacity > 0) {
        out[0] = 0;
    }
}

uint32_t hfn_os_count_processors(void)
{
    return 1;
}

uint32_t hfn_os_count_allowed_processors(void)
{
    return 1;
}

bool hfn_os_has_processor_quota(void)
{
    return false;
}

uint64_t hfn_os_get_address_limit(void)
{
    return UINT64_MAX;
}

bool hfn_os_get_random(void *out, size_t byte_count)
{
    (void)out;
    (void)byte_count;
    return false;
}

bool hfn_os_on_fork(void (*before)(void), void (*after_in_parent)(void),
                    void (*after_in_child)(void))
{
    (void)before;
    (void)after_in_parent;
    (void)after_in_child;
    return false;
}
