/* SPDX-License-Identifier: MIT */
/* No module is listed. */
#include "os/modules.h"

void hfn_os_each_module(hfn_os_module_fn visit, void *user)
{
    (void)visit;
    (void)user;
}

bool hfn_os_find_unwind(uint64_t base, hfn_os_unwind *out)
{
    (void)base;
    (void)out;
    return false;
}

uint64_t hfn_os_get_module_list_hook(void)
{
    return 0;
}

bool hfn_os_module_list_is_complete(void)
{
    return true;
}

void hfn_os_keep_module_loaded(const void *address)
{
    (void)address;
}

uint64_t hfn_os_find_symbol(const char *library, const char *symbol)
{
    (void)library;
    (void)symbol;
    return 0;
}

bool hfn_os_watch_modules(void (*changed)(void *user), void *user)
{
    (void)changed;
    (void)user;
    return false;
}

void hfn_os_add_unwind_table(const void *functions, uint32_t count, uint64_t base)
{
    (void)functions;
    (void)count;
    (void)base;
}

bool hfn_os_loads_pe(void)
{
    return false;
}
