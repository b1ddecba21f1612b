/* SPDX-License-Identifier: MIT */
/* Readable names for reports: Itanium C++ (and legacy Rust, which is Itanium with a hash) by the C++
 * run-time's own demangler.  Names come from files: length and result are bounded. */
#include "verbs.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MANGLED_MAX 16384 /* the demangler recurses: a longer name is shown as it is */

/* Itanium C++ ABI, cxxabi.h; C cannot include that header. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* Legacy Rust names end in ::h and 16 hex digits, a hash that tells people nothing. */
static size_t without_rust_hash(const char *text, size_t length)
{
    if (length < 20 || strncmp(text + length - 19, "::h", 3) != 0) {
        return length;
    }
    for (size_t i = length - 16; i < length; i++) {
        if (!isxdigit((unsigned char)text[i])) {
            return length;
        }
    }
    return length - 19;
}

size_t hotfn_tool_demangle(void *user, const char *mangled, char *out, size_t out_bytes)
{
    int status = 0;
    size_t length = strnlen(mangled, MANGLED_MAX + 1);
    (void)user;
    if (strncmp(mangled, "_Z", 2) != 0 || length > MANGLED_MAX) {
        return 0;
    }
    char *text = __cxa_demangle(mangled, NULL, NULL, &status);
    if (!text || status != 0) {
        free(text);
        return 0;
    }
    length = without_rust_hash(text, strlen(text));
    bool fits = length > 0 && length < out_bytes;
    if (fits) {
        memcpy(out, text, length);
        out[length] = 0;
    }
    free(text);
    return fits ? length : 0;
}
