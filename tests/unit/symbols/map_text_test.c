/* SPDX-License-Identifier: MIT */
/* The words and lines of linker maps. */
#include "symbols/map_text.h"

#include "check.h"

static hfn_text text_of(const char *text)
{
    return (hfn_text){ text, text + strlen(text) };
}

/* A text, the number of bytes that a call consumes at its front, and the value that it returns. */
typedef struct row {
    const char *text;
    size_t taken; /* 0: refused */
    uint64_t value;
} row;

static void check_rows(const row *rows, size_t count, bool (*take)(hfn_text *, uint64_t *))
{
    for (size_t i = 0; i < count; i++) {
        hfn_text t = text_of(rows[i].text);
        uint64_t value = 77;
        bool took = take(&t, &value);
        if (!CHECK_EQ_U64(took, rows[i].taken > 0) ||
            !CHECK_EQ_U64(t.at - rows[i].text, rows[i].taken) ||
            !CHECK_EQ_U64(value, rows[i].taken ? rows[i].value : 77)) {
            printf("# the text was \"%s\"\n", rows[i].text);
        }
    }
}
#define CHECK_ROWS(rows, take) check_rows(rows, sizeof(rows) / sizeof((rows)[0]), take)

static void numbers_end_at_the_first_other_character(void)
{
    static const row hex[] = {
        { "", 0, 0 },
        { "0", 1, 0 },
        { "9:", 1, 9 },
        { "19afAF ", 6, 0x19afaf },
        { "bcdeBCDE", 8, 0xbcdebcde },
        { "2345678", 7, 0x2345678 },
        { "fgh", 1, 15 },
        { "1G", 1, 1 },
        { "1@", 1, 1 },
        { "1`", 1, 1 },
        { "1/", 1, 1 },
        { "g", 0, 0 },
        { "-1", 0, 0 },
        { "0x1", 1, 0 },
        { "1\xff", 1, 1 },
        { "fedcba9876543210", 16, 0xfedcba9876543210 },
        { "00000000000000001", 0, 0 },
    };
    static const row prefixed[] = {
        { "0x", 0, 0 },   { "0x1", 3, 1 }, { "0xfg", 3, 15 }, { "0X1", 0, 0 },   { "1x1", 0, 0 },
        { "0xg1", 0, 0 }, { "01", 0, 0 },  { "0y12", 0, 0 },  { "0x0xf", 3, 0 },
    };
    static const row decimal[] = {
        { "", 0, 0 },
        { "0", 1, 0 },
        { "19:", 2, 19 },
        { "9/", 1, 9 },
        { "a1", 0, 0 },
        { "12a", 2, 12 },
        { "9999999999999999999", 19, 9999999999999999999u },
        { "00000000000000000001", 0, 0 },
    };

    CHECK_ROWS(hex, hfn_text_take_hex);
    CHECK_ROWS(prefixed, hfn_text_take_0x);
    CHECK_ROWS(decimal, hfn_text_take_decimal);
}

/* The bytes behind the end belong to the array, but must not be read. */
static void no_digit_is_read_behind_the_end(void)
{
    static const char digits[] = "0x123";
    hfn_text t = { digits, digits + 4 };
    uint64_t value;

    CHECK(hfn_text_take_0x(&t, &value) && value == 0x12 && t.at == digits + 4);
    t = (hfn_text){ digits, digits + 2 };
    CHECK(!hfn_text_take_0x(&t, &value));
    t = (hfn_text){ digits + 2, digits + 4 };
    CHECK(hfn_text_take_decimal(&t, &value) && value == 12);
    t = (hfn_text){ digits + 2, digits + 3 };
    CHECK(hfn_text_take_hex(&t, &value) && value == 1);
    t = (hfn_text){ digits + 2, digits + 2 };
    CHECK(!hfn_text_take_decimal(&t, &value) && !hfn_text_take_hex(&t, &value));
}

static void blanks_separate_words(void)
{
    hfn_text t = text_of(" \t a.o\tb c"), word;

    CHECK_EQ_U64(hfn_text_take_blanks(&t), 3);
    CHECK_EQ_U64(hfn_text_take_blanks(&t), 0);
    CHECK(hfn_text_is(hfn_text_take_word(&t), "a.o"));
    CHECK(hfn_text_is(hfn_text_take_word(&t), ""));
    CHECK_EQ_U64(hfn_text_take_blanks(&t), 1);
    CHECK(hfn_text_is(hfn_text_take_word(&t), "b"));
    t.end--;
    CHECK_EQ_U64(hfn_text_take_blanks(&t), 1);
    word = hfn_text_take_word(&t);
    CHECK(hfn_text_length(word) == 0 && t.at == t.end);
    t = (hfn_text){ "  ", NULL };
    t.end = t.at + 1;
    CHECK_EQ_U64(hfn_text_take_blanks(&t), 1);
}

static void words_are_compared_whole(void)
{
    hfn_text t = text_of(".text.hot");

    CHECK(hfn_text_begins(t, ".text") && hfn_text_begins(t, "") && hfn_text_begins(t, ".text.hot"));
    CHECK(!hfn_text_begins(t, ".text.hot.") && !hfn_text_begins(t, ".texT"));
    CHECK(hfn_text_ends(t, ".hot") && hfn_text_ends(t, "") && hfn_text_ends(t, ".text.hot"));
    CHECK(!hfn_text_ends(t, "..text.hot") && !hfn_text_ends(t, ".ho"));
    CHECK(hfn_text_is(t, ".text.hot") && !hfn_text_is(t, ".text") && !hfn_text_is(t, ".text.cold"));
    CHECK(!hfn_text_is(t, ".text.hoT"));
    CHECK(!hfn_text_take(&t, "text") && *t.at == '.');
    CHECK(hfn_text_take(&t, ".text") && hfn_text_is(t, ".hot"));
}

static void the_first_occurrence_of_a_word_is_found(void)
{
    static const char line[] = "aab aabaac";
    hfn_text t = text_of(line);

    CHECK(hfn_text_find(t, "a") == line);
    CHECK(hfn_text_find(t, "ab") == line + 1);
    CHECK(hfn_text_find(t, "aac") == line + 7);
    CHECK(hfn_text_find(t, " ") == line + 3);
    CHECK(hfn_text_find(t, line) == line);
    CHECK(hfn_text_find(t, "c") == line + 9);
    CHECK(hfn_text_find(t, "ca") == NULL);
    CHECK(hfn_text_find(t, "aab aabaacd") == NULL);
    t.end--;
    CHECK(hfn_text_find(t, "c") == NULL && hfn_text_find(t, "aac") == NULL);
}

static hotfn_status begin(hfn_map_lines *lines, const char *text, size_t size)
{
    return hfn_map_lines_begin(lines, (hfn_span){ (const uint8_t *)text, size, false }, "m", NULL,
                               NULL);
}

static void empty_binary_and_utf16_files_are_refused(void)
{
    static const struct {
        const char *text;
        size_t size;
        hotfn_status status;
    } rows[] = {
        { "", 0, HOTFN_E_FORMAT },         { "\xff\xfe", 2, HOTFN_E_FORMAT },
        { "\xfe\xff", 2, HOTFN_E_FORMAT }, { "\0a", 2, HOTFN_E_FORMAT },
        { "a\0", 2, HOTFN_E_FORMAT },      { "a\0", 1, HOTFN_OK },
        { "\xff\xfe", 1, HOTFN_OK },       { "\xff\xff", 2, HOTFN_OK },
        { "ab\0", 3, HOTFN_OK },           { "\xef\xbb\xbf", 3, HOTFN_OK },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hfn_map_lines lines;
        if (!CHECK_EQ_I64(begin(&lines, rows[i].text, rows[i].size), rows[i].status)) {
            printf("# row %zu\n", i);
        }
    }
}

/* Expects these lines, each in brackets, and this final status. */
static void expect_lines(const char *text, bool allow_truncated, const char *expected,
                         hotfn_status status)
{
    char got[256] = "";
    hfn_map_lines lines;
    hfn_text line;
    uint32_t count = 0;

    CHECK_EQ_I64(begin(&lines, text, strlen(text)), HOTFN_OK);
    lines.allow_truncated = allow_truncated;
    while (hfn_map_next_line(&lines, &line)) {
        size_t used = strlen(got);
        snprintf(got + used, sizeof got - used, "[%.*s]", (int)hfn_text_length(line), line.at);
        CHECK_EQ_U64(lines.number, ++count);
        CHECK(lines.line == line.at);
    }
    CHECK_STR(got, expected);
    CHECK_EQ_I64(lines.status, status);
    CHECK(!hfn_map_next_line(&lines, &line));
}

static void lines_are_returned_without_line_ends_and_trailing_blanks(void)
{
    expect_lines("a\n\nb \t\r\n", false, "[a][][b]", HOTFN_OK);
    expect_lines(" a b\n", false, "[ a b]", HOTFN_OK);
    expect_lines("\xef\xbb\xbf"
                 "a\n",
                 false, "[a]", HOTFN_OK);
    expect_lines("\n \t\r", false, "[][]",
                 HOTFN_OK); /* a last line of blanks only is not truncated */
    expect_lines("a\nb", false, "[a]", HOTFN_E_FORMAT);
    expect_lines("a\n b", false, "[a]", HOTFN_E_FORMAT);
    expect_lines("a\nb\r", true, "[a][b]", HOTFN_OK);
}

static void a_line_must_be_shorter_than_a_mebibyte(void)
{
    enum { MEBIBYTE = 1 << 20 };
    char *text = malloc(MEBIBYTE + 2);
    hfn_map_lines lines;
    hfn_text line;

    memset(text, 'a', MEBIBYTE + 2);
    text[MEBIBYTE - 1] = text[MEBIBYTE] = '\n';
    CHECK_EQ_I64(begin(&lines, text, MEBIBYTE + 1), HOTFN_OK);
    CHECK(hfn_map_next_line(&lines, &line) && hfn_text_length(line) == MEBIBYTE - 1);
    CHECK(hfn_map_next_line(&lines, &line) && hfn_text_length(line) == 0);
    text[MEBIBYTE - 1] = 'a';
    CHECK_EQ_I64(begin(&lines, text, MEBIBYTE + 1), HOTFN_OK);
    CHECK(!hfn_map_next_line(&lines, &line) && lines.status == HOTFN_E_FORMAT);
    CHECK_EQ_I64(begin(&lines, text, MEBIBYTE), HOTFN_OK);
    lines.allow_truncated = true;
    CHECK(!hfn_map_next_line(&lines, &line) && lines.status == HOTFN_E_FORMAT);
    CHECK_EQ_I64(begin(&lines, text, MEBIBYTE - 1), HOTFN_OK);
    lines.allow_truncated = true;
    CHECK(hfn_map_next_line(&lines, &line) && hfn_text_length(line) == MEBIBYTE - 1);
    free(text);
}

static const check_test tests[] = {
    CHECK_TEST(numbers_end_at_the_first_other_character),
    CHECK_TEST(no_digit_is_read_behind_the_end),
    CHECK_TEST(blanks_separate_words),
    CHECK_TEST(words_are_compared_whole),
    CHECK_TEST(the_first_occurrence_of_a_word_is_found),
    CHECK_TEST(empty_binary_and_utf16_files_are_refused),
    CHECK_TEST(lines_are_returned_without_line_ends_and_trailing_blanks),
    CHECK_TEST(a_line_must_be_shorter_than_a_mebibyte),
};
CHECK_MAIN(tests)
