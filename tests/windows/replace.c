/* SPDX-License-Identifier: MIT */
/* Functions of the own process, replaced and filtered, while other threads call them.  Prints one
 * line for each failed check. */
#include <hotfn.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

enum { THREADS = 3, ROUNDS = 5, CODE_BYTES = 32 };

static int failures;
static hotfn_error err = HOTFN_ERROR_INIT;

static void check(int is_good, const char *claim)
{
    if (!is_good) {
        printf("failed: %s (%s: %s)\n", claim, err.file, err.text);
        failures++;
    }
}

static int (*original)(int);
static DWORD(WINAPI *original_ticks)(void);

static __attribute__((noipa)) int add_series(int x)
{
    volatile int y = x;

    for (int i = 0; i < 3; i++) {
        y += i * x;
    }
    return y;
}

static int add_thousand(int x)
{
    return original(x) + 1000;
}

static DWORD WINAPI get_fixed_ticks(void)
{
    return 42 + (original_ticks() > 0);
}

static int32_t answer_seven(void *user, hotfn_hooked_call *call)
{
    if (hotfn_hooked_call_get_argument(call, 0) != 7) {
        return 1;
    }
    ++*(int *)user;
    hotfn_hooked_call_set_result(call, 99);
    return 0;
}

static atomic_bool is_stopped;
static atomic_int wrong;

static DWORD WINAPI call_often(void *unused)
{
    (void)unused;
    while (!is_stopped) {
        int sum = add_series(5);

        wrong += sum != 20 && sum != 1020;
    }
    return 0;
}

/* Set and remove the hook while the threads call the function. */
static void replace_under_load(void)
{
    HANDLE threads[THREADS];
    int done = 0;

    for (int i = 0; i < THREADS; i++) {
        threads[i] = CreateThread(NULL, 0, call_often, NULL, 0, NULL);
    }
    for (int i = 0; i < ROUNDS; i++) {
        hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
        hotfn_hooks *hooks = NULL;

        options.quiesce_ns = UINT64_C(10000000000); /* a busy machine */
        hotfn_hooks_create(&hooks, &options, NULL, NULL, &err);
        done += hotfn_hooks_replace((hotfn_code *)&original, hooks, (hotfn_code)add_series,
                                    (hotfn_code)add_thousand, NULL, &err) == HOTFN_OK;
        done += hotfn_hooks_remove(hooks, &err) == HOTFN_OK;
        hotfn_hooks_destroy(hooks);
    }
    is_stopped = 1;
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
    check(done == 2 * ROUNDS, "hooks are set and removed under load");
    check(wrong == 0, "calls under load have one of the two results");
}

/* Not where the addresses are: code that reads a function's bytes prevents its hook. */
__attribute__((noipa)) static void copy_code(unsigned char *out, hotfn_code entry)
{
    memcpy(out, (const void *)(uintptr_t)entry, CODE_BYTES);
}

__attribute__((noipa)) static int has_code(const unsigned char *before, hotfn_code entry)
{
    return memcmp(before, (const void *)(uintptr_t)entry, CODE_BYTES) == 0;
}

int main(void)
{
    hotfn_code volatile own = (hotfn_code)add_series;
    HMODULE kernel = GetModuleHandleA("kernel32.dll");
    hotfn_code ticks = (hotfn_code)GetProcAddress(kernel, "GetTickCount");
    hotfn_hooks *hooks = NULL;
    unsigned char before[2][CODE_BYTES];
    int filtered = 0;

    copy_code(before[0], own);
    copy_code(before[1], ticks);
    check(hotfn_hooks_create(&hooks, NULL, NULL, NULL, &err) == HOTFN_OK, "a set is created");
    check(hotfn_hooks_replace((hotfn_code *)&original, hooks, (hotfn_code)add_series,
                              (hotfn_code)add_thousand, NULL, &err) == HOTFN_OK,
          "a function of the program is replaced");
    check(hotfn_hooks_replace((hotfn_code *)&original_ticks, hooks, ticks,
                              (hotfn_code)get_fixed_ticks, NULL, &err) == HOTFN_OK,
          "a function of the system is replaced");
    check(add_series(5) == 1020, "the replacement runs");
    check(((DWORD(WINAPI *)(void))ticks)() == 43, "the system's function is replaced");
    hotfn_hooks_destroy(hooks);
    check(add_series(5) == 20 && original(5) == 20, "function and original run afterwards");

    hotfn_hooks_create(&hooks, NULL, NULL, NULL, &err);
    check(hotfn_hooks_filter(hooks, (hotfn_code)add_series, answer_seven, &filtered, NULL, &err) ==
              HOTFN_OK,
          "a function is filtered");
    check(add_series(7) == 99 && add_series(5) == 20 && filtered == 1, "the filter decides");
    hotfn_hooks_destroy(hooks);
    check(has_code(before[0], own) && has_code(before[1], ticks), "all bytes are restored");
    replace_under_load();
    puts(failures ? "some checks failed" : "all checks passed");
    return failures;
}
