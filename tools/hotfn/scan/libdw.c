/* SPDX-License-Identifier: MIT */
/* Loads libdw under the soname of the version that this program was compiled with. */
#include "libdw.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* ISO C has no cast from an address of data to one of a function. */
static bool load_symbol(void *library, const char *name, void *pointer)
{
    void *found = dlsym(library, name);

    memcpy(pointer, &found, sizeof found);
    return found != NULL;
}

const libdw_calls *libdw_load(void)
{
    static libdw_calls calls;
    static bool tried, whole;

    if (!tried) {
        void *library = dlopen("libdw.so.1", RTLD_NOW);
        tried = true;
        whole = library != NULL;
#define TAKE(name) whole = whole && load_symbol(library, #name, &calls.name);
        LIBDW_CALLS(TAKE)
#undef TAKE
    }
    return whole ? &calls : NULL;
}
