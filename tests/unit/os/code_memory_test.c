/* SPDX-License-Identifier: MIT */
/* Pages near code, and writing to code that stays executable. */
#include "os/os.h"

#include "check.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

#define RANGE ((UINT64_C(2) << 30) - 65536)

/* mov eax, 1; ret */
static const uint8_t one[] = { 0xb8, 1, 0, 0, 0, 0xc3 };

static int call(uint64_t address)
{
    int (*function)(void);

    memcpy(&function, &address, sizeof function);
    return function();
}

static uint64_t here(void)
{
    return (uint64_t)(uintptr_t)one;
}

static void near_pages_are_near_and_writable(void)
{
    uint64_t begin = here(), end = begin + (1 << 20);
    uint64_t pages = hfn_os_map_near(begin, end, 10000, RANGE);

    if (!CHECK(pages != 0)) {
        return;
    }
    CHECK_EQ_U64(pages % hfn_os_page_bytes(), 0);
    CHECK(pages + 10000 <= begin ? end - pages <= RANGE : pages + 10000 - begin <= RANGE);
    memset((void *)(uintptr_t)pages, 0xcc, 10000);
    hfn_os_unmap(pages, 10000);
}

static void near_pages_beyond_the_range_are_refused(void)
{
    CHECK_EQ_U64(hfn_os_map_near(here(), here() + RANGE, 4096, RANGE), 0);
    CHECK_EQ_U64(hfn_os_map_near(here(), here() + 4096, RANGE + 4096, RANGE), 0);
    CHECK_EQ_U64(hfn_os_map_near(here(), here() - 4096, 4096, RANGE), 0);
    CHECK_EQ_U64(hfn_os_map_near(here(), here() + 4096, 0, RANGE), 0);
}

static void existing_mappings_are_not_replaced(void)
{
    uint64_t page = hfn_os_page_bytes(), pages = hfn_os_map_near(here(), here() + 1, page, RANGE);

    CHECK(pages != 0);
    CHECK(!hfn_os_map_at(pages, page));
    hfn_os_unmap(pages, page);
    CHECK(hfn_os_map_at(pages, page));
    hfn_os_unmap(pages, page);
    CHECK(!hfn_os_map_at(UINT64_MAX - page, page));
}

static void gaps_are_free_and_inside_the_range(void)
{
    hfn_os_gap gaps[64];
    uint64_t begin = here() - (64 << 20), end = here() + (64 << 20);
    uint32_t count = hfn_os_find_gaps(begin, end, gaps, 64);

    CHECK(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(gaps[i].begin < gaps[i].end && gaps[i].begin >= begin && gaps[i].end <= end);
        CHECK(i == 0 || gaps[i].begin > gaps[i - 1].end);
        CHECK(here() < gaps[i].begin || here() >= gaps[i].end);
    }
}

static void pages_that_were_written_become_executable(void)
{
    uint64_t pages = hfn_os_map_near(here(), here() + 1, 4096, RANGE);

    memcpy((void *)(uintptr_t)pages, one, sizeof one);
    CHECK(hfn_os_make_executable(pages, 4096));
    CHECK_EQ_I64(call(pages), 1);
    hfn_os_unmap(pages, 4096);
}

/* Map a page of code with the given protection. */
static uint64_t make_text(int protection)
{
    void *text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memcpy(text, one, sizeof one);
    mprotect(text, 4096, protection);
    return (uint64_t)(uintptr_t)text;
}

static bool is_writable(uint64_t address)
{
    int ends[2];
    bool writable;

    if (pipe(ends) != 0 || write(ends[1], "\xb8", 1) != 1) {
        return false;
    }
    writable = read(ends[0], (void *)(uintptr_t)address, 1) == 1; /* EFAULT if not */
    close(ends[0]);
    close(ends[1]);
    return writable;
}

static void write_through_window(uint64_t text, const uint8_t *value)
{
    hfn_os_writable_text window;

    if (!CHECK(hfn_os_open_text(&window, text, text + 6))) {
        return;
    }
    CHECK_EQ_I64(call(text), 1); /* it stays executable */
    hfn_os_write_text(&window, text + 1, value, 1);
    hfn_os_close_text(&window);
}

static void written_text_is_protected_again(void)
{
    uint64_t text = make_text(PROT_READ | PROT_EXEC);

    write_through_window(text, (const uint8_t *)"\x05");
    CHECK_EQ_I64(call(text), 5);
    CHECK(!is_writable(text));
}

static void writable_text_stays_writable(void)
{
    uint64_t text = make_text(PROT_READ | PROT_WRITE | PROT_EXEC);

    write_through_window(text, (const uint8_t *)"\x05");
    CHECK_EQ_I64(call(text), 5);
    CHECK(is_writable(text));
}

static void text_with_an_unmapped_page_cannot_be_opened(void)
{
    uint64_t text = make_text(PROT_READ | PROT_EXEC);
    hfn_os_writable_text window;

    munmap((void *)(uintptr_t)text, 4096);
    CHECK(!hfn_os_open_text(&window, text, text + 6));
}

/* Runs in a child that may neither write to code nor make written pages executable.  Returns its
 * exit code; 77 if the kernel cannot forbid this. */
static int write_text_under_mdwe(uint64_t text)
{
    uint64_t pages;

    if (prctl(PR_SET_MDWE, 1, 0, 0, 0) != 0) {
        return 77;
    }
    write_through_window(text, (const uint8_t *)"\x07");
    CHECK_EQ_I64(call(text), 7);
    pages = hfn_os_map_near(here(), here() + 1, 4096, RANGE);
    memcpy((void *)(uintptr_t)pages, one, sizeof one);
    CHECK(mprotect((void *)(uintptr_t)pages, 4096, PROT_READ | PROT_EXEC) != 0);
    CHECK(hfn_os_make_executable(pages, 4096));
    CHECK_EQ_I64(call(pages), 1);
    return check_failures ? 1 : 0;
}

static void text_is_written_where_written_pages_cannot_be_executable(void)
{
    uint64_t text = make_text(PROT_READ | PROT_EXEC);
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        _exit(write_text_under_mdwe(text));
    }
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        printf("# this kernel has no PR_SET_MDWE: not run\n");
    } else {
        CHECK_EQ_I64(status, 0);
    }
}

static const check_test tests[] = {
    CHECK_TEST(near_pages_are_near_and_writable),
    CHECK_TEST(near_pages_beyond_the_range_are_refused),
    CHECK_TEST(existing_mappings_are_not_replaced),
    CHECK_TEST(gaps_are_free_and_inside_the_range),
    CHECK_TEST(pages_that_were_written_become_executable),
    CHECK_TEST(written_text_is_protected_again),
    CHECK_TEST(writable_text_stays_writable),
    CHECK_TEST(text_with_an_unmapped_page_cannot_be_opened),
    CHECK_TEST(text_is_written_where_written_pages_cannot_be_executable),
};
CHECK_MAIN(tests)
