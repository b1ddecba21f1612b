/* SPDX-License-Identifier: MIT */
/* Functions of the C library replaced and filtered by their address, as a user of <hotfn.h> does
 * it. */
#include <hotfn.h>

#include "check.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

typedef void (*any_function)(void);

static any_function find(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    any_function function;

    memcpy(&function, &address, sizeof function);
    return function;
}

static hotfn_hooks *make_hooks(void)
{
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_hooks *hooks = NULL;

    options.flags = HOTFN_HOOKS_REGISTER_UNWIND;
    CHECK_EQ_I64(hotfn_hooks_create(&hooks, &options, NULL, NULL, NULL), HOTFN_OK);
    return hooks;
}

/* ---- Twenty functions of several types.  Each replacement adds 1000 to the original's result. */

#define TYPED(result, name, parameters, arguments)                                                 \
    static result(*original_##name) parameters;                                                    \
    static result(*volatile called_##name) parameters;                                             \
    static result replace_##name parameters                                                        \
    {                                                                                              \
        return original_##name arguments + 1000;                                                   \
    }

#define FUNCTIONS(X)                                                                               \
    X(int, getppid, (void), ())                                                                    \
    X(uid_t, getuid, (void), ())                                                                   \
    X(uid_t, geteuid, (void), ())                                                                  \
    X(gid_t, getgid, (void), ())                                                                   \
    X(gid_t, getegid, (void), ())                                                                  \
    X(int, getdtablesize, (void), ())                                                              \
    X(int, abs, (int a), (a))                                                                      \
    X(long, labs, (long a), (a))                                                                   \
    X(long long, llabs, (long long a), (a))                                                        \
    X(int, toupper, (int a), (a))                                                                  \
    X(int, tolower, (int a), (a))                                                                  \
    X(int, ffs, (int a), (a))                                                                      \
    X(int, atoi, (const char *a), (a))                                                             \
    X(long, atol, (const char *a), (a))                                                            \
    X(double, atof, (const char *a), (a))                                                          \
    X(double, strtod, (const char *a, char **b), (a, b))                                           \
    X(long, strtol, (const char *a, char **b, int c), (a, b, c))                                   \
    X(unsigned long, strtoul, (const char *a, char **b, int c), (a, b, c))                         \
    X(double, difftime, (time_t a, time_t b), (a, b))                                              \
    X(long, a64l, (const char *a), (a))
FUNCTIONS(TYPED)

typedef struct row {
    const char *name;
    any_function *original;
    any_function replacement;
} row;

#define ROW(result, name, parameters, arguments)                                                   \
    { #name, (any_function *)(void *)&original_##name, (any_function)replace_##name },
static const row rows[] = { FUNCTIONS(ROW) };
enum { ROWS = sizeof rows / sizeof *rows };

static double results[ROWS];

/* Results in the order of the rows. */
static void call_all(void)
{
    int at = 0;
#define POINTER(result, name, parameters, arguments)                                               \
    {                                                                                              \
        any_function found = find(#name);                                                          \
        memcpy((void *)&called_##name, &found, sizeof found);                                      \
    }
    FUNCTIONS(POINTER)
    results[at++] = called_getppid();
    results[at++] = called_getuid();
    results[at++] = called_geteuid();
    results[at++] = called_getgid();
    results[at++] = called_getegid();
    results[at++] = called_getdtablesize();
    results[at++] = called_abs(-7);
    results[at++] = (double)called_labs(-8);
    results[at++] = (double)called_llabs(-9);
    results[at++] = called_toupper('a');
    results[at++] = called_tolower('A');
    results[at++] = called_ffs(8);
    results[at++] = called_atoi("11");
    results[at++] = (double)called_atol("12");
    results[at++] = called_atof("1.5");
    results[at++] = called_strtod("2.5", NULL);
    results[at++] = (double)called_strtol("13", NULL, 10);
    results[at++] = (double)called_strtoul("14", NULL, 10);
    results[at++] = called_difftime(20, 5);
    results[at++] = (double)called_a64l("./");
}

static void typed_replacements_change_results(void)
{
    hotfn_hooks *hooks = make_hooks();
    double bare[ROWS];
    uint32_t replaced = 0;

    call_all();
    memcpy(bare, results, sizeof bare);
    for (int i = 0; i < ROWS; i++) {
        hotfn_error err = HOTFN_ERROR_INIT;
        any_function before = *rows[i].original;
        hotfn_status status = hotfn_hooks_replace(rows[i].original, hooks, find(rows[i].name),
                                                  rows[i].replacement, NULL, &err);
        if (status == HOTFN_OK) {
            replaced++;
        } else { /* refused, with the reason */
            printf("# %s: %s\n", rows[i].name, err.text);
            CHECK(strlen(err.text) > 20 && *rows[i].original == before);
            CHECK(status == HOTFN_E_UNSUPPORTED);
        }
    }
    /* i386: system calls through gs:[16] count as reads of the flags */
    CHECK(replaced >= (sizeof(void *) == 4 ? 12 : 17));
    call_all();
    for (int i = 0; i < ROWS; i++) {
        /* atoi, atol and atof may call strtol and strtod, which are replaced too */
        double more = results[i] - bare[i];
        if (!CHECK(more == (*rows[i].original ? 1000 : 0) || more == 2000)) {
            printf("# %s: %f, then %f\n", rows[i].name, bare[i], results[i]);
        }
    }
    CHECK_EQ_I64(hotfn_hooks_remove(hooks, NULL), HOTFN_OK);
    call_all();
    CHECK_MEM(results, bare, sizeof bare);
    hotfn_hooks_destroy(hooks);
}

/* ---- Removal while other threads call. */

enum { THREADS = 4, ROUNDS = 100 };
static atomic_bool stop;
static atomic_ulong wrong, answered;

static void *call_toupper(void *unused)
{
    int (*volatile upper)(int);
    any_function found = find("toupper");

    (void)unused;
    memcpy((void *)&upper, &found, sizeof found);
    while (!atomic_load(&stop)) {
        for (int c = 'a'; c <= 'z'; c++) {
            int result = upper(c);
            if (result != c - 'a' + 'A' && result != c - 'a' + 'A' + 1000) {
                atomic_fetch_add(&wrong, 1);
            }
        }
        atomic_fetch_add(&answered, 26);
    }
    return NULL;
}

static void hooks_come_and_go_while_threads_call(void)
{
    pthread_t threads[THREADS];
    hotfn_hooks *hooks = make_hooks();
    int replaced = 0;

    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ_I64(pthread_create(&threads[i], NULL, call_toupper, NULL), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        hotfn_status status =
            hotfn_hooks_replace((any_function *)(void *)&original_toupper, hooks, find("toupper"),
                                (any_function)replace_toupper, NULL, NULL);
        replaced += status == HOTFN_OK;
        CHECK(status == HOTFN_OK ||
              status == HOTFN_E_STATE); /* a thread that could not be stopped */
        while (hotfn_hooks_remove(hooks, NULL) == HOTFN_E_STATE) {
        }
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(replaced > ROUNDS / 2);
    CHECK(atomic_load(&answered) > 0);
    CHECK_EQ_U64(atomic_load(&wrong), 0);
    hotfn_hooks_destroy(hooks);
}

/* ---- Filters. */

static int32_t answer_for_negative(void *user, hotfn_hooked_call *call)
{
    int value = (int)hotfn_hooked_call_get_argument(call, 0);

    ++*(int *)user;
    if (value >= 0) {
        return 1;
    }
    hotfn_hooked_call_set_result(call, 77);
    return 0;
}

static void a_filter_answers_for_some_calls(void)
{
    hotfn_hooks *hooks = make_hooks();
    int calls = 0, bare;
    int (*volatile lower)(int);
    any_function found = find("tolower");
    hotfn_error err = HOTFN_ERROR_INIT;

    memcpy((void *)&lower, &found, sizeof found);
    bare = lower(-5);
    if (!CHECK_EQ_I64(hotfn_hooks_filter(hooks, found, answer_for_negative, &calls, NULL, &err),
                      HOTFN_OK)) {
        printf("# %s\n", err.text);
    }
    CHECK_EQ_I64(lower('Q'), 'q');
    CHECK_EQ_I64(lower(-5), 77);
    CHECK_EQ_I64(calls, 2);
    CHECK_EQ_I64(hotfn_hooks_remove(hooks, NULL), HOTFN_OK);
    CHECK_EQ_I64(lower(-5), bare);
    CHECK_EQ_I64(calls, 2);
    hotfn_hooks_destroy(hooks);
}

/* ---- Bad input. */

static int on_the_heap(void)
{
    return 1;
}

static void wrong_addresses_are_refused_with_a_sentence(void)
{
    hotfn_hooks *hooks = make_hooks();
    hotfn_error err = HOTFN_ERROR_INIT;
    any_function original = (any_function)on_the_heap, inside = find("strtol");
    void *block = malloc(64);
    any_function heap;
    uintptr_t shifted = (uintptr_t)inside + 1;

    memcpy(&heap, &block, sizeof heap);
    memcpy(&inside, &shifted, sizeof inside);
    CHECK_EQ_I64(hotfn_hooks_replace(&original, hooks, heap, original, NULL, &err),
                 HOTFN_E_NOT_FOUND);
    CHECK(strstr(err.text, "no loaded module") != NULL);
    CHECK_EQ_I64(hotfn_hooks_replace(&original, hooks, inside, original, NULL, &err),
                 HOTFN_E_NOT_FOUND);
    CHECK(strstr(err.text, "no function begins at") != NULL);
    CHECK_EQ_I64(hotfn_hooks_replace(&original, hooks, NULL, original, NULL, &err), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_hooks_filter(hooks, find("abs"), NULL, NULL, NULL, &err), HOTFN_E_OPTION);
    CHECK(original == (any_function)on_the_heap);
    hotfn_hooks_destroy(hooks);
    free(block);
}

static void a_function_hooked_by_another_set_is_refused(void)
{
    hotfn_hooks *first = make_hooks(), *second = make_hooks();
    hotfn_error err = HOTFN_ERROR_INIT;
    any_function original = NULL;

    CHECK_EQ_I64(hotfn_hooks_replace((any_function *)(void *)&original_toupper, first,
                                     find("toupper"), (any_function)replace_toupper, NULL, NULL),
                 HOTFN_OK);
    CHECK_EQ_I64(hotfn_hooks_replace(&original, second, find("toupper"),
                                     (any_function)replace_toupper, NULL, &err),
                 HOTFN_E_MISMATCH);
    CHECK(strstr(err.text, "toupper cannot be hooked") != NULL && original == NULL);
    hotfn_hooks_destroy(second);
    hotfn_hooks_destroy(first);
    CHECK_EQ_I64(toupper('x'), 'X');
}

static const check_test tests[] = {
    CHECK_TEST(typed_replacements_change_results),
    CHECK_TEST(hooks_come_and_go_while_threads_call),
    CHECK_TEST(a_filter_answers_for_some_calls),
    CHECK_TEST(wrong_addresses_are_refused_with_a_sentence),
    CHECK_TEST(a_function_hooked_by_another_set_is_refused),
};
CHECK_MAIN(tests)
