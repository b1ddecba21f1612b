/* SPDX-License-Identifier: MIT */
/* Appending modules to a live record, also when its capacity is exhausted. */
#include "records/sample.h"

#include "base/compiler.h"
#include "live/live.h"

#include <fcntl.h>
#include <hotfn/lowlevel/verdicts.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static hfn_live *small_live(uint32_t slots, uint32_t functions, uint64_t string_bytes)
{
    hfn_live_options o = { 0 };
    hfn_live *live = NULL;

    o.slot_capacity = slots;
    o.function_capacity = functions;
    o.module_capacity = 2;
    o.string_bytes = string_bytes;
    o.thread_capacity = 2;
    if (!CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK)) {
        exit(1);
    }
    return live;
}

static hotfn_status add(hfn_live *live, const char *path, uint32_t function_count, uint32_t *index)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_function f[8];
    char names[8][16];

    for (uint32_t i = 0; i < function_count; i++) {
        snprintf(names[i], sizeof names[i], "function_%u", i);
        f[i] = sample_function(names[i], 16 * i, HOTFN_STATE_WAITING);
    }
    m.path = path;
    m.function_count = function_count;
    return hfn_live_add_module(live, &m, f, index, NULL);
}

static hotfn_record *read_live(const hfn_live *live)
{
    hotfn_record *record = NULL;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", hfn_live_get_fd(live));
    if (!CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK)) {
        exit(1);
    }
    return record;
}

static void hookable_functions_get_slots_in_order(void)
{
    hfn_live *live = sample_live(NULL);
    const uint32_t *slots = hfn_live_get_slots(live, 0);
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

    CHECK(slots[0] == 0 && slots[1] == 1 && slots[2] == HOTFN_NO_SLOT && slots[3] == HOTFN_NO_SLOT);
    CHECK_EQ_U64(hfn_live_get_slots(live, 1)[0], 2);
    CHECK(hfn_live_get_slots(live, 2) == NULL);
    CHECK_EQ_I64(hfn_live_get_module(live, 1, &m), HOTFN_OK);
    CHECK_EQ_U64(m.first_slot, 2);
    CHECK_EQ_U64(m.first_function, 4);
    CHECK_STR(m.file, "libgamma.so");
    CHECK_EQ_U64(hfn_live_get_module_count(live), 2);
    CHECK_STR(hfn_live_get_function_name(live, 0, 3), "alpha.cold");
    CHECK(hfn_live_get_function_name(live, 0, 4) == NULL);
    hfn_live_close(live);
}

static void functions_without_a_free_slot_are_refused_with_a_reason(void)
{
    hfn_live *live = small_live(3, 16, 4096);
    hotfn_record *record;
    uint32_t index;

    CHECK_EQ_I64(add(live, "a", 5, &index), HOTFN_OK);
    record = read_live(live);
    CHECK_EQ_U64(sample_get(record, 2).slot, 2);
    CHECK_EQ_U64(sample_get(record, 3).slot, HOTFN_NO_SLOT);
    CHECK_EQ_U64(sample_get(record, 3).state, HOTFN_STATE_REFUSED);
    CHECK_STR(sample_get(record, 4).reason, "no-slots");
    hotfn_record_close(record);
    hfn_live_close(live);
}

static void module_that_does_not_fit_is_listed_as_failed(void)
{
    hfn_live *live = small_live(8, 4, 4096), *few_names = small_live(8, 8, 160);
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record *record;
    uint32_t index;

    CHECK_EQ_I64(add(live, "a", 5, &index), HOTFN_OK);
    CHECK_EQ_I64(add(live, "b", 4, &index), HOTFN_OK);
    CHECK_EQ_U64(index, 1);
    record = read_live(live);
    hotfn_record_get_module(record, 0, &m);
    CHECK(m.flags & HOTFN_MODULE_FAILED);
    CHECK(strstr(m.note, "no room") != NULL);
    CHECK_EQ_U64(m.function_count, 0);
    hotfn_record_get_module(record, 1, &m);
    CHECK_EQ_U64(m.function_count, 4);
    CHECK_EQ_U64(m.first_slot, 0);
    CHECK_EQ_U64(sample_get(record, 0).module, 1);
    hotfn_record_close(record);
    CHECK_EQ_I64(add(few_names, "a", 8, &index), HOTFN_OK);
    record = read_live(few_names);
    hotfn_record_get_module(record, 0, &m);
    CHECK(m.flags & HOTFN_MODULE_FAILED);
    hotfn_record_close(record);
    hfn_live_close(live);
    hfn_live_close(few_names);
}

static void names_and_slots_of_a_failed_module_are_reused(void)
{
    hfn_live *live = small_live(8, 16, 4096);
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    uint64_t room = hfn_live_section_bytes(live, HFN_SECTION_STRINGS), before;
    char *long_name = malloc(room);
    hotfn_record_function f[] = { sample_function("one", 0, HOTFN_STATE_WAITING),
                                  sample_function("two", 16, HOTFN_STATE_WAITING),
                                  sample_function("three", 32, HOTFN_STATE_WAITING) };
    uint32_t index;

    memset(long_name, 'n', room - 1);
    long_name[room - 1] = 0;
    f[2].name = long_name;
    m.path = "a";
    m.function_count = 3;
    before = live->string_bytes;
    CHECK_EQ_I64(hfn_live_add_module(live, &m, f, &index, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_live_get_module(live, 0, &m), HOTFN_OK);
    CHECK(m.flags & HOTFN_MODULE_FAILED);
    CHECK_EQ_U64(live->string_bytes - before, 3); /* "a" and two NULs */
    CHECK_EQ_I64(add(live, "b", 8, &index), HOTFN_OK);
    CHECK_EQ_U64(hfn_live_get_slots(live, 1)[0], 0);
    CHECK_EQ_U64(hfn_live_get_slots(live, 1)[7], 7);
    free(long_name);
    hfn_live_close(live);
}

static void names_fill_the_strings_to_the_last_byte(void)
{
    hfn_live *live = small_live(8, 8, 4096), *full = small_live(8, 8, 4096);
    uint64_t room = hfn_live_section_bytes(live, HFN_SECTION_STRINGS) - live->string_bytes;
    char *text = malloc(room);

    memset(text, 't', room);
    text[room - 5] = 0; /* each text has two NULs */
    CHECK_EQ_I64(hfn_live_set_reason(live, 3, "ab", text), HOTFN_E_LIMIT);
    CHECK_EQ_I64(hfn_live_set_reason(full, 3, "a", text), HOTFN_OK);
    CHECK_EQ_U64(full->string_bytes, hfn_live_section_bytes(full, HFN_SECTION_STRINGS));
    free(text);
    hfn_live_close(full);
    hfn_live_close(live);
}

/* A caller may build the texts of all modules in the same buffer. */
static void texts_at_the_same_address_are_compared_by_characters(void)
{
    hfn_live *live = small_live(8, 8, 4096);
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    char strategy[16] = "jump", reason[16] = "too-short";
    hotfn_record_function f = sample_function("f", 0, HOTFN_STATE_REFUSED);
    hotfn_record *record;
    uint32_t index;

    f.strategy = strategy;
    f.reason = reason;
    m.path = "a";
    m.function_count = 1;
    CHECK_EQ_I64(hfn_live_add_module(live, &m, &f, &index, NULL), HOTFN_OK);
    strcpy(strategy, "island");
    strcpy(reason, "busy");
    CHECK_EQ_I64(hfn_live_add_module(live, &m, &f, &index, NULL), HOTFN_OK);
    record = read_live(live);
    CHECK_STR(sample_get(record, 0).strategy, "jump");
    CHECK_STR(sample_get(record, 0).reason, "too-short");
    CHECK_STR(sample_get(record, 1).strategy, "island");
    CHECK_STR(sample_get(record, 1).reason, "busy");
    hotfn_record_close(record);
    hfn_live_close(live);
}

static void module_beyond_the_capacity_is_an_error(void)
{
    hfn_live *live = small_live(8, 8, 4096);
    uint32_t index = 7;

    CHECK_EQ_I64(add(live, "a", 1, &index), HOTFN_OK);
    CHECK_EQ_I64(add(live, "b", 1, &index), HOTFN_OK);
    CHECK_EQ_I64(add(live, "c", 1, &index), HOTFN_E_LIMIT);
    CHECK_EQ_U64(index, 1);
    hfn_live_close(live);
}

static void only_the_creator_appends(void)
{
    hfn_live *live = sample_live(NULL), *joined = NULL;
    char path[64];
    uint32_t index;

    snprintf(path, sizeof path, "/proc/self/fd/%d", hfn_live_get_fd(live));
    CHECK_EQ_I64(hfn_live_join(&joined, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(add(joined, "a", 1, &index), HOTFN_E_STATE);
    CHECK_EQ_I64(hfn_live_set_reason(joined, 3, "a", "b"), HOTFN_E_STATE);
    CHECK_EQ_U64(hfn_live_get_module_count(joined), 2);
    CHECK_STR(hfn_live_get_function_name(joined, 0, 0), "alpha");
    CHECK_EQ_I64(hfn_live_get_fd(joined), -1);
    hfn_live_close(joined);
    hfn_live_close(live);
}

static void state_and_reason_are_set_by_number(void)
{
    hfn_live *live = sample_live(NULL);
    hotfn_record *record;

    CHECK_EQ_I64(hfn_live_set_reason(live, HOTFN_REASON_BYTES_DIFFER, "bytes-differ", "differs"),
                 HOTFN_OK);
    CHECK_EQ_I64(
        hfn_live_set_function(live, 0, 1, HOTFN_STATE_REFUSED, HOTFN_REASON_BYTES_DIFFER, 2),
        HOTFN_OK);
    CHECK_EQ_I64(hfn_live_set_function(live, 0, 4, HOTFN_STATE_REFUSED, 1, 2), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hfn_live_set_function(live, 2, 0, HOTFN_STATE_REFUSED, 1, 2), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hfn_live_set_function(live, 0, 0, HOTFN_STATE_REFUSED, 1000, 2), HOTFN_E_LIMIT);
    CHECK_EQ_I64(hfn_live_set_reason(live, 0, "a", "b"), HOTFN_E_LIMIT);
    CHECK_EQ_I64(hfn_live_set_reason(live, 256, "a", "b"), HOTFN_E_LIMIT);
    record = read_live(live);
    CHECK_STR(sample_get(record, 1).reason, "bytes-differ");
    CHECK_STR(sample_get(record, 1).reason_text, "differs");
    CHECK_EQ_U64(sample_get(record, 1).reason_offset, 2);
    hotfn_record_close(record);
    hfn_live_close(live);
}

static void long_note_is_truncated(void)
{
    hfn_live *live = sample_live(NULL);
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    char note[1000];

    memset(note, 'n', sizeof note - 1);
    note[sizeof note - 1] = 0;
    CHECK_EQ_I64(hfn_live_set_module(live, 0, 0, 0, note), HOTFN_OK);
    hfn_live_get_module(live, 0, &m);
    CHECK_EQ_U64(strlen(m.note), 255);
    hfn_live_close(live);
}

/* The strings of new reasons follow the names of the module that used them first, so they are
 * discarded together with these names. */
static void reasons_of_a_failed_module_are_discarded(void)
{
    static char long_name[8192];
    hfn_live *live = small_live(8, 16, 4096);
    hotfn_record_function f[2] = { sample_function("f", 0, HOTFN_STATE_REFUSED),
                                   sample_function(long_name, 16, HOTFN_STATE_REFUSED) };
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record *record;
    uint32_t index;

    memset(long_name, 'x', sizeof long_name - 1);
    m.path = "a";
    f[0].reason = "of-a";
    m.function_count = 2;
    CHECK_EQ_I64(hfn_live_add_module(live, &m, f, &index, NULL), HOTFN_OK);
    record = read_live(live); /* the record is valid */
    hotfn_record_close(record);
    m.path = "b";
    f[0].reason = "of-b";
    m.function_count = 1;
    CHECK_EQ_I64(hfn_live_add_module(live, &m, f, &index, NULL), HOTFN_OK);
    record = read_live(live);
    CHECK_STR(sample_get(record, 0).name, "f");
    CHECK_STR(sample_get(record, 0).reason, "of-b");
    hotfn_record_close(record);
    hfn_live_close(live);
}

/* proc(5), pagemap: bit 63 is set if the page is mapped. */
static uint32_t pages_mapped(const uint8_t *at, uint32_t count)
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint32_t mapped = 0;
    uint64_t entry;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t page = ((uintptr_t)at / (uintptr_t)sysconf(_SC_PAGESIZE)) + i;
        if (pread(fd, &entry, sizeof entry, (off_t)(page * sizeof entry)) == sizeof entry) {
            mapped += entry >> 63;
        }
    }
    close(fd);
    return mapped;
}

static uint64_t get_allocated_bytes(const hfn_live *live)
{
    struct stat s = { 0 };

    CHECK_EQ_I64(fstat(hfn_live_get_fd(live), &s), 0);
    return (uint64_t)s.st_blocks * 512;
}

/* The creator allocates histograms for the functions that exist; the target maps all of them at
 * once (since Linux 5.14). */
static void histograms_of_first_calls_are_allocated_and_mapped(void)
{
    enum { FUNCTIONS = 8 };
    hfn_live_options o = { 0 };
    uint32_t index, pages = FUNCTIONS * HFN_HISTOGRAM_BYTES / (uint32_t)sysconf(_SC_PAGESIZE);
    hfn_live *live = NULL;
    const uint8_t *pool;
    uint64_t before;

    o.slot_capacity = 16;
    o.thread_capacity = 2;
    o.string_bytes = 4096;
    o.timing = HOTFN_TIMING_TIMES | HOTFN_TIMING_HISTOGRAMS;
    if (!CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK)) {
        return;
    }
    pool = hfn_live_section(live, HFN_SECTION_HISTOGRAMS);
    before = get_allocated_bytes(live);
    CHECK_EQ_I64(add(live, "a", FUNCTIONS, &index), HOTFN_OK);
    CHECK(get_allocated_bytes(live) - before >= FUNCTIONS * HFN_HISTOGRAM_BYTES);
    CHECK_EQ_U64(pages_mapped(pool, pages), 0);
    hfn_live_map_first_histograms(live);
    if (madvise((void *)(uintptr_t)pool, 1, MADV_POPULATE_READ) == 0) {
        CHECK_EQ_U64(pages_mapped(pool, pages), pages);
    }
    hfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(hookable_functions_get_slots_in_order),
    CHECK_TEST(functions_without_a_free_slot_are_refused_with_a_reason),
    CHECK_TEST(module_that_does_not_fit_is_listed_as_failed),
    CHECK_TEST(names_and_slots_of_a_failed_module_are_reused),
    CHECK_TEST(names_fill_the_strings_to_the_last_byte),
    CHECK_TEST(texts_at_the_same_address_are_compared_by_characters),
    CHECK_TEST(module_beyond_the_capacity_is_an_error),
    CHECK_TEST(only_the_creator_appends),
    CHECK_TEST(state_and_reason_are_set_by_number),
    CHECK_TEST(long_note_is_truncated),
    CHECK_TEST(reasons_of_a_failed_module_are_discarded),
    CHECK_TEST(histograms_of_first_calls_are_allocated_and_mapped),
};
CHECK_MAIN(tests)
