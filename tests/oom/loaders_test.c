/* SPDX-License-Identifier: MIT */
/*
 * The n-th request for memory fails, for every n, over open, load, build and select: each call
 * either does all of its work or says HOTFN_E_NO_MEMORY, writes nothing, and gives back what it
 * had.
 */
#include "base/counting_env.h"
#include "check.h"
#include "functions/sample.h"
#include "symbols/map_samples.h"

/* In its own words: 1 the whole way went well, 0 the lack of memory was told, -1 anything else. */
static int walk(const elf_builder *b, const hotfn_env *env)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    const char *glob = "a::*";
    hotfn_selection wanted = HOTFN_SELECTION_INIT;
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    hotfn_functions *functions = NULL;
    uint8_t selected[16];
    hotfn_status status;

    wanted.include = &glob;
    wanted.include_count = 1;
    status = hotfn_image_from_bytes(&image, b->file.data, b->file.size, "oom", env, &err);
    CHECK((status == HOTFN_OK) == (image != NULL));
    if (status == HOTFN_OK) {
        status = hotfn_symbols_load(&symbols, image, NULL, env, &err);
        CHECK((status == HOTFN_OK) == (symbols != NULL));
    }
    if (status == HOTFN_OK) {
        status = hotfn_functions_build(&functions, image, symbols, env, &err);
        CHECK((status == HOTFN_OK) == (functions != NULL));
    }
    if (status == HOTFN_OK && CHECK(hotfn_functions_count(functions) <= sizeof selected))
        status = hotfn_functions_select(functions, &wanted, selected, NULL, &err);
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
    CHECK_EQ_I64(err.status, status);
    return status == HOTFN_OK ? 1 : status == HOTFN_E_NO_MEMORY ? 0 : -1;
}

/* "Decompresses" what is not compressed, so that .gnu_debugdata takes part. */
static void *unpack(void *user, int32_t compression, const void *in, size_t in_bytes,
                    size_t max_bytes, hotfn_realloc_fn grow, void *grow_user, size_t *out_bytes)
{
    void *out = in_bytes <= max_bytes ? grow(grow_user, NULL, 0, in_bytes) : NULL;

    (void)user;
    (void)compression;
    if (out)
        memcpy(out, in, in_bytes);
    *out_bytes = in_bytes;
    return out;
}

/* Each request fails in turn, until a walk makes fewer requests than n: that one must go well. */
static void fail_each_request(const elf_builder *b, bool once)
{
    size_t requests = SIZE_MAX;
    int answer = 0;

    for (size_t n = 1; requests >= n - 1; n++) {
        counting c;
        hotfn_env env = counting_env(&c);
        env.decompress_fn = unpack;
        c.fail_at = n;
        c.fail_once = once;
        answer = walk(b, &env);
        requests = c.requests;
        if (!CHECK(answer >= 0) || !CHECK_EQ_U64(c.live_bytes, 0) ||
            !CHECK_EQ_I64(c.size_mismatches, 0)) {
            printf("#   where request %zu failed\n", n);
            return;
        }
    }
    CHECK_EQ_I64(answer, 1);
    CHECK(requests > 5);
}

static void check_every_failure(const elf_builder *b)
{
    fail_each_request(b, false);
    fail_each_request(b, true);
}

static void symbols_and_frames_survive_every_failure(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "_ZN1a1fEi", GLOBAL, FUNC, TEXT, 8);
    symbol(&s, "alias", LOCAL, FUNC, TEXT, 8);
    fde(&s, TEXT, 8);
    fde(&s, TEXT + 32, 8);
    sample_build(&s);
    check_every_failure(s.b);
    sample_finish(&s);
}

static void debugdata_survives_every_failure(void)
{
    elf_builder *b;
    sample s;

    sample_begin(&s);
    symbol(&s, "f", GLOBAL, FUNC, TEXT, 8);
    sample_build(&s);
    b = elf_new_x86_64();
    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, s.b->file.data, TEXT_BYTES);
    elf_add(b, ".gnu_debugdata", 1, 0, s.b->file.data, s.b->file.size);
    elf_finish(b);
    /* A failure inside of it may only mean fewer symbols: it is one source of several. */
    check_every_failure(b);
    free(b);
    sample_finish(&s);
}

static void an_image_without_sections_survives_every_failure(void)
{
    elf_builder *b = elf_new_x86_64();

    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, "\xc3", 1);
    b->no_sections = true;
    elf_finish(b);
    check_every_failure(b);
    free(b);
}

/* As walk, over a map alone. */
static int walk_map(const char *text, const hotfn_env *env)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_symbols *symbols = NULL;
    hotfn_status status = hotfn_symbols_map_from_bytes(&symbols, text, strlen(text), "oom.map",
                                                       NULL, NULL, env, &err);

    CHECK((status == HOTFN_OK) == (symbols != NULL));
    hotfn_symbols_destroy(symbols);
    CHECK_EQ_I64(err.status, status);
    return status == HOTFN_OK ? 1 : status == HOTFN_E_NO_MEMORY ? 0 : -1;
}

static void maps_survive_every_failure(void)
{
    for (size_t i = 0; i < sizeof map_samples / sizeof map_samples[0]; i++) {
        size_t requests = SIZE_MAX;
        for (size_t n = 1; requests >= n - 1; n++) {
            counting c;
            hotfn_env env = counting_env(&c);
            c.fail_at = n;
            if (!CHECK(walk_map(map_samples[i].text, &env) >= 0) ||
                !CHECK_EQ_U64(c.live_bytes, 0) || !CHECK_EQ_I64(c.size_mismatches, 0)) {
                printf("#   %s, where request %zu failed\n", map_samples[i].name, n);
                return;
            }
            requests = c.requests;
        }
        CHECK(requests > 5);
    }
}

static const check_test tests[] = {
    CHECK_TEST(symbols_and_frames_survive_every_failure),
    CHECK_TEST(debugdata_survives_every_failure),
    CHECK_TEST(an_image_without_sections_survives_every_failure),
    CHECK_TEST(maps_survive_every_failure),
};
CHECK_MAIN(tests)
