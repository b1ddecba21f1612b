/* SPDX-License-Identifier: MIT */
/* The bitmap of named data addresses. */
#include "verdicts/references.h"

#include "scene.h"

static hfn_references start(scene *s, hotfn_env *env)
{
    hfn_references r;

    *env = hfn_env_fill(NULL);
    *s = scene_begin();
    scene_nops(s, 16);
    scene_build(s);
    CHECK(hfn_references_init(&r, s->image, env));
    CHECK(r.rva <= RODATA && r.end >= RODATA + RODATA_BYTES);
    return r;
}

static void the_next_name_ends_an_object(void)
{
    hotfn_env env;
    scene s;
    hfn_references r = start(&s, &env);

    CHECK_EQ_U64(hfn_references_next(&r, RODATA), r.end);
    hfn_references_add(&r, RODATA);
    hfn_references_add(&r, RODATA + 8);
    hfn_references_add(&r, RODATA + 0xF3); /* rounded down */
    CHECK_EQ_U64(hfn_references_next(&r, RODATA), RODATA + 8);
    CHECK_EQ_U64(hfn_references_next(&r, RODATA + 4), RODATA + 8);
    CHECK_EQ_U64(hfn_references_next(&r, RODATA + 8), RODATA + 0xF0);
    CHECK_EQ_U64(hfn_references_next(&r, RODATA + 0xF0), r.end);
    hfn_references_finish(&r, &env);
    scene_finish(&s);
}

static void what_is_no_data_is_not_noted(void)
{
    hotfn_env env;
    scene s;
    hfn_references r = start(&s, &env);

    hfn_references_add(&r, r.end);
    hfn_references_add(&r, r.rva - 1);
    hfn_references_add(&r, UINT64_MAX);
    hfn_references_add(&r, 0);
    CHECK_EQ_U64(hfn_references_next(&r, r.rva), r.end);
    CHECK_EQ_U64(hfn_references_next(&r, r.end), UINT64_MAX);
    CHECK_EQ_U64(hfn_references_next(&r, r.rva - 1), UINT64_MAX);
    hfn_references_finish(&r, &env);
    scene_finish(&s);
}

static const check_test tests[] = {
    CHECK_TEST(the_next_name_ends_an_object),
    CHECK_TEST(what_is_no_data_is_not_noted),
};
CHECK_MAIN(tests)
