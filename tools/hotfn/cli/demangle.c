/* SPDX-License-Identifier: MIT */
/*
 * Demangles names for reports, with LLVM's demangler if it was present at build time (C++ of all
 * compilers, Rust, D), otherwise with that of the C++ run-time (Itanium C++ and legacy Rust).
 * Names are untrusted, and the readable form of a crafted name can double with every letter.  So
 * only short names with few back references are demangled in this process; all others are sent to
 * a child process.
 */
#include "demangle.h"

#include "commands.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CHEAP_LENGTH 512   /* each letter can cost a level of recursion */
#define CHEAP_REFERENCES 4 /* each can double the answer */

/* Itanium C++ ABI, cxxabi.h; C cannot include that header. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* Legacy Rust names end in ::h and a hash of 16 hex digits, of no use to a reader. */
static size_t strip_rust_hash(const char *text, size_t length)
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

/* Decode an escape such as `$LT$` or `$u7b$` at the front of text; returns its length, or 0 if
 * there is none. */
static size_t decode_escape(const char *text, size_t length, char *out)
{
    static const struct {
        const char *name;
        char means;
    } escapes[] = { { "$SP$", '@' }, { "$BP$", '*' }, { "$RF$", '&' }, { "$LT$", '<' },
                    { "$GT$", '>' }, { "$LP$", '(' }, { "$RP$", ')' }, { "$C$", ',' } };
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        size_t bytes = strlen(escapes[i].name);
        if (bytes <= length && memcmp(text, escapes[i].name, bytes) == 0) {
            *out = escapes[i].means;
            return bytes;
        }
    }
    if (length >= 5 && text[1] == 'u' && isxdigit((unsigned char)text[2]) &&
        isxdigit((unsigned char)text[3]) && text[4] == '$') {
        char digits[3] = { text[2], text[3], 0 };
        char means = (char)strtoul(digits, NULL, 16);
        if (isprint((unsigned char)means)) { /* otherwise write nothing: out may point into text */
            *out = means;
            return 5;
        }
    }
    return 0;
}

/* The escapes of legacy Rust, in place (rustc, symbol_names/legacy.rs: sanitize). */
static size_t unescape_rust(char *text, size_t length)
{
    size_t from = 0, to = 0;
    while (from < length) {
        size_t taken = text[from] == '$' ? decode_escape(text + from, length - from, &text[to]) : 0;
        bool begins = from == 0 || text[from - 1] == ':';
        if (taken) {
            from += taken;
            to++;
        } else if (text[from] == '.' && from + 1 < length && text[from + 1] == '.') {
            text[to++] = ':';
            text[to++] = ':';
            from += 2;
        } else if (text[from] == '_' && begins && from + 1 < length && text[from + 1] == '$') {
            from++; /* rustc inserts the '_' because no symbol may begin with '$' */
        } else {
            text[to++] = text[from++];
        }
    }
    text[to] = 0;
    return to;
}

static size_t demangle_by_runtime(const char *mangled, char *out, size_t out_bytes)
{
    int status = 0;
    char *text =
        strncmp(mangled, "_Z", 2) == 0 ? __cxa_demangle(mangled, NULL, NULL, &status) : NULL;
    size_t length = text && status == 0 ? strlen(text) : 0;
    if (length >= out_bytes) {
        length = 0;
    }
    if (length > 0) {
        memcpy(out, text, length + 1);
    }
    free(text);
    return length;
}

size_t demangle_in_process(const char *mangled, char *out, size_t out_bytes)
{
    size_t length = 0, plain;
#if defined(HOTFN_HAVE_LLVM)
    length = demangle_by_llvm(mangled, out, out_bytes);
#endif
    if (length == 0) {
        length = demangle_by_runtime(mangled, out, out_bytes);
    }
    plain = strip_rust_hash(out, length);
    return plain == length ? length : unescape_rust(out, plain);
}

/* True if the name has the prefix of a mangling scheme. */
static bool is_mangled(const char *name)
{
    static const char *const begins[] = { "_Z", "__Z", "_R", "?", "_D" };
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* True for a short name with few back references, which takes little time and memory: S_ and T_
 * (Itanium), B (Rust), Q (D), a digit (Microsoft). */
static bool is_cheap(const char *name, size_t length)
{
    size_t references = 0;
    if (length > CHEAP_LENGTH) {
        return false;
    }
    for (size_t i = 0; i + 1 < length; i++) {
        char c = name[i], next = name[i + 1];
        bool is_number =
            next == '_' || isdigit((unsigned char)next) || isupper((unsigned char)next);
        references += (c == 'S' || c == 'T' || c == 'B' || c == 'Q') && is_number;
        references += name[0] == '?' && isdigit((unsigned char)c);
    }
    return references <= CHEAP_REFERENCES;
}

size_t hotfn_tool_demangle(void *user, const char *mangled, char *out, size_t out_bytes)
{
    size_t length = strnlen(mangled, DEMANGLE_LONGEST + 1);
    (void)user;
    if (!is_mangled(mangled) || length > DEMANGLE_LONGEST || out_bytes == 0) {
        return 0;
    }
    return is_cheap(mangled, length) ? demangle_in_process(mangled, out, out_bytes)
                                     : demangle_in_worker(mangled, out, out_bytes);
}
