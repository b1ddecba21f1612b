/* SPDX-License-Identifier: MIT */
/* What is written is read again, and nothing else is accepted. */
#include "datagrams.h"

static hfn_events_writer w;

static void write_all_kinds(void)
{
    hfn_events_begin(&w, HOTFN_EVENTS_MAX_BYTES);
    put_run(&w, 4711, "./game --level 1");
    put_module(&w, 3, "/opt/game");
    put_function(&w, 0xffffff, "_ZN4game4stepEv");
    put_thread(&w, 4712, 2);
    put_call(&w, HOTFN_EVENTS_ENTRY, 0xffffff, 1000);
    put_call(&w, HOTFN_EVENTS_EXIT, 0xffffff, UINT64_MAX);
    seal(&w, 0x1122334455667788, 9, 12, HOTFN_EVENTS_END | HOTFN_EVENTS_REPLACED);
}

static hotfn_status open_written(hotfn_events_header *out)
{
    return hotfn_events_open(out, w.bytes, w.used);
}

static hotfn_events_item next_item(uint64_t *offset)
{
    hotfn_events_item item = HOTFN_EVENTS_ITEM_INIT;

    CHECK_EQ_I64(hotfn_events_next(&item, offset, w.bytes, w.used), HOTFN_OK);
    return item;
}

static bool has_text(const hotfn_events_item *item, const char *text)
{
    return item->text_bytes == strlen(text) && memcmp(item->text, text, item->text_bytes) == 0;
}

static void every_kind_is_read_as_it_was_written(void)
{
    hotfn_events_header h = HOTFN_EVENTS_HEADER_INIT;
    uint64_t offset = 0;

    write_all_kinds();
    CHECK_EQ_I64(open_written(&h), HOTFN_OK);
    CHECK_EQ_U64(h.stream, 0x1122334455667788);
    CHECK_EQ_U64(h.sequence, 9);
    CHECK_EQ_U64(h.skipped_count, 12);
    CHECK_EQ_U64(h.flags, HOTFN_EVENTS_END | HOTFN_EVENTS_REPLACED);
    hotfn_events_item item = next_item(&offset);
    CHECK(item.kind == HOTFN_EVENTS_RUN && item.pid == 4711 && has_text(&item, "./game --level 1"));
    CHECK_EQ_U64(item.time_ns, UINT64_C(1700000000000000000));
    item = next_item(&offset);
    CHECK(item.kind == HOTFN_EVENTS_MODULE && item.module == 3 && item.flags == 1 &&
          item.id_kind == 1 && item.id_bytes == 4 && has_text(&item, "/opt/game"));
    CHECK_MEM(item.id, "\xde\xad\xbe\xef", 4);
    item = next_item(&offset);
    CHECK(item.kind == HOTFN_EVENTS_FUNCTION && item.function == 0xffffff && item.module == 3 &&
          item.byte_count == 16 && has_text(&item, "_ZN4game4stepEv"));
    CHECK_EQ_U64(item.rva, 0x1000 + 0xffffff * UINT64_C(16));
    item = next_item(&offset);
    CHECK(item.kind == HOTFN_EVENTS_THREAD && item.thread == 4712 && item.depth == 2);
    item = next_item(&offset);
    CHECK(item.kind == HOTFN_EVENTS_ENTRY && item.function == 0xffffff && item.time_ns == 1000);
    item = next_item(&offset);
    CHECK(item.kind == HOTFN_EVENTS_EXIT && item.time_ns == UINT64_MAX);
    CHECK_EQ_I64(hotfn_events_next(&item, &offset, w.bytes, w.used), HOTFN_E_NOT_FOUND);
}

/* docs/design/events.md has this example. */
static void bytes_are_those_of_the_documentation(void)
{
    static const uint8_t expected[] = {
        'H', 'F', 'N', 'E', 1,    0,    1, 0, /* version 1, the last datagram */
        8,   7,   6,   5,   4,    3,    2, 1, 2, 0, 0, 0,
        0,   0,   0,   0,                                 /* stream, sequence 2          */
        5,   0,   0,   0,   0,    0,    0, 0,             /* 5 events skipped             */
        3,   0,   0,   0,   0x39, 0x30, 0, 0, 1, 0, 0, 0, /* thread 12345, depth 1        */
        1,   7,   0,   0,   0xe8, 3,    0, 0, 0, 0, 0, 0, /* entry of function 7 at 1 us  */
    };

    hfn_events_begin(&w, HOTFN_EVENTS_MAX_BYTES);
    put_thread(&w, 12345, 1);
    put_call(&w, HOTFN_EVENTS_ENTRY, 7, 1000);
    seal(&w, 0x0102030405060708, 2, 5, HOTFN_EVENTS_END);
    CHECK_EQ_U64(w.used, sizeof expected);
    CHECK_MEM(w.bytes, expected, sizeof expected);
}

static void an_item_that_does_not_fit_changes_nothing(void)
{
    hotfn_events_header h = HOTFN_EVENTS_HEADER_INIT;
    hotfn_events_item call = { .size = sizeof call, .kind = HOTFN_EVENTS_ENTRY };

    hfn_events_begin(&w, HOTFN_EVENTS_HEADER_BYTES + HFN_EVENTS_CALL_ROOM);
    put_thread(&w, 1, 0);
    CHECK(hfn_events_put(&w, &call));
    CHECK(!hfn_events_put(&w, &call));
    CHECK_EQ_U64(w.event_count, 1);
    CHECK_EQ_U64(w.used, w.limit);
    seal(&w, 1, 0, 0, 0);
    CHECK_EQ_I64(open_written(&h), HOTFN_OK);
}

static void a_long_text_is_cut(void)
{
    static char text[5000];
    hotfn_events_header h = HOTFN_EVENTS_HEADER_INIT;
    uint64_t offset = 0;

    memset(text, 'x', sizeof text - 1);
    hfn_events_begin(&w, 1400);
    put_function(&w, 1, text);
    seal(&w, 1, 0, 0, 0);
    CHECK_EQ_I64(open_written(&h), HOTFN_OK);
    CHECK_EQ_U64(next_item(&offset).text_bytes, HOTFN_EVENTS_MAX_TEXT_BYTES);
}

static void every_shorter_datagram_is_refused_or_ends_between_items(void)
{
    hotfn_events_header h = HOTFN_EVENTS_HEADER_INIT;
    uint32_t accepted = 0, whole;

    write_all_kinds();
    whole = w.used;
    for (w.used = 0; w.used < whole; w.used++) {
        accepted += open_written(&h) == HOTFN_OK;
    }
    CHECK_EQ_U64(accepted, 6); /* after the header and after each item but the last one */
}

static void check_refused(uint32_t at, uint8_t value, hotfn_status status)
{
    hotfn_events_header h = HOTFN_EVENTS_HEADER_INIT;

    printf("# byte %u = %u\n", at, value);
    write_all_kinds();
    w.bytes[at] = value;
    h.stream = 77;
    CHECK_EQ_I64(open_written(&h), status);
    CHECK_EQ_U64(h.stream, 77);
}

static void wrong_bytes_are_refused(void)
{
    const uint32_t run = HOTFN_EVENTS_HEADER_BYTES, module = run + 20 + 16,
                   function = module + 16 + 4 + 9, thread = function + 24 + 15, call = thread + 12;

    check_refused(0, 'h', HOTFN_E_FORMAT);
    check_refused(HFN_EVENTS_AT_VERSION, 2, HOTFN_E_MISMATCH);
    check_refused(HFN_EVENTS_AT_FLAGS, 4, HOTFN_E_FORMAT);
    check_refused(HFN_EVENTS_AT_FLAGS, HOTFN_EVENTS_REPLACED, HOTFN_E_FORMAT); /* without END */
    check_refused(run, 7, HOTFN_E_FORMAT); /* not a kind                   */
    check_refused(run, 0, HOTFN_E_FORMAT);
    check_refused(run + 1, 1, HOTFN_E_FORMAT);                /* a run has no number          */
    check_refused(run + 19, 1, HOTFN_E_FORMAT);               /* reserved                     */
    check_refused(run + 20, 0, HOTFN_E_FORMAT);               /* a NUL in a text              */
    check_refused(module + 12, 33, HOTFN_E_FORMAT);           /* a long id               */
    check_refused(module + 15, 5, HOTFN_E_FORMAT);            /* a text of 1,289 bytes   */
    check_refused(function + 7, 1, HOTFN_E_FORMAT);           /* module 2^24 + 3         */
    check_refused(function + 22, 1, HOTFN_E_FORMAT);          /* reserved                */
    check_refused(thread + 1, 1, HOTFN_E_FORMAT);             /* a thread has no number  */
    check_refused(thread, HOTFN_EVENTS_EXIT, HOTFN_E_FORMAT); /* no thread before the call */
    check_refused(call, HOTFN_EVENTS_FUNCTION, HOTFN_E_FORMAT);
}

static void sizes_beyond_the_limits_are_refused(void)
{
    static uint8_t bytes[HOTFN_EVENTS_MAX_BYTES + 1];
    hotfn_events_header h = HOTFN_EVENTS_HEADER_INIT;

    hfn_events_begin(&w, HOTFN_EVENTS_MAX_BYTES);
    put_thread(&w, 1, 0);
    while (w.limit - w.used >= 12) {
        put_call(&w, HOTFN_EVENTS_ENTRY, 1, 1);
    }
    seal(&w, 1, 0, 0, 0);
    CHECK_EQ_I64(open_written(&h), HOTFN_OK);
    memcpy(bytes, w.bytes, w.used);
    CHECK_EQ_I64(hotfn_events_open(&h, bytes, sizeof bytes), HOTFN_E_FORMAT);
    CHECK_EQ_I64(hotfn_events_open(&h, NULL, 40), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_events_open(NULL, bytes, 40), HOTFN_E_OPTION);
}

static const check_test tests[] = {
    CHECK_TEST(every_kind_is_read_as_it_was_written),
    CHECK_TEST(bytes_are_those_of_the_documentation),
    CHECK_TEST(an_item_that_does_not_fit_changes_nothing),
    CHECK_TEST(a_long_text_is_cut),
    CHECK_TEST(every_shorter_datagram_is_refused_or_ends_between_items),
    CHECK_TEST(wrong_bytes_are_refused),
    CHECK_TEST(sizes_beyond_the_limits_are_refused),
};
CHECK_MAIN(tests)
