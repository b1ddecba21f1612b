/* SPDX-License-Identifier: MIT */
/* The whole analysis, of this program and the libraries that it uses, and its limits. */
#include "base/counting_env.h"
#include "functions/functions.h"
#include "scene.h"

/* A file and the results of all stages up to the verdicts. */
typedef struct analyzed_file {
    hotfn_image *image;
    hotfn_symbols *symbols;
    hotfn_functions *functions;
    hotfn_verdicts *verdicts;
} analyzed_file;

static hotfn_verdicts *create_verdicts(const analyzed_file *file, uint32_t threads)
{
    hotfn_verdicts_options options = HOTFN_VERDICTS_OPTIONS_INIT;
    hotfn_verdicts *verdicts = NULL;

    options.threads = threads;
    CHECK_EQ_I64(
        hotfn_verdicts_create(&verdicts, file->image, file->functions, &options, NULL, NULL),
        HOTFN_OK);
    return verdicts;
}

static analyzed_file analyze_file(const char *path)
{
    analyzed_file file = { NULL, NULL, NULL, NULL };

    CHECK_EQ_I64(hotfn_image_open(&file.image, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_symbols_load(&file.symbols, file.image, NULL, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_functions_build(&file.functions, file.image, file.symbols, NULL, NULL),
                 HOTFN_OK);
    file.verdicts = create_verdicts(&file, 1);
    return file;
}

static void finish(analyzed_file *file)
{
    hotfn_verdicts_destroy(file->verdicts);
    hotfn_functions_destroy(file->functions);
    hotfn_symbols_destroy(file->symbols);
    hotfn_image_close(file->image);
}

static void threads_do_not_change_the_verdicts(void)
{
    analyzed_file file = analyze_file("/proc/self/exe");

    for (uint32_t threads = 2; threads < 9; threads += 3) {
        hotfn_verdicts *other = create_verdicts(&file, threads);
        CHECK_EQ_U64(hotfn_verdicts_get_count(other), hotfn_verdicts_get_count(file.verdicts));
        for (uint32_t i = 0; i < hotfn_verdicts_get_count(other); i++) {
            CHECK_MEM(hfn_verdicts_at(other, i), hfn_verdicts_at(file.verdicts, i),
                      sizeof(hfn_verdict));
        }
        hotfn_verdicts_destroy(other);
    }
    finish(&file);
}

/* The properties that hooks/ relies on in every hookable function. */
static void check_contract(const analyzed_file *file, uint32_t i)
{
    const hfn_verdict *v = hfn_verdicts_at(file->verdicts, i);
    const hfn_function *f = hfn_functions_at(file->functions, i);
    uint32_t kept = v->pub.strategy == HOTFN_STRATEGY_PUN ? 5 : v->pub.patch_bytes;
    hfn_moved moved;

    CHECK(hfn_verdicts_moved(file->verdicts, i, &moved));
    CHECK_EQ_U64(moved.original_bytes, v->covered_bytes);
    CHECK_EQ_U64(v->site_rva, f->rva + v->pub.patch_offset);
    CHECK(v->site_rva + v->covered_bytes <= f->rva + f->byte_count);
    CHECK((v->island_rva != 0) == (v->pub.strategy == HOTFN_STRATEGY_ISLAND));
    CHECK((v->pun_mask != 0) == (v->pub.strategy == HOTFN_STRATEGY_PUN));
    CHECK((v->pun_fixed & ~v->pun_mask) == 0);
    if (v->pub.strategy != HOTFN_STRATEGY_JUMP_PAD) {
        CHECK(v->covered_bytes >= v->pub.patch_bytes || v->pub.strategy == HOTFN_STRATEGY_ISLAND ||
              v->pub.strategy == HOTFN_STRATEGY_PUN);
    }
    if (i + 1 < hotfn_verdicts_get_count(file->verdicts)) {
        CHECK(v->site_rva + kept <= hfn_functions_at(file->functions, i + 1)->rva);
    }
}

static void every_hookable_function_meets_the_contract(void)
{
    static const char *const files[] = { "/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6",
                                         "/lib/x86_64-linux-gnu/libm.so.6" };

    for (uint32_t k = 0; k < sizeof files / sizeof files[0]; k++) {
        FILE *there = fopen(files[k], "rb");
        if (!there) {
            continue;
        }
        fclose(there);
        analyzed_file file = analyze_file(files[k]);
        uint32_t hookable = 0, count = hotfn_verdicts_get_count(file.verdicts);
        for (uint32_t i = 0; i < count; i++) {
            if (hfn_verdicts_at(file.verdicts, i)->pub.verdict != HOTFN_VERDICT_HOOKABLE) {
                continue;
            }
            hookable++;
            check_contract(&file, i);
        }
        CHECK(hookable > count / 2);
        finish(&file);
    }
}

static void islands_do_not_overlap(void)
{
    analyzed_file file = analyze_file("/lib/x86_64-linux-gnu/libc.so.6");
    uint32_t count = hotfn_verdicts_get_count(file.verdicts);

    for (uint32_t i = 0; i < count; i++) {
        uint64_t island = hfn_verdicts_at(file.verdicts, i)->island_rva;
        for (uint32_t k = 0; island && k < count; k++) {
            const hfn_verdict *v = hfn_verdicts_at(file.verdicts, k);
            if (v->pub.verdict != HOTFN_VERDICT_HOOKABLE) {
                continue;
            }
            CHECK(k == i || v->island_rva == 0 || v->island_rva + 5 <= island ||
                  island + 5 <= v->island_rva);
            CHECK(v->site_rva + 5 <= island || island + 5 <= v->site_rva ||
                  v->site_rva + v->pub.patch_bytes <= island);
        }
    }
    finish(&file);
}

static void unknown_options_are_refused(void)
{
    analyzed_file file = analyze_file("/proc/self/exe");
    hotfn_verdicts_options options = HOTFN_VERDICTS_OPTIONS_INIT;
    hotfn_verdicts *verdicts = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;

    options.flags = HOTFN_VERDICTS_NO_TAIL_EXIT << 1;
    CHECK_EQ_I64(hotfn_verdicts_create(&verdicts, file.image, file.functions, &options, NULL, &err),
                 HOTFN_E_OPTION);
    CHECK(verdicts == NULL && err.text[0] != 0);
    options.flags = 0;
    options.reserved = 1;
    CHECK_EQ_I64(hotfn_verdicts_create(&verdicts, file.image, file.functions, &options, NULL, NULL),
                 HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_verdicts_create(&verdicts, file.image, file.functions, NULL, NULL, NULL),
                 HOTFN_OK);
    hotfn_verdicts_destroy(verdicts);
    hotfn_verdicts_destroy(NULL);
    finish(&file);
}

static void past_the_end_there_is_no_verdict(void)
{
    analyzed_file file = analyze_file("/proc/self/exe");
    uint32_t count = hotfn_verdicts_get_count(file.verdicts);
    hotfn_verdict v = HOTFN_VERDICT_INIT;
    hfn_moved moved;

    CHECK_EQ_I64(hotfn_verdicts_get(file.verdicts, count, &v), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_verdicts_get(file.verdicts, 0, &v), HOTFN_OK);
    v.size = 0;
    CHECK_EQ_I64(hotfn_verdicts_get(file.verdicts, 0, &v), HOTFN_E_OPTION);
    CHECK(hfn_verdicts_at(file.verdicts, count) == NULL);
    CHECK(!hfn_verdicts_moved(file.verdicts, count, &moved));
    CHECK_EQ_U64(hfn_verdicts_island_original(file.verdicts, count).size, 0);
    finish(&file);
}

/* A small file: this program has megabytes if it is built with a sanitizer. */
static void every_failed_allocation_is_reported(void)
{
    analyzed_file file = analyze_file("/bin/true");
    hotfn_verdicts_options options = HOTFN_VERDICTS_OPTIONS_INIT;
    hotfn_status status = HOTFN_E_NO_MEMORY;
    hotfn_verdicts *verdicts = NULL;
    size_t n;

    for (n = 1; status == HOTFN_E_NO_MEMORY && n < 10000; n++) {
        counting c;
        hotfn_env env = counting_env(&c);
        options.threads = 1 + n % 2;
        c.fail_at = n;
        status = hotfn_verdicts_create(&verdicts, file.image, file.functions, &options, &env, NULL);
        if (status == HOTFN_OK) {
            hotfn_verdicts_destroy(verdicts);
        }
        CHECK_EQ_U64(c.live_bytes, 0);
        CHECK_EQ_I64(c.size_mismatches, 0);
    }
    CHECK_EQ_I64(status, HOTFN_OK);
    CHECK(n > 5);
    finish(&file);
}

static void an_image_without_functions_has_no_verdicts(void)
{
    scene s = scene_begin();

    scene_nops(&s, 16);
    scene_analyze(&s);
    CHECK_EQ_U64(hotfn_verdicts_get_count(s.verdicts), 0);
    CHECK(hfn_verdicts_image(s.verdicts) == s.image);
    CHECK(hfn_verdicts_functions(s.verdicts) == s.functions);
    scene_finish(&s);
}

static const check_test tests[] = {
    CHECK_TEST(threads_do_not_change_the_verdicts),
    CHECK_TEST(every_hookable_function_meets_the_contract),
    CHECK_TEST(islands_do_not_overlap),
    CHECK_TEST(unknown_options_are_refused),
    CHECK_TEST(past_the_end_there_is_no_verdict),
    CHECK_TEST(every_failed_allocation_is_reported),
    CHECK_TEST(an_image_without_functions_has_no_verdicts),
};
CHECK_MAIN(tests)
