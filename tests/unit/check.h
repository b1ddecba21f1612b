/* SPDX-License-Identifier: MIT */
/*
 * The whole test framework.  A test file holds static functions whose names are claims
 * (relocate_keeps_rip_target_beyond_2gib), a table of them, and CHECK_MAIN(table).  A check that
 * fails prints file, line and values, and the test continues.  The program prints TAP lines and
 * ends with 0 if every claim held.  An argument runs only the claims whose name contains it.
 */
#ifndef HFN_TESTS_CHECK_H
#define HFN_TESTS_CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct check_test {
    const char *name;
    void (*fn)(void);
} check_test;

/* A row of the table: the function's name is the claim. */
#define CHECK_TEST(fn)                                                                             \
    {                                                                                              \
#fn, fn                                                                                    \
    }

static int check_failures; /* in the claim that runs now */

static inline int check_report(int held, const char *file, int line, const char *text)
{
    if (!held) {
        check_failures++;
        printf("# %s:%d: does not hold: %s\n", file, line, text);
    }
    return held;
}

static inline int check_u64(uint64_t got, uint64_t want, const char *file, int line,
                            const char *text)
{
    if (check_report(got == want, file, line, text)) {
        return 1;
    }
    printf("#   got %" PRIu64 " (0x%" PRIx64 "), wanted %" PRIu64 " (0x%" PRIx64 ")\n", got, got,
           want, want);
    return 0;
}

static inline int check_i64(int64_t got, int64_t want, const char *file, int line, const char *text)
{
    if (check_report(got == want, file, line, text)) {
        return 1;
    }
    printf("#   got %" PRId64 ", wanted %" PRId64 "\n", got, want);
    return 0;
}

static inline int check_str(const char *got, const char *want, const char *file, int line,
                            const char *text)
{
    int held = got == want || (got && want && strcmp(got, want) == 0);

    if (check_report(held, file, line, text)) {
        return 1;
    }
    printf("#   got \"%s\", wanted \"%s\"\n", got ? got : "(null)", want ? want : "(null)");
    return 0;
}

static inline void check_print_bytes(const char *label, const unsigned char *bytes, size_t size)
{
    printf("#   %s", label);
    for (size_t i = 0; i < size; i++) {
        printf(" %02x", bytes[i]);
    }
    printf("\n");
}

static inline int check_mem(const void *got, const void *want, size_t size, const char *file,
                            int line, const char *text)
{
    if (check_report(size == 0 || memcmp(got, want, size) == 0, file, line, text)) {
        return 1;
    }
    check_print_bytes("got   ", (const unsigned char *)got, size);
    check_print_bytes("wanted", (const unsigned char *)want, size);
    return 0;
}

/* Each is 1 if it holds: `if (!CHECK(p)) return;` before p is used. */
#define CHECK(condition) check_report(!!(condition), __FILE__, __LINE__, #condition)
#define CHECK_EQ_U64(got, want)                                                                    \
    check_u64((uint64_t)(got), (uint64_t)(want), __FILE__, __LINE__, #got " == " #want)
#define CHECK_EQ_I64(got, want)                                                                    \
    check_i64((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, #got " == " #want)
#define CHECK_STR(got, want) check_str((got), (want), __FILE__, __LINE__, #got " is " #want)
#define CHECK_MEM(got, want, size)                                                                 \
    check_mem((got), (want), (size), __FILE__, __LINE__, #got " holds " #want)

static inline int check_run(const check_test *tests, size_t count, const char *only)
{
    int failed = 0;

    printf("1..%zu\n", count);
    for (size_t i = 0; i < count; i++) {
        if (only && !strstr(tests[i].name, only)) {
            printf("ok %zu %s # SKIP\n", i + 1, tests[i].name);
            continue;
        }
        check_failures = 0;
        tests[i].fn();
        failed += check_failures != 0;
        printf("%sok %zu %s\n", check_failures ? "not " : "", i + 1, tests[i].name);
        fflush(stdout);
    }
    return failed ? 1 : 0;
}

#define CHECK_MAIN(tests)                                                                          \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return check_run(tests, sizeof(tests) / sizeof((tests)[0]), argc > 1 ? argv[1] : NULL);    \
    }

#endif
