/* SPDX-License-Identifier: MIT */
/* Registered exporters: which are refused, and how hotfn_export handles their results. */
#include "exporters/hostile.h"

#include <hotfn/export.h>

typedef struct output {
    char text[4096];
    size_t size;
    int32_t write_result;
} output;

static int32_t keep_bytes(void *user, const void *bytes, size_t byte_count)
{
    output *o = user;

    if (o->write_result == 0 && byte_count < sizeof o->text - o->size) {
        memcpy(o->text + o->size, bytes, byte_count);
        o->size += byte_count;
    }
    return o->write_result;
}

/* An exporter that writes the number of functions and returns the status at user. */
static hotfn_status write_count(void *user, const hotfn_record *record,
                                const hotfn_export_options *options, hotfn_write_fn write,
                                void *write_user, hotfn_error *err)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    char text[64];
    hotfn_status status = *(hotfn_status *)user;

    CHECK(options && err && err->size == sizeof *err);
    hotfn_record_get_info(record, &info);
    snprintf(text, sizeof text, "%u functions, by %u\n", info.function_count, options->by);
    write(write_user, text, strlen(text)); /* the result is ignored on purpose */
    if (status == HOTFN_E_LIMIT) {
        snprintf(err->text, sizeof err->text, "too many functions");
    }
    return status;
}

static hotfn_status status_to_return = HOTFN_OK;

static hotfn_exporter make_exporter(const char *name)
{
    hotfn_exporter e = HOTFN_EXPORTER_INIT;

    e.name = name;
    e.extension = ".count";
    e.about = "the number of functions";
    e.write = write_count;
    e.user = &status_to_return;
    return e;
}

static void check_refused(const hotfn_exporter *exporter, hotfn_status status, const char *text)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    uint32_t count = hotfn_exporter_get_count();

    CHECK_EQ_I64(hotfn_exporter_register(exporter, &err), status);
    if (!CHECK(strstr(err.text, text) != NULL)) {
        printf("# %s\n", err.text);
    }
    CHECK_EQ_U64(hotfn_exporter_get_count(), count);
}

static void another_abi_version_is_refused_with_both_versions(void)
{
    hotfn_exporter e = make_exporter("other-abi");

    e.abi_version = HOTFN_EXPORTER_ABI + 1;
    e.size = 8; /* the struct of another version may be smaller */
    check_refused(&e, HOTFN_E_MISMATCH, "ABI version 2, this library has version 1");
}

static void incomplete_exporters_are_refused(void)
{
    hotfn_exporter e = make_exporter("x");

    e.size--;
    check_refused(&e, HOTFN_E_OPTION, "size");
    e = make_exporter("Not A Name");
    check_refused(&e, HOTFN_E_OPTION, "name");
    e = make_exporter("name-of-more-than-thirty-one-bytes");
    check_refused(&e, HOTFN_E_OPTION, "name");
    e = make_exporter(NULL);
    check_refused(&e, HOTFN_E_OPTION, "name");
    e = make_exporter("x");
    e.extension = "count";
    check_refused(&e, HOTFN_E_OPTION, "extension");
    e = make_exporter("x");
    e.about = "two\nlines";
    check_refused(&e, HOTFN_E_OPTION, "about");
    e = make_exporter("x");
    e.write = NULL;
    check_refused(&e, HOTFN_E_OPTION, "write");
    e = make_exporter("x");
    e.needs = 1u << 20;
    check_refused(&e, HOTFN_E_OPTION, "needs");
    check_refused(NULL, HOTFN_E_OPTION, "hotfn_exporter_register");
}

static void a_name_in_use_cannot_be_registered(void)
{
    static hotfn_exporter first, second, table;
    hotfn_exporter_info info = HOTFN_EXPORTER_INFO_INIT;
    uint32_t count = hotfn_exporter_get_count();

    first = make_exporter("count");
    second = make_exporter("count");
    table = make_exporter("table");
    CHECK_EQ_I64(hotfn_exporter_register(&first, NULL), HOTFN_OK);
    check_refused(&second, HOTFN_E_STATE, "already an exporter named 'count'");
    check_refused(&table, HOTFN_E_STATE, "already an exporter named 'table'");
    CHECK_EQ_U64(hotfn_exporter_get_count(), count + 1);
    CHECK_EQ_I64(hotfn_exporter_get(count, &info), HOTFN_OK);
    CHECK_STR(info.name, "count");
    CHECK_STR(info.extension, ".count");
}

static hotfn_status export_count(output *o, hotfn_error *err)
{
    const char *path = sample_path("hostile.hfr");
    hotfn_record *record = NULL;

    hostile_write(path);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    hotfn_status status = hotfn_export(record, "count", NULL, keep_bytes, o, NULL, err);
    hotfn_record_close(record);
    return status;
}

static void a_registered_exporter_writes(void)
{
    output o = { .write_result = 0 };

    CHECK_EQ_I64(export_count(&o, NULL), HOTFN_OK);
    CHECK_STR(o.text, "17 functions, by 0\n");
}

static void the_error_of_an_exporter_is_returned(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    output o = { .write_result = 0 };

    status_to_return = HOTFN_E_LIMIT;
    CHECK_EQ_I64(export_count(&o, &err), HOTFN_E_LIMIT);
    CHECK_STR(err.text, "exporter count failed: too many functions");
    status_to_return = 12345; /* not a status of the library */
    CHECK_EQ_I64(export_count(&o, &err), HOTFN_E_STATE);
    CHECK_STR(err.text, "exporter count failed: HOTFN_E_STATE");
    status_to_return = HOTFN_OK;
}

static void a_failed_write_is_reported_even_if_the_exporter_ignores_it(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    output o = { .write_result = 1 };

    CHECK_EQ_I64(export_count(&o, &err), HOTFN_E_IO);
    CHECK_EQ_U64(o.size, 0);
}

static void records_that_lack_the_needed_data_are_refused(void)
{
    static hotfn_exporter e;
    const char *path = sample_path("hostile.hfr");
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;
    output o = { .write_result = 0 };

    e = make_exporter("tree");
    e.needs = HOTFN_NEEDS_TREE;
    CHECK_EQ_I64(hotfn_exporter_register(&e, NULL), HOTFN_OK);
    hostile_write(path);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_export(record, "tree", NULL, keep_bytes, &o, NULL, &err),
                 HOTFN_E_UNSUPPORTED);
    CHECK(strstr(err.text, "a call tree") != NULL);
    hotfn_record_close(record);
}

static void the_sixty_fifth_exporter_is_refused(void)
{
    static hotfn_exporter many[65];
    static char names[65][16];
    hotfn_status status = HOTFN_OK;

    for (size_t i = 0; i < 65 && status == HOTFN_OK; i++) {
        snprintf(names[i], sizeof names[i], "many-%zu", i);
        many[i] = make_exporter(names[i]);
        status = hotfn_exporter_register(&many[i], NULL);
    }
    CHECK_EQ_I64(status, HOTFN_E_LIMIT);
    CHECK_EQ_U64(hotfn_exporter_get_count(), 13 + 64);
}

static const check_test tests[] = {
    CHECK_TEST(another_abi_version_is_refused_with_both_versions),
    CHECK_TEST(incomplete_exporters_are_refused),
    CHECK_TEST(a_name_in_use_cannot_be_registered),
    CHECK_TEST(a_registered_exporter_writes),
    CHECK_TEST(the_error_of_an_exporter_is_returned),
    CHECK_TEST(a_failed_write_is_reported_even_if_the_exporter_ignores_it),
    CHECK_TEST(records_that_lack_the_needed_data_are_refused),
    CHECK_TEST(the_sixty_fifth_exporter_is_refused),
};
CHECK_MAIN(tests)
