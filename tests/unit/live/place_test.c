/* SPDX-License-Identifier: MIT */
/* Memory of live records, also where address space and file sizes are limited. */
#include "live/layout.h"
#include "records/sample.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Run `work` in a child process, so that the limits that it sets end with the child. */
static void run_in_child(void (*work)(void))
{
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        work();
        fflush(stdout);
        _exit(check_failures ? 1 : 0);
    }
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ_I64(WEXITSTATUS(status), 0);
}

static void set_limit(int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit l = { soft, hard };

    CHECK_EQ_I64(setrlimit(resource, &l), 0);
}

static hfn_live_options many_rows(void)
{
    hfn_live_options o = { 0 };

    o.slot_capacity = 1 << 17; /* rows of a megabyte */
    o.string_bytes = 1 << 20;
    return o;
}

static void live_in_little_address_space(void)
{
    hfn_live_options o = many_rows();
    hfn_row_memory m;
    hfn_live *live = NULL, *joined = NULL;
    char path[64];

    set_limit(RLIMIT_AS, 256 << 20, 256 << 20);
    if (!CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK)) {
        return;
    }
    sample_add_modules(live);
    m = hfn_live_activate_rows(live);
    CHECK(m.thread_capacity >= 16 && m.thread_capacity < 256);
    m.rows[(uint64_t)m.thread_capacity * m.row_bytes - 1] = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", hfn_live_get_fd(live));
    CHECK_EQ_I64(hfn_live_join(&joined, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_U64(hfn_live_get_slots(joined, 0)[1], 1);
    CHECK_STR(hfn_live_get_function_name(joined, 1, 0), "gamma");
    hfn_live_close(joined);
    hfn_live_close(live);
}

/* The address and thread sanitizers need terabytes of address space themselves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ADDRESSES_CAN_BE_LIMITED 0
#elif defined(__has_feature)
#define ADDRESSES_CAN_BE_LIMITED                                                                   \
    !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define ADDRESSES_CAN_BE_LIMITED 1
#endif

static void limited_address_space_means_fewer_rows(void)
{
    if (ADDRESSES_CAN_BE_LIMITED) {
        run_in_child(live_in_little_address_space);
    }
}

static void live_under_a_soft_file_limit(void)
{
    hfn_live_options o = many_rows();
    struct rlimit after;
    hfn_live *live = NULL;

    set_limit(RLIMIT_FSIZE, 4096, RLIM_INFINITY);
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    getrlimit(RLIMIT_FSIZE, &after);
    CHECK_EQ_U64(after.rlim_cur, 4096);
    hfn_live_close(live);
}

static void live_under_a_hard_file_limit(void)
{
    hfn_live_options o = many_rows();
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_live *live = NULL;

    set_limit(RLIMIT_FSIZE, 4096, 4096);
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, &err), HOTFN_E_NO_MEMORY);
    CHECK(err.text[0] && live == NULL);
}

static void file_size_limit_is_raised_or_reported(void)
{
    run_in_child(live_under_a_soft_file_limit);
    run_in_child(live_under_a_hard_file_limit);
}

static void capacities_above_the_maximum_are_refused(void)
{
    hfn_live_options o = { 0 };
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_live *live = NULL;

    o.slot_capacity = UINT32_MAX;
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, &err), HOTFN_E_LIMIT);
    o.slot_capacity = 0;
    o.string_bytes = UINT64_MAX;
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, &err), HOTFN_E_LIMIT);
}

static void durable_record_in_a_missing_folder_names_the_file(void)
{
    hfn_live_options o = { 0 };
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_live *live = NULL;

    o.durable_path = "/proc/self/none/r.hfr";
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, &err), HOTFN_E_IO);
    CHECK_STR(err.file, "/proc/self/none/r.hfr");
    o.durable_path = "/dev";
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, &err), HOTFN_E_IO);
    CHECK(strstr(err.text, "not a regular file") != NULL);
}

static void blocks_that_the_target_writes_are_allocated_first(void)
{
    hfn_live *live = sample_live(sample_path("blocks.hfr"));
    hfn_row_memory m;
    struct stat file;

    m = hfn_live_activate_rows(live);
    CHECK_EQ_I64(fstat(hfn_live_get_fd(live), &file), 0);
    CHECK((uint64_t)file.st_blocks * 512 >= (uint64_t)m.thread_capacity * m.row_bytes);
    hfn_live_close(live);
}

static void other_files_are_not_joined(void)
{
    hfn_live *live = sample_live(NULL), *joined = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;
    const char *path = sample_path("finished.hfr");
    uint8_t bytes[4096];
    int fd;

    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hfn_live_join(&joined, path, NULL, &err), HOTFN_E_MISMATCH);
    CHECK_EQ_I64(hfn_live_join(&joined, "/none", NULL, &err), HOTFN_E_IO);
    fd = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
    CHECK_EQ_I64(hfn_live_join(&joined, path, NULL, &err), HOTFN_E_FORMAT);
    memset(bytes, 0x5a, sizeof bytes);
    CHECK(write(fd, bytes, sizeof bytes) == sizeof bytes);
    CHECK_EQ_I64(hfn_live_join(&joined, path, NULL, &err), HOTFN_E_FORMAT);
    /* a live record without its sections */
    CHECK(pread(hfn_live_get_fd(live), bytes, sizeof bytes, 0) == sizeof bytes);
    CHECK(pwrite(fd, bytes, sizeof bytes, 0) == sizeof bytes);
    CHECK_EQ_I64(hfn_live_join(&joined, path, NULL, &err), HOTFN_E_FORMAT);
    close(fd);
    CHECK(joined == NULL);
    hfn_live_close(live);
}

static void a_live_record_of_another_layout_is_refused_with_both_versions(void)
{
    const char *path = sample_path("layout.hfr");
    hfn_live *live = sample_live(path), *joined = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;
    uint8_t head[4096], uuid[16] = { 0 };
    hfn_layout layout;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    CHECK(pread(fd, head, sizeof head, 0) == sizeof head);
    CHECK_EQ_I64(hfn_header_read(&layout, (hfn_span){ head, sizeof head, false }, UINT64_MAX, false,
                                 path, &err),
                 HOTFN_OK);
    layout.row_bytes *= 2;
    hfn_header_write(head, &layout, uuid, 0);
    CHECK(pwrite(fd, head, sizeof head, 0) == sizeof head);
    CHECK_EQ_I64(hfn_live_join(&joined, path, NULL, &err), HOTFN_E_MISMATCH);
    CHECK(strstr(err.text, "the live record (format version 1.0)") != NULL);
    CHECK(strstr(err.text, "this hotfn (format version 1.0)") != NULL);
    CHECK(joined == NULL);
    close(fd);
    hfn_live_close(live);
}

/* Stubs of punned jumps and code that the program generates need free addresses within 2 GiB of the
 * program, so the record must not take them. */
static void record_is_mapped_far_from_code(void)
{
    hfn_live_options o = many_rows();
    hfn_row_memory m;
    hfn_live *live = NULL;
    uint64_t begin, end, text = (uint64_t)(uintptr_t)&many_rows;

    if (!CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK)) {
        return;
    }
    m = hfn_live_activate_rows(live);
    begin = (uint64_t)(uintptr_t)m.rows;
    end = begin + (uint64_t)m.thread_capacity * m.row_bytes;
    CHECK(end + (UINT64_C(4) << 30) < text || begin > text + (UINT64_C(4) << 30));
    text = (uint64_t)(uintptr_t)&getpid;
    CHECK(end + (UINT64_C(4) << 30) < text || begin > text + (UINT64_C(4) << 30));
    hfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(record_is_mapped_far_from_code),
    CHECK_TEST(limited_address_space_means_fewer_rows),
    CHECK_TEST(file_size_limit_is_raised_or_reported),
    CHECK_TEST(capacities_above_the_maximum_are_refused),
    CHECK_TEST(durable_record_in_a_missing_folder_names_the_file),
    CHECK_TEST(blocks_that_the_target_writes_are_allocated_first),
    CHECK_TEST(other_files_are_not_joined),
    CHECK_TEST(a_live_record_of_another_layout_is_refused_with_both_versions),
};
CHECK_MAIN(tests)
