/* SPDX-License-Identifier: MIT */
/* Names of a record's functions: readable names, and look-up by name and by RVA. */
#include "records/sample.h"

#include <string.h>

/* Demangles the one mangled name of the sample, and gives two functions the same readable name. */
static size_t demangle_sample(void *user, const char *mangled, char *out, size_t out_bytes)
{
    const char *readable = strcmp(mangled, "_ZN4beta3runEv") == 0 ? "beta::run()"
                           : strcmp(mangled, "tiny") == 0         ? "twin(int)"
                           : strcmp(mangled, "gamma") == 0        ? "twin(char*)"
                                                                  : NULL;

    (void)user;
    if (!readable || strlen(readable) >= out_bytes) {
        return 0;
    }
    memcpy(out, readable, strlen(readable) + 1);
    return strlen(readable);
}

static hotfn_record *open_sample(hfn_live **live)
{
    hotfn_env env = HOTFN_ENV_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;
    const char *path = sample_path("find.hfr");

    env.demangle_fn = demangle_sample;
    CHECK_EQ_I64(hfn_live_finish(*live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL),
                 HOTFN_OK);
    hfn_live_close(*live);
    if (!CHECK_EQ_I64(hotfn_record_open(&record, path, &env, &err), HOTFN_OK)) {
        printf("# %s\n", err.text);
        exit(1);
    }
    return record;
}

static hotfn_record *open_plain_sample(void)
{
    hfn_live *live = sample_live(NULL);

    return open_sample(&live);
}

/* A record that also has a module with a nameless function and a second function "alpha". */
static hotfn_record *open_sample_with_namesakes(void)
{
    hfn_live *live = sample_live(NULL);
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_function f[2];
    uint32_t index;

    f[0] = sample_function("", 0x30, HOTFN_STATE_REFUSED);
    f[0].name_count = 1;
    f[1] = sample_function("alpha", 0x40, HOTFN_STATE_REFUSED);
    m.function_count = 2;
    m.path = "/opt/game/libother.so";
    CHECK_EQ_I64(hfn_live_add_module(live, &m, f, &index, NULL), HOTFN_OK);
    return open_sample(&live);
}

static void check_found(const hotfn_record *record, const char *name, uint32_t index)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    uint32_t found = HOTFN_NO_FUNCTION;

    if (!CHECK_EQ_I64(hotfn_record_find_function(record, name, &found, &err), HOTFN_OK)) {
        printf("# %s: %s\n", name, err.text);
    }
    CHECK_EQ_U64(found, index);
}

static void check_not_found(const hotfn_record *record, const char *name, hotfn_status status,
                            const char *text)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    uint32_t found = 77;

    CHECK_EQ_I64(hotfn_record_find_function(record, name, &found, &err), status);
    CHECK_EQ_U64(found, 77);
    CHECK(strstr(err.text, text) != NULL);
}

static void find_function_accepts_each_spelling_of_a_name(void)
{
    hotfn_record *record = open_plain_sample();

    check_found(record, "alpha", 0);
    check_found(record, "alpha_other", 0);
    check_found(record, "_ZN4beta3runEv", 1);
    check_found(record, "beta::run()", 1);
    check_found(record, "beta::run", 1);
    check_found(record, "twin(char*)", 4); /* the star is not a wildcard */
    hotfn_record_close(record);
}

static void find_function_refuses_unknown_and_ambiguous_names(void)
{
    hotfn_record *record = open_plain_sample();
    uint32_t found;

    check_not_found(record, "delta", HOTFN_E_NOT_FOUND, "'delta'");
    check_not_found(record, "alph*", HOTFN_E_NOT_FOUND, "'alph*'");
    check_not_found(record, "", HOTFN_E_NOT_FOUND, "no function");
    check_not_found(record, "twin", HOTFN_E_OPTION, "ambiguous: 2 functions");
    CHECK_EQ_I64(hotfn_record_find_function(NULL, "alpha", &found, NULL), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_find_function(record, NULL, &found, NULL), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_find_function(record, "alpha", NULL, NULL), HOTFN_E_OPTION);
    hotfn_record_close(record);
    record = open_sample_with_namesakes();
    check_not_found(record, "alpha", HOTFN_E_OPTION, "game+0x1000 and libother.so+0x40");
    check_found(record, "alpha_alias", 0);
    hotfn_record_close(record);
}

static void find_function_at_finds_the_function_that_contains_the_rva(void)
{
    hotfn_record *record = open_plain_sample();
    uint32_t found = 77;

    CHECK_EQ_I64(hotfn_record_find_function_at(record, 0, 0x1040, &found), HOTFN_OK);
    CHECK_EQ_U64(found, 1);
    CHECK_EQ_I64(hotfn_record_find_function_at(record, 0, 0x104f, &found), HOTFN_OK);
    CHECK_EQ_U64(found, 1);
    CHECK_EQ_I64(hotfn_record_find_function_at(record, 1, 0x2000, &found), HOTFN_OK);
    CHECK_EQ_U64(found, 4);
    found = 77;
    CHECK_EQ_I64(hotfn_record_find_function_at(record, 0, 0x1050, &found), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_record_find_function_at(record, 0, 0x2000, &found), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_record_find_function_at(record, 2, 0x2000, &found), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_record_find_function_at(NULL, 0, 0x1000, &found), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_find_function_at(record, 0, 0x1000, NULL), HOTFN_E_OPTION);
    CHECK_EQ_U64(found, 77);
    hotfn_record_close(record);
}

static void display_name_is_demangled_or_module_and_rva(void)
{
    hotfn_record *record = open_sample_with_namesakes();
    char name[64];

    CHECK_EQ_I64(hotfn_record_get_display_name(record, 1, name, sizeof name), HOTFN_OK);
    CHECK_STR(name, "beta::run()");
    CHECK_EQ_I64(hotfn_record_get_display_name(record, 0, name, sizeof name), HOTFN_OK);
    CHECK_STR(name, "alpha");
    CHECK_EQ_I64(hotfn_record_get_display_name(record, 5, name, sizeof name), HOTFN_OK);
    CHECK_STR(name, "libother.so+0x30");
    hotfn_record_close(record);
}

static void display_name_reports_a_buffer_that_is_too_small(void)
{
    hotfn_record *record = open_sample_with_namesakes();
    char name[8];

    CHECK_EQ_I64(hotfn_record_get_display_name(record, 1, name, sizeof name), HOTFN_E_LIMIT);
    CHECK_STR(name, "_ZN4bet");
    CHECK_EQ_I64(hotfn_record_get_display_name(record, 5, name, sizeof name), HOTFN_E_LIMIT);
    CHECK_STR(name, "libothe");
    CHECK_EQ_I64(hotfn_record_get_display_name(record, 7, name, sizeof name), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_record_get_display_name(record, 0, name, 0), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_get_display_name(record, 0, NULL, 8), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_get_display_name(NULL, 0, name, sizeof name), HOTFN_E_OPTION);
    hotfn_record_close(record);
}

/* All names of the sample, read in pieces of text_bytes bytes. */
static void check_names(const hotfn_record *record, uint32_t kind, const char *const *expected,
                        uint64_t text_bytes)
{
    char *text = malloc(text_bytes);
    uint32_t pieces = 0;

    for (uint32_t first = 0; first < 7 && pieces < 8; pieces++) {
        uint32_t count = 7 - first;
        uint64_t bytes = text_bytes;
        const char *at = text;

        if (!CHECK_EQ_I64(hotfn_record_get_names(record, kind, first, &count, text, &bytes),
                          HOTFN_OK)) {
            break;
        }
        for (uint32_t i = 0; i < count; i++, at += strlen(at) + 1) {
            CHECK_STR(at, expected[first + i]);
        }
        CHECK_EQ_U64((uint64_t)(at - text), bytes);
        first += count;
    }
    CHECK(pieces == 1 || text_bytes < 65536 * 2);
    free(text);
}

static void all_names_are_written_in_one_call_or_in_pieces(void)
{
    hotfn_record *record = open_sample_with_namesakes();
    static char readable[7][64];
    const char *linker[7], *display[7];

    for (uint32_t i = 0; i < 7; i++) {
        linker[i] = sample_get(record, i).name;
        display[i] = readable[i];
        CHECK_EQ_I64(hotfn_record_get_display_name(record, i, readable[i], sizeof readable[i]),
                     HOTFN_OK);
    }
    check_names(record, HOTFN_NAMES_LINKER, linker, 1 << 20);
    check_names(record, HOTFN_NAMES_LINKER, linker, 32);
    check_names(record, HOTFN_NAMES_READABLE, display, 1 << 20);
    check_names(record, HOTFN_NAMES_READABLE, display, 65536 + 8);
    hotfn_record_close(record);
}

static void names_that_do_not_exist_or_fit_are_refused(void)
{
    hotfn_record *record = open_sample_with_namesakes();
    uint32_t count = 7;
    uint64_t bytes = 4, nothing = 0;
    char text[4];

    CHECK_EQ_I64(hotfn_record_get_names(record, 0, 0, &count, text, &bytes), HOTFN_E_LIMIT);
    CHECK_EQ_U64(count, 7);
    count = 8;
    CHECK_EQ_I64(hotfn_record_get_names(record, 0, 0, &count, text, &bytes), HOTFN_E_NOT_FOUND);
    count = UINT32_MAX;
    CHECK_EQ_I64(hotfn_record_get_names(record, 0, 7, &count, text, &bytes), HOTFN_E_NOT_FOUND);
    count = 0;
    CHECK_EQ_I64(hotfn_record_get_names(record, 0, 7, &count, text, &nothing), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_get_names(record, 2, 0, &count, text, &bytes), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_get_names(record, 0, 0, &count, NULL, &bytes), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_record_get_names(record, 0, 0, &count, text, NULL), HOTFN_E_OPTION);
    CHECK_EQ_U64(bytes, 4);
    CHECK_EQ_I64(hotfn_record_get_names(record, 0, 0, NULL, text, &bytes), HOTFN_E_OPTION);
    hotfn_record_close(record);
}

static const check_test tests[] = {
    CHECK_TEST(find_function_accepts_each_spelling_of_a_name),
    CHECK_TEST(find_function_refuses_unknown_and_ambiguous_names),
    CHECK_TEST(find_function_at_finds_the_function_that_contains_the_rva),
    CHECK_TEST(display_name_is_demangled_or_module_and_rva),
    CHECK_TEST(display_name_reports_a_buffer_that_is_too_small),
    CHECK_TEST(all_names_are_written_in_one_call_or_in_pieces),
    CHECK_TEST(names_that_do_not_exist_or_fit_are_refused),
};
CHECK_MAIN(tests)
