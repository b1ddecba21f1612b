/* SPDX-License-Identifier: MIT */
/* The module policy: use, refusal, and modules that were loaded before. */
#include "scan/modules.h"

#include "check.h"

static hfn_module_facts facts_of(const char *path)
{
    return (hfn_module_facts){ .path = path, .file = { 1, 2, 3 } };
}

static void without_globs_only_the_program_is_selected(void)
{
    hfn_module_rules rules = { 0 };
    hfn_module_facts program = facts_of("/bin/prog"), library = facts_of("/lib/libz.so.1");

    program.is_main = true;
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &program), HFN_MODULE_SELECTED);
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &library), HFN_MODULE_UNUSED);
}

static void globs_match_paths_and_file_names(void)
{
    static const char *const globs[] = { "libz*", "/opt/*", "unused" };
    uint8_t used[3] = { 0 };
    hfn_module_rules rules = { .globs = globs, .glob_count = 3, .glob_used = used };
    hfn_module_facts program = facts_of("/bin/prog"), library = facts_of("/lib/libz.so.1");
    hfn_module_facts other = facts_of("/opt/x/liby.so");

    program.is_main = true;
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &program), HFN_MODULE_UNUSED);
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &library), HFN_MODULE_SELECTED);
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &other), HFN_MODULE_SELECTED);
    CHECK(used[0] && used[1] && !used[2]);
}

static void the_loader_is_scanned_if_later_modules_are_hooked(void)
{
    static const struct {
        const char *path;
        bool is_near_breakpoint, is_loader;
    } rows[] = {
        { "/lib64/ld-linux-x86-64.so.2", false, true },
        { "/lib/interpreter.so", false, true }, /* rules.loader_path */
        { "/lib/ld-musl-x86_64.so.1", true, true },
        { "/lib/ld-musl-x86_64.so.1", false, false },
        { "/lib/libc.so.6", true, false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hfn_module_rules rules = { .loader_path = "/lib/interpreter.so", .needs_loader = true };
        hfn_module_facts facts = facts_of(rows[i].path);

        facts.is_near_breakpoint = rows[i].is_near_breakpoint;
        CHECK_EQ_I64(hfn_modules_choose_use(&rules, &facts),
                     rows[i].is_loader ? HFN_MODULE_LOADER : HFN_MODULE_UNUSED);
        rules.needs_loader = false;
        CHECK_EQ_I64(hfn_modules_choose_use(&rules, &facts), HFN_MODULE_UNUSED);
    }
}

static void modules_of_a_runtime_are_scanned(void)
{
    static const char *const replaced[] = { "libpython3*", "python3*", NULL };
    static const char *const globs[] = { "libpython*" };
    hfn_module_rules rules = { .replaced = replaced };
    hfn_module_facts library = facts_of("/lib/libpython3.11.so.1.0");
    hfn_module_facts other = facts_of("/opt/libpython3/libm.so.6");

    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &library), HFN_MODULE_REPLACED);
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &other), HFN_MODULE_UNUSED);
    rules.globs = globs;
    rules.glob_count = 1;
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &library), HFN_MODULE_SELECTED);
    rules.replaced = NULL;
    rules.glob_count = 0;
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &library), HFN_MODULE_UNUSED);
}

static void allocators_are_hooked_in_modules_that_are_not_selected(void)
{
    static const char *const globs[] = { "libjemalloc*" };
    hfn_module_rules rules = { .globs = globs, .glob_count = 1, .needs_allocators = true };
    hfn_module_facts libc = facts_of("/lib/libc.so.6"), mimalloc = facts_of("/opt/libmimalloc.so");
    hfn_module_facts jemalloc = facts_of("/opt/libjemalloc.so"), other = facts_of("/lib/libm.so.6");

    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &libc), HFN_MODULE_ALLOCATORS);
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &mimalloc), HFN_MODULE_ALLOCATORS);
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &jemalloc), HFN_MODULE_SELECTED);
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &other), HFN_MODULE_UNUSED);
    rules.needs_allocators = false;
    CHECK_EQ_I64(hfn_modules_choose_use(&rules, &libc), HFN_MODULE_UNUSED);
}

static hotfn_scan_info info_of(const void *plan, uint64_t plan_bytes)
{
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;

    info.file_device = 1;
    info.file_inode = 2;
    info.file_stamp = 3;
    info.id_kind = HOTFN_ID_BUILD_ID;
    info.id_bytes = 20;
    info.id[0] = 7;
    info.plan = plan;
    info.plan_bytes = plan_bytes;
    return info;
}

static void replaced_files_and_text_relocations_are_refused(void)
{
    hfn_module_facts facts = facts_of("/lib/libz.so.1");
    hotfn_scan_info info = info_of("plan", 4);
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK_EQ_I64(hfn_modules_check_scan(&facts, &info, &err), HOTFN_OK);
    info.image_flags = HOTFN_IMAGE_TEXTREL;
    CHECK_EQ_I64(hfn_modules_check_scan(&facts, &info, &err), HOTFN_E_UNSUPPORTED);
    CHECK_STR(err.file, "/lib/libz.so.1");
    CHECK(strstr(err.text, "text relocations") != NULL);
    info.file_stamp = 4;
    CHECK_EQ_I64(hfn_modules_check_scan(&facts, &info, &err), HOTFN_E_MISMATCH);
    CHECK(strstr(err.text, "replaced") != NULL);
}

static void a_file_is_recognised_by_a_reliable_stamp(void)
{
    hotfn_env env = hfn_env_fill(NULL);
    hfn_known_modules known;
    hfn_module_facts stable = facts_of("/a"), fresh = facts_of("/b"), program = facts_of("/c");
    hfn_file_identity never = { 9, 9, 0 };

    hfn_known_modules_init(&known, &env);
    fresh.file.inode = 20;
    program.file.inode = 30;
    program.is_main = true;
    CHECK(hfn_known_modules_add(&known, &stable, NULL, true, 5));
    CHECK(hfn_known_modules_add(&known, &fresh, NULL, false, 6));
    CHECK(hfn_known_modules_add(&known, &program, NULL, false, 7));
    CHECK_EQ_U64(hfn_known_modules_find_file(&known, &stable.file), 5);
    CHECK_EQ_U64(hfn_known_modules_find_file(&known, &fresh.file), UINT32_MAX);
    CHECK_EQ_U64(hfn_known_modules_find_file(&known, &program.file), 7);
    CHECK_EQ_U64(hfn_known_modules_find_file(&known, &never), UINT32_MAX);
    stable.file.stamp++;
    CHECK_EQ_U64(hfn_known_modules_find_file(&known, &stable.file), UINT32_MAX);
    hfn_known_modules_finish(&known);
}

static void a_build_is_recognised_by_its_id_and_its_plan(void)
{
    hotfn_env env = hfn_env_fill(NULL);
    hfn_known_modules known;
    hfn_module_facts facts = facts_of("/a"), unscanned = facts_of("/b");
    hotfn_scan_info first = info_of("plan", 4), other = info_of("PLAN", 4);
    hotfn_scan_info same = info_of("plan", 4);

    hfn_known_modules_init(&known, &env);
    CHECK(hfn_known_modules_add(&known, &unscanned, NULL, true, 4));
    CHECK_EQ_U64(hfn_known_modules_find_build(&known, &first), UINT32_MAX);
    CHECK(hfn_known_modules_add(&known, &facts, &first, false, 5));
    same.file_stamp = 100; /* the file was touched */
    CHECK_EQ_U64(hfn_known_modules_find_build(&known, &same), 5);
    CHECK_EQ_U64(hfn_known_modules_find_build(&known, &other), UINT32_MAX);
    same.id[0]++;
    CHECK_EQ_U64(hfn_known_modules_find_build(&known, &same), UINT32_MAX);
    same.id[0]--;
    same.file_inode++;
    CHECK_EQ_U64(hfn_known_modules_find_build(&known, &same), UINT32_MAX);
    hfn_known_modules_finish(&known);
}

static const check_test tests[] = {
    CHECK_TEST(modules_of_a_runtime_are_scanned),
    CHECK_TEST(without_globs_only_the_program_is_selected),
    CHECK_TEST(globs_match_paths_and_file_names),
    CHECK_TEST(the_loader_is_scanned_if_later_modules_are_hooked),
    CHECK_TEST(allocators_are_hooked_in_modules_that_are_not_selected),
    CHECK_TEST(replaced_files_and_text_relocations_are_refused),
    CHECK_TEST(a_file_is_recognised_by_a_reliable_stamp),
    CHECK_TEST(a_build_is_recognised_by_its_id_and_its_plan),
};
CHECK_MAIN(tests)
