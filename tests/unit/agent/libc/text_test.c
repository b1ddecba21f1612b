/* SPDX-License-Identifier: MIT */
/* The agent's own memory and string functions return the same results as the C library's. */
#include "check.h"

void *agent_memcpy(void *to, const void *from, size_t count);
void *agent_memmove(void *to, const void *from, size_t count);
void *agent_memset(void *to, int byte, size_t count);
int agent_memcmp(const void *a, const void *b, size_t count);
int agent_bcmp(const void *a, const void *b, size_t count);
void *agent_memchr(const void *in, int byte, size_t count);
size_t agent_strlen(const char *text);
size_t agent_strnlen(const char *text, size_t max);
int agent_strcmp(const char *a, const char *b);
int agent_strncmp(const char *a, const char *b, size_t max);
char *agent_strchr(const char *in, int byte);
char *agent_strrchr(const char *in, int byte);
void agent_qsort(void *items, size_t count, size_t bytes,
                 int (*compare)(const void *, const void *));

enum { ROOM = 64 };

static void fill(uint8_t *bytes, uint32_t seed)
{
    for (int i = 0; i < ROOM; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

static void copying_and_setting_change_only_the_given_bytes(void)
{
    uint8_t got[ROOM], expected[ROOM], from[ROOM];

    for (size_t at = 0; at < 9; at++) {
        for (size_t count = 0; count + at <= 40; count++) {
            fill(got, 1);
            fill(expected, 1);
            fill(from, 2);
            CHECK(agent_memcpy(got + at, from + 3, count) == got + at);
            memcpy(expected + at, from + 3, count);
            CHECK(memcmp(got, expected, ROOM) == 0);
            CHECK(agent_memmove(got + at, got + 5, count) == got + at);
            memmove(expected + at, expected + 5, count);
            CHECK(memcmp(got, expected, ROOM) == 0);
            CHECK(agent_memset(got + at, 0x1a5, count) == got + at);
            memset(expected + at, 0x1a5, count);
            CHECK(memcmp(got, expected, ROOM) == 0);
        }
    }
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static void compares_and_finds_like_the_c_library(void)
{
    static const char *const texts[] = { "", "a", "b", "ab", "abc", "ab\xff", "a:b:c", "\x80" };
    const size_t count = sizeof texts / sizeof texts[0];

    for (size_t i = 0; i < count; i++) {
        const char *a = texts[i];
        CHECK_EQ_U64(agent_strlen(a), strlen(a));
        for (size_t max = 0; max < 5; max++) {
            CHECK_EQ_U64(agent_strnlen(a, max), strnlen(a, max));
        }
        for (int byte = 0; byte < 256; byte++) {
            CHECK(agent_strchr(a, byte) == strchr(a, byte));
            CHECK(agent_strrchr(a, byte) == strrchr(a, byte));
            CHECK(agent_memchr(a, byte, strlen(a)) == memchr(a, byte, strlen(a)));
        }
        for (size_t k = 0; k < count; k++) {
            const char *b = texts[k];
            size_t both = (strlen(a) < strlen(b) ? strlen(a) : strlen(b)) + 1;
            CHECK_EQ_I64(sign(agent_strcmp(a, b)), sign(strcmp(a, b)));
            CHECK_EQ_I64(sign(agent_memcmp(a, b, both)), sign(memcmp(a, b, both)));
            CHECK_EQ_I64(agent_bcmp(a, b, both) != 0, memcmp(a, b, both) != 0);
            for (size_t max = 0; max < 5; max++) {
                CHECK_EQ_I64(sign(agent_strncmp(a, b, max)), sign(strncmp(a, b, max)));
            }
        }
    }
}

static int by_value(const void *a, const void *b)
{
    uint32_t x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static void sorts_any_number_of_items(void)
{
    uint32_t got[100], expected[100], seed = 7;

    for (size_t count = 0; count <= 100; count++) {
        for (size_t i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            /* A shift by 29 makes many equal items. */
            got[i] = expected[i] = seed >> (count % 3 ? 8 : 29);
        }
        agent_qsort(got, count, sizeof got[0], by_value);
        qsort(expected, count, sizeof expected[0], by_value);
        CHECK(memcmp(got, expected, count * sizeof got[0]) == 0);
    }
}

static const check_test tests[] = {
    CHECK_TEST(copying_and_setting_change_only_the_given_bytes),
    CHECK_TEST(compares_and_finds_like_the_c_library),
    CHECK_TEST(sorts_any_number_of_items),
};
CHECK_MAIN(tests)
