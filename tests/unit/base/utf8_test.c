/* SPDX-License-Identifier: MIT */
/* Valid and invalid UTF-8 sequences (Unicode 15, table 3-7). */
#include "base/utf8.h"

#include "check.h"

static void only_valid_sequences_have_a_length(void)
{
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        { "a", 1 },
        { "", 1 },
        { "\x7f", 1 },
        { "\xc2\x80", 2 },
        { "\xdf\xbf", 2 },
        { "\xe0\xa0\x80", 3 },
        { "\xed\x9f\xbf", 3 },
        { "\xef\xbf\xbf", 3 },
        { "\xf0\x90\x80\x80", 4 },
        { "\xf4\x8f\xbf\xbf", 4 },
        { "\x80", 0 },
        { "\xc0\x80", 0 },
        { "\xc1\xbf", 0 },
        { "\xc2", 0 },
        { "\xc2\x41", 0 },
        { "\xe0\x9f\xbf", 0 },
        { "\xed\xa0\x80", 0 },
        { "\xe2\x82", 0 },
        { "\xf0\x8f\xbf\xbf", 0 },
        { "\xf4\x90\x80\x80", 0 },
        { "\xf5\x80\x80\x80", 0 },
        { "\xff", 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ_U64(hfn_utf8_length((const unsigned char *)cases[i].bytes), cases[i].length);
    }
}

static const check_test tests[] = {
    CHECK_TEST(only_valid_sequences_have_a_length),
};
CHECK_MAIN(tests)
