/* SPDX-License-Identifier: MIT */
/* Jump tables: their ends are recognised, and all targets in code of gcc and clang are found. */
#include "scene.h"
#include "verdicts/analysis.h"

#include <unistd.h>

/* Scan all code; the caller checks the marks, then calls hfn_analysis_finish. */
static hfn_analysis scan_as(const hotfn_image *image, const hotfn_functions *functions,
                            bool image_base)
{
    hotfn_verdicts_options options = HOTFN_VERDICTS_OPTIONS_INIT;
    hotfn_env env = hfn_env_fill(NULL);
    hfn_analysis a;

    options.threads = 2;
    CHECK(hfn_analysis_init(&a, image, functions, &hfn_arch_x86_64, &options, &env));
    a.image_base = image_base;
    hfn_flow_scan(&a);
    hfn_tables_scan(&a);
    hfn_unowned_scan(&a);
    return a;
}

static hfn_analysis scan(const hotfn_image *image, const hotfn_functions *functions)
{
    return scan_as(image, functions, false);
}

static bool jumped(const hfn_analysis *a, uint64_t rva)
{
    return (hfn_code_marks(&a->code, rva) & HFN_MARK_JUMPED) != 0;
}

static void put_entry(scene *s, uint32_t index, uint64_t target)
{
    uint32_t offset = (uint32_t)(target - RODATA);

    memcpy(s->rodata + 4 * index, &offset, sizeof offset);
}

/* lea rcx, [rip+x] to rva */
static void put_lea_rcx(scene *s, uint64_t rva)
{
    SCENE_CODE(s, "\x48\x8D\x0D");
    put(s->text, rva - (scene_here(s) + 4), 4);
}

#define CWDES_8 "\x98\x98\x98\x98\x98\x98\x98\x98"
/* movsxd rax, [rcx+rdi*4]; add rax, rcx; jmp rax */
#define DISPATCH "\x48\x63\x04\xB9\x48\x01\xC8\xFF\xE0"

/* 8 bytes to jump to; cmp edi, 1 and ja if bounded; the dispatch by a table at RODATA; ret */
static uint64_t add_switch(scene *s, bool bounded)
{
    uint64_t f = SCENE_CODE(s, CWDES_8);

    if (bounded) {
        SCENE_CODE(s, "\x83\xFF\x01\x77\x10"); /* cmp edi, 1; ja the ret */
    }
    put_lea_rcx(s, RODATA);
    SCENE_CODE(s, DISPATCH "\xC3");
    scene_symbol(s, "f", f, scene_here(s) - f, FUNC);
    return f;
}

static void entries_below_the_smallest_index_may_be_anything(void)
{
    scene s = scene_begin();
    uint64_t f = add_switch(&s, true);

    put_entry(&s, 0, 0x40000000);
    put_entry(&s, 1, f + 2);
    scene_build(&s);
    hfn_analysis a = scan(s.image, s.functions);
    CHECK(jumped(&a, f + 2));
    CHECK(hfn_analysis_finish(&a));
    scene_finish(&s);
}

static void a_table_of_known_size_is_read_to_its_end(void)
{
    scene s = scene_begin();
    uint64_t f = add_switch(&s, true);

    for (uint32_t i = 0; i < 4; i++) {
        put_entry(&s, i, f + 1 + i);
    }
    scene_build(&s);
    hfn_analysis a = scan(s.image, s.functions);
    CHECK(jumped(&a, f + 1) && jumped(&a, f + 2));
    CHECK(!jumped(&a, f + 3) && !jumped(&a, f + 4));
    CHECK(hfn_analysis_finish(&a));
    scene_finish(&s);
}

static void a_table_of_unknown_size_is_read_to_the_next_object(void)
{
    scene s = scene_begin();
    uint64_t f = add_switch(&s, false);

    put_lea_rcx(&s, RODATA + 12);
    for (uint32_t i = 0; i < 5; i++) {
        put_entry(&s, i, f + 1 + i);
    }
    scene_build(&s);
    hfn_analysis a = scan(s.image, s.functions);
    CHECK(jumped(&a, f + 1) && jumped(&a, f + 2) && jumped(&a, f + 3));
    CHECK(!jumped(&a, f + 4) && !jumped(&a, f + 5));
    CHECK(hfn_analysis_finish(&a));
    scene_finish(&s);
}

/* Then nothing is known of its entries: the smallest index may not be 0. */
static void a_table_of_unknown_size_whose_first_entry_is_no_code_is_unbounded(void)
{
    for (int is_code = 0; is_code < 2; is_code++) {
        scene s = scene_begin();
        uint64_t f = add_switch(&s, false);

        put_entry(&s, 0, is_code ? f + 2 : 0x40000000);
        put_entry(&s, 1, f + 2);
        scene_build(&s);
        hfn_analysis a = scan(s.image, s.functions);
        uint32_t index = hfn_analysis_find_around(&a, f);
        CHECK_EQ_U64(a.bodies[index].traits & HFN_TRAIT_UNBOUNDED,
                     is_code ? 0 : HFN_TRAIT_UNBOUNDED);
        CHECK(hfn_analysis_finish(&a));
        scene_finish(&s);
    }
}

static void a_table_of_unknown_size_ends_at_an_entry_outside_the_code(void)
{
    scene s = scene_begin();
    uint64_t f = add_switch(&s, false);

    put_entry(&s, 0, f + 1);
    put_entry(&s, 1, f + 0x100000);
    put_entry(&s, 2, f + 3);
    scene_build(&s);
    hfn_analysis a = scan(s.image, s.functions);
    CHECK(jumped(&a, f + 1));
    CHECK(!jumped(&a, f + 3));
    CHECK(hfn_analysis_finish(&a));
    scene_finish(&s);
}

/* A jump enters between the cmp and the dispatch, so the cmp does not limit the table. */
static void a_size_check_that_a_jump_skips_is_ignored(void)
{
    scene s = scene_begin();
    uint64_t f = add_switch(&s, true), g = SCENE_CODE(&s, CWDES_8);

    SCENE_CODE(&s, "\x83\xFF\x00\x77\x10"); /* cmp edi, 0; ja the ret */
    put_lea_rcx(&s, RODATA + 64);
    SCENE_CODE(&s, DISPATCH "\xC3");
    scene_symbol(&s, "g", g, scene_here(&s) - g, FUNC);
    for (uint32_t i = 0; i < 4; i++) {
        put_entry(&s, i, f + 1 + i);
    }
    uint32_t into_f = (uint32_t)(f + 13 - (RODATA + 64)); /* behind f's ja */
    memcpy(s.rodata + 64, &into_f, sizeof into_f);
    scene_build(&s);
    hfn_analysis a = scan(s.image, s.functions);
    CHECK(jumped(&a, f + 13));
    CHECK(jumped(&a, f + 4));
    CHECK(hfn_analysis_finish(&a));
    scene_finish(&s);
}

/* The table's address is loaded in another block. */
static void a_table_outside_the_straight_line_is_found_among_the_addresses(void)
{
    scene s = scene_begin();
    uint64_t f = scene_here(&s);

    put_lea_rcx(&s, RODATA);
    SCENE_CODE(&s, "\x75\x01\x98" DISPATCH "\xC3"); /* jne over a cwde: joins before the dispatch */
    scene_symbol(&s, "f", f, scene_here(&s) - f, FUNC);
    put_entry(&s, 0, f + 2);
    put_entry(&s, 1, f + 0x100000);
    scene_build(&s);
    hfn_analysis a = scan(s.image, s.functions);
    CHECK(jumped(&a, f + 2));
    CHECK(!(a.bodies[0].traits & HFN_TRAIT_UNBOUNDED));
    CHECK(hfn_analysis_finish(&a));
    scene_finish(&s);
}

static void a_table_in_writable_data_is_ignored(void)
{
    scene s = scene_begin();
    uint64_t f = scene_here(&s);

    put_lea_rcx(&s, RODATA);
    SCENE_CODE(&s, "\x75\x01\x98" DISPATCH "\xC3");
    scene_symbol(&s, "f", f, scene_here(&s) - f, FUNC);
    put_entry(&s, 0, f + 2);
    scene_build(&s);
    /* make the section writable in its header */
    s.b->file.data[elf_section_field(s.b, 1, 8)] |= ELF_WRITE;
    hotfn_image *image = NULL;
    CHECK_EQ_I64(
        hotfn_image_open_bytes(&image, s.b->file.data, s.b->file.size, "scene", NULL, NULL),
        HOTFN_OK);
    hfn_analysis a = scan(image, s.functions);
    CHECK(!jumped(&a, f + 2));
    CHECK(hfn_analysis_finish(&a));
    hotfn_image_close(image);
    scene_finish(&s);
}

/* mov eax, [rbx+rdi*4+RODATA]; add rax, rbx; jmp rax, as Microsoft's compiler writes it.  The code
 * does not show the value of rbx, which may be the image base. */
static hfn_analysis scan_guessed_base(scene *s, uint64_t first_entry, uint64_t *f)
{
    uint32_t entry;

    *f = SCENE_CODE(s, CWDES_8 "\x8B\x84\xBB");
    put(s->text, RODATA, 4);
    SCENE_CODE(s, "\x48\x01\xD8\xFF\xE0\xC3");
    scene_symbol(s, "f", *f, scene_here(s) - *f, FUNC);
    entry = (uint32_t)(*f + first_entry);
    memcpy(s->rodata, &entry, sizeof entry);
    scene_build(s);
    return scan_as(s->image, s->functions, true);
}

static void the_image_base_is_accepted_if_the_first_entry_leads_to_code(void)
{
    scene s = scene_begin();
    uint64_t f;
    hfn_analysis a = scan_guessed_base(&s, 2, &f);

    CHECK(jumped(&a, f + 2));
    CHECK(!(a.bodies[0].traits & HFN_TRAIT_UNBOUNDED));
    CHECK(hfn_analysis_finish(&a));
    scene_finish(&s);
}

static void a_jump_with_another_base_is_unbounded(void)
{
    scene s = scene_begin();
    uint64_t f;
    hfn_analysis a = scan_guessed_base(&s, 0x100000, &f);

    CHECK(a.bodies[0].traits & HFN_TRAIT_UNBOUNDED);
    CHECK(hfn_analysis_finish(&a));
    scene_finish(&s);
}

static void a_fixed_image_has_tables_of_absolute_addresses(void)
{
    scene s = scene_begin();
    uint64_t entries[3];

    s.b->type = 2;
    s.b->base = 0x400000;
    uint64_t f = SCENE_CODE(&s, CWDES_8 "\x83\xFF\x01\x77\x09"); /* cmp edi, 1; ja */
    SCENE_CODE(&s, "\x89\xFF\xFF\x24\xFD"); /* mov edi, edi; jmp [rdi*8+disp32] */
    put(s.text, 0x400000 + RODATA, 4);
    SCENE_CODE(&s, "\xC3");
    scene_symbol(&s, "f", f, scene_here(&s) - f, FUNC);
    for (uint32_t i = 0; i < 3; i++) {
        entries[i] = 0x400000 + f + 1 + i;
    }
    memcpy(s.rodata, entries, sizeof entries);
    scene_build(&s);
    hfn_analysis a = scan(s.image, s.functions);
    CHECK(a.fixed_place);
    CHECK(jumped(&a, f + 1) && jumped(&a, f + 2));
    CHECK(!jumped(&a, f + 3)); /* beyond the bound, but a pointer in data: TAKEN */
    CHECK(hfn_code_marks(&a.code, f + 3) & HFN_MARK_TAKEN);
    CHECK(hfn_analysis_finish(&a));
    scene_finish(&s);
}

/* The jump is in a fragment; its base was set in the parent function. */
static void the_jump_of_a_fragment_may_target_its_parent(void)
{
    scene s = scene_begin();
    uint64_t f = SCENE_CODE(&s, CWDES_8), part, other;

    scene_branch(&s, 0xE9, f + 8 + 5);
    scene_symbol(&s, "f", f, 13, FUNC);
    part =
        SCENE_CODE(&s, "\x48\x63\x04\xBB\x48\x01\xD8\xFF\xE0"); /* movsxd rax, [rbx+rdi*4]; ... */
    s.fdes[s.fde_count++] = (scene_fde){ .begin = part, .size = 9, .inner = true };
    other = SCENE_FUNCTION(&s, "other", CWDES_8 "\xC3");
    scene_build(&s);
    hfn_analysis a = scan(s.image, s.functions);
    CHECK_EQ_U64(part, f + 13);
    CHECK(a.bodies[hfn_analysis_find_body(&a, f)].traits & HFN_TRAIT_UNBOUNDED);
    CHECK(!(a.bodies[hfn_analysis_find_body(&a, other)].traits & HFN_TRAIT_UNBOUNDED));
    CHECK(hfn_analysis_finish(&a));
    scene_finish(&s);
}

/* ---- Output of compilers. */

enum { CASES = 40 };

/* Write a function with a loop over a switch of CASES cases, each of which begins with a label. */
static void write_source(FILE *out)
{
    fputs("extern int sink;\nint sink;\nint dispatch(unsigned x, const unsigned char *p)\n{\n"
          "    int sum = 0;\n    do {\n        switch (x) {\n",
          out);
    for (int i = 0; i < CASES; i++) {
        fprintf(out,
                "        case %d: __asm__ volatile(\".globl case_%d\\ncase_%d: nop\"); "
                "sum += sink * %d; break;\n",
                i + 3, i, i, i * i + 7);
    }
    fputs("        default: sum ^= 1;\n        }\n        x = *p++;\n    } while (x);\n"
          "    return sum;\n}\n",
          out);
}

static uint64_t symbol_rva(const hotfn_symbols *symbols, const char *name)
{
    for (uint32_t i = 0; i < hotfn_symbols_get_count(symbols); i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        hotfn_symbols_get(symbols, i, &s);
        if (strcmp(s.name, name) == 0) {
            return s.rva;
        }
    }
    return 0;
}

static void check_compiled(const char *path)
{
    hotfn_image *image = NULL;
    hotfn_symbols *symbols = NULL;
    hotfn_functions *functions = NULL;

    CHECK_EQ_I64(hotfn_image_open(&image, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_symbols_load(&symbols, image, NULL, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_functions_build(&functions, image, symbols, NULL, NULL), HOTFN_OK);
    hfn_analysis a = scan(image, functions);
    for (int i = 0; i < CASES; i++) {
        char name[32];
        snprintf(name, sizeof name, "case_%d", i);
        uint64_t rva = symbol_rva(symbols, name);
        CHECK(rva != 0);
        if (!CHECK(jumped(&a, rva))) {
            printf("#   %s of %s\n", name, path);
        }
    }
    uint32_t dispatch = hfn_analysis_find_body(&a, symbol_rva(symbols, "dispatch"));
    CHECK(!(a.bodies[dispatch].traits & HFN_TRAIT_UNBOUNDED));
    CHECK(hfn_analysis_finish(&a));
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(symbols);
    hotfn_image_close(image);
}

static void compile_and_check(const char *folder, const char *compiler, const char *flags)
{
    char command[1024], path[256];

    snprintf(path, sizeof path, "%s/dispatch.bin", folder);
    snprintf(command, sizeof command, "%s %s -nostdlib %s/dispatch.c -o %s 2>/dev/null", compiler,
             flags, folder, path);
    if (system(command) != 0) {
        printf("# not compiled: %s %s\n", compiler, flags);
        return;
    }
    check_compiled(path);
    remove(path);
}

static void all_targets_of_compiled_tables_are_found(void)
{
    static const char *const flags[] = { "-O2 -fPIC -shared",
                                         "-O1 -fPIC -shared",
                                         "-Os -fPIC -shared",
                                         "-O3 -fPIC -shared -fcf-protection",
                                         "-O2 -fno-pie -no-pie -static -Wl,-e,dispatch",
                                         "-O0 -fPIC -shared" };
    char folder[] = "/tmp/hotfn-tables-test-XXXXXX", path[256];

    if (!CHECK(mkdtemp(folder) != NULL)) {
        return;
    }
    snprintf(path, sizeof path, "%s/dispatch.c", folder);
    FILE *source = fopen(path, "w");
    write_source(source);
    fclose(source);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        compile_and_check(folder, "gcc", flags[i]);
        compile_and_check(folder, "clang", flags[i]);
    }
    remove(path);
    rmdir(folder);
}

static const check_test tests[] = {
    CHECK_TEST(a_table_of_known_size_is_read_to_its_end),
    CHECK_TEST(entries_below_the_smallest_index_may_be_anything),
    CHECK_TEST(a_table_of_unknown_size_is_read_to_the_next_object),
    CHECK_TEST(a_table_of_unknown_size_whose_first_entry_is_no_code_is_unbounded),
    CHECK_TEST(a_table_of_unknown_size_ends_at_an_entry_outside_the_code),
    CHECK_TEST(a_size_check_that_a_jump_skips_is_ignored),
    CHECK_TEST(a_table_outside_the_straight_line_is_found_among_the_addresses),
    CHECK_TEST(a_table_in_writable_data_is_ignored),
    CHECK_TEST(the_image_base_is_accepted_if_the_first_entry_leads_to_code),
    CHECK_TEST(a_jump_with_another_base_is_unbounded),
    CHECK_TEST(a_fixed_image_has_tables_of_absolute_addresses),
    CHECK_TEST(the_jump_of_a_fragment_may_target_its_parent),
    CHECK_TEST(all_targets_of_compiled_tables_are_found),
};
CHECK_MAIN(tests)
