/* SPDX-License-Identifier: MIT */
/* Errors, the log and sized structs. */
#include "base/status.h"

#include "base/counting_env.h"
#include "base/memory.h"
#include "check.h"

static void every_status_has_a_name(void)
{
    CHECK_STR(hotfn_status_get_name(HOTFN_OK), "HOTFN_OK");
    CHECK_STR(hotfn_status_get_name(HOTFN_E_FORMAT), "HOTFN_E_FORMAT");
    CHECK_STR(hotfn_status_get_name(HOTFN_E_LIMIT), "HOTFN_E_LIMIT");
    CHECK_STR(hotfn_status_get_name(-11), "HOTFN_E_UNKNOWN");
    CHECK_STR(hotfn_status_get_name(1), "HOTFN_E_UNKNOWN");
    CHECK_STR(hotfn_status_get_name(INT32_MIN), "HOTFN_E_UNKNOWN");
}

static void version_equals_that_of_the_build_files(void)
{
    const char *root = getenv("HOTFN_SOURCE_ROOT");
    char path[4096], line[256], wanted[64];
    bool found = false;
    FILE *file;

    snprintf(path, sizeof path, "%s/meson.build", root ? root : ".");
    snprintf(wanted, sizeof wanted, "version: '%s'", hotfn_get_version());
    file = fopen(path, "r");
    if (!CHECK(file != NULL)) {
        return;
    }
    while (fgets(line, sizeof line, file)) {
        found |= strstr(line, wanted) != NULL;
    }
    fclose(file);
    CHECK(found);
    CHECK_EQ_U64(hotfn_get_abi_version(), HOTFN_ABI_VERSION);
}

static void a_failure_fills_the_error(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK_EQ_I64(hfn_report_error(&err, HOTFN_E_IO, "a/file", 42, "text %d", 7), HOTFN_E_IO);
    CHECK_EQ_I64(err.status, HOTFN_E_IO);
    CHECK_EQ_U64(err.offset, 42);
    CHECK_STR(err.file, "a/file");
    CHECK_STR(err.text, "text 7");
    CHECK_EQ_I64(hfn_report_error(NULL, HOTFN_E_IO, NULL, 0, "x"), HOTFN_E_IO);
}

static void a_shorter_error_struct_is_not_overrun(void)
{
    hotfn_error err;

    memset(&err, 0x55, sizeof err);
    err.size = offsetof(hotfn_error, file);
    hfn_report_error(&err, HOTFN_E_FORMAT, "f", 9, "x");
    CHECK_EQ_I64(err.status, HOTFN_E_FORMAT);
    CHECK_EQ_U64(err.offset, 9);
    CHECK_EQ_U64(err.file[0], 0x55);
}

static void a_long_path_loses_its_beginning(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    char path[400];

    memset(path, 'd', sizeof path);
    memcpy(path + 390, "/the_end", 9);
    hfn_report_error(&err, HOTFN_E_IO, path, 0, "x");
    CHECK_EQ_U64(strlen(err.file), sizeof err.file - 1);
    CHECK(strncmp(err.file, "...ddd", 6) == 0);
    CHECK_STR(err.file + strlen(err.file) - 8, "/the_end");
}

typedef struct small {
    uint32_t size, a;
} small;

typedef struct large {
    uint32_t size, a, b;
} large;

static void options_of_an_older_caller_get_zeros(void)
{
    small in = { sizeof in, 5 };
    large filled = { 1, 2, 3 };

    CHECK(hfn_copy_options(&filled, sizeof filled, &in));
    CHECK(filled.size == sizeof filled && filled.a == 5 && filled.b == 0);
    CHECK(hfn_copy_options(&filled, sizeof filled, NULL));
    CHECK(filled.size == sizeof filled && filled.a == 0);
}

static void options_of_a_newer_caller_must_be_zero_where_unknown(void)
{
    large in = { sizeof in, 5, 0 };
    small filled;

    CHECK(hfn_copy_options(&filled, sizeof filled, &in) && filled.a == 5);
    in.b = 1;
    CHECK(!hfn_copy_options(&filled, sizeof filled, &in));
    in.size = 3;
    CHECK(!hfn_copy_options(&filled, sizeof filled, &in));
}

static void uninitialised_size_is_rejected(void)
{
    small in = { 0xfffffff0u, 5 }, filled;

    CHECK(!hfn_copy_options(&filled, sizeof filled, &in));
}

static void error_for_a_null_argument_names_the_call(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    const small filled = { sizeof filled, 5 };

    CHECK_EQ_I64(hfn_report_null(&err, "hotfn_x"), HOTFN_E_OPTION);
    CHECK_STR(err.text, "hotfn_x: an argument that must be given is NULL");
    CHECK(!hfn_copy_out(NULL, &filled, sizeof filled));
}

static void an_out_struct_is_filled_up_to_its_size(void)
{
    const large filled = { sizeof filled, 5, 6 };
    large out = { sizeof(small), 0, 9 };

    CHECK(hfn_copy_out(&out, &filled, sizeof filled));
    CHECK(out.size == sizeof(small) && out.a == 5 && out.b == 9);
    out.size = 0;
    CHECK(!hfn_copy_out(&out, &filled, sizeof filled));
    out.size = sizeof filled + 4;
    CHECK(!hfn_copy_out(&out, &filled, sizeof filled));
}

static void the_log_takes_a_level_and_text(void)
{
    counting c;
    hotfn_env env = counting_env(&c);

    hfn_log_message(&env, HOTFN_LOG_WARNING, "%s %d", "two", 2);
    CHECK_STR(c.last_log, "two 2");
    env.log_fn = NULL;
    hfn_log_message(&env, HOTFN_LOG_WARNING, "three");
    CHECK_STR(c.last_log, "two 2");
}

static const check_test tests[] = {
    CHECK_TEST(every_status_has_a_name),
    CHECK_TEST(version_equals_that_of_the_build_files),
    CHECK_TEST(a_failure_fills_the_error),
    CHECK_TEST(a_shorter_error_struct_is_not_overrun),
    CHECK_TEST(a_long_path_loses_its_beginning),
    CHECK_TEST(options_of_an_older_caller_get_zeros),
    CHECK_TEST(options_of_a_newer_caller_must_be_zero_where_unknown),
    CHECK_TEST(uninitialised_size_is_rejected),
    CHECK_TEST(error_for_a_null_argument_names_the_call),
    CHECK_TEST(an_out_struct_is_filled_up_to_its_size),
    CHECK_TEST(the_log_takes_a_level_and_text),
};
CHECK_MAIN(tests)
