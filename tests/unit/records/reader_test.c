/* SPDX-License-Identifier: MIT */
/* Truncated, overwritten and forged records: opening one reports an error with the offset, or
 * returns the content of the intact record; a repair saves the valid part. */
#include "records/sample.h"

#include "base/crc32c.h"
#include "live/layout.h"
#include "records/reader.h"

#include <fcntl.h>
#include <hotfn/lowlevel/verdicts.h>
#include <sys/stat.h>

typedef struct file_bytes {
    uint8_t *bytes;
    size_t count;
} file_bytes;

static file_bytes load_file(const char *path)
{
    file_bytes f = { NULL, 0 };
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0 && fstat(fd, &file) == 0);
    f.count = (size_t)file.st_size;
    f.bytes = malloc(f.count);
    CHECK(read(fd, f.bytes, f.count) == (ssize_t)f.count);
    close(fd);
    return f;
}

static void store_file(const char *path, const uint8_t *bytes, size_t count)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
    close(fd);
}

static file_bytes finished_sample(void)
{
    hfn_live *live = sample_live(NULL);
    const char *path = sample_path("sample.hfr");

    sample_count(live, 0, 70, 70, 0, 5);
    sample_count(live, 1, 70, 71, 1, 300);
    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 3, NULL, NULL, NULL), HOTFN_OK);
    hfn_live_close(live);
    return load_file(path);
}

/* A hash of everything that the calls return about the record. */
static uint64_t digest(const hotfn_record *record)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    uint64_t sum = 0;

    hotfn_record_get_info(record, &info);
    sum += info.state + 3 * info.pid + (uint64_t)info.exit_code + info.start_ns + info.end_ns +
           strlen(info.command) + strlen(info.directory) + strlen(info.tool) + info.uuid[3];
    for (uint32_t i = 0; i < info.module_count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

        hotfn_record_get_module(record, i, &m);
        sum = sum * 31 + strlen(m.path) + strlen(m.note) + m.flags + m.id[0] + m.function_count;
    }
    for (uint32_t i = 0; i < info.function_count; i++) {
        hotfn_record_function f = sample_get(record, i);
        const char *name = f.names;

        sum = sum * 31 + f.rva + f.calls + f.state + strlen(f.name) + strlen(f.reason) +
              strlen(f.reason_text) + strlen(f.strategy) + f.name[0];
        for (; name[0]; name += strlen(name) + 1) {
            sum += (unsigned char)name[0];
        }
    }
    for (uint32_t i = 0; i < info.thread_count; i++) {
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;

        hotfn_record_get_thread(record, i, &t);
        sum = sum * 31 + t.tid + t.calls + (unsigned char)t.name[0];
    }
    return sum;
}

/* Fail the test and print the offset of the byte that was changed, or the length of the file. */
static void fail_at(size_t offset)
{
    CHECK_EQ_U64(offset, SIZE_MAX);
}

static uint64_t open_and_digest(const char *path, hotfn_error *err)
{
    hotfn_record *record = NULL;
    uint64_t sum;

    if (hotfn_record_open(&record, path, NULL, err) != HOTFN_OK) {
        return 0;
    }
    sum = digest(record);
    hotfn_record_close(record);
    return sum;
}

static void every_truncation_is_an_error(void)
{
    file_bytes f = finished_sample();
    const char *path = sample_path("cut.hfr");

    for (size_t length = 0; length < f.count; length++) {
        hotfn_error err = HOTFN_ERROR_INIT;

        store_file(path, f.bytes, length);
        if (open_and_digest(path, &err) != 0 || !err.text[0] || strcmp(err.file, path) != 0) {
            fail_at(length);
        }
    }
    free(f.bytes);
}

static void every_changed_byte_is_an_error_or_changes_nothing(void)
{
    static const uint8_t changes[] = { 0xff, 0x01, 0x80 };
    file_bytes f = finished_sample();
    const char *path = sample_path("changed.hfr");
    uint64_t whole, unnoticed = 0;

    store_file(path, f.bytes, f.count);
    whole = open_and_digest(path, NULL);
    for (size_t at = 0; at < f.count; at++) {
        for (size_t k = 0; k < sizeof changes; k++) {
            hotfn_error err = HOTFN_ERROR_INIT;
            uint64_t found;

            f.bytes[at] ^= changes[k];
            store_file(path, f.bytes, f.count);
            f.bytes[at] ^= changes[k];
            found = open_and_digest(path, &err);
            unnoticed += found == whole;
            if (found != whole && (found != 0 || !err.text[0])) {
                fail_at(at);
            }
        }
    }
    CHECK(unnoticed < 3 * 500); /* only the padding between sections */
    free(f.bytes);
}

/* Remove the checksums of the sections and compute those of the header again, so that a reader goes
 * on to its other checks. */
static void seal_header(uint8_t *bytes, size_t count)
{
    uint32_t sections = hfn_read_le32(bytes + HFN_AT_SECTION_COUNT);

    if (count < 2048 || sections > HFN_SECTION_TYPES) {
        return;
    }
    for (uint32_t i = 0; i < sections; i++) {
        uint8_t *entry = bytes + HFN_HEADER_BYTES + (size_t)i * HFN_ENTRY_BYTES;

        hfn_write_le32(entry + HFN_ENTRY_FLAGS,
                       hfn_read_le32(entry + HFN_ENTRY_FLAGS) & ~HFN_SECTION_HAS_CRC);
    }
    hfn_header_seal(bytes);
    hfn_write_le32(bytes + HFN_AT_STATIC_CRC,
                   hfn_compute_crc32c(hfn_compute_crc32c(0, bytes, HFN_AT_STATIC_CRC),
                                      bytes + HFN_HEADER_BYTES,
                                      (size_t)sections * HFN_ENTRY_BYTES));
}

static void forged_values_with_valid_checksums_do_no_harm(void)
{
    static const uint8_t changes[] = { 0xff, 0x01, 0x80, 0x10 };
    file_bytes f = finished_sample();
    const char *path = sample_path("forged.hfr");
    uint8_t *copy = malloc(f.count);

    for (size_t at = 0; at < f.count; at++) {
        for (size_t k = 0; k < sizeof changes; k++) {
            hotfn_error err = HOTFN_ERROR_INIT;

            memcpy(copy, f.bytes, f.count);
            copy[at] ^= changes[k];
            seal_header(copy, f.count);
            store_file(path, copy, f.count);
            if (open_and_digest(path, &err) == 0 && !err.text[0]) {
                fail_at(at);
            }
        }
    }
    free(copy);
    free(f.bytes);
}

static uint8_t *section_entry(uint8_t *bytes, uint32_t type)
{
    for (uint32_t i = 0; i < hfn_read_le32(bytes + HFN_AT_SECTION_COUNT); i++) {
        uint8_t *entry = bytes + HFN_HEADER_BYTES + (size_t)i * HFN_ENTRY_BYTES;

        if (hfn_read_le32(entry + HFN_ENTRY_TYPE) == type) {
            return entry;
        }
    }
    CHECK(!"the section exists");
    exit(1);
}

static void a_row_that_ends_past_the_counts_is_refused(void)
{
    file_bytes f = finished_sample();
    const char *path = sample_path("ends.hfr");
    hotfn_error err = HOTFN_ERROR_INIT;
    uint64_t at = hfn_read_le64(section_entry(f.bytes, HFN_SECTION_PACKED_ROWS) + HFN_ENTRY_OFFSET);

    hfn_write_le64(f.bytes + at + 8,
                   hfn_read_le64(f.bytes + at + 8) + 1); /* the second row of two */
    seal_header(f.bytes, f.count);
    store_file(path, f.bytes, f.count);
    CHECK_EQ_U64(open_and_digest(path, &err), 0);
    CHECK_EQ_U64(err.offset, at + 8);
    CHECK(strstr(err.text, "the counts of thread 1 ") != NULL);
    free(f.bytes);
}

static void live_rows_too_short_for_their_slots_are_refused(void)
{
    char path[128];
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_live *live;
    file_bytes f;

    snprintf(path, sizeof path, "%s", sample_path("short.hfr"));
    live = sample_live(path);
    f = load_file(path);
    hfn_write_le32(f.bytes + HFN_AT_ROW_BYTES, 8);
    seal_header(f.bytes, f.count);
    store_file(path, f.bytes, f.count);
    CHECK_EQ_U64(open_and_digest(path, &err), 0);
    CHECK_EQ_U64(err.offset, HFN_AT_ROW_BYTES);
    CHECK(strstr(err.text, "too short for its slots") != NULL);
    hfn_live_close(live);
    free(f.bytes);
}

static void repair_saves_the_valid_part_of_every_truncated_file(void)
{
    file_bytes f = finished_sample();
    char from[128], to[128], lost[4096];
    uint64_t repaired = 0;

    snprintf(from, sizeof from, "%s", sample_path("cut.hfr"));
    snprintf(to, sizeof to, "%s", sample_path("repaired.hfr"));
    for (size_t length = 0; length <= f.count; length += 7) {
        hotfn_error err = HOTFN_ERROR_INIT;

        store_file(from, f.bytes, length);
        unlink(to);
        if (hotfn_record_repair(from, to, lost, sizeof lost, NULL, &err) != HOTFN_OK) {
            CHECK(err.text[0]);
            continue;
        }
        repaired++;
        if (open_and_digest(to, &err) == 0 || (length < f.count - 64 && !lost[0])) {
            fail_at(length); /* the new record must be valid, and lost must describe the loss */
        }
    }
    CHECK(repaired > 100);
    free(f.bytes);
}

static void repair_survives_every_changed_byte(void)
{
    file_bytes f = finished_sample();
    char from[128], to[128], lost[256];

    snprintf(from, sizeof from, "%s", sample_path("changed.hfr"));
    snprintf(to, sizeof to, "%s", sample_path("repaired.hfr"));
    for (size_t at = 0; at < f.count; at++) {
        hotfn_error err = HOTFN_ERROR_INIT;

        f.bytes[at] ^= 0xff;
        store_file(from, f.bytes, f.count);
        f.bytes[at] ^= 0xff;
        if (hotfn_record_repair(from, to, lost, sizeof lost, NULL, &err) == HOTFN_OK &&
            open_and_digest(to, &err) == 0) {
            fail_at(at);
        }
    }
    free(f.bytes);
}

static void a_file_that_is_not_a_record_is_an_error(void)
{
    const char *path = sample_path("other");
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;

    store_file(path,
               (const uint8_t *)"\x7f"
                                "ELF, not a record",
               18);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, &err), HOTFN_E_FORMAT);
    CHECK_EQ_U64(err.offset, 0);
    CHECK(strstr(err.text, "no hotfn record") != NULL);
    store_file(path, NULL, 0);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, &err), HOTFN_E_FORMAT);
    CHECK(strstr(err.text, "empty") != NULL);
    CHECK_EQ_I64(hotfn_record_open(&record, "/", NULL, &err), HOTFN_E_IO);
    CHECK_EQ_I64(hotfn_record_open(&record, "/none", NULL, &err), HOTFN_E_IO);
    CHECK_EQ_I64(hotfn_record_open(&record, "/dev/zero", NULL, &err), HOTFN_E_IO);
    unlink(path);
    CHECK_EQ_I64(mkfifo(path, 0600), 0);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, &err),
                 HOTFN_E_IO); /* without waiting for a writer */
    unlink(path);
    CHECK(record == NULL);
}

static void a_record_of_another_version_is_refused_with_both_versions(void)
{
    file_bytes f = finished_sample();
    char path[128], wanted[64];
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;

    snprintf(path, sizeof path, "%s", sample_path("version.hfr"));
    hfn_write_le32(f.bytes + HFN_AT_MAJOR, HFN_RECORD_MAJOR + 1);
    seal_header(f.bytes, f.count);
    store_file(path, f.bytes, f.count);
    snprintf(wanted, sizeof wanted, "format version %u, this hotfn reads version %u",
             HFN_RECORD_MAJOR + 1, HFN_RECORD_MAJOR);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, &err), HOTFN_E_MISMATCH);
    CHECK(strstr(err.text, wanted) != NULL);
    err.text[0] = 0;
    CHECK_EQ_I64(hotfn_record_repair(path, sample_path("new.hfr"), NULL, 0, NULL, &err),
                 HOTFN_E_MISMATCH);
    CHECK(strstr(err.text, wanted) != NULL);
    CHECK(record == NULL && access(sample_path("new.hfr"), F_OK) != 0);
    free(f.bytes);
}

static void only_a_link_to_a_missing_file_is_reported_as_a_lost_run(void)
{
    const char *path = sample_path("loop");
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;

    CHECK_EQ_I64(symlink(path, path), 0);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, &err), HOTFN_E_IO);
    CHECK(strstr(err.text, "cannot be opened") != NULL);
    unlink(path);
    CHECK_EQ_I64(symlink("/none/at/all", path), 0);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, &err), HOTFN_E_IO);
    CHECK(strstr(err.text, "a live record that no longer exists") != NULL);
    unlink(path);
}

static void a_live_record_with_all_rows_in_use_can_be_opened(void)
{
    char path[128];
    hotfn_record *record = NULL;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hfn_live *live;

    snprintf(path, sizeof path, "%s", sample_path("full.hfr"));
    live = sample_live(path);
    for (uint32_t i = 0; i < 8; i++) {
        sample_count(live, i, 70, 70 + i, 0, 1);
    }
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    hotfn_record_get_info(record, &info);
    CHECK_EQ_U64(info.thread_count, 8);
    CHECK_EQ_U64(sample_get(record, 0).calls, 8);
    hotfn_record_close(record);
    hfn_live_close(live);
}

static void slots_beyond_the_functions_are_ignored(void)
{
    file_bytes f = finished_sample();
    const char *path = sample_path("slots.hfr");
    hotfn_record *record = NULL;

    hfn_write_le32(f.bytes + HFN_AT_SLOTS, 1 << 20);
    seal_header(f.bytes, f.count);
    store_file(path, f.bytes, f.count);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_U64(record->slot_count, 5);
    CHECK_EQ_U64(sample_get(record, 1).calls, 300);
    hotfn_record_close(record);
    free(f.bytes);
}

/* Check the thread ids of the shown threads; second is 0 if there is only one. */
static void check_shown_threads(const hotfn_record *record, uint32_t first, uint32_t second)
{
    hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;

    CHECK_EQ_I64(hotfn_record_get_thread(record, 0, &t), HOTFN_OK);
    CHECK_EQ_U64(t.tid, first);
    CHECK_EQ_I64(hotfn_record_get_thread(record, 1, &t), second ? HOTFN_OK : HOTFN_E_NOT_FOUND);
    CHECK_EQ_U64(t.tid, second ? second : first);
    CHECK_EQ_I64(hotfn_record_get_thread(record, 2, &t), HOTFN_E_NOT_FOUND);
}

static void choosing_a_process_shows_its_threads_only(void)
{
    hfn_live *live = sample_live(NULL);
    hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
    const char *path = sample_path("processes.hfr");
    hotfn_record *record = NULL;

    sample_count(live, 0, 70, 70, 0, 5);
    sample_count(live, 1, 80, 80, 0, 7);
    sample_count(live, 2, 80, 81, 1, 1);
    hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL);
    hfn_live_close(live);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_U64(sample_get(record, 0).calls, 12);
    CHECK_EQ_I64(hotfn_record_choose_process(record, 80), HOTFN_OK);
    CHECK_EQ_U64(sample_get(record, 0).calls, 7);
    CHECK_EQ_U64(sample_get(record, 1).calls, 1);
    check_shown_threads(record, 80, 81);
    CHECK_EQ_I64(hotfn_record_choose_process(record, 99), HOTFN_E_NOT_FOUND);
    CHECK_EQ_U64(sample_get(record, 0).calls, 7);
    CHECK_EQ_I64(hotfn_record_choose_thread(record, 70),
                 HOTFN_E_NOT_FOUND); /* process 80 is still chosen */
    CHECK_EQ_I64(hotfn_record_choose_thread(record, 81), HOTFN_OK);
    CHECK_EQ_U64(sample_get(record, 0).calls, 0);
    CHECK_EQ_U64(sample_get(record, 1).calls, 1);
    check_shown_threads(record, 81, 0);
    CHECK_EQ_I64(hotfn_record_choose_process(record, 70),
                 HOTFN_E_NOT_FOUND); /* thread 81 belongs to process 80 */
    CHECK_EQ_U64(sample_get(record, 1).calls, 1);
    CHECK_EQ_I64(hotfn_record_choose_process(record, 0), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_choose_thread(record, 70), HOTFN_OK);
    CHECK_EQ_U64(sample_get(record, 0).calls, 5);
    CHECK_EQ_I64(hotfn_record_choose_thread(record, 0), HOTFN_OK);
    CHECK_EQ_U64(sample_get(record, 0).calls, 12);
    CHECK_EQ_I64(hotfn_record_get_thread(record, 2, &t), HOTFN_OK);
    CHECK_EQ_U64(t.tid, 81);
    CHECK_EQ_U64(t.calls, 1);
    CHECK_STR(t.name, "worker");
    CHECK_EQ_I64(hotfn_record_get_thread(record, 3, &t), HOTFN_E_NOT_FOUND);
    hotfn_record_close(record);
}

static void sort_is_by_calls_then_by_name(void)
{
    hfn_live *live = sample_live(NULL);
    const char *path = sample_path("order.hfr");
    hotfn_record *record = NULL;
    uint32_t order[5];

    sample_count(live, 0, 70, 70, 1, 5);
    sample_count(live, 0, 70, 70, 0, 1);
    hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL);
    hfn_live_close(live);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_sort(record, HOTFN_BY_CALLS, order, 5), HOTFN_OK);
    CHECK(order[0] == 1 && order[1] == 0);
    CHECK_STR(sample_get(record, order[2]).name, "alpha.cold"); /* uncounted ones by name */
    CHECK_STR(sample_get(record, order[3]).name, "gamma");
    CHECK_STR(sample_get(record, order[4]).name, "tiny");
    hotfn_record_close(record);
}

static void counts_of_an_unhooked_function_are_kept(void)
{
    hfn_live *live = sample_live(NULL);
    const char *path = sample_path("unhooked.hfr");
    hotfn_record *record = NULL;

    sample_count(live, 0, 70, 70, 1, 5);
    hfn_live_set_function(live, 0, 1, HOTFN_STATE_REFUSED, HOTFN_REASON_BYTES_DIFFER, 0);
    hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL);
    hfn_live_close(live);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_U64(sample_get(record, 1).counted, 1);
    CHECK_EQ_U64(sample_get(record, 1).calls, 5);
    CHECK_EQ_U64(sample_get(record, 1).state, HOTFN_STATE_REFUSED);
    CHECK_EQ_U64(sample_get(record, 4).counted, 0);
    hotfn_record_close(record);
}

static void texts_about_the_run_are_read_back(void)
{
    hfn_live_options options = { .command = "c", .directory = "/" };
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_child child = HOTFN_RECORD_CHILD_INIT;
    hotfn_record *record;
    hfn_live *live;

    CHECK_EQ_I64(hfn_live_create(&live, &options, NULL, NULL), HOTFN_OK);
    CHECK(hfn_live_add_run_text(live, HFN_META_SCRIPT, "./run.sh"));
    CHECK(hfn_live_add_run_text(live, HFN_META_CPU, "12345"));
    CHECK(hfn_live_add_run_text(live, HFN_META_CHILD, "900 2 /opt/my app"));
    CHECK(hfn_live_add_run_text(live, HFN_META_CHILD, "1 1 tool"));
    CHECK_EQ_I64(hfn_live_finish(live, "run.hfr", HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL),
                 HOTFN_OK);
    hfn_live_close(live);
    CHECK_EQ_I64(hotfn_record_open(&record, "run.hfr", NULL, NULL), HOTFN_OK);
    hotfn_record_get_info(record, &info);
    CHECK_STR(info.command, "c");
    CHECK_STR(info.script, "./run.sh");
    CHECK_STR(info.became, "");
    CHECK(info.cpu_ns == 12345 && info.child_count == 2);
    CHECK_EQ_I64(hotfn_record_get_child(record, 0, &child), HOTFN_OK);
    CHECK(child.cpu_ns == 900 && child.process_count == 2);
    CHECK_STR(child.path, "/opt/my app");
    CHECK_STR(child.file, "my app");
    CHECK_EQ_I64(hotfn_record_get_child(record, 1, &child), HOTFN_OK);
    CHECK_STR(child.file, "tool");
    CHECK_EQ_I64(hotfn_record_get_child(record, 2, &child), HOTFN_E_NOT_FOUND);
    hotfn_record_close(record);
}

static const check_test tests[] = {
    CHECK_TEST(texts_about_the_run_are_read_back),
    CHECK_TEST(every_truncation_is_an_error),
    CHECK_TEST(every_changed_byte_is_an_error_or_changes_nothing),
    CHECK_TEST(forged_values_with_valid_checksums_do_no_harm),
    CHECK_TEST(a_row_that_ends_past_the_counts_is_refused),
    CHECK_TEST(live_rows_too_short_for_their_slots_are_refused),
    CHECK_TEST(repair_saves_the_valid_part_of_every_truncated_file),
    CHECK_TEST(repair_survives_every_changed_byte),
    CHECK_TEST(a_file_that_is_not_a_record_is_an_error),
    CHECK_TEST(a_record_of_another_version_is_refused_with_both_versions),
    CHECK_TEST(only_a_link_to_a_missing_file_is_reported_as_a_lost_run),
    CHECK_TEST(a_live_record_with_all_rows_in_use_can_be_opened),
    CHECK_TEST(slots_beyond_the_functions_are_ignored),
    CHECK_TEST(choosing_a_process_shows_its_threads_only),
    CHECK_TEST(sort_is_by_calls_then_by_name),
    CHECK_TEST(counts_of_an_unhooked_function_are_kept),
};
CHECK_MAIN(tests)
