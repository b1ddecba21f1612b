/* SPDX-License-Identifier: MIT */
/* The agent's own printf family writes the same bytes as the C library's. */
#include "check.h"

#include <limits.h>
#include <unistd.h>

int agent_snprintf(char *to, size_t room, const char *format, ...);
int agent_dprintf(int fd, const char *format, ...);

#define CHECK_SAME(room, ...)                                                                      \
    do {                                                                                           \
        char got[100], expected[100];                                                              \
        memset(got, 'x', sizeof got);                                                              \
        memset(expected, 'x', sizeof expected);                                                    \
        CHECK_EQ_U64((uint64_t)agent_snprintf(got, room, __VA_ARGS__),                             \
                     (uint64_t)snprintf(expected, room, __VA_ARGS__));                             \
        CHECK(memcmp(got, expected, sizeof got) == 0);                                             \
    } while (0)

static void writes_numbers_like_the_c_library(void)
{
    static const int numbers[] = { 0, 1, -1, 9, 10, 255, INT_MAX, INT_MIN };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int n = numbers[i];
        CHECK_SAME(100, "a %d b %i c %u d %x", n, n, (unsigned)n, (unsigned)n);
        CHECK_SAME(100, "%5d|%-5d|%05d|%03u|%-3x|%*d", n, n, n, (unsigned)n, (unsigned)n, 7, n);
        CHECK_SAME(100, "%ld %lu %lld %llu %llx %zu", (long)n, (unsigned long)n, (long long)n,
                   (unsigned long long)n, (unsigned long long)n, (size_t)n);
    }
    CHECK_SAME(100, "%llu %lld %lld", ULLONG_MAX, LLONG_MAX, LLONG_MIN);
}

static void writes_texts_like_the_c_library(void)
{
    CHECK_SAME(100, "no conversion");
    CHECK_SAME(100, "%s%s", "", "text");
    CHECK_SAME(100, "%8s|%-8s|%.2s|%.*s|%.900s", "abc", "abc", "abc", 1, "abc", "abc");
    CHECK_SAME(100, "100 %% of %c", '!');
}

static void returns_the_full_length_of_truncated_output(void)
{
    for (size_t room = 1; room < 12; room++) {
        CHECK_SAME(room, "%s %d", "texts", 1234);
    }
    CHECK_EQ_U64((uint64_t)agent_snprintf(NULL, 0, "%s", "abc"), 3);
}

static void dprintf_writes_to_the_descriptor(void)
{
    char seen[20] = "";
    int ends[2];

    if (!CHECK(pipe(ends) == 0)) {
        return;
    }
    CHECK_EQ_U64((uint64_t)agent_dprintf(ends[1], "process %d\n", 12), 11);
    CHECK_EQ_U64((uint64_t)read(ends[0], seen, sizeof seen - 1), 11);
    CHECK_STR(seen, "process 12\n");
    close(ends[0]);
    close(ends[1]);
}

static const check_test tests[] = {
    CHECK_TEST(writes_numbers_like_the_c_library),
    CHECK_TEST(writes_texts_like_the_c_library),
    CHECK_TEST(returns_the_full_length_of_truncated_output),
    CHECK_TEST(dprintf_writes_to_the_descriptor),
};
CHECK_MAIN(tests)
