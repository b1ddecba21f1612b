/* SPDX-License-Identifier: MIT */
/* Recognition of linker stubs, resolvers and C run-time glue. */
#include "functions/sample.h"

#define PLT0 "\xff\x35\0\0\0\0\xff\x25\0\0\0\0\x0f\x1f\x40\0" /* push [rip]; jmp [rip]; nop */
#define STUB "\xff\x25\0\0\0\0\x68\0\0\0\0\xe9\0\0\0\0"       /* jmp [rip]; push 0; jmp PLT0 */
#define SEC_STUB "\xf3\x0f\x1e\xfa\xf2\xff\x25\0\0\0\0\x0f\x1f\x44\0\0" /* endbr64; bnd jmp */
#define IBT_STUB "\xf3\x0f\x1e\xfa\x68\0\0\0\0\xf2\xe9\0\0\0\0\x90"     /* endbr64; push; jmp */

/* The kind of a function that has an FDE and lies in a section of this name; its code repeats this
 * piece of 16 bytes. */
static uint32_t kind_of(const char *section, const char *piece, bool no_sections,
                        uint64_t byte_count)
{
    uint8_t text[TEXT_BYTES];
    uint32_t kind;
    sample s;

    for (size_t i = 0; i < TEXT_BYTES; i += 16) {
        memcpy(text + i, piece, 16);
    }
    sample_begin_with(&s, section, text);
    put_fde(s.eh, s.cie, EH_FRAME, TEXT, byte_count, "\x0e\x10", 2);
    s.b->no_sections = no_sections;
    if (no_sections) { /* the FDEs are then found with .eh_frame_hdr, here in the first KiB */
        const uint8_t header[] = { 1, 3, 0xff, 0xff, EH_FRAME & 0xff, EH_FRAME >> 8, 0, 0 };
        memcpy(s.b->file.data + 512, header, sizeof header);
        elf_segment(s.b, 0x6474e550, 4, 512, sizeof header);
    }
    sample_build(&s);
    kind = function_at(&s, TEXT).kind;
    sample_finish(&s);
    return kind;
}

static uint32_t kind_in(const char *section, const char *piece, bool no_sections)
{
    return kind_of(section, piece, no_sections, 32);
}

static void linker_stubs_need_the_section_name_and_the_shape(void)
{
    CHECK_EQ_U64(kind_in(".plt", PLT0, false), HOTFN_FUNCTION_PLT);
    CHECK_EQ_U64(kind_in(".plt", STUB, false), HOTFN_FUNCTION_PLT);
    CHECK_EQ_U64(kind_in(".plt", IBT_STUB, false), HOTFN_FUNCTION_PLT);
    CHECK_EQ_U64(kind_in(".plt.sec", SEC_STUB, false), HOTFN_FUNCTION_PLT);
    CHECK_EQ_U64(kind_in(".plt.got", STUB, false), HOTFN_FUNCTION_PLT);
    CHECK_EQ_U64(kind_in(".iplt", STUB, false), HOTFN_FUNCTION_PLT);
    CHECK_EQ_U64(kind_in(".text", STUB, false), HOTFN_FUNCTION_FRAGMENT);
    CHECK_EQ_U64(kind_in(".plt", "\x55\x48\x89\xe5\x5d\xc3\0\0\0\0\0\0\0\0\0", false),
                 HOTFN_FUNCTION_FRAGMENT);
}

static void without_section_names_all_code_must_have_the_shape(void)
{
    CHECK_EQ_U64(kind_in(".plt", STUB, true), HOTFN_FUNCTION_PLT);
    CHECK_EQ_U64(kind_in(".plt", "\xff\x25\0\0\0\0\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3\xc3", true),
                 HOTFN_FUNCTION_PLT);
    CHECK_EQ_U64(kind_in(".plt", "\x55\x48\x89\xe5\x5d\xc3\0\0\0\0\0\0\0\0\0", true),
                 HOTFN_FUNCTION_FRAGMENT);
    CHECK_EQ_U64(kind_of(".plt", STUB, true, 48), HOTFN_FUNCTION_PLT);
    CHECK_EQ_U64(kind_of(".plt", STUB, true, 20),
                 HOTFN_FUNCTION_FRAGMENT); /* the last stub is truncated */
}

static void resolvers_are_recognised_by_type(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "memcpy", GLOBAL, IFUNC, TEXT, 8);
    sample_build(&s);
    CHECK_EQ_U64(function_at(&s, TEXT).kind, HOTFN_FUNCTION_RESOLVER);
    sample_finish(&s);
}

/* A static program has no dynamic section; its IRELATIVE relocations are in .rela.plt. */
static void resolvers_are_recognised_by_relocation(void)
{
    elf_bytes *rela;
    sample s;

    sample_begin(&s);
    fde(&s, TEXT + 16, 8);
    fde(&s, TEXT + 32, 8);
    rela = elf_buffer(s.b);
    put_word(rela, 0), put_word(rela, 37), put_word(rela, TEXT + 16);
    s.late_rela = rela;
    sample_build(&s);
    CHECK_EQ_U64(function_at(&s, TEXT + 16).kind, HOTFN_FUNCTION_RESOLVER);
    CHECK_EQ_U64(function_at(&s, TEXT + 32).kind, HOTFN_FUNCTION_PLAIN);
    sample_finish(&s);
}

static void the_entry_point_and_fini_are_glue(void)
{
    sample s;

    sample_begin(&s);
    s.b->entry = TEXT + 8;
    symbol(&s, "main", GLOBAL, FUNC, TEXT, 8);
    symbol(&s, "any_name", GLOBAL, FUNC, TEXT + 8, 8);
    symbol(&s, "_fini", LOCAL, FUNC, FINI, 0);
    symbol(&s, "_init", GLOBAL, FUNC, TEXT + 16,
           8); /* a function of the program may have this name */
    sample_build(&s);
    CHECK_EQ_U64(function_at(&s, TEXT).kind, HOTFN_FUNCTION_PLAIN);
    CHECK_EQ_U64(function_at(&s, TEXT + 8).kind, HOTFN_FUNCTION_GLUE);
    CHECK_EQ_U64(function_at(&s, TEXT + 16).kind, HOTFN_FUNCTION_PLAIN);
    CHECK_EQ_U64(function_at(&s, FINI).kind, HOTFN_FUNCTION_GLUE);
    sample_finish(&s);
}

static void crt_helpers_are_not_recognised_by_name_alone(void)
{
    sample s;

    sample_begin(&s);
    symbol(&s, "deregister_tm_clones", LOCAL, FUNC, TEXT, 0);
    symbol(&s, "frame_dummy", LOCAL, FUNC, TEXT + 16, 8);
    symbol(&s, "register_tm_clones", GLOBAL, FUNC, TEXT + 32, 0);
    symbol(&s, "__do_global_dtors_aux", LOCAL, FUNC, TEXT + 48, 0);
    fde(&s, TEXT + 48, 8);
    sample_build(&s);
    CHECK_EQ_U64(function_at(&s, TEXT).kind, HOTFN_FUNCTION_GLUE);
    CHECK_EQ_U64(function_at(&s, TEXT + 16).kind, HOTFN_FUNCTION_PLAIN);
    CHECK_EQ_U64(function_at(&s, TEXT + 32).kind, HOTFN_FUNCTION_PLAIN);
    CHECK_EQ_U64(function_at(&s, TEXT + 48).kind, HOTFN_FUNCTION_PLAIN);
    sample_finish(&s);
}

static const check_test tests[] = {
    CHECK_TEST(linker_stubs_need_the_section_name_and_the_shape),
    CHECK_TEST(without_section_names_all_code_must_have_the_shape),
    CHECK_TEST(resolvers_are_recognised_by_type),
    CHECK_TEST(resolvers_are_recognised_by_relocation),
    CHECK_TEST(the_entry_point_and_fini_are_glue),
    CHECK_TEST(crt_helpers_are_not_recognised_by_name_alone),
};
CHECK_MAIN(tests)
