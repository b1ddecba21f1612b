/* SPDX-License-Identifier: MIT */
/* Requests to the loader.  They are separate from modules.c, since the agent must not link them: it
 * does not call the program's libc. */
#include "os/modules.h"

#include <dlfcn.h>

void hfn_os_keep_module_loaded(const void *address)
{
    Dl_info own;

    if (dladdr(address, &own) != 0 && own.dli_fname) {
        dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

uint64_t hfn_os_find_symbol(const char *library, const char *symbol)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);

    return handle ? (uint64_t)(uintptr_t)dlsym(handle, symbol) : 0;
}
