/* SPDX-License-Identifier: MIT */
/* The sink around the size of its buffer, and the names of states. */
#include "exporters/exporter.h"

#include "check.h"

/* The bytes written so far and the number of calls. */
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

static written *open_sink(hfn_sink *sink)
{
    written *w = calloc(1, sizeof *w);

    *sink = (hfn_sink){ .write = keep_bytes, .user = w };
    return w;
}

static void sink_writes_every_byte_in_order(void)
{
    static hfn_sink sink;
    written *w = open_sink(&sink);
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

static void sink_writes_nothing_after_a_failure(void)
{
    static hfn_sink sink;
    written *w = open_sink(&sink);
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

static void formatted_text_is_cut_at_511_bytes(void)
{
    static hfn_sink sink;
    written *w = open_sink(&sink);

    hfn_sink_format(&sink, "%0511d", 1);
    hfn_sink_format(&sink, "%0600d", 2);
    hfn_sink_flush(&sink);
    CHECK_EQ_U64(w->size, 511 + 511);
    CHECK(w->text[510] == '1' && w->text[511 + 510] == '0');
    free(w);
}

static void each_state_has_a_name(void)
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
    CHECK_TEST(sink_writes_every_byte_in_order),
    CHECK_TEST(sink_writes_nothing_after_a_failure),
    CHECK_TEST(formatted_text_is_cut_at_511_bytes),
    CHECK_TEST(each_state_has_a_name),
};
CHECK_MAIN(tests)
