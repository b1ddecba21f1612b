/* SPDX-License-Identifier: MIT */
/* The contract of os/ on Windows. */
#include "check.h"
#include "os/hot_path.h"
#include "os/os.h"
#include "os/row_word.h"

#include <string.h>
#include <windows.h>

/* ---- Files and shared memory. */

static void path_with_other_letters_names_the_same_file(void)
{
    const char *path = "hotfn test \xc3\xa4\xe2\x82\xac.tmp";
    char resolved[1024];
    hfn_os_file_info info;
    hfn_os_file file;
    uint64_t done;
    char read[8] = "";

    CHECK_EQ_I64(hfn_os_save_file(path, "twelve bytes", 12), 0);
    CHECK_EQ_I64(hfn_os_open_file(&file, path, HFN_OS_READ), 0);
    CHECK_EQ_I64(hfn_os_get_file_info(file, &info), 0);
    CHECK_EQ_U64(info.byte_count, 12);
    CHECK_EQ_I64(hfn_os_read_next(file, read, 6, &done), 0); /* from its beginning */
    CHECK_MEM(read, "twelve", 6);
    CHECK_EQ_I64(hfn_os_read_at(file, 7, read, 5, &done), 0);
    CHECK_MEM(read, "bytes", 5);
    hfn_os_close_file(file);
    CHECK(hfn_os_resolve_path(path, resolved, sizeof resolved));
    CHECK(strstr(resolved, path) != NULL && strchr(resolved, '\\') == NULL);
    CHECK_EQ_I64(hfn_os_remove_file(path), 0);
    CHECK(hfn_os_is_missing(hfn_os_get_path_info(path, &info)));
}

static void shared_memory_is_found_by_its_path(void)
{
    const uint64_t size = UINT64_C(1) << 32, at = UINT64_C(1) << 31;
    hfn_os_file made, other, linked;
    char path[64];
    uint64_t done, seen = 1;
    void *view = NULL;

    CHECK_EQ_I64(hfn_os_create_shared(&made, "hotfn-test", size), 0);
    hfn_os_get_file_path(made, path, sizeof path);
    CHECK_EQ_I64(hfn_os_open_file(&other, path, HFN_OS_READ | HFN_OS_WRITE), 0);
    CHECK_EQ_I64(hfn_os_read_at(other, at + 4096, &seen, 8, &done), 0); /* no memory yet */
    CHECK_EQ_U64(seen, 0);
    CHECK_EQ_I64(hfn_os_commit_shared(made, at, 8192), 0);
    CHECK_EQ_I64(hfn_os_map_file(&view, made, at, 8192, HFN_OS_MAP_WRITE, 0), 0);
    *(uint64_t *)((uint8_t *)view + 4096) = 77;
    CHECK_EQ_I64(hfn_os_read_at(other, at + 4096, &seen, 8, &done), 0);
    CHECK_EQ_U64(seen, 77);
    CHECK_EQ_I64(hfn_os_create_link(path, "hotfn-test.link"), 0);
    CHECK_EQ_I64(hfn_os_open_file(&linked, "hotfn-test.link", HFN_OS_READ), 0);
    CHECK_EQ_I64(hfn_os_read_at(linked, at + 4096, &seen, 8, &done), 0);
    CHECK_EQ_U64(seen, 77);
    hfn_os_unmap((uint64_t)(uintptr_t)view, 8192);
    hfn_os_close_file(linked);
    hfn_os_close_file(other);
    hfn_os_close_file(made);
    CHECK(hfn_os_is_missing(hfn_os_open_file(&linked, "hotfn-test.link", HFN_OS_READ)));
    CHECK_EQ_I64(hfn_os_remove_file("hotfn-test.link"), 0);
}

/* ---- Code. */

static int __attribute__((noinline)) answer(void)
{
    __asm__ volatile(""); /* no caller knows the result */
    return 1;
}

/* mov eax, n; ret */
static void write_answer(uint8_t code[6], uint8_t n)
{
    const uint8_t bytes[6] = { 0xb8, n, 0, 0, 0, 0xc3 };

    memcpy(code, bytes, sizeof bytes);
}

static void changed_text_runs_and_keeps_its_protection(void)
{
    uint64_t at = (uint64_t)(uintptr_t)answer;
    MEMORY_BASIC_INFORMATION before, after;
    hfn_os_writable_text window;
    uint8_t code[6];

    VirtualQuery((void *)(uintptr_t)at, &before, sizeof before);
    write_answer(code, 42);
    CHECK(hfn_os_open_text(&window, at, at + sizeof code));
    hfn_os_write_text(&window, at, code, sizeof code);
    hfn_os_close_text(&window);
    VirtualQuery((void *)(uintptr_t)at, &after, sizeof after);
    CHECK_EQ_I64(answer(), 42);
    CHECK_EQ_U64(after.Protect, before.Protect);
}

static void near_pages_are_within_reach_and_run(void)
{
    uint64_t image = (uint64_t)(uintptr_t)GetModuleHandleW(NULL), reach = UINT64_C(1) << 30;
    uint64_t at = hfn_os_map_near(image, image + 65536, 4096, reach);

    CHECK(at != 0 && (at > image ? at - image : image - at) < reach);
    write_answer((uint8_t *)(uintptr_t)at, 7);
    CHECK(hfn_os_make_executable(at, 4096));
    CHECK_EQ_I64(((int (*)(void))(uintptr_t)at)(), 7);
}

static void single_pages_share_a_reservation(void)
{
    uint64_t image = (uint64_t)(uintptr_t)GetModuleHandleW(NULL);
    hfn_os_gap gaps[64];
    uint32_t count = hfn_os_find_gaps(image, image + (UINT64_C(1) << 31), gaps, 64);
    uint64_t at;

    CHECK(count > 0);
    at = gaps[count - 1].begin + 3 * 4096;
    CHECK(hfn_os_map_at(at, 4096));
    CHECK(!hfn_os_map_at(at, 4096)); /* in use */
    CHECK(hfn_os_map_at(at + 4096, 4096));
    memset((void *)(uintptr_t)at, 0xc3, 8192);
    CHECK(hfn_os_make_executable(at, 8192));
}

/* ---- Threads. */

static volatile LONG turns, stop, started;

static DWORD WINAPI count_turns(void *user)
{
    (void)user;
    InterlockedIncrement(&started);
    while (!stop) {
        InterlockedIncrement(&turns);
    }
    return 0;
}

typedef struct stopped_state {
    uint32_t threads;
    bool ran;
} stopped_state;

static uint64_t note_thread(void *user, uint64_t pc)
{
    ((stopped_state *)user)->threads++;
    return pc;
}

static void check_turns(void *user)
{
    LONG before = turns;

    for (volatile int i = 0; i < 1000000; i++) {
    }
    ((stopped_state *)user)->ran = before == turns;
}

static void stopped_threads_do_nothing_and_then_go_on(void)
{
    enum { THREADS = 3 };
    HANDLE threads[THREADS];
    stopped_state state = { 0, false };
    LONG before;

    for (int i = 0; i < THREADS; i++) {
        threads[i] = CreateThread(NULL, 0, count_turns, NULL, 0, NULL);
    }
    while (started < THREADS) {
        Sleep(1);
    }
    CHECK(hfn_os_with_threads_stopped(UINT64_C(60000000000), note_thread, check_turns, &state));
    CHECK(state.ran);
    CHECK(state.threads >= THREADS);
    before = turns;
    while (turns == before) {
        Sleep(1);
    }
    stop = 1;
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
}

static DWORD WINAPI end_at_once(void *user)
{
    (void)user;
    return 0;
}

static DWORD WINAPI start_threads(void *user)
{
    while (!*(volatile LONG *)user) {
        HANDLE thread = CreateThread(NULL, 0, end_at_once, NULL, 0, NULL);

        InterlockedIncrement(&started);
        WaitForSingleObject(thread, INFINITE);
        CloseHandle(thread);
    }
    return 0;
}

static void do_nothing(void *user)
{
    ((stopped_state *)user)->ran = true;
}

/* A thread may be stopped before it has run, and while it starts another one. */
static void threads_that_start_and_end_are_stopped(void)
{
    enum { THREADS = 3, STOPS = 100 };
    HANDLE threads[THREADS];
    volatile LONG end = 0;

    started = 0;
    for (int i = 0; i < THREADS; i++) {
        threads[i] = CreateThread(NULL, 0, start_threads, (void *)(uintptr_t)&end, 0, NULL);
    }
    for (int i = 0; i < STOPS; i++) {
        stopped_state state = { 0, false };
        LONG before = started;

        CHECK(hfn_os_with_threads_stopped(UINT64_C(60000000000), note_thread, do_nothing, &state));
        CHECK(state.ran);
        while (started == before) {
            Sleep(0);
        }
    }
    end = 1;
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
}

/* ---- The row's word. */

static DWORD WINAPI read_row_word(void *out)
{
    *(uint8_t **)out = hfn_thread_row;
    return 0;
}

static void each_thread_has_a_row_word_of_its_own(void)
{
    uint8_t row[8], *seen = row;
    uintptr_t word = 0;
    HANDLE thread;

    CHECK(hfn_os_reserve_row_word());
    CHECK(hfn_thread_row == NULL);
    hfn_thread_row = row;
    CHECK(hfn_os_hot_read_word(hfn_os_get_row_word_address(), &word));
    CHECK_EQ_U64(word, (uintptr_t)row);
    thread = CreateThread(NULL, 0, read_row_word, &seen, 0, NULL);
    WaitForSingleObject(thread, INFINITE);
    CHECK(seen == NULL);
    hfn_thread_row = NULL;
}

static void ended_thread_is_gone_and_a_running_one_is_not(void)
{
    uint32_t pid = hfn_os_hot_process_id();
    DWORD tid;
    uint8_t *seen;
    HANDLE thread = CreateThread(NULL, 0, read_row_word, &seen, 0, &tid);

    CHECK(!hfn_os_hot_thread_is_gone(pid, hfn_os_hot_thread_id()));
    WaitForSingleObject(thread, INFINITE);
    CHECK(hfn_os_hot_thread_is_gone(pid, tid)); /* although its object exists */
    CloseHandle(thread);
    CHECK(!hfn_os_hot_process_is_gone(pid));
}

static bool note_first(void *user, const hfn_os_module *module)
{
    *(hfn_os_module *)user = *module;
    return false;
}

static void program_is_the_first_module(void)
{
    hfn_os_module first = { .path = NULL };

    hfn_os_each_module(note_first, &first);
    CHECK(first.is_main);
    CHECK_EQ_U64(first.base, (uint64_t)(uintptr_t)GetModuleHandleW(NULL));
}

static const check_test tests[] = {
    CHECK_TEST(path_with_other_letters_names_the_same_file),
    CHECK_TEST(shared_memory_is_found_by_its_path),
    CHECK_TEST(changed_text_runs_and_keeps_its_protection),
    CHECK_TEST(near_pages_are_within_reach_and_run),
    CHECK_TEST(single_pages_share_a_reservation),
    CHECK_TEST(stopped_threads_do_nothing_and_then_go_on),
    CHECK_TEST(threads_that_start_and_end_are_stopped),
    CHECK_TEST(each_thread_has_a_row_word_of_its_own),
    CHECK_TEST(ended_thread_is_gone_and_a_running_one_is_not),
    CHECK_TEST(program_is_the_first_module),
};
CHECK_MAIN(tests)
