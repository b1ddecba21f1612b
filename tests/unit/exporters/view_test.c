/* SPDX-License-Identifier: MIT */
/* UTF-8, sequence by sequence (Unicode 15, table 3-7), and the sink at its buffer's edge. */
#include "exporters/exporter.h"

#include "check.h"

static void utf8_is_told_from_other_bytes(void)
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

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_EQ_U64(hfn_utf8_length((const unsigned char *)cases[i].bytes), cases[i].length);
}

static int32_t count_bytes(void *user, const void *bytes, size_t byte_count)
{
    size_t *total = user;

    (void)bytes;
    *total += byte_count;
    return 0;
}

static void sink_takes_any_size(void)
{
    static hfn_sink sink;
    size_t total = 0, given = 0;
    char block[5000];

    memset(block, 'x', sizeof block);
    sink.write = count_bytes;
    sink.user = &total;
    for (size_t n = 0; n < 200; n++) {
        hfn_sink_bytes(&sink, block, n * 25);
        given += n * 25;
    }
    hfn_sink_format(&sink, "%s", "");
    hfn_sink_flush(&sink);
    CHECK_EQ_U64(total, given);
}

static const check_test tests[] = {
    CHECK_TEST(utf8_is_told_from_other_bytes),
    CHECK_TEST(sink_takes_any_size),
};
CHECK_MAIN(tests)
