/* SPDX-License-Identifier: MIT */
/* Which addresses become functions, and their sizes. */
#include "functions/sample.h"
#include "symbols/pdb_builder.h"

static void aliases_are_one_function(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "one", GLOBAL, FUNC, TEXT, 8);
    symbol(&s, "two", LOCAL, FUNC, TEXT, 6);
    symbol(&s, "label", LOCAL, NOTYPE, TEXT, 0);
    sample_build(&s);
    CHECK_EQ_U64(sample_count(&s), 1);
    CHECK_EQ_U64(function_at(&s, TEXT).name_count, 3);
    CHECK_EQ_U64(function_at(&s, TEXT).byte_count, 8);
    CHECK_EQ_U64(function_at(&s, TEXT).flags, HOTFN_FUNCTION_HAS_SYMBOL | HOTFN_FUNCTION_GLOBAL);
    sample_finish(&s);
}

static void an_fde_supplies_size_and_flags_of_a_symbol(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "sized_by_fde", LOCAL, FUNC, TEXT, 0);
    fde(&s, TEXT, 12);
    sample_build(&s);
    CHECK_EQ_U64(function_at(&s, TEXT).byte_count, 12);
    CHECK_EQ_I64(function_at(&s, TEXT).fde_cfa_offset, 8);
    CHECK_EQ_U64(function_at(&s, TEXT).flags, HOTFN_FUNCTION_HAS_SYMBOL | HOTFN_FUNCTION_HAS_FDE);
    sample_finish(&s);
}

static void an_fde_without_a_symbol_is_a_function(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "named", LOCAL, FUNC, TEXT, 16);
    fde(&s, TEXT + 32, 8);
    sample_build(&s);
    CHECK_EQ_U64(sample_count(&s), 2);
    CHECK_STR(function_at(&s, TEXT + 32).name, "prog+0x420");
    CHECK_EQ_U64(function_at(&s, TEXT + 32).flags, HOTFN_FUNCTION_HAS_FDE);
    CHECK_EQ_U64(function_at(&s, TEXT + 32).kind, HOTFN_FUNCTION_PLAIN);
    sample_finish(&s);
}

static void an_fde_inside_of_a_symbol_is_not_a_function(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "assembly", LOCAL, FUNC, TEXT, 64);
    fde(&s, TEXT, 16);
    fde(&s, TEXT + 16, 48);
    fde(&s, TEXT + 64, 8);
    sample_build(&s);
    CHECK_EQ_U64(sample_count(&s), 2);
    CHECK_EQ_U64(function_at(&s, TEXT).byte_count, 64);
    CHECK_EQ_U64(function_at(&s, TEXT + 64).byte_count, 8);
    sample_finish(&s);
}

static void a_first_byte_inside_a_frame_makes_a_fragment(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "f.cold", LOCAL, FUNC, TEXT, 8);
    symbol(&s, "g.cold", LOCAL, FUNC, TEXT + 8, 8); /* its name proves nothing */
    inner_fde(&s, TEXT, 8);
    fde(&s, TEXT + 8, 8);
    inner_fde(&s, TEXT + 16, 8);
    sample_build(&s);
    CHECK_EQ_U64(function_at(&s, TEXT).kind, HOTFN_FUNCTION_FRAGMENT);
    CHECK_EQ_U64(function_at(&s, TEXT + 8).kind, HOTFN_FUNCTION_PLAIN);
    CHECK_EQ_U64(function_at(&s, TEXT + 16).kind, HOTFN_FUNCTION_FRAGMENT);
    sample_finish(&s);
}

static void sizes_end_at_the_next_function_and_the_section(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "four_gigabytes", LOCAL, FUNC, TEXT, 1ull << 32);
    symbol(&s, "whole_address_space", LOCAL, FUNC, TEXT + 16, UINT64_MAX);
    symbol(&s, "no_size", LOCAL, FUNC, TEXT + 32, 0);
    symbol(&s, "last", LOCAL, FUNC, TEXT + 48, 0);
    sample_build(&s);
    CHECK_EQ_U64(sample_count(&s), 4);
    CHECK_EQ_U64(function_at(&s, TEXT).byte_count, 16);
    CHECK_EQ_U64(function_at(&s, TEXT + 16).byte_count, 16);
    CHECK_EQ_U64(function_at(&s, TEXT + 32).byte_count, 16);
    CHECK(function_at(&s, TEXT + 32).flags & HOTFN_FUNCTION_SIZE_GUESSED);
    CHECK_EQ_U64(function_at(&s, TEXT + 48).byte_count, TEXT_BYTES - 48);
    CHECK_EQ_U64(function_at(&s, TEXT + 48).section, 1);
    sample_finish(&s);
}

static void a_symbol_with_a_wrong_size_hides_fdes_only_up_to_the_next_symbol(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "liar", LOCAL, FUNC, TEXT, 1ull << 32);
    fde(&s, TEXT + 8, 8);
    symbol(&s, "honest", LOCAL, FUNC, TEXT + 16, 8);
    fde(&s, TEXT + 24, 8);
    sample_build(&s);
    CHECK_EQ_U64(sample_count(&s), 3);
    CHECK_EQ_U64(function_at(&s, TEXT + 24).byte_count, 8);
    sample_finish(&s);
}

static void only_global_labels_outside_of_all_ranges_are_functions(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "sized", GLOBAL, FUNC, TEXT, 16);
    symbol(&s, "inside", GLOBAL, NOTYPE, TEXT + 8, 0);
    symbol(&s, "alone", GLOBAL, NOTYPE, TEXT + 16, 0);
    symbol(&s, "loop", LOCAL, NOTYPE, TEXT + 20, 0);
    symbol(&s, "next", GLOBAL, NOTYPE, TEXT + 24, 0);
    fde(&s, TEXT + 32, 8);
    symbol(&s, "in_fde", GLOBAL, NOTYPE, TEXT + 36, 0);
    fde(&s, TEXT + 40, 8);
    symbol(&s, "local_with_fde", LOCAL, NOTYPE, TEXT + 40, 0);
    symbol(&s, "constants", LOCAL, NOTYPE, TEXT + 48, 0);
    sample_build(&s);
    CHECK_EQ_U64(sample_count(&s), 5);
    CHECK_EQ_U64(function_at(&s, TEXT + 8).name_count, 0);
    CHECK_EQ_U64(function_at(&s, TEXT + 16).byte_count, 8);
    CHECK(function_at(&s, TEXT + 16).flags & HOTFN_FUNCTION_UNTYPED);
    CHECK_STR(function_at(&s, TEXT + 24).name, "next");
    CHECK_EQ_U64(function_at(&s, TEXT + 32).flags, HOTFN_FUNCTION_HAS_FDE);
    CHECK_STR(function_at(&s, TEXT + 40).name, "local_with_fde");
    CHECK_EQ_U64(function_at(&s, TEXT + 48).name_count, 0);
    sample_finish(&s);
}

static void symbols_outside_of_code_are_not_functions(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "in_header", GLOBAL, FUNC, 16, 8);
    symbol(&s, "in_eh_frame", GLOBAL, FUNC, EH_FRAME, 8);
    symbol(&s, "real", GLOBAL, FUNC, TEXT, 8);
    fde(&s, 64, 8);
    sample_build(&s);
    CHECK_EQ_U64(sample_count(&s), 1);
    sample_finish(&s);
}

static void a_signal_restorer_keeps_its_true_start(void)
{
    sample s;

    sample_begin(&s);
    s.cie = put_cie(s.eh, "zRS", "\x1b", 1, ENTRY_X86_64, 5);
    symbol(&s, "__restore_rt", LOCAL, FUNC, TEXT + 16, 0);
    put_fde(s.eh, s.cie, EH_FRAME, TEXT + 15, 10, "\x0f\x01\x30", 3);
    sample_build(&s);
    CHECK_EQ_U64(sample_count(&s), 1);
    CHECK_EQ_U64(function_at(&s, TEXT + 16).byte_count, 9);
    CHECK(function_at(&s, TEXT + 16).flags & HOTFN_FUNCTION_SIGNAL_FRAME);
    CHECK_EQ_U64(function_at(&s, TEXT + 16).kind, HOTFN_FUNCTION_PLAIN);
    sample_finish(&s);
}

static void fdes_without_any_symbols_are_functions(void)
{
    hotfn_functions *functions = NULL;
    sample s;

    sample_begin(&s);
    symbol(&s, "ignored", GLOBAL, FUNC, TEXT, 100);
    fde(&s, TEXT + 8, 8);
    sample_build(&s);
    CHECK_EQ_I64(hotfn_functions_build(&functions, s.image, NULL, NULL, NULL), HOTFN_OK);
    CHECK_EQ_U64(hotfn_functions_get_count(functions), 1);
    hotfn_functions_destroy(functions);
    sample_finish(&s);
}

static uint32_t kind_at(const hotfn_functions *functions, uint64_t rva)
{
    hotfn_function f = HOTFN_FUNCTION_INIT;
    uint32_t index = hotfn_functions_find(functions, rva);

    CHECK_EQ_I64(hotfn_functions_get(functions, index, &f), HOTFN_OK);
    CHECK_EQ_U64(f.rva, rva);
    return f.kind;
}

static void separated_code_is_a_fragment_unless_it_is_also_a_procedure(void)
{
    hotfn_symbols_options force = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_functions *functions = NULL;
    hotfn_symbols *symbols = NULL;
    pdb_builder *b = pdb_begin(512);
    uint32_t parent;
    sample s;

    sample_begin(&s);
    sample_build(&s);
    set_32(b->s[SECTIONS].data + 12, TEXT);
    parent = procedure(b, MODULE, 0x1110, "parent", 0, 8);
    separated(b, parent, 16, 8);
    separated(b, parent, 32, 8);
    procedure(b, MODULE, 0x1110, "called_too", 32, 8);
    pdb_finish(b);
    force.flags = HOTFN_SYMBOLS_FORCE;
    CHECK_EQ_I64(hotfn_symbols_pdb_from_bytes(&symbols, b->file, b->file_bytes, "x.pdb", s.image,
                                              &force, NULL, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_functions_build(&functions, s.image, symbols, NULL, NULL), HOTFN_OK);
    CHECK_EQ_U64(kind_at(functions, TEXT), HOTFN_FUNCTION_PLAIN);
    CHECK_EQ_U64(kind_at(functions, TEXT + 16), HOTFN_FUNCTION_FRAGMENT);
    CHECK_EQ_U64(kind_at(functions, TEXT + 32), HOTFN_FUNCTION_PLAIN);
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(symbols);
    pdb_free(b);
    sample_finish(&s);
}

static const check_test tests[] = {
    CHECK_TEST(separated_code_is_a_fragment_unless_it_is_also_a_procedure),
    CHECK_TEST(aliases_are_one_function),
    CHECK_TEST(an_fde_supplies_size_and_flags_of_a_symbol),
    CHECK_TEST(an_fde_without_a_symbol_is_a_function),
    CHECK_TEST(an_fde_inside_of_a_symbol_is_not_a_function),
    CHECK_TEST(a_first_byte_inside_a_frame_makes_a_fragment),
    CHECK_TEST(sizes_end_at_the_next_function_and_the_section),
    CHECK_TEST(a_symbol_with_a_wrong_size_hides_fdes_only_up_to_the_next_symbol),
    CHECK_TEST(only_global_labels_outside_of_all_ranges_are_functions),
    CHECK_TEST(symbols_outside_of_code_are_not_functions),
    CHECK_TEST(a_signal_restorer_keeps_its_true_start),
    CHECK_TEST(fdes_without_any_symbols_are_functions),
};
CHECK_MAIN(tests)
