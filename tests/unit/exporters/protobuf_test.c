/* SPDX-License-Identifier: MIT */
/* The bytes of protocol buffers, compared with the examples of protobuf.dev, "Encoding". */
#include "exporters/protobuf.h"

#include "base/counting_env.h"
#include "check.h"

static void expect(hfn_message *m, const char *bytes, size_t size)
{
    CHECK(!m->failed);
    if (CHECK_EQ_U64(m->count, size)) {
        CHECK_MEM(m->bytes, bytes, size);
    }
    hfn_message_clear(m);
}
#define EXPECT(m, text) expect(m, text, sizeof(text) - 1)

static void fields_are_a_key_and_a_number_or_bytes(void)
{
    counting c;
    hotfn_env env = counting_env(&c);
    hfn_message m, inner;

    hfn_message_init(&m, &env);
    hfn_message_init(&inner, &env);
    hfn_message_number(&m, 1, 150);
    EXPECT(&m, "\x08\x96\x01");
    hfn_message_number(&m, 1, 0);
    EXPECT(&m, "\x08\x00");
    hfn_message_number(&m, 1, 127);
    EXPECT(&m, "\x08\x7f");
    hfn_message_number(&m, 15, 128);
    EXPECT(&m, "\x78\x80\x01");
    hfn_message_number(&m, 16, UINT64_MAX);
    EXPECT(&m, "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    hfn_message_text(&m, 2, "testing");
    EXPECT(&m, "\x12\x07testing");
    hfn_message_bytes(&m, 2, NULL, 0);
    EXPECT(&m, "\x12\x00");
    hfn_message_number(&inner, 1, 150);
    hfn_message_inner(&m, 3, &inner);
    EXPECT(&m, "\x1a\x03\x08\x96\x01");
    hfn_message_finish(&inner);
    hfn_message_finish(&m);
    CHECK_EQ_U64(c.live_bytes, 0);
    CHECK_EQ_I64(c.size_mismatches, 0);
}

static void invalid_utf8_is_replaced(void)
{
    counting c;
    hotfn_env env = counting_env(&c);
    hfn_message m;

    hfn_message_init(&m, &env);
    hfn_message_text(&m, 2,
                     "a\xff"
                     "b\xc3\xa9\xc3");
    EXPECT(&m, "\x12\x0a"
               "a\xef\xbf\xbd"
               "b\xc3\xa9\xef\xbf\xbd");
    hfn_message_finish(&m);
    CHECK_EQ_U64(c.live_bytes, 0);
}

static int32_t keep(void *user, const void *bytes, size_t byte_count)
{
    memcpy(user, bytes, byte_count);
    return 0;
}

static void a_sent_message_is_a_field_and_is_empty_afterwards(void)
{
    static hfn_sink sink;
    static char out[64];
    counting c;
    hotfn_env env = counting_env(&c);
    hfn_message m;

    sink = (hfn_sink){ .write = keep, .user = out };
    hfn_message_init(&m, &env);
    hfn_message_number(&m, 1, 150);
    CHECK(hfn_message_send(&m, 3, &sink));
    CHECK_EQ_U64(m.count, 0);
    hfn_sink_flush(&sink);
    CHECK_MEM(out, "\x1a\x03\x08\x96\x01", 6);
    hfn_message_finish(&m);
}

static void an_incomplete_message_is_not_sent(void)
{
    static hfn_sink sink;
    counting c;
    hotfn_env env = counting_env(&c);
    hfn_message m, inner;

    c.fail_at = 1;
    c.fail_once = true;
    hfn_message_init(&m, &env);
    hfn_message_init(&inner, &env);
    hfn_message_number(&inner, 1, 150);
    CHECK(inner.failed);
    hfn_message_inner(&m, 3, &inner); /* memory is available again, but the message is incomplete */
    CHECK(m.failed && !hfn_message_send(&m, 3, &sink) && sink.used == 0);
    hfn_message_finish(&inner);
    hfn_message_finish(&m);
    CHECK_EQ_U64(c.live_bytes, 0);
}

static const check_test tests[] = {
    CHECK_TEST(fields_are_a_key_and_a_number_or_bytes),
    CHECK_TEST(invalid_utf8_is_replaced),
    CHECK_TEST(a_sent_message_is_a_field_and_is_empty_afterwards),
    CHECK_TEST(an_incomplete_message_is_not_sent),
};
CHECK_MAIN(tests)
