/* SPDX-License-Identifier: MIT */
/* Memory for live records where there is little of it. */
#include "live/layout.h"
#include "records/sample.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Run work in a child process, so that its limits end with it. */
static void in_child(void (*work)(void))
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

static void limit(int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit l = { soft, hard };

    CHECK_EQ_I64(setrlimit(resource, &l), 0);
}

static hotfn_live_options many_rows(void)
{
    hotfn_live_options o = HOTFN_LIVE_OPTIONS_INIT;

    o.slot_capacity = 1 << 17; /* rows of a megabyte */
    o.string_bytes = 1 << 20;
    return o;
}

static void live_in_little_address_space(void)
{
    hotfn_live_options o = many_rows();
    hfn_row_memory m;
    hotfn_live *live = NULL, *joined = NULL;
    char path[64];

    limit(RLIMIT_AS, 256 << 20, 256 << 20);
    if (!CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, NULL), HOTFN_OK)) {
        return;
    }
    sample_add_modules(live);
    m = hfn_live_activate_rows(live);
    CHECK(m.thread_capacity >= 16 && m.thread_capacity < 256);
    m.rows[(uint64_t)m.thread_capacity * m.row_bytes - 1] = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", hotfn_live_fd(live));
    CHECK_EQ_I64(hotfn_live_join(&joined, path, NULL, NULL), HOTFN_OK);
    CHECK_EQ_U64(hotfn_live_slots(joined, 0)[1], 1);
    CHECK_STR(hotfn_live_function_name(joined, 1, 0), "gamma");
    hotfn_live_close(joined);
    hotfn_live_close(live);
}

/* The address and thread sanitizers want terabytes of addresses themselves. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ADDRESSES_CAN_BE_LIMITED 0
#elif defined(__has_feature)
#define ADDRESSES_CAN_BE_LIMITED                                                                   \
    !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define ADDRESSES_CAN_BE_LIMITED 1
#endif

static void few_addresses_mean_fewer_rows(void)
{
    if (ADDRESSES_CAN_BE_LIMITED) {
        in_child(live_in_little_address_space);
    }
}

static void live_under_a_soft_file_limit(void)
{
    hotfn_live_options o = many_rows();
    struct rlimit after;
    hotfn_live *live = NULL;

    limit(RLIMIT_FSIZE, 4096, RLIM_INFINITY);
    CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    getrlimit(RLIMIT_FSIZE, &after);
    CHECK_EQ_U64(after.rlim_cur, 4096);
    hotfn_live_close(live);
}

static void live_under_a_hard_file_limit(void)
{
    hotfn_live_options o = many_rows();
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_live *live = NULL;

    limit(RLIMIT_FSIZE, 4096, 4096);
    CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, &err), HOTFN_E_NO_MEMORY);
    CHECK(err.text[0] && live == NULL);
}

static void a_file_size_limit_is_lifted_or_reported(void)
{
    in_child(live_under_a_soft_file_limit);
    in_child(live_under_a_hard_file_limit);
}

static void options_beyond_any_record_are_refused(void)
{
    hotfn_live_options o = HOTFN_LIVE_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_live *live = NULL;

    o.slot_capacity = UINT32_MAX;
    CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, &err), HOTFN_E_LIMIT);
    o.slot_capacity = 0;
    o.string_bytes = UINT64_MAX;
    CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, &err), HOTFN_E_LIMIT);
    o.string_bytes = 0;
    o.flags = 1;
    CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, &err), HOTFN_E_OPTION);
}

static void durable_in_a_folder_that_is_not_there_names_the_file(void)
{
    hotfn_live_options o = HOTFN_LIVE_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_live *live = NULL;

    o.durable_path = "/proc/self/none/r.hfr";
    CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, &err), HOTFN_E_IO);
    CHECK_STR(err.file, "/proc/self/none/r.hfr");
    o.durable_path = "/dev";
    CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, &err), HOTFN_E_IO);
    CHECK(strstr(err.text, "no regular file") != NULL);
}

/* The blocks that a target writes to are on disk before it does. */
static void durable_file_has_its_blocks(void)
{
    hotfn_live *live = sample_live(sample_path("blocks.hfr"));
    hfn_row_memory m;
    struct stat file;

    m = hfn_live_activate_rows(live);
    CHECK_EQ_I64(fstat(hotfn_live_fd(live), &file), 0);
    CHECK((uint64_t)file.st_blocks * 512 >= (uint64_t)m.thread_capacity * m.row_bytes);
    hotfn_live_close(live);
}

static void what_is_no_live_record_is_not_joined(void)
{
    hotfn_live *live = sample_live(NULL), *joined = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;
    const char *path = sample_path("finished.hfr");
    uint8_t bytes[4096];
    int fd;

    CHECK_EQ_I64(hotfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_live_join(&joined, path, NULL, &err), HOTFN_E_MISMATCH);
    CHECK_EQ_I64(hotfn_live_join(&joined, "/none", NULL, &err), HOTFN_E_IO);
    fd = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
    CHECK_EQ_I64(hotfn_live_join(&joined, path, NULL, &err), HOTFN_E_FORMAT);
    memset(bytes, 0x5a, sizeof bytes);
    CHECK(write(fd, bytes, sizeof bytes) == sizeof bytes);
    CHECK_EQ_I64(hotfn_live_join(&joined, path, NULL, &err), HOTFN_E_FORMAT);
    /* the head of a live record without the rest of it */
    CHECK(pread(hotfn_live_fd(live), bytes, sizeof bytes, 0) == sizeof bytes);
    CHECK(pwrite(fd, bytes, sizeof bytes, 0) == sizeof bytes);
    CHECK_EQ_I64(hotfn_live_join(&joined, path, NULL, &err), HOTFN_E_FORMAT);
    close(fd);
    CHECK(joined == NULL);
    hotfn_live_close(live);
}

static void a_live_record_of_another_layout_is_refused_with_both_versions(void)
{
    const char *path = sample_path("layout.hfr");
    hotfn_live *live = sample_live(path), *joined = NULL;
    hotfn_error err = HOTFN_ERROR_INIT;
    uint8_t head[4096], uuid[16] = { 0 };
    hfn_layout layout;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    CHECK(pread(fd, head, sizeof head, 0) == sizeof head);
    CHECK_EQ_I64(hfn_header_read(&layout, (hfn_span){ head, sizeof head, false }, UINT64_MAX, false,
                                 path, &err),
                 HOTFN_OK);
    layout.row_bytes *= 2;
    hfn_header_put(head, &layout, uuid, 0);
    CHECK(pwrite(fd, head, sizeof head, 0) == sizeof head);
    CHECK_EQ_I64(hotfn_live_join(&joined, path, NULL, &err), HOTFN_E_MISMATCH);
    CHECK(strstr(err.text, "the live record (format version 1.0)") != NULL);
    CHECK(strstr(err.text, "this hotfn (format version 1.0)") != NULL);
    CHECK(joined == NULL);
    close(fd);
    hotfn_live_close(live);
}

/* Puns need one address within 2 GiB of their function, compilers of the program some near memory. */
static void memory_near_code_is_left_to_others(void)
{
    hotfn_live_options o = many_rows();
    hfn_row_memory m;
    hotfn_live *live = NULL;
    uint64_t begin, end, text = (uint64_t)(uintptr_t)&many_rows;

    if (!CHECK_EQ_I64(hotfn_live_create(&live, &o, NULL, NULL), HOTFN_OK)) {
        return;
    }
    m = hfn_live_activate_rows(live);
    begin = (uint64_t)(uintptr_t)m.rows;
    end = begin + (uint64_t)m.thread_capacity * m.row_bytes;
    CHECK(end + (UINT64_C(4) << 30) < text || begin > text + (UINT64_C(4) << 30));
    text = (uint64_t)(uintptr_t)&getpid;
    CHECK(end + (UINT64_C(4) << 30) < text || begin > text + (UINT64_C(4) << 30));
    hotfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(memory_near_code_is_left_to_others),
    CHECK_TEST(few_addresses_mean_fewer_rows),
    CHECK_TEST(a_file_size_limit_is_lifted_or_reported),
    CHECK_TEST(options_beyond_any_record_are_refused),
    CHECK_TEST(durable_in_a_folder_that_is_not_there_names_the_file),
    CHECK_TEST(durable_file_has_its_blocks),
    CHECK_TEST(what_is_no_live_record_is_not_joined),
    CHECK_TEST(a_live_record_of_another_layout_is_refused_with_both_versions),
};
CHECK_MAIN(tests)
