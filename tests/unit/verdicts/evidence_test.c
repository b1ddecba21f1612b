/* SPDX-License-Identifier: MIT */
/* References to an entry distinguish a function from a fragment.  Some refusals do not depend on
 * the bytes of the function. */
#include "scene.h"

#define BODY "\x98\x98\x98\x98\x98\xC3"

static uint32_t verdict_of(const scene *s, uint64_t rva)
{
    return scene_verdict(s, rva).pub.verdict;
}

static void a_nameless_range_needs_a_call_or_a_pointer(void)
{
    scene s = scene_begin();
    uint64_t called = SCENE_CODE(&s, BODY), pointed = SCENE_CODE(&s, BODY);
    uint64_t loaded = SCENE_CODE(&s, BODY), jumped = SCENE_CODE(&s, BODY);
    uint64_t lonely = SCENE_CODE(&s, BODY), from = scene_here(&s);

    scene_branch(&s, 0xE8, called);
    SCENE_CODE(&s, "\x48\x8D\x05"); /* lea rax, [rip+x] */
    put(s.text, loaded - (scene_here(&s) + 4), 4);
    scene_branch(&s, 0xE9, jumped);
    scene_symbol(&s, "from", from, scene_here(&s) - from, FUNC);
    scene_pointer(&s, RODATA, pointed);
    for (uint64_t f = called; f < from; f += 6) {
        scene_fde_at(&s, f, 6);
    }
    scene_analyze(&s);
    CHECK_EQ_U64(verdict_of(&s, called), HOTFN_VERDICT_HOOKABLE);
    CHECK_EQ_U64(verdict_of(&s, pointed), HOTFN_VERDICT_HOOKABLE);
    CHECK_EQ_U64(verdict_of(&s, loaded), HOTFN_VERDICT_HOOKABLE);
    CHECK_EQ_U64(verdict_of(&s, jumped), HOTFN_VERDICT_FRAGMENT);
    CHECK_EQ_U64(verdict_of(&s, lonely), HOTFN_VERDICT_FRAGMENT);
    CHECK_EQ_U64(scene_verdict(&s, lonely).pub.reason, HOTFN_REASON_FRAGMENT);
    scene_finish(&s);
}

static void a_name_that_nothing_refers_to_stays_a_function(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", BODY);

    scene_analyze(&s);
    CHECK_EQ_U64(verdict_of(&s, f), HOTFN_VERDICT_HOOKABLE);
    scene_finish(&s);
}

static void a_cold_name_alone_does_not_prove_a_fragment(void)
{
    scene s = scene_begin();
    uint64_t cold = SCENE_FUNCTION(&s, "f.cold", BODY);
    uint64_t called = SCENE_FUNCTION(&s, "f.cold.1", BODY);
    uint64_t part = SCENE_FUNCTION(&s, "f.part.0", BODY);
    uint64_t from = scene_here(&s);

    scene_branch(&s, 0xE8, called);
    scene_branch(&s, 0xE9, part);
    scene_symbol(&s, "from", from, scene_here(&s) - from, FUNC);
    scene_analyze(&s);
    CHECK_EQ_U64(verdict_of(&s, cold), HOTFN_VERDICT_FRAGMENT);
    CHECK_EQ_U64(verdict_of(&s, called), HOTFN_VERDICT_HOOKABLE);
    CHECK_EQ_U64(verdict_of(&s, part), HOTFN_VERDICT_HOOKABLE);
    scene_finish(&s);
}

static void an_exported_range_is_a_function(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f.cold", BODY);

    scene_export(&s, "f.cold", f, 6);
    scene_analyze(&s);
    CHECK_EQ_U64(verdict_of(&s, f), HOTFN_VERDICT_HOOKABLE);
    CHECK(!(scene_verdict(&s, f).pub.flags & HOTFN_VERDICT_RED_ZONE));
    scene_finish(&s);
}

static void unwind_data_inside_a_frame_proves_a_fragment(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", BODY), from = scene_here(&s);

    scene_branch(&s, 0xE9, f);
    scene_symbol(&s, "from", from, 5, FUNC);
    s.fdes[s.fde_count++] = (scene_fde){ .begin = f, .size = 6, .inner = true };
    scene_analyze(&s);
    CHECK_EQ_U64(verdict_of(&s, f), HOTFN_VERDICT_FRAGMENT);
    scene_finish(&s);
}

static void a_hand_written_label_targeted_by_jumps_only_is_a_fragment(void)
{
    scene s = scene_begin();
    uint64_t label = scene_here(&s), called;

    scene_label(&s, "label", label);
    SCENE_CODE(&s, BODY);
    called = scene_here(&s);
    scene_label(&s, "called", called);
    SCENE_CODE(&s, BODY);
    uint64_t from = scene_here(&s);
    scene_branch(&s, 0xE8, called);
    scene_branch(&s, 0xE9, label);
    scene_symbol(&s, "from", from, scene_here(&s) - from, FUNC);
    scene_analyze(&s);
    CHECK_EQ_U64(verdict_of(&s, called), HOTFN_VERDICT_HOOKABLE);
    CHECK_EQ_U64(verdict_of(&s, label), HOTFN_VERDICT_FRAGMENT);
    scene_finish(&s);
}

static void a_function_reached_by_jumps_only_may_use_the_red_zone(void)
{
    scene s = scene_begin();
    uint64_t jumped = SCENE_FUNCTION(&s, "jumped", BODY);
    uint64_t called = SCENE_FUNCTION(&s, "called", BODY), from = scene_here(&s);

    scene_branch(&s, 0xE8, called);
    scene_branch(&s, 0xE9, jumped);
    scene_symbol(&s, "from", from, scene_here(&s) - from, FUNC);
    scene_analyze(&s);
    CHECK(scene_verdict(&s, jumped).pub.flags & HOTFN_VERDICT_RED_ZONE);
    CHECK(!(scene_verdict(&s, called).pub.flags & HOTFN_VERDICT_RED_ZONE));
    scene_finish(&s);
}

/* A fragment that jumps to the entry of f, and the function that jumps to the fragment. */
static bool is_loop_with_fragment_of(bool own)
{
    scene s = scene_begin();
    uint64_t f = SCENE_CODE(&s, BODY), g = own ? f : scene_here(&s), part = f + 64;
    bool flagged;

    SCENE_CODE(&s, BODY);
    scene_branch(&s, 0xE9, part);
    scene_symbol(&s, "f", f, (own ? scene_here(&s) : g) - f, FUNC);
    if (!own) {
        scene_symbol(&s, "g", g, scene_here(&s) - g, FUNC);
    }
    scene_nops(&s, part - scene_here(&s));
    scene_branch(&s, 0xE9, f);
    s.fdes[s.fde_count++] = (scene_fde){ .begin = part, .size = 5, .inner = true };
    scene_analyze(&s);
    CHECK_EQ_U64(scene_verdict(&s, part).pub.verdict, HOTFN_VERDICT_FRAGMENT);
    flagged = scene_verdict(&s, f).pub.flags & HOTFN_VERDICT_ENTRY_LOOP;
    scene_finish(&s);
    return flagged;
}

static void a_fragment_of_the_function_itself_makes_it_a_loop(void)
{
    CHECK(is_loop_with_fragment_of(true));
    CHECK(!is_loop_with_fragment_of(false));
}

static void a_signal_restorer_is_refused(void)
{
    scene s = scene_begin();
    /* mov rax, 15; syscall */
    uint64_t f = SCENE_FUNCTION(&s, "__restore_rt", "\x48\xC7\xC0\x0F\x00\x00\x00\x0F\x05");

    s.fdes[s.fde_count++] = (scene_fde){ .begin = f, .size = 9, .signal = true };
    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_SIGNAL_RESTORER, 0);
    scene_finish(&s);
}

static void a_signal_restorer_without_unwind_data_is_refused(void)
{
    scene s = scene_begin();
    /* mov rax, 15; syscall, and the same with 16 (ioctl) */
    uint64_t f = SCENE_FUNCTION(&s, "restorer", "\x48\xC7\xC0\x0F\x00\x00\x00\x0F\x05");
    uint64_t g = SCENE_FUNCTION(&s, "ioctl", "\x48\xC7\xC0\x10\x00\x00\x00\x0F\x05\xC3");

    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_SIGNAL_RESTORER, 0);
    CHECK_EQ_U64(verdict_of(&s, g), HOTFN_VERDICT_HOOKABLE);
    scene_finish(&s);
}

static void the_entry_of_the_process_is_glue(void)
{
    scene s = scene_begin();
    uint64_t start = SCENE_FUNCTION(&s, "_start", BODY);

    s.b->entry = start;
    scene_analyze(&s);
    EXPECT_REFUSED(&s, start, HOTFN_REASON_GLUE, 0);
    scene_finish(&s);
    /* the header's entry point is a function that is also called: not the start of a process */
    s = scene_begin();
    start = SCENE_FUNCTION(&s, "first", BODY);
    scene_symbol(&s, "from", scene_here(&s), 5, FUNC);
    scene_branch(&s, 0xE8, start);
    s.b->entry = start;
    scene_analyze(&s);
    CHECK_EQ_U64(verdict_of(&s, start), HOTFN_VERDICT_HOOKABLE);
    scene_finish(&s);
}

static void code_that_a_fault_handler_recognises_is_refused(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "SafeFetch32_impl", "\x8B\x07\xC3\x90\x90\x90");

    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_FAULT_KNOWN, 0);
    scene_finish(&s);
}

/* The names are those of data. */
static uint32_t reason_with_data(const char *name)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", BODY);
    uint32_t reason;

    scene_symbol(&s, name, RODATA, 8, OBJECT);
    scene_analyze(&s);
    reason = scene_verdict(&s, f).pub.reason;
    scene_finish(&s);
    return reason;
}

static void code_that_a_runtime_reads_is_refused(void)
{
    CHECK_EQ_U64(reason_with_data("mono_aot_file_info"), HOTFN_REASON_RUNTIME_READS);
    CHECK_EQ_U64(reason_with_data("mono_aot_module_Program_info"), HOTFN_REASON_RUNTIME_READS);
    CHECK_EQ_U64(reason_with_data("mono_aot_file_infos"), HOTFN_REASON_NONE);
    CHECK_EQ_U64(reason_with_data("mono_aot_module_info"), HOTFN_REASON_NONE);
}

/* The reason of a function with an entry of xray_instr_map. */
static uint32_t reason_with_sled(uint8_t version, uint64_t sled_offset)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", BODY), address;
    uint32_t reason;

    scene_nops(&s, 16 - (scene_here(&s) - TEXT) % 16); /* the alignment of the section */
    s.extra_name = "xray_instr_map";
    s.extra_rva = scene_here(&s);
    s.extra[18] = version;
    address = f + sled_offset - (version >= 2 ? s.extra_rva : 0);
    memcpy(s.extra, &address, sizeof address);
    scene_analyze(&s);
    CHECK_EQ_U64(s.b->sections[3].address, s.extra_rva);
    reason = scene_verdict(&s, f).pub.reason;
    scene_finish(&s);
    return reason;
}

static void bytes_that_xray_overwrites_are_not_patched(void)
{
    CHECK_EQ_U64(reason_with_sled(0, 0), HOTFN_REASON_RUNTIME_READS);
    CHECK_EQ_U64(reason_with_sled(2, 0), HOTFN_REASON_RUNTIME_READS);
    CHECK_EQ_U64(reason_with_sled(2, 64), HOTFN_REASON_NONE);
}

/* An image that only refers to the symbol, as mono itself may do, is no such image. */
static void an_undefined_mark_is_no_evidence(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", BODY);

    put_symbol(s.symbols, put_text(s.names, "mono_aot_file_info"), GLOBAL, OBJECT, 0, 0, 0);
    scene_analyze(&s);
    CHECK_EQ_U64(verdict_of(&s, f), HOTFN_VERDICT_HOOKABLE);
    scene_finish(&s);
}

static void restartable_sequences_are_refused(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "push_per_cpu", "\x98\x98\x98\x98\x98\x98\x98\x98\x98\x98\xC3");
    uint64_t other = SCENE_FUNCTION(&s, "other", BODY), abort_handler;
    uint64_t length = 4;

    scene_nops(&s, 16 - (f - TEXT + 17) % 16);
    abort_handler = SCENE_FUNCTION(&s, "abort", BODY);
    scene_nops(&s, 10);
    s.extra_name = "__rseq_cs";
    s.extra_rva = scene_here(&s);
    memcpy(s.extra + 16, &length, sizeof length);
    scene_pointer(&s, s.extra_rva + 8, f + 2);
    scene_pointer(&s, s.extra_rva + 24, abort_handler);
    scene_analyze(&s);
    CHECK_EQ_U64(s.b->sections[3].address, s.extra_rva);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_RSEQ, 0);
    EXPECT_REFUSED(&s, abort_handler, HOTFN_REASON_RSEQ, 0);
    CHECK_EQ_U64(verdict_of(&s, other), HOTFN_VERDICT_HOOKABLE);
    scene_finish(&s);
}

static void all_functions_of_an_unsupported_machine_are_refused(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_FUNCTION(&s, "f", BODY);

    s.b->machine = 243; /* EM_RISCV */
    scene_analyze(&s);
    EXPECT_REFUSED(&s, f, HOTFN_REASON_MACHINE, 0);
    CHECK(hfn_verdicts_arch(s.verdicts) == NULL);
    scene_finish(&s);
}

static const check_test tests[] = {
    CHECK_TEST(a_nameless_range_needs_a_call_or_a_pointer),
    CHECK_TEST(a_name_that_nothing_refers_to_stays_a_function),
    CHECK_TEST(a_cold_name_alone_does_not_prove_a_fragment),
    CHECK_TEST(an_exported_range_is_a_function),
    CHECK_TEST(unwind_data_inside_a_frame_proves_a_fragment),
    CHECK_TEST(a_hand_written_label_targeted_by_jumps_only_is_a_fragment),
    CHECK_TEST(a_function_reached_by_jumps_only_may_use_the_red_zone),
    CHECK_TEST(a_fragment_of_the_function_itself_makes_it_a_loop),
    CHECK_TEST(a_signal_restorer_is_refused),
    CHECK_TEST(a_signal_restorer_without_unwind_data_is_refused),
    CHECK_TEST(the_entry_of_the_process_is_glue),
    CHECK_TEST(code_that_a_fault_handler_recognises_is_refused),
    CHECK_TEST(code_that_a_runtime_reads_is_refused),
    CHECK_TEST(bytes_that_xray_overwrites_are_not_patched),
    CHECK_TEST(an_undefined_mark_is_no_evidence),
    CHECK_TEST(restartable_sequences_are_refused),
    CHECK_TEST(all_functions_of_an_unsupported_machine_are_refused),
};
CHECK_MAIN(tests)
