/* SPDX-License-Identifier: MIT */
/* Parts of the page are unpacked by the rules of html_pack.h and compared with their text. */
#include "exporters/html_pack.h"

#include "check.h"

#include <string.h>

typedef struct output {
    char *bytes;
    size_t count;
} output;

static int32_t collect(void *user, const void *bytes, size_t byte_count)
{
    output *o = user;
    o->bytes = realloc(o->bytes, o->count + byte_count + 1);
    memcpy(o->bytes + o->count, bytes, byte_count);
    o->count += byte_count;
    o->bytes[o->count] = 0;
    return 0;
}

static uint32_t read_digit(const char **at)
{
    uint32_t c = (uint8_t) * (*at)++;
    CHECK(c >= '!' && c <= '~' && c != '<');
    return c - '!' - (c > '<');
}

static char *unpack(const char *packed, size_t *size)
{
    char *at = NULL, *text;
    size_t count = 0;
    *size = strtoull(packed, &at, 10);
    text = malloc(*size + 1);
    const char *from = at + 1;
    CHECK(*at == '\n');
    while (*from && count < *size) {
        if (*from != 0x7f) {
            text[count++] = *from++;
            continue;
        }
        from++;
        if (*from == ' ') {
            text[count++] = 0x7f;
            from++;
            continue;
        }
        uint32_t code = read_digit(&from), length = 5 + code / 3, distance = 0, more = 92;
        for (bool is_long = code / 3 == 30; is_long && more == 92; length += more) {
            more = read_digit(&from);
        }
        for (uint32_t i = 0; i < 2 + code % 3; i++) {
            distance = distance * 93 + read_digit(&from);
        }
        if (!CHECK(distance > 0 && distance <= count && count + length <= *size)) {
            break;
        }
        /* the page decodes packed text as UTF-8 before it copies */
        CHECK((text[count - distance] & 0xc0) != 0x80 && (*from & 0xc0) != 0x80);
        for (uint32_t i = 0; i < length; i++, count++) {
            text[count] = text[count - distance];
        }
    }
    CHECK(*from == 0);
    CHECK_EQ_U64(count, *size);
    return text;
}

/* Returns the size of the packed text. */
static size_t check_round_trip(const char *text, size_t size)
{
    hotfn_env env = hfn_env_fill(NULL);
    hfn_page_part part = { .env = &env };
    output o = { 0 };
    hfn_sink *sink = calloc(1, sizeof *sink);
    size_t unpacked_size = 0;

    *sink = (hfn_sink){ .write = collect, .user = &o };
    CHECK_EQ_I64(hfn_page_part_append(&part, text, size / 2), 0);
    CHECK_EQ_I64(hfn_page_part_append(&part, text + size / 2, size - size / 2), 0);
    CHECK(hfn_page_part_write(&part, sink));
    hfn_sink_flush(sink);
    char *unpacked = unpack(o.bytes, &unpacked_size);
    if (CHECK_EQ_U64(unpacked_size, size)) {
        CHECK_MEM(unpacked, text, size);
    }
    CHECK(strchr(o.bytes, '<') == NULL);
    hfn_page_part_finish(&part);
    free(unpacked);
    free(o.bytes);
    free(sink);
    return o.count;
}

static void long_runs_are_short(void)
{
    enum { SIZE = 1000000 };
    char *text = malloc(SIZE);

    memset(text, 'x', SIZE);
    CHECK(check_round_trip(text, SIZE) < SIZE / 80);
    for (size_t i = 0; i < SIZE; i++) {
        text[i] = "null,"[i % 5];
    }
    CHECK(check_round_trip(text, SIZE) < SIZE / 80);
    free(text);
}

/* Words of several lengths and alphabets, some repeated near and some far. */
static void random_text_survives(void)
{
    static const char *const letters[] = {
        "a",
        "b",
        "\"",
        "\\",
        "\x7f",
        " ",
        "::",
        "\n",
        "~",
        "\xc3\xa9",
        "\xc3\xa8", /* characters that */
        "\xe2\x82\xac",
        "\xe2\x82\xad",
        "\xf0\x9f\x98\x80",
        "\xf0\x9f\x98\x81" /* begin alike */
    };
    enum { SIZE = 3000000 };
    char *text = malloc(SIZE + 64);

    for (uint64_t seed = 1; seed <= 3; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15u;
        size_t size = 0;
        while (size < SIZE) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint32_t random = (uint32_t)(state >> 33);
            if (random % 4 == 0 && size > 1000) { /* whole characters of earlier text */
                size_t from = random % (size - 64), length = 0;
                for (; (text[from] & 0xc0) == 0x80; from++) {
                }
                for (; length < 8 + random % 40 || (text[from + length] & 0xc0) == 0x80;) {
                    length++;
                }
                memmove(text + size, text + from, length);
                size += length;
            } else {
                const char *letter = letters[random % 15];
                memcpy(text + size, letter, strlen(letter));
                size += strlen(letter);
            }
        }
        printf("# seed %llu\n", (unsigned long long)seed);
        CHECK(check_round_trip(text, size) < size);
    }
    free(text);
}

static void small_parts_stay_plain(void)
{
    hotfn_env env = hfn_env_fill(NULL);
    hfn_page_part part = { .env = &env };
    output o = { 0 };
    hfn_sink *sink = calloc(1, sizeof *sink);

    *sink = (hfn_sink){ .write = collect, .user = &o };
    CHECK_EQ_I64(hfn_page_part_append(&part, "{\"a\":\"\x7f\"}", 9), 0);
    CHECK(hfn_page_part_write(&part, sink));
    hfn_sink_flush(sink);
    CHECK_STR(o.bytes, "{\"a\":\"\x7f\"}");
    hfn_page_part_finish(&part);
    free(o.bytes);
    free(sink);
}

static const check_test tests[] = {
    CHECK_TEST(long_runs_are_short),
    CHECK_TEST(random_text_survives),
    CHECK_TEST(small_parts_stay_plain),
};
CHECK_MAIN(tests)
