/* SPDX-License-Identifier: MIT */
/* The agent's own memory and string functions under their C library names.  The loader would bind
 * the agent's calls to definitions in the target or in a sanitizer, whose constructors have not run
 * yet.  These definitions are hidden, so that the linker binds all calls of the agent to them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Eight bytes of any type at any alignment. */
typedef struct word {
    uint64_t bytes;
} __attribute__((packed, may_alias)) word;

void *memcpy(void *to, const void *from, size_t count)
{
    uint8_t *t = to;
    const uint8_t *f = from;

    for (; count >= sizeof(word); count -= sizeof(word), t += sizeof(word), f += sizeof(word)) {
        *(word *)t = *(const word *)f;
    }
    while (count-- > 0) {
        *t++ = *f++;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t count)
{
    uint8_t *t = to;
    const uint8_t *f = from;

    if ((uintptr_t)t - (uintptr_t)f >= count) {
        while (count-- > 0) {
            *t++ = *f++;
        }
        return to;
    }
    while (count-- > 0) {
        t[count] = f[count];
    }
    return to;
}

void *memset(void *to, int byte, size_t count)
{
    uint8_t *t = to;
    uint64_t all = (uint8_t)byte * UINT64_C(0x0101010101010101);

    for (; count >= sizeof(word); count -= sizeof(word), t += sizeof(word)) {
        ((word *)t)->bytes = all;
    }
    while (count-- > 0) {
        *t++ = (uint8_t)byte;
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t count)
{
    const uint8_t *x = a, *y = b;

    for (; count > 0; count--, x++, y++) {
        if (*x != *y) {
            return *x - *y;
        }
    }
    return 0;
}

/* clang replaces memcmp by bcmp if only equality is tested.  Not all systems declare it. */
int bcmp(const void *a, const void *b, size_t count);
int bcmp(const void *a, const void *b, size_t count)
{
    return memcmp(a, b, count);
}

void *memchr(const void *in, int byte, size_t count)
{
    const uint8_t *at = in;

    for (; count > 0; count--, at++) {
        if (*at == (uint8_t)byte) {
            return (void *)(uintptr_t)at;
        }
    }
    return NULL;
}

size_t strlen(const char *text)
{
    const char *end = text;

    while (*end) {
        end++;
    }
    return (size_t)(end - text);
}

size_t strnlen(const char *text, size_t max)
{
    size_t length = 0;

    while (length < max && text[length]) {
        length++;
    }
    return length;
}

int strncmp(const char *a, const char *b, size_t max)
{
    for (; max > 0; max--, a++, b++) {
        if (*a != *b || *a == 0) {
            return (unsigned char)*a - (unsigned char)*b;
        }
    }
    return 0;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

char *strchr(const char *in, int byte)
{
    for (; *in != (char)byte; in++) {
        if (*in == 0) {
            return NULL;
        }
    }
    return (char *)(uintptr_t)in;
}

char *strrchr(const char *in, int byte)
{
    const char *last = NULL;

    for (; *in; in++) {
        if (*in == (char)byte) {
            last = in;
        }
    }
    return (char *)(uintptr_t)((char)byte == 0 ? in : last);
}

/* ---- A heap sort: in place, and never quadratic. */

static void swap(uint8_t *a, uint8_t *b, size_t bytes)
{
    while (bytes-- > 0) {
        uint8_t kept = a[bytes];
        a[bytes] = b[bytes];
        b[bytes] = kept;
    }
}

void qsort(void *items, size_t count, size_t bytes, int (*compare)(const void *, const void *))
{
    uint8_t *heap = items;
    size_t next = count / 2;

    while (count > 1) {
        if (next > 0) {
            next--;
        } else {
            swap(heap, heap + --count * bytes, bytes);
        }
        for (size_t at = next, child; (child = 2 * at + 1) < count; at = child) {
            if (child + 1 < count &&
                compare(heap + child * bytes, heap + (child + 1) * bytes) < 0) {
                child++;
            }
            if (compare(heap + at * bytes, heap + child * bytes) >= 0) {
                break;
            }
            swap(heap + at * bytes, heap + child * bytes, bytes);
        }
    }
}
