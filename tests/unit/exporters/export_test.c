/* SPDX-License-Identifier: MIT */
/* Exports of a record as table, JSON and CSV.  check_formats.py checks the contents of JSON and CSV
 * with independent parsers. */
#include "exporters/hostile.h"

#include <hotfn/export.h>

typedef struct text {
    char *bytes;
    size_t count, stop_at; /* 0: never */
} text;

static int32_t collect(void *user, const void *bytes, size_t byte_count)
{
    text *t = user;

    if (t->stop_at && t->count + byte_count > t->stop_at) {
        return 1;
    }
    t->bytes = realloc(t->bytes, t->count + byte_count + 1);
    memcpy(t->bytes + t->count, bytes, byte_count);
    t->count += byte_count;
    t->bytes[t->count] = 0;
    return 0;
}

static hotfn_record *hostile_record(void)
{
    const char *path = sample_path("hostile.hfr");
    hotfn_record *record = NULL;

    hostile_write(path);
    if (!CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK)) {
        exit(1);
    }
    return record;
}

/* The whole output in a buffer that the caller frees. */
static char *export_as(const char *format, const hotfn_export_options *options)
{
    hotfn_record *record = hostile_record();
    text t = { 0 };

    CHECK_EQ_I64(hotfn_export(record, format, options, collect, &t, NULL, NULL), HOTFN_OK);
    hotfn_record_close(record);
    return t.bytes;
}

static uint32_t lines(const char *s)
{
    uint32_t count = 0;

    for (; *s; s++) {
        count += *s == '\n';
    }
    return count;
}

typedef struct passes {
    hotfn_progress last;
    uint32_t ended;
} passes;

static void note_progress(void *user, const hotfn_progress *p)
{
    passes *seen = user;

    CHECK_STR(p->action, "exporting");
    CHECK_STR(p->file, sample_path("hostile.hfr"));
    CHECK(p->done <= p->total && (p->done == 0 || p->done > seen->last.done));
    seen->last = *p;
    seen->ended += p->done == p->total;
}

static void progress_is_reported_and_ends(void)
{
    static const char *const formats[] = { "json", "csv", "html", "callgrind", "pprof" };

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        hotfn_record *record = hostile_record();
        hotfn_env env = HOTFN_ENV_INIT;
        text t = { 0 }, plain = { 0 };
        passes seen = { 0 };

        env.progress_fn = note_progress;
        env.progress_user = &seen;
        CHECK_EQ_I64(hotfn_export(record, formats[i], NULL, collect, &t, &env, NULL), HOTFN_OK);
        CHECK_EQ_I64(hotfn_export(record, formats[i], NULL, collect, &plain, NULL, NULL), HOTFN_OK);
        CHECK(seen.last.total > 1 && seen.last.done == seen.last.total);
        CHECK_EQ_U64(seen.ended, 1);
        CHECK(t.count == plain.count);
        free(t.bytes);
        free(plain.bytes);
        hotfn_record_close(record);
    }
}

static void formats_are_listed(void)
{
    hotfn_exporter_info info = HOTFN_EXPORTER_INFO_INIT;

    CHECK_EQ_U64(hotfn_exporter_get_count(), 13);
    for (uint32_t i = 0; i < hotfn_exporter_get_count(); i++) {
        CHECK_EQ_I64(hotfn_exporter_get(i, &info), HOTFN_OK);
        CHECK(info.name[0] && info.extension[0] == '.' && info.about[0]);
    }
    CHECK_EQ_I64(hotfn_exporter_get(13, &info), HOTFN_E_NOT_FOUND);
}

static void errors_name_the_unknown_format_and_refuse_a_broken_glob(void)
{
    hotfn_record *record = hostile_record();
    hotfn_export_options o = HOTFN_EXPORT_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    text t = { 0 };

    CHECK_EQ_I64(hotfn_export(record, "xml", NULL, collect, &t, NULL, &err), HOTFN_E_NOT_FOUND);
    CHECK(strstr(err.text, "json") != NULL);
    o.match = "[a";
    CHECK_EQ_I64(hotfn_export(record, "json", &o, collect, &t, NULL, &err), HOTFN_E_OPTION);
    CHECK_EQ_U64(t.count, 0);
    hotfn_record_close(record);
}

static void a_failing_write_function_ends_the_export(void)
{
    hotfn_record *record = hostile_record();
    hotfn_error err = HOTFN_ERROR_INIT;
    text t = { .stop_at = 1 };

    CHECK_EQ_I64(hotfn_export(record, "json", NULL, collect, &t, NULL, &err), HOTFN_E_IO);
    CHECK(err.text[0]);
    hotfn_record_close(record);
    free(t.bytes);
}

static void table_contains_no_control_character(void)
{
    char *table = export_as("table", NULL);

    for (const unsigned char *s = (unsigned char *)table; *s; s++) {
        CHECK((*s >= 0x20 || *s == '\n') && *s != 0x7f);
        CHECK(!(s[0] == 0xc2 && s[1] < 0xa0));
    }
    CHECK(strstr(table, "escape?[31mred") != NULL);
    CHECK(strstr(table, "utf8 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") != NULL);
    CHECK(strstr(table, "latin1 ??") != NULL);
    free(table);
}

static void only_a_table_with_the_color_option_has_escape_sequences(void)
{
    hotfn_export_options o = HOTFN_EXPORT_OPTIONS_INIT;
    char *plain = export_as("table", &o), *coloured;

    o.flags = HOTFN_EXPORT_COLOR;
    coloured = export_as("table", &o);
    CHECK(strchr(plain, '\033') == NULL);
    CHECK(strstr(coloured, "\033[") != NULL);
    free(plain);
    free(coloured);
}

static void table_has_ranks_grouped_digits_and_totals(void)
{
    hotfn_export_options o = HOTFN_EXPORT_OPTIONS_INIT;
    char *table;

    o.limit = 2;
    table = export_as("table", &o);
    CHECK(strstr(table, "18,446,744,073,709,551,615") != NULL);
    CHECK(strstr(table, "100.00%") != NULL);
    CHECK(strstr(table, "    1  ") != NULL && strstr(table, "    3  ") == NULL);
    CHECK(strstr(table, "and 13 more functions that were called") != NULL);
    CHECK(strstr(table, "16 functions hooked, 15 of them called; 1 refused (--why has") != NULL);
    CHECK(strstr(table, "too-short") == NULL);
    free(table);
    o.flags = HOTFN_EXPORT_REFUSED;
    table = export_as("table", &o);
    CHECK(strstr(table, "tiny  too-short at byte 0: ends before the patch does") != NULL);
    free(table);
}

static void nameless_functions_are_shown_as_module_and_rva(void)
{
    char *table = export_as("table", NULL);

    CHECK(strstr(table, "ga\"me?+0x10d0") != NULL);
    free(table);
}

static void long_names_are_shortened_to_the_terminal(void)
{
    hotfn_export_options o = HOTFN_EXPORT_OPTIONS_INIT;
    char *table;

    o.width = 65;
    table = export_as("table", &o);
    CHECK(strstr(table, "  <script>alert(1)</script>\n") != NULL); /* it fits: no module, no rank */
    CHECK(strstr(table, "  function of ga\"me?\n") != NULL);
    CHECK(strstr(table, "no room for: rank\n") != NULL);
    free(table);
    o.width = 52;
    table = export_as("table", &o);
    CHECK(strstr(table, "  <script>alert(1)<\xe2\x80\xa6>\n") != NULL); /* folded by table_fold.c */
    free(table);
    o.width = 100;
    table = export_as("table", &o);
    CHECK(strstr(table, "  module  function\n") != NULL);
    free(table);
}

static void names_in_a_pipe_are_shortened_to_their_own_limit(void)
{
    hotfn_export_options o = HOTFN_EXPORT_OPTIONS_INIT;
    char *table;

    o.name_width = 20;
    table = export_as("table", &o);
    CHECK(strstr(table, "  <script>alert(1)<\xe2\x80\xa6>\n") != NULL);
    CHECK(strstr(table, "  module  function\n") != NULL); /* all columns */
    free(table);
}

static size_t longest_line(const char *all)
{
    size_t longest = 0;

    for (size_t length; *all; all += length + (all[length] != 0)) {
        size_t characters = 0;
        length = strcspn(all, "\n");
        for (size_t i = 0; i < length; i++) {
            characters += ((unsigned char)all[i] & 0xc0) != 0x80;
        }
        longest = characters > longest ? characters : longest;
    }
    return longest;
}

static void no_line_is_longer_than_the_terminal(void)
{
    hotfn_export_options o = HOTFN_EXPORT_OPTIONS_INIT;

    o.flags = HOTFN_EXPORT_REFUSED;
    for (o.width = 46; o.width < 140; o.width++) {
        char *table = export_as("table", &o);

        CHECK(longest_line(table) <= o.width);
        free(table);
    }
}

static void glob_matches_any_name(void)
{
    hotfn_export_options o = HOTFN_EXPORT_OPTIONS_INIT;
    char *csv;

    o.match = "alias one";
    csv = export_as("csv", &o);
    CHECK_EQ_U64(lines(csv), 2);
    CHECK(strstr(csv, ",plain,") != NULL);
    free(csv);
}

static void a_glob_without_a_match_is_an_error_and_nothing_is_written(void)
{
    hotfn_export_options o = HOTFN_EXPORT_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = hostile_record();
    text t = { 0 };

    o.match = "*zzz*";
    CHECK_EQ_I64(hotfn_export(record, "json", &o, collect, &t, NULL, &err), HOTFN_E_NOT_FOUND);
    CHECK(strstr(err.text, "no function matches '*zzz*'") != NULL && err.file[0] != 0);
    CHECK_EQ_U64(t.count, 0);
    hotfn_record_close(record);
}

static size_t demangle_beta(void *user, const char *mangled, char *out, size_t out_bytes)
{
    (void)user;
    if (strncmp(mangled, "_Z", 2) != 0) {
        return 0;
    }
    return (size_t)snprintf(out, out_bytes, "beta::run()");
}

static void display_names_come_from_the_callers_demangler(void)
{
    hotfn_record *record = hostile_record();
    hotfn_export_options o = HOTFN_EXPORT_OPTIONS_INIT;
    hotfn_env env = HOTFN_ENV_INIT;
    text t = { 0 }, mangled = { 0 };

    env.demangle_fn = demangle_beta;
    o.match = "beta::*";
    CHECK_EQ_I64(hotfn_export(record, "table", &o, collect, &t, &env, NULL), HOTFN_OK);
    CHECK(strstr(t.bytes, "beta::run()") != NULL);
    CHECK(strstr(t.bytes, "plain") == NULL);
    o.flags = HOTFN_EXPORT_MANGLED;
    o.match = "beta::run"; /* parameters may be omitted, as in a list or a selection */
    CHECK_EQ_I64(hotfn_export(record, "table", &o, collect, &mangled, &env, NULL), HOTFN_OK);
    CHECK(strstr(mangled.bytes, "_ZN4beta3runEv") != NULL);
    hotfn_record_close(record);
    free(t.bytes);
    free(mangled.bytes);
}

static const check_test tests[] = {
    CHECK_TEST(formats_are_listed),
    CHECK_TEST(errors_name_the_unknown_format_and_refuse_a_broken_glob),
    CHECK_TEST(a_failing_write_function_ends_the_export),
    CHECK_TEST(table_contains_no_control_character),
    CHECK_TEST(only_a_table_with_the_color_option_has_escape_sequences),
    CHECK_TEST(table_has_ranks_grouped_digits_and_totals),
    CHECK_TEST(nameless_functions_are_shown_as_module_and_rva),
    CHECK_TEST(long_names_are_shortened_to_the_terminal),
    CHECK_TEST(names_in_a_pipe_are_shortened_to_their_own_limit),
    CHECK_TEST(no_line_is_longer_than_the_terminal),
    CHECK_TEST(progress_is_reported_and_ends),
    CHECK_TEST(glob_matches_any_name),
    CHECK_TEST(a_glob_without_a_match_is_an_error_and_nothing_is_written),
    CHECK_TEST(display_names_come_from_the_callers_demangler),
};
CHECK_MAIN(tests)
