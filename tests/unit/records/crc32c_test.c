/* SPDX-License-Identifier: MIT */
/* The checksum against RFC 3720, appendix B.4. */
#include "records/crc32c.h"

#include "check.h"

static void crc_matches_the_rfc(void)
{
    uint8_t bytes[32] = { 0 };

    CHECK_EQ_U64(hfn_crc32c(0, "123456789", 9), 0xe3069283);
    CHECK_EQ_U64(hfn_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    CHECK_EQ_U64(hfn_crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    CHECK_EQ_U64(hfn_crc32c(0, bytes, 32), 0x46dd794e);
    CHECK_EQ_U64(hfn_crc32c(0, bytes, 0), 0);
}

static void crc_goes_on_where_it_stopped(void)
{
    CHECK_EQ_U64(hfn_crc32c(hfn_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static const check_test tests[] = {
    CHECK_TEST(crc_matches_the_rfc),
    CHECK_TEST(crc_goes_on_where_it_stopped),
};
CHECK_MAIN(tests)
