/* SPDX-License-Identifier: MIT */
/* Methods of a runtime: named by several processes at once, and read without the functions that
 * got no name. */
#include "records/sample.h"

#include <sys/wait.h>

enum { METHODS = 16, SLOTS_BEFORE = 3 };

static void get_unnamed(void *user, uint32_t index, hotfn_record_function *out)
{
    (void)user;
    *out = sample_function("", index * 16u, HOTFN_STATE_HOOKED);
}

/* The sample with a module of methods, and a module behind it. */
static hfn_live *make_live(const char *durable_path, uint64_t name_bytes, uint32_t *module)
{
    static const char *const includes[] = { "get*", "set*" }, *const excludes[] = { "*secret*" };
    hfn_method_rules rules = { includes, excludes, 2, 1, "20000 draw*" };
    hfn_live *live = sample_live(durable_path);
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hfn_function_source source = { get_unnamed, NULL };
    hotfn_record_function f = sample_function("delta", 0x3000, HOTFN_STATE_HOOKED);
    uint32_t after;

    m.machine = HOTFN_MACHINE_X86_64;
    m.flags = HOTFN_MODULE_METHODS;
    m.function_count = METHODS;
    m.path = "python";
    CHECK_EQ_I64(hfn_live_add_module_from(live, &m, &source, module, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_live_reserve_names(live, *module, name_bytes, &rules, NULL), HOTFN_OK);
    m.flags = 0;
    m.function_count = 1;
    m.path = "libdelta.so";
    CHECK_EQ_I64(hfn_live_add_module(live, &m, &f, &after, NULL), HOTFN_OK);
    return live;
}

static hotfn_record *open_record(const char *path)
{
    hotfn_record *record = NULL;

    if (!CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK)) {
        exit(1);
    }
    return record;
}

static uint64_t find_calls(const hotfn_record *record, const char *name, uint64_t *rva)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_function f;

    hotfn_record_get_info(record, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        f = sample_get(record, i);
        if (strcmp(f.name, name) == 0) {
            *rva = f.rva;
            return f.calls;
        }
    }
    return UINT64_MAX;
}

static void a_name_has_one_method(void)
{
    uint32_t module;
    hfn_live *live = make_live(NULL, 1024, &module);
    uint32_t get = hfn_live_get_method(live, module, "get (a.py:1)", HFN_METHODS_ALL);
    uint32_t set = hfn_live_get_method(live, module, "set (a.py:2)", HFN_METHODS_ALL);

    CHECK(get < METHODS && set < METHODS && get != set);
    CHECK_EQ_U64(hfn_live_get_method(live, module, "get (a.py:1)", HFN_METHODS_ALL), get);
    CHECK_STR(hfn_live_get_function_name(live, module, set), "set (a.py:2)");
    CHECK_EQ_U64(hfn_live_get_method(live, 99, "x", HFN_METHODS_ALL), UINT32_MAX);
    CHECK_EQ_U64(hfn_live_count_lost_methods(live, module), 0);
    CHECK_MEM(hfn_live_get_method_rules(live, module), "+get*\0+set*\0-*secret*\0!20000 draw*\0",
              36);
    hfn_live_close(live);
}

/* Fill the table, then one more; and a room too small for a second name. */
static void methods_without_room_are_counted(void)
{
    uint32_t module;
    hfn_live *live = make_live(NULL, 1024, &module);
    char name[16];

    for (uint32_t i = 0; i < METHODS; i++) {
        snprintf(name, sizeof name, "m%u", (unsigned)i);
        CHECK(hfn_live_get_method(live, module, name, HFN_METHODS_ALL) < METHODS);
    }
    CHECK_EQ_U64(hfn_live_get_method(live, module, "more", HFN_METHODS_ALL), UINT32_MAX);
    CHECK_EQ_U64(hfn_live_count_lost_methods(live, module), 1);
    hfn_live_close(live);
    live = make_live(NULL, 8, &module);
    CHECK(hfn_live_get_method(live, module, "short", HFN_METHODS_ALL) < METHODS);
    CHECK_EQ_U64(hfn_live_get_method(live, module, "second", HFN_METHODS_ALL), UINT32_MAX);
    CHECK_EQ_U64(hfn_live_count_lost_methods(live, module), 1);
    hfn_live_close(live);
}

/* Four processes name the same methods at the same time. */
static void processes_share_methods(void)
{
    uint32_t module, named = 0;
    hfn_live *live = make_live(NULL, 4096, &module);
    char name[16];

    for (int child = 0; child < 4; child++) {
        if (fork() == 0) {
            for (uint32_t i = 0; i < 1000; i++) {
                snprintf(name, sizeof name, "m%u", (unsigned)(i % 10));
                hfn_live_get_method(live, module, name, HFN_METHODS_ALL);
            }
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
    for (uint32_t i = 0; i < METHODS; i++) {
        named += hfn_live_get_function_name(live, module, i)[0] != 0;
    }
    CHECK_EQ_U64(named, 10);
    CHECK_EQ_U64(hfn_live_count_lost_methods(live, module), 0);
    hfn_live_close(live);
}

/* Live, finished, and finished by another live record that gave the method another function. */
static void only_methods_are_read(void)
{
    uint64_t live_rva = 0, finished_rva = 1, other_rva = 2, rva;
    uint32_t module, get;
    hfn_live *live = make_live(NULL, 1024, &module);
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    char path[64];
    hotfn_record *record;

    get = hfn_live_get_method(live, module, "get (a.py:1)", HFN_METHODS_ALL);
    sample_count(live, 0, 70, 70, SLOTS_BEFORE + get, 5);
    sample_count(live, 0, 70, 70, SLOTS_BEFORE + METHODS, 8);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), hfn_live_get_fd(live));
    record = open_record(path);
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.function_count, 5 + 1 + 1);
    CHECK_EQ_U64(find_calls(record, "get (a.py:1)", &live_rva), 5);
    CHECK_EQ_U64(find_calls(record, "delta", &rva), 8);
    hotfn_record_close(record);
    CHECK_EQ_I64(
        hfn_live_finish(live, sample_path("one.hfr"), HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL),
        HOTFN_OK);
    hfn_live_close(live);
    record = open_record(sample_path("one.hfr"));
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.function_count, 5 + 1 + 1);
    CHECK_EQ_U64(find_calls(record, "get (a.py:1)", &finished_rva), 5);
    CHECK_EQ_U64(find_calls(record, "delta", &rva), 8);
    CHECK_STR(sample_get(record, 6).strategy, "jump");
    hotfn_record_close(record);
    live = make_live(NULL, 1024, &module);
    for (uint32_t i = 0; i < METHODS - 1; i++) { /* whatever place "get" would have, it is taken */
        snprintf(path, sizeof path, "other%u", (unsigned)i);
        hfn_live_get_method(live, module, path, HFN_METHODS_ALL);
    }
    get = hfn_live_get_method(live, module, "get (a.py:1)", HFN_METHODS_ALL);
    sample_count(live, 0, 70, 70, SLOTS_BEFORE + get, 6);
    hfn_live_finish(live, sample_path("two.hfr"), HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL);
    hfn_live_close(live);
    record = open_record(sample_path("two.hfr"));
    CHECK_EQ_U64(find_calls(record, "get (a.py:1)", &other_rva), 6);
    CHECK_EQ_U64(live_rva, finished_rva);
    CHECK_EQ_U64(live_rva, other_rva);
    CHECK(live_rva >> 39 == 1);
    hotfn_record_close(record);
}

/* A durable record whose writer was killed. */
static void a_broken_record_is_repaired(void)
{
    uint32_t module, get;
    uint64_t rva;
    char lost[256] = "";
    hotfn_record *record;
    int status;

    sample_path(""); /* one folder for both processes */
    if (fork() == 0) {
        hfn_live *live = make_live(sample_path("broken.hfr"), 1024, &module);
        get = hfn_live_get_method(live, module, "get (a.py:1)", HFN_METHODS_ALL);
        sample_count(live, 0, 70, 70, SLOTS_BEFORE + get, 5);
        _exit(0);
    }
    wait(&status);
    char from[128];
    snprintf(from, sizeof from, "%s", sample_path("broken.hfr"));
    CHECK_EQ_I64(
        hotfn_record_repair(from, sample_path("repaired.hfr"), lost, sizeof lost, NULL, NULL),
        HOTFN_OK);
    record = open_record(sample_path("repaired.hfr"));
    CHECK_EQ_U64(find_calls(record, "get (a.py:1)", &rva), 5);
    CHECK_EQ_U64(find_calls(record, "", &rva), UINT64_MAX);
    hotfn_record_close(record);
}

/* An order for all methods begins anew; others are appended, until there is no room. */
static void orders_are_kept(void)
{
    static const char *const includes[] = { "-?A *" }, *const excludes[] = { "*one?" };
    hfn_method_rules all = { NULL, NULL, 0, 0, NULL }, some = { includes, excludes, 1, 1, NULL };
    hotfn_error err = HOTFN_ERROR_INIT;
    uint32_t module, word, count = 0;
    hfn_live *live = make_live(NULL, 1024, &module);

    word = *hfn_live_get_method_orders(live, module);
    CHECK_EQ_U64(word, 0);
    CHECK_EQ_I64(hfn_live_order_methods(live, module, HFN_METHOD_OFF, &all, &err), HOTFN_OK);
    CHECK_EQ_U64(*hfn_live_get_method_orders(live, module), HFN_METHOD_ORDERS_OFF);
    CHECK_EQ_I64(hfn_live_order_methods(live, module, HFN_METHOD_TIME, &some, &err), HOTFN_OK);
    word = *hfn_live_get_method_orders(live, module);
    CHECK_EQ_U64(word, HFN_METHOD_ORDERS_OFF | 16u << HFN_METHOD_ORDERS_SHIFT);
    CHECK_MEM(hfn_live_get_order_texts(live, module), "3\0+-?A *\0-*one?\0", 16);
    CHECK_EQ_I64(hfn_live_order_methods(live, module, HFN_METHOD_TIME, &all, &err), HOTFN_OK);
    CHECK_EQ_U64(*hfn_live_get_method_orders(live, module), 16u << HFN_METHOD_ORDERS_SHIFT | 16u);
    while (hfn_live_order_methods(live, module, HFN_METHOD_OFF, &some, &err) == HOTFN_OK) {
        count++;
    }
    CHECK_EQ_U64(count, HFN_METHOD_ORDERS_BYTES / 16 - 1);
    CHECK(strstr(err.text, "no room for further globs") != NULL);
    hfn_live_close(live);
}

/* Names that were given before the split are found after it, and each kind has half of the rest. */
static void a_split_pool_has_two_kinds(void)
{
    uint32_t module, index, before[METHODS / 4], found[2] = { 0, 0 };
    hfn_live *live = make_live(NULL, 4096, &module);
    char name[16];

    for (uint32_t i = 0; i < METHODS / 4; i++) {
        snprintf(name, sizeof name, "before %u", i);
        before[i] = hfn_live_get_method(live, module, name, HFN_METHODS_ALL);
    }
    hfn_live_split_methods(live, module);
    for (uint32_t i = 0; i < 2 * METHODS; i++) {
        bool is_counted = i % 2 != 0;
        hfn_method_places places = is_counted ? HFN_METHODS_COUNTED : HFN_METHODS_ALL;

        snprintf(name, sizeof name, "%u", i);
        index = hfn_live_get_method(live, module, name, places);
        if (index != UINT32_MAX) {
            CHECK_EQ_U64(hfn_live_is_counted_place(index), is_counted);
            CHECK_EQ_U64(hfn_live_get_method(live, module, name, HFN_METHODS_ALL), index);
            CHECK_EQ_U64(hfn_live_get_method(live, module, name, HFN_METHODS_COUNTED), index);
            found[is_counted]++;
        }
    }
    CHECK_EQ_U64(found[0] + found[1] + METHODS / 4, METHODS);
    for (uint32_t i = 0; i < METHODS / 4; i++) {
        snprintf(name, sizeof name, "before %u", i);
        CHECK_EQ_U64(hfn_live_get_method(live, module, name, HFN_METHODS_COUNTED), before[i]);
    }
    hfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(a_name_has_one_method),       CHECK_TEST(methods_without_room_are_counted),
    CHECK_TEST(processes_share_methods),     CHECK_TEST(only_methods_are_read),
    CHECK_TEST(a_broken_record_is_repaired), CHECK_TEST(orders_are_kept),
    CHECK_TEST(a_split_pool_has_two_kinds),
};
CHECK_MAIN(tests)
