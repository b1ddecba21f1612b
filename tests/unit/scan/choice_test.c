/* SPDX-License-Identifier: MIT */
/* The functions that are chosen from a scan of this test program. */
#include "scan/choice.h"

#include "check.h"

static hotfn_scan *scan_self(void)
{
    hotfn_scan *scan = NULL;

    CHECK_EQ_I64(hotfn_scan_open(&scan, "/proc/self/exe", NULL, NULL, NULL), HOTFN_OK);
    return scan;
}

static hotfn_record_function row_at(const hotfn_scan *scan, uint32_t index)
{
    hotfn_record_function row = HOTFN_RECORD_FUNCTION_INIT;

    CHECK_EQ_I64(hotfn_scan_get_function(scan, index, &row), HOTFN_OK);
    return row;
}

static uint32_t count_waiting(const hfn_scan_choice *choice)
{
    hfn_function_source source = hfn_scan_choice_source(choice);
    uint32_t count = 0;

    for (uint32_t i = 0; i < choice->module.function_count; i++) {
        hotfn_record_function row;

        source.get(source.user, i, &row);
        count += row.state == HOTFN_STATE_WAITING;
    }
    return count;
}

static void a_function_whose_size_equals_the_bounds_is_selected(void)
{
    hotfn_scan *scan = scan_self();
    hotfn_selection s = HOTFN_SELECTION_INIT;
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hfn_function_rules rules = { .selection = &s };
    hfn_scan_choice choice;
    uint32_t equal = 0;

    hotfn_scan_get_info(scan, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        hotfn_record_function row = row_at(scan, i);

        if (row.state == HOTFN_STATE_WAITING) {
            s.min_bytes = s.max_bytes = row.byte_count;
        }
    }
    for (uint32_t i = 0; i < info.function_count; i++) {
        hotfn_record_function row = row_at(scan, i);

        equal += row.state == HOTFN_STATE_WAITING && row.byte_count == s.min_bytes;
    }
    CHECK_EQ_I64(hfn_scan_choose(&choice, scan, HFN_MODULE_SELECTED, 0, &rules, NULL), HOTFN_OK);
    CHECK(equal > 0);
    CHECK_EQ_U64(count_waiting(&choice), equal);
    hfn_scan_choice_finish(&choice);
    hotfn_scan_close(scan);
}

static void an_exclude_that_is_not_a_glob_is_refused(void)
{
    static const char *const wrong[] = { "[" };
    hotfn_scan *scan = scan_self();
    hotfn_selection s = HOTFN_SELECTION_INIT;
    hfn_function_rules rules = { .selection = &s };
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_scan_choice choice;

    s.exclude = wrong;
    s.exclude_count = 1;
    CHECK_EQ_I64(hfn_scan_choose(&choice, scan, HFN_MODULE_SELECTED, 0, &rules, &err),
                 HOTFN_E_OPTION);
    CHECK(strstr(err.text, "'[' is not a glob") != NULL);
    hotfn_scan_close(scan);
}

static void a_selection_with_an_unknown_flag_is_refused(void)
{
    hotfn_scan *scan = scan_self();
    hotfn_selection s = HOTFN_SELECTION_INIT;
    hfn_function_rules rules = { .selection = &s };
    hfn_scan_choice choice;

    s.flags = UINT32_C(1) << 31;
    CHECK_EQ_I64(hfn_scan_choose(&choice, scan, HFN_MODULE_SELECTED, 0, &rules, NULL),
                 HOTFN_E_OPTION);
    hotfn_scan_close(scan);
}

static void only_listed_functions_are_selected(void)
{
    static const char text[] = "%s!main\nother!free\n";
    hotfn_scan *scan = scan_self();
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    hotfn_list *list = NULL;
    hfn_function_rules rules = { 0 };
    hfn_scan_choice choice;
    char lines[256];

    hotfn_scan_get_info(scan, &info);
    snprintf(lines, sizeof lines, text, strrchr(info.path, '/') + 1);
    CHECK_EQ_I64(hotfn_list_from_bytes(&list, lines, strlen(lines), "list", NULL, NULL), HOTFN_OK);
    rules.list = list;
    CHECK_EQ_I64(hfn_scan_choose(&choice, scan, HFN_MODULE_SELECTED, 0, &rules, NULL), HOTFN_OK);
    CHECK_EQ_U64(count_waiting(&choice), 1);
    hfn_scan_choice_finish(&choice);
    hotfn_list_destroy(list);
    hotfn_scan_close(scan);
}

static void a_loader_module_has_no_listed_functions(void)
{
    hotfn_scan *scan = scan_self();
    hfn_scan_choice choice;

    CHECK_EQ_I64(hfn_scan_choose(&choice, scan, HFN_MODULE_LOADER, 0, NULL, NULL), HOTFN_OK);
    CHECK_EQ_U64(choice.module.function_count, 0);
    CHECK(choice.module.flags & HOTFN_MODULE_LEFT_OUT);
    hfn_scan_choice_finish(&choice);
    hotfn_scan_close(scan);
}

__attribute__((noinline)) void *valloc(size_t byte_count); /* named like an allocator */
void *valloc(size_t byte_count)
{
    static char block[64];

    return byte_count <= sizeof block ? block : NULL;
}

static bool is_waiting(const hfn_scan_choice *choice, const char *name)
{
    hfn_function_source source = hfn_scan_choice_source(choice);

    for (uint32_t i = 0; i < choice->module.function_count; i++) {
        hotfn_record_function row;

        source.get(source.user, i, &row);
        if (strcmp(row.name, name) == 0) {
            return row.state == HOTFN_STATE_WAITING;
        }
    }
    CHECK(!"the test program has the function");
    return false;
}

/* The functions are checked by name: the runtime of a sanitizer adds other allocators. */
static void only_allocator_functions_of_an_allocator_module_are_selected(void)
{
    hotfn_scan *scan = scan_self();
    hfn_scan_choice choice;

    CHECK(valloc(1) != NULL);
    CHECK_EQ_I64(hfn_scan_choose(&choice, scan, HFN_MODULE_SELECTED, 0, NULL, NULL), HOTFN_OK);
    CHECK(is_waiting(&choice, "valloc"));
    CHECK(is_waiting(&choice, "main"));
    hfn_scan_choice_finish(&choice);
    CHECK_EQ_I64(hfn_scan_choose(&choice, scan, HFN_MODULE_ALLOCATORS, 0, NULL, NULL), HOTFN_OK);
    CHECK(is_waiting(&choice, "valloc"));
    CHECK(!is_waiting(&choice, "main"));
    hfn_scan_choice_finish(&choice);
    hotfn_scan_close(scan);
}

static const check_test tests[] = {
    CHECK_TEST(a_function_whose_size_equals_the_bounds_is_selected),
    CHECK_TEST(an_exclude_that_is_not_a_glob_is_refused),
    CHECK_TEST(a_selection_with_an_unknown_flag_is_refused),
    CHECK_TEST(only_listed_functions_are_selected),
    CHECK_TEST(a_loader_module_has_no_listed_functions),
    CHECK_TEST(only_allocator_functions_of_an_allocator_module_are_selected),
};
CHECK_MAIN(tests)
