/* SPDX-License-Identifier: MIT */
/* The C library functions that the agent needs on Windows and that text.c and format.c do not
 * define.  realloc and free do nothing: the agent allocates from its own memory
 * (session/own_memory.c), never from the program's heap. */
#include "agent/libc/format.h"

#include "base/compiler.h"

#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

/* The headers of mingw-w64 call the printf family by these names. */
int __mingw_vsnprintf(char *to, size_t room, const char *format, va_list args);
int __mingw_vsnprintf(char *to, size_t room, const char *format, va_list args)
{
    return hfn_agent_format(to, room, format, args);
}

static int *get_errno(void)
{
    static int own; /* shared by all threads: no code reads it */

    return &own;
}

/* The headers of mingw-w64 call _errno through this import pointer.  It is defined here because the
 * agent imports no C library. */
#define ERRNO_POINTER __asm__("__imp_" HFN_SYMBOL_PREFIX "_errno")
extern int *(*const errno_pointer)(void)ERRNO_POINTER;
int *(*const errno_pointer)(void) = get_errno;

size_t wcslen(const wchar_t *text)
{
    size_t length = 0;

    while (text[length]) {
        length++;
    }
    return length;
}

wchar_t *wcsrchr(const wchar_t *in, wchar_t unit)
{
    const wchar_t *found = NULL;

    do {
        found = *in == unit ? in : found;
    } while (*in++);
    return (wchar_t *)(uintptr_t)found;
}

void *realloc(void *memory, size_t count)
{
    (void)memory;
    (void)count;
    return NULL;
}

void free(void *memory)
{
    (void)memory;
}

unsigned long long strtoull(const char *text, char **end, int base)
{
    unsigned long long number = 0;

    (void)base; /* always 10 */
    for (; *text >= '0' && *text <= '9'; text++) {
        number = number * 10 + (unsigned)(*text - '0');
    }
    *end = (char *)(uintptr_t)text;
    return number;
}

unsigned long strtoul(const char *text, char **end, int base)
{
    text += *text == ' ';
    return (unsigned long)strtoull(text, end, base);
}

char *getenv(const char *name)
{
    (void)name;
    return NULL;
}
