/* SPDX-License-Identifier: MIT */
/* PE images: bytes that must not move, and code that is not a function of its own. */
#include "verdicts/analysis.h"

#include "check.h"
#include "image/pe_sample.h"

typedef struct analyzed_image {
    pe_builder *b;
    hotfn_image *image;
    hotfn_symbols *symbols;
    hotfn_functions *functions;
    hotfn_verdicts *verdicts;
} analyzed_image;

static void analyze_sample(analyzed_image *image)
{
    hotfn_error err = HOTFN_ERROR_INIT;

    image->b = pe_new_sample();
    if (!CHECK_EQ_I64(
            hotfn_image_open_bytes(&image->image, image->b->data, image->b->size, "s", NULL, &err),
            HOTFN_OK) ||
        !CHECK_EQ_I64(hotfn_symbols_load(&image->symbols, image->image, NULL, NULL, &err),
                      HOTFN_OK) ||
        !CHECK_EQ_I64(
            hotfn_functions_build(&image->functions, image->image, image->symbols, NULL, &err),
            HOTFN_OK) ||
        !CHECK_EQ_I64(hotfn_verdicts_create(&image->verdicts, image->image, image->functions, NULL,
                                            NULL, &err),
                      HOTFN_OK)) {
        exit(1);
    }
}

static void release(analyzed_image *image)
{
    hotfn_verdicts_destroy(image->verdicts);
    hotfn_functions_destroy(image->functions);
    hotfn_symbols_destroy(image->symbols);
    hotfn_image_close(image->image);
    free(image->b);
}

static hotfn_verdict verdict_at(const analyzed_image *image, uint64_t rva)
{
    hotfn_verdict v = HOTFN_VERDICT_INIT;
    uint32_t index = hotfn_functions_find(image->functions, rva);

    if (CHECK(index != UINT32_MAX)) {
        hotfn_verdicts_get(image->verdicts, index, &v);
    }
    return v;
}

/* The __try block begins after `sub rsp, 40`, which is 4 bytes long.  A plain jump would move the
 * first instruction of the block out of the scope table's range. */
static void an_instruction_in_a_try_block_does_not_move(void)
{
    analyzed_image image;

    analyze_sample(&image);
    hotfn_verdict v = verdict_at(&image, PE_GUARDED);
    CHECK_EQ_U64(v.verdict, HOTFN_VERDICT_HOOKABLE);
    CHECK_EQ_U64(v.strategy, HOTFN_STRATEGY_ISLAND);
    CHECK_EQ_U64(v.patch_bytes, 2);
    release(&image);
}

static void an_address_that_the_loader_relocates_does_not_move(void)
{
    analyzed_image image;

    analyze_sample(&image);
    hotfn_verdict v = verdict_at(&image, PE_RELOCATED);
    CHECK_EQ_U64(v.verdict, HOTFN_VERDICT_REFUSED);
    CHECK_EQ_U64(v.reason, HOTFN_REASON_RELOCATED);
    CHECK_EQ_U64(v.offset, 2);
    release(&image);
}

static void fragments_and_import_stubs_are_not_hooked(void)
{
    analyzed_image image;

    analyze_sample(&image);
    CHECK_EQ_U64(verdict_at(&image, PE_COLD).verdict, HOTFN_VERDICT_FRAGMENT);
    CHECK_EQ_U64(verdict_at(&image, PE_STUB).reason, HOTFN_REASON_PLT);
    CHECK_EQ_U64(verdict_at(&image, PE_PLAIN).verdict, HOTFN_VERDICT_HOOKABLE);
    release(&image);
}

/* That includes the entry point (PE_GUARDED), which nothing in the image calls. */
static void windows_code_has_no_red_zone(void)
{
    analyzed_image image;

    analyze_sample(&image);
    for (uint32_t i = 0; i < hotfn_functions_get_count(image.functions); i++) {
        hotfn_verdict v = HOTFN_VERDICT_INIT;
        hotfn_verdicts_get(image.verdicts, i, &v);
        CHECK_EQ_U64(v.flags & HOTFN_VERDICT_RED_ZONE, 0);
    }
    release(&image);
}

static void the_first_fixed_byte_of_a_range_is_returned(void)
{
    static hfn_fixed fixed[] = { { 10, 14, HOTFN_REASON_RELOCATED },
                                 { 14, 16, HOTFN_REASON_FAULT_KNOWN },
                                 { 20, 21, HOTFN_REASON_RELOCATED } };
    static const struct {
        uint64_t from, to;
        uint32_t reason;
        uint64_t at;
    } rows[] = {
        { 0, 10, 0, 99 },
        { 0, 11, HOTFN_REASON_RELOCATED, 10 },
        { 13, 15, HOTFN_REASON_RELOCATED, 13 },
        { 14, 15, HOTFN_REASON_FAULT_KNOWN, 14 },
        { 16, 20, 0, 99 },
        { 16, 21, HOTFN_REASON_RELOCATED, 20 },
        { 21, 30, 0, 99 },
    };
    const hfn_analysis a = { .fixed = fixed, .fixed_count = 3 };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t at = 99;
        CHECK_EQ_U64(hfn_fixed_reason(&a, rows[i].from, rows[i].to, &at), rows[i].reason);
        CHECK_EQ_U64(at, rows[i].at);
    }
}

static const check_test tests[] = {
    CHECK_TEST(an_instruction_in_a_try_block_does_not_move),
    CHECK_TEST(an_address_that_the_loader_relocates_does_not_move),
    CHECK_TEST(fragments_and_import_stubs_are_not_hooked),
    CHECK_TEST(the_first_fixed_byte_of_a_range_is_returned),
    CHECK_TEST(windows_code_has_no_red_zone),
};
CHECK_MAIN(tests)
