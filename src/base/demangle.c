/* SPDX-License-Identifier: MIT */
/* C++ names are demangled by __cxa_demangle of the process's own C++ library, if it has one: the
 * library itself does not link a demangler. */
#include "base/demangle.h"

#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

/* Weak: a C++ program has it from its C++ library, a C program does not have it. */
extern char *__cxa_demangle(const char *mangled, char *out, size_t *length, int *status) HFN_WEAK;

/* The demangler recurses, so the length of a name bounds the stack that it needs. */
enum { MAX_MANGLED_BYTES = 64 * 1024 };

static size_t demangle_cxx(void *user, const char *mangled, char *out, size_t out_bytes)
{
    size_t length = 0;
    int status = 0;

    (void)user;
    if (!__cxa_demangle || strncmp(mangled, "_Z", 2) != 0 || strlen(mangled) > MAX_MANGLED_BYTES) {
        return 0;
    }
    char *text = __cxa_demangle(mangled, NULL, NULL, &status);
    if (!text) {
        return 0;
    }
    if (status == 0 && strlen(text) < out_bytes) {
        length = strlen(text);
        memcpy(out, text, length + 1);
    }
    free(text); /* __cxa_demangle allocates with malloc */
    return length;
}

hotfn_demangle_fn hfn_demangle_get_default(void)
{
    return __cxa_demangle ? demangle_cxx : NULL;
}

size_t hotfn_demangle(const char *mangled, char *out, size_t out_bytes)
{
    if (!mangled || !out) {
        return 0;
    }
    size_t length = demangle_cxx(NULL, mangled, out, out_bytes);
    if (length == 0 && strlen(mangled) < out_bytes) {
        length = strlen(mangled);
        memcpy(out, mangled, length + 1);
    }
    return length;
}
