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

/* NULL if there is no demangler or it does not know the name; the caller frees the text. */
static char *allocate_readable(const char *mangled)
{
    int status = 0;

    if (!__cxa_demangle || strncmp(mangled, "_Z", 2) != 0 || strlen(mangled) > MAX_MANGLED_BYTES) {
        return NULL;
    }
    return __cxa_demangle(mangled, NULL, NULL, &status);
}

static size_t copy_if_it_fits(char *out, size_t out_bytes, const char *text)
{
    size_t length = strlen(text);

    if (length >= out_bytes) {
        return 0;
    }
    memcpy(out, text, length + 1);
    return length;
}

static size_t demangle_cxx(void *user, const char *mangled, char *out, size_t out_bytes)
{
    char *text = allocate_readable(mangled);

    (void)user;
    size_t length = text ? copy_if_it_fits(out, out_bytes, text) : 0;
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
    char *text = allocate_readable(mangled);
    size_t length = copy_if_it_fits(out, out_bytes, text ? text : mangled);
    free(text); /* __cxa_demangle allocates with malloc */
    return length;
}
