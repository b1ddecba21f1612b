/* SPDX-License-Identifier: MIT */
/* JSON values and streams: the output is compared byte by byte with the expected text. */
#include "check.h"

#include <hotfn/lowlevel/json.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct output {
    char text[1 << 16];
    size_t size;
    bool refuses;
} output;

static output out;

static int32_t keep_bytes(void *user, const void *bytes, size_t byte_count)
{
    output *o = user;

    if (o->refuses || byte_count >= sizeof o->text - o->size) {
        return 1;
    }
    memcpy(o->text + o->size, bytes, byte_count);
    o->size += byte_count;
    o->text[o->size] = 0;
    return 0;
}

static hotfn_json_writer *open_writer(uint32_t flags)
{
    hotfn_json_writer *writer = NULL;

    memset(&out, 0, sizeof out);
    CHECK_EQ_I64(hotfn_json_writer_create(&writer, flags, keep_bytes, &out), HOTFN_OK);
    return writer;
}

/* Write one value; the result is in out.text. */
static void write_value(uint32_t flags, hotfn_json *value)
{
    hotfn_json_writer *writer = open_writer(flags);

    hotfn_json_write(writer, NULL, value);
    CHECK_EQ_I64(hotfn_json_writer_destroy(writer), HOTFN_OK);
}

static void texts_of_any_bytes_are_valid_json(void)
{
    static const struct {
        const char *text, *json, *in_page;
    } rows[] = {
        { "", "\"\"", NULL },
        { "a b~/", "\"a b~/\"", NULL },
        { "\"\\!#[]", "\"\\\"\\\\!#[]\"", NULL },
        { "\x01\x1f\x20\n\t", "\"\\u0001\\u001f \\n\\t\"", NULL },
        { "a<b>", "\"a<b>\"", "\"a\\u003cb>\"" },
        { "<<", "\"<<\"", "\"\\u003c\\u003c\"" },
        { "\xc3\xa9\xf0\x9f\x92\xa9z", "\"\xc3\xa9\xf0\x9f\x92\xa9z\"", NULL },
        { "\xff\xc3", "\"\xef\xbf\xbd\xef\xbf\xbd\"", NULL },
        { "\xe2\x82z", "\"\xef\xbf\xbd\xef\xbf\xbdz\"", NULL },
        { NULL, "null", NULL },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_value(0, hotfn_json_create_text(rows[i].text));
        CHECK_STR(out.text, rows[i].json);
        write_value(HOTFN_JSON_PAGE, hotfn_json_create_text(rows[i].text));
        CHECK_STR(out.text, rows[i].in_page ? rows[i].in_page : rows[i].json);
    }
}

static void numbers_keep_all_digits(void)
{
    write_value(0, hotfn_json_create_number(UINT64_MAX));
    CHECK_STR(out.text, "18446744073709551615");
    write_value(0, hotfn_json_create_signed(INT64_MIN));
    CHECK_STR(out.text, "-9223372036854775808");
    write_value(0, hotfn_json_create_decimal(1.0 / 3, 3));
    CHECK_STR(out.text, "0.333");
    write_value(0, hotfn_json_create_raw("12.500"));
    CHECK_STR(out.text, "12.500");
}

static void infinity_and_nan_are_null(void)
{
    double zero = 0;

    write_value(0, hotfn_json_create_decimal(1 / zero, 3));
    CHECK_STR(out.text, "null");
    write_value(0, hotfn_json_create_decimal(zero / zero, 3));
    CHECK_STR(out.text, "null");
}

static void members_and_items_keep_their_order(void)
{
    hotfn_json *object = hotfn_json_create_object(), *array = hotfn_json_create_array();

    hotfn_json_add(object, "b", hotfn_json_create_bool(2));
    hotfn_json_add(array, NULL, hotfn_json_create_number(7));
    hotfn_json_add(array, NULL, hotfn_json_create_bool(0));
    hotfn_json_add(object, "a", array);
    write_value(0, object);
    CHECK_STR(out.text, "{\"b\":true,\"a\":[7,false]}");
}

static void the_stream_separates_and_closes(void)
{
    hotfn_json_writer *writer = open_writer(0);

    hotfn_json_begin_object(writer, NULL);
    hotfn_json_write(writer, "schema", hotfn_json_create_text("x/1"));
    hotfn_json_begin_array(writer, "rows");
    hotfn_json_write(writer, NULL, hotfn_json_create_object());
    hotfn_json_write(writer, NULL, hotfn_json_create_object());
    hotfn_json_end(writer);
    hotfn_json_begin_array(writer, "none");
    hotfn_json_end(writer);
    hotfn_json_end(writer);
    CHECK_EQ_I64(hotfn_json_writer_destroy(writer), HOTFN_OK);
    CHECK_STR(out.text, "{\"schema\":\"x/1\",\n\"rows\":[\n{},\n{}],\n\"none\":[]}\n");
}

static void a_value_larger_than_the_buffer_is_written_whole(void)
{
    static char text[20001];

    memset(text, 'x', sizeof text - 1);
    write_value(0, hotfn_json_create_text(text));
    CHECK_EQ_U64(out.size, sizeof text + 1);
}

static void a_missing_value_fails_the_stream(void)
{
    hotfn_json_writer *writer = open_writer(0);
    hotfn_json *outer = hotfn_json_create_object(), *inner = hotfn_json_create_object();

    hotfn_json_add(inner, "lost", NULL); /* as if there had been no memory for it */
    hotfn_json_add(outer, "inner", inner);
    hotfn_json_write(writer, NULL, outer);
    CHECK_EQ_I64(hotfn_json_writer_destroy(writer), HOTFN_E_NO_MEMORY);
    CHECK_EQ_U64(out.size, 0);
}

static void a_refused_write_ends_the_stream(void)
{
    hotfn_json_writer *writer = open_writer(0);

    out.refuses = true;
    hotfn_json_begin_array(writer, NULL);
    out.refuses = false;
    hotfn_json_write(writer, NULL, hotfn_json_create_number(1));
    hotfn_json_end(writer);
    CHECK_EQ_I64(hotfn_json_writer_destroy(writer), HOTFN_E_IO);
    CHECK_EQ_U64(out.size, 0);
}

static void unbalanced_streams_are_refused(void)
{
    hotfn_json_writer *writer = open_writer(0);

    hotfn_json_begin_array(writer, NULL);
    CHECK_EQ_I64(hotfn_json_writer_destroy(writer), HOTFN_E_STATE);
    writer = open_writer(0);
    hotfn_json_end(writer);
    CHECK_EQ_I64(hotfn_json_writer_destroy(writer), HOTFN_E_STATE);
    writer = open_writer(0);
    for (uint32_t i = 0; i < 17; i++) {
        hotfn_json_begin_array(writer, NULL);
    }
    for (uint32_t i = 0; i < 17; i++) {
        hotfn_json_end(writer);
    }
    CHECK_EQ_I64(hotfn_json_writer_destroy(writer), HOTFN_E_STATE);
    CHECK_EQ_I64(hotfn_json_writer_create(&writer, 2, keep_bytes, &out), HOTFN_E_OPTION);
}

static const check_test tests[] = {
    CHECK_TEST(texts_of_any_bytes_are_valid_json),
    CHECK_TEST(numbers_keep_all_digits),
    CHECK_TEST(infinity_and_nan_are_null),
    CHECK_TEST(members_and_items_keep_their_order),
    CHECK_TEST(the_stream_separates_and_closes),
    CHECK_TEST(a_value_larger_than_the_buffer_is_written_whole),
    CHECK_TEST(a_missing_value_fails_the_stream),
    CHECK_TEST(a_refused_write_ends_the_stream),
    CHECK_TEST(unbalanced_streams_are_refused),
};
CHECK_MAIN(tests)
