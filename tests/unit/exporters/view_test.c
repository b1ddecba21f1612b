/* SPDX-License-Identifier: MIT */
/* UTF-8, sequence by sequence (Unicode 15, table 3-7), the sink at its buffer's edge, and JSON texts. */
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

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ_U64(hfn_utf8_length((const unsigned char *)cases[i].bytes), cases[i].length);
    }
}

/* All that was written, and how often. */
typedef struct written {
    char text[1 << 20];
    size_t size;
    uint32_t calls, fail_at; /* 0: never */
} written;

static int32_t keep_bytes(void *user, const void *bytes, size_t byte_count)
{
    written *w = user;

    memcpy(w->text + w->size, bytes, byte_count);
    w->size += byte_count;
    return ++w->calls == w->fail_at ? 1 : 0;
}

static written *start(hfn_sink *sink)
{
    written *w = calloc(1, sizeof *w);

    *sink = (hfn_sink){ .write = keep_bytes, .user = w };
    return w;
}

static void sink_hands_on_every_byte_in_order(void)
{
    static hfn_sink sink;
    written *w = start(&sink);
    size_t given = 0, wrong = 0;
    char block[5000] = "";

    for (size_t n = 0; n < 200; n++) {
        for (size_t i = 0; i < n * 25; i++) {
            block[i] = (char)((given + i) * 7 >> 3);
        }
        hfn_sink_bytes(&sink, block, n * 25);
        given += n * 25;
    }
    CHECK(w->calls > 0 && w->size + sink.used == given);
    hfn_sink_format(&sink, "%s", "");
    hfn_sink_flush(&sink);
    CHECK_EQ_U64(w->size, given);
    for (size_t i = 0; i < given; i++) {
        wrong += w->text[i] != (char)(i * 7 >> 3);
    }
    CHECK_EQ_U64(wrong, 0);
    free(w);
}

static void sink_writes_no_more_once_it_failed(void)
{
    static hfn_sink sink;
    written *w = start(&sink);
    uint32_t calls;

    hfn_sink_flush(&sink);
    CHECK_EQ_U64(w->calls, 0); /* nothing to write */
    w->fail_at = 1;
    hfn_sink_text(&sink, "a");
    hfn_sink_flush(&sink);
    calls = w->calls;
    hfn_sink_text(&sink, "b");
    hfn_sink_flush(&sink);
    CHECK(sink.failed && calls == 1 && w->calls == 1);
    free(w);
}

static void a_long_number_is_cut_at_the_bound(void)
{
    static hfn_sink sink;
    written *w = start(&sink);

    hfn_sink_format(&sink, "%0511d", 1);
    hfn_sink_format(&sink, "%0600d", 2);
    hfn_sink_flush(&sink);
    CHECK_EQ_U64(w->size, 511 + 511);
    CHECK(w->text[510] == '1' && w->text[511 + 510] == '0');
    free(w);
}

static void json_holds_any_bytes(void)
{
    static const struct {
        const char *text, *json, *in_page;
    } rows[] = {
        { "", "", NULL },
        { "a b~/", "a b~/", NULL },
        { "\"\\!#[]", "\\\"\\\\!#[]", NULL },
        { "\x01\x1f\x20\x7f", "\\u0001\\u001f \\u007f", NULL },
        { "a<b>", "a<b>", "a\\u003cb>" },
        { "\xc3\xa9\xf0\x9f\x92\xa9z", "\xc3\xa9\xf0\x9f\x92\xa9z", NULL },
        { "\xff\xc3", "\\ufffd\\ufffd", NULL },
        { "\xe2\x82z", "\\ufffd\\ufffdz", NULL },
    };

    for (size_t i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
        static hfn_sink sink;
        written *w = start(&sink);
        const char *json = i % 2 && rows[i / 2].in_page ? rows[i / 2].in_page : rows[i / 2].json;
        char wanted[64];
        snprintf(wanted, sizeof wanted, "\"%s\"", json);
        (i % 2 ? hfn_sink_json_page : hfn_sink_json)(&sink, rows[i / 2].text);
        hfn_sink_flush(&sink);
        CHECK_STR(w->text, wanted);
        free(w);
    }
}

static void a_key_stands_before_its_text(void)
{
    static hfn_sink sink;
    written *w = start(&sink);

    hfn_sink_json_key(&sink, "name", "a\"b");
    hfn_sink_flush(&sink);
    CHECK_STR(w->text, ",\"name\":\"a\\\"b\"");
    free(w);
}

static void each_state_has_its_word(void)
{
    CHECK_STR(hfn_clock_name(HOTFN_CLOCK_TSC), "tsc");
    CHECK_STR(hfn_clock_name(HOTFN_CLOCK_ARM), "cntvct");
    CHECK_STR(hfn_clock_name(HOTFN_CLOCK_MERGED), "merged");
    CHECK_STR(hfn_clock_name(HOTFN_CLOCK_MONOTONIC), "monotonic");
    CHECK_STR(hfn_timing_name(HOTFN_TIMING_FULL), "full");
    CHECK_STR(hfn_timing_name(HOTFN_TIMING_SAMPLE), "sampled");
    CHECK_STR(hfn_timing_name(HOTFN_TIMING_COUNT_ONLY), "count-only");
    CHECK_STR(hfn_state_name(HOTFN_STATE_HOOKED), "hooked");
    CHECK_STR(hfn_state_name(HOTFN_STATE_FRAGMENT), "fragment");
    CHECK_STR(hfn_state_name(HOTFN_STATE_EXCLUDED), "excluded");
    CHECK_STR(hfn_state_name(HOTFN_STATE_WAITING), "refused");
    CHECK_STR(hotfn_record_get_state_name(HOTFN_RECORD_LIVE), "live");
    CHECK_STR(hotfn_record_get_state_name(HOTFN_RECORD_FINISHED), "finished");
    CHECK_STR(hotfn_record_get_state_name(HOTFN_RECORD_KILLED), "killed");
    CHECK_STR(hotfn_record_get_state_name(HOTFN_RECORD_BROKEN), "broken");
}

static const check_test tests[] = {
    CHECK_TEST(utf8_is_told_from_other_bytes),
    CHECK_TEST(sink_hands_on_every_byte_in_order),
    CHECK_TEST(sink_writes_no_more_once_it_failed),
    CHECK_TEST(a_long_number_is_cut_at_the_bound),
    CHECK_TEST(json_holds_any_bytes),
    CHECK_TEST(a_key_stands_before_its_text),
    CHECK_TEST(each_state_has_its_word),
};
CHECK_MAIN(tests)
