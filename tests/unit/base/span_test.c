/* SPDX-License-Identifier: MIT */
/* Checked reads: no byte beyond the end is read, whatever the offset. */
#include "base/span.h"

#include "check.h"

static const uint8_t bytes[] = { 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99 };
static const hfn_span little = { bytes, sizeof bytes, false };
static const hfn_span big = { bytes, sizeof bytes, true };

static void numbers_follow_the_byte_order(void)
{
    uint16_t u16 = 0;
    uint32_t u32 = 0;
    uint64_t u64 = 0;

    CHECK(hfn_span_u16(little, 1, &u16) && u16 == 0x3322);
    CHECK(hfn_span_u16(big, 1, &u16) && u16 == 0x2233);
    CHECK(hfn_span_u32(little, 1, &u32) && u32 == 0x55443322);
    CHECK(hfn_span_u32(big, 1, &u32) && u32 == 0x22334455);
    CHECK(hfn_span_u64(little, 1, &u64) && u64 == 0x9988776655443322u);
    CHECK(hfn_span_u64(big, 1, &u64) && u64 == 0x2233445566778899u);
}

static void a_word_is_one_to_eight_bytes(void)
{
    uint64_t word = 7;

    CHECK(hfn_span_word(little, 0, 4, &word) && word == 0x44332211);
    CHECK(hfn_span_word(little, 0, 8, &word) && word == 0x8877665544332211u);
    CHECK(hfn_span_word(little, 0, 1, &word) && word == 0x11);
    CHECK(hfn_span_word(little, 0, 2, &word) && word == 0x2211);
    CHECK(!hfn_span_word(little, 0, 3, &word));
}

static void reads_beyond_the_end_leave_the_result_unchanged(void)
{
    uint8_t u8 = 1;
    uint16_t u16 = 2;
    uint32_t u32 = 3;
    uint64_t u64 = 4;

    CHECK(!hfn_span_u8(little, 9, &u8) && u8 == 1);
    CHECK(!hfn_span_u16(little, 8, &u16) && u16 == 2);
    CHECK(!hfn_span_u32(little, 6, &u32) && u32 == 3);
    CHECK(!hfn_span_u64(little, 2, &u64) && u64 == 4);
    CHECK(!hfn_span_u64(little, UINT64_MAX, &u64) && u64 == 4);
    CHECK(!hfn_span_u64(little, UINT64_MAX - 3, &u64) && u64 == 4);
}

static void part_beyond_the_end_is_empty(void)
{
    CHECK_EQ_U64(hfn_span_sub(little, 2, 7).size, 7);
    CHECK(hfn_span_sub(little, 2, 7).data == bytes + 2);
    CHECK(hfn_span_sub(little, 2, 8).data == NULL);
    CHECK(hfn_span_sub(little, 2, UINT64_MAX).data == NULL);
    CHECK(hfn_span_sub(little, UINT64_MAX, 1).data == NULL);
    CHECK(hfn_span_sub(big, 0, 1).big_endian);
    CHECK_EQ_U64(hfn_span_from(little, 9).size, 0);
    CHECK(hfn_span_from(little, 10).data == NULL);
}

static void a_string_must_end_inside(void)
{
    const hfn_span s = { (const uint8_t *)"ab\0cd", 5, false };

    CHECK_STR(hfn_span_string(s, 0), "ab");
    CHECK_STR(hfn_span_string(s, 2), "");
    CHECK(hfn_span_string(s, 3) == NULL);
    CHECK(hfn_span_string(s, 5) == NULL);
    CHECK(hfn_span_string((hfn_span){ NULL, 0, false }, 0) == NULL);
}

static void string_table_is_truncated_behind_its_last_nul(void)
{
    const hfn_span s = { (const uint8_t *)"ab\0cd", 5, false };
    const hfn_span table = hfn_span_string_table(s);

    CHECK_EQ_U64(table.size, 3);
    CHECK_STR(hfn_span_name(table, 1), "b");
    CHECK(hfn_span_name(table, 3) == NULL);
    CHECK_EQ_U64(hfn_span_string_table(little).size, 0);
}

static void leb_numbers_are_read_as_dwarf_specifies(void)
{
    /* The examples of DWARF 5, 7.6: 2, 127, 128, 12857; 2, -2, 127, -127, 128, -128. */
    const uint8_t unsigned_bytes[] = { 2, 127, 0x80, 1, 0xb9, 0x64 };
    const uint8_t signed_bytes[] = { 2, 0x7e, 0xff, 0, 0x81, 0x7f, 0x80, 1, 0x80, 0x7f };
    const uint64_t unsigned_values[] = { 2, 127, 128, 12857 };
    const int64_t signed_values[] = { 2, -2, 127, -127, 128, -128 };
    uint64_t at = 0, u = 0;
    int64_t i = 0;

    for (size_t k = 0; k < 4; k++) {
        CHECK(hfn_span_uleb((hfn_span){ unsigned_bytes, sizeof unsigned_bytes, false }, &at, &u) &&
              u == unsigned_values[k]);
    }
    at = 0;
    for (size_t k = 0; k < 6; k++) {
        CHECK(hfn_span_sleb((hfn_span){ signed_bytes, sizeof signed_bytes, false }, &at, &i) &&
              i == signed_values[k]);
    }
    CHECK_EQ_U64(at, sizeof signed_bytes);
}

static void leb_numbers_have_at_most_64_bits(void)
{
    const uint8_t maximum[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 };
    const uint8_t more[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 2 };
    const uint8_t minimum[] = { 128, 128, 128, 128, 128, 128, 128, 128, 128, 0x7f };
    const uint8_t endless[] = { 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0 };
    uint64_t at = 0, u = 5;
    int64_t i = 5;

    CHECK(hfn_span_uleb((hfn_span){ maximum, 10, false }, &at, &u) && u == UINT64_MAX && at == 10);
    at = 0;
    CHECK(!hfn_span_uleb((hfn_span){ more, 10, false }, &at, &u) && at == 0);
    CHECK(!hfn_span_uleb((hfn_span){ endless, 12, false }, &at, &u) && at == 0);
    CHECK(!hfn_span_uleb((hfn_span){ maximum, 9, false }, &at, &u) && at == 0);
    CHECK(hfn_span_sleb((hfn_span){ minimum, 10, false }, &at, &i) && i == INT64_MIN);
}

static const check_test tests[] = {
    CHECK_TEST(numbers_follow_the_byte_order),
    CHECK_TEST(a_word_is_one_to_eight_bytes),
    CHECK_TEST(reads_beyond_the_end_leave_the_result_unchanged),
    CHECK_TEST(part_beyond_the_end_is_empty),
    CHECK_TEST(a_string_must_end_inside),
    CHECK_TEST(string_table_is_truncated_behind_its_last_nul),
    CHECK_TEST(leb_numbers_are_read_as_dwarf_specifies),
    CHECK_TEST(leb_numbers_have_at_most_64_bits),
};
CHECK_MAIN(tests)
