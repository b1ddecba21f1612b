/* SPDX-License-Identifier: MIT */
/* The checksum against RFC 3720, appendix B.4. */
#include "base/crc32c.h"

#include "check.h"

static void crc_matches_the_rfc(void)
{
    uint8_t bytes[32] = { 0 };

    CHECK_EQ_U64(hfn_compute_crc32c(0, "123456789", 9), 0xe3069283);
    CHECK_EQ_U64(hfn_compute_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    CHECK_EQ_U64(hfn_compute_crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++) {
        bytes[i] = (uint8_t)i;
    }
    CHECK_EQ_U64(hfn_compute_crc32c(0, bytes, 32), 0x46dd794e);
    CHECK_EQ_U64(hfn_compute_crc32c(0, bytes, 0), 0);
}

static void crc_goes_on_where_it_stopped(void)
{
    CHECK_EQ_U64(hfn_compute_crc32c(hfn_compute_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

/* Large inputs are processed eight bytes at a time.  The result equals that of a loop over bits and
 * that of small parts, at any alignment. */
static void crc_of_many_bytes_is_that_of_its_parts(void)
{
    static uint8_t bytes[40000];
    uint32_t random = 1, by_bits = ~0u;

    for (size_t i = 0; i < sizeof bytes; i++) {
        random = random * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(random >> 24);
        by_bits ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            by_bits = by_bits >> 1 ^ (by_bits & 1 ? 0x82f63b78u : 0);
        }
    }
    CHECK_EQ_U64(hfn_compute_crc32c(0, bytes, sizeof bytes), ~by_bits);
    for (size_t from = 0; from < 17; from++) {
        size_t to = sizeof bytes - from * 3;
        uint32_t parts = 0;
        for (size_t at = from; at < to; at += 100) {
            parts = hfn_compute_crc32c(parts, bytes + at, to - at < 100 ? to - at : 100);
        }
        CHECK_EQ_U64(hfn_compute_crc32c(0, bytes + from, to - from), parts);
    }
}

static const check_test tests[] = {
    CHECK_TEST(crc_matches_the_rfc),
    CHECK_TEST(crc_of_many_bytes_is_that_of_its_parts),
    CHECK_TEST(crc_goes_on_where_it_stopped),
};
CHECK_MAIN(tests)
