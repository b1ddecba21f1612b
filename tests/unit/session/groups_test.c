/* SPDX-License-Identifier: MIT */
/* Groups of functions are switched on and off while the session runs. */
#include <hotfn.h>

#include "check.h"

#include <pthread.h>
#include <stdbool.h>

/* External, so that the compiler makes no copies of them with other names. */
__attribute__((noinline)) int draw_mesh(int x);
__attribute__((noinline)) int draw_text(int x);
__attribute__((noinline)) int play_sound(int x);
__attribute__((noinline)) int move_body(int x);

static volatile int state;

/* They differ, so that the compiler does not merge them. */
#define DEFINE(name, number)                                                                       \
    int name(int x)                                                                                \
    {                                                                                              \
        state = x;                                                                                 \
        return x + number * state;                                                                 \
    }
DEFINE(draw_mesh, 3)
DEFINE(draw_text, 5)
DEFINE(play_sound, 7)
DEFINE(move_body, 11)

enum { DRAW_MESH, DRAW_TEXT, PLAY_SOUND, MOVE_BODY, FUNCTIONS };

static const char *const names[FUNCTIONS] = { "draw_mesh", "draw_text", "play_sound", "move_body" };
/* Volatile, because hotfn does not hook a function whose bytes are seen to be read. */
static int (*volatile functions[FUNCTIONS])(int) = { draw_mesh, draw_text, play_sound, move_body };

/* Enough for the patch of an entry, wherever it begins. */
enum { COPIED = 24 };
static uint8_t original[FUNCTIONS][COPIED], whole[4096];

static void copy_code(void)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        memcpy(original[i], (const void *)(uintptr_t)functions[i], COPIED);
    }
}

static bool is_hooked(int function)
{
    return memcmp(original[function], (const void *)(uintptr_t)functions[function], COPIED) != 0;
}

/* Direct calls, which hotfn may redirect. */
static void call_all(void)
{
    draw_mesh(1);
    draw_text(2);
    play_sound(3);
    move_body(4);
}

static hotfn_session_options options_with(const hotfn_group *groups, uint32_t count)
{
    static hotfn_selection selection = HOTFN_SELECTION_INIT;
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;

    selection.include = names;
    selection.include_count = FUNCTIONS;
    options.selection = &selection;
    options.groups = groups;
    options.group_count = count;
    return options;
}

static hotfn_group make_group(const char *name, uint32_t flags, const char *const *globs,
                              uint32_t count)
{
    static hotfn_selection selections[8];
    static uint32_t used;
    hotfn_selection *selection = &selections[used++ % 8];
    hotfn_group group = HOTFN_GROUP_INIT;
    hotfn_selection none = HOTFN_SELECTION_INIT;

    *selection = none;
    selection->include = globs;
    selection->include_count = count;
    group.name = name;
    group.flags = flags;
    group.selection = selection;
    return group;
}

static uint64_t count_calls(const hotfn_session *session, int function)
{
    hotfn_record *record = NULL;
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    uint32_t index = 0;

    CHECK_EQ_I64(hotfn_session_snapshot(&record, session, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_find_function(record, names[function], &index, NULL), HOTFN_OK);
    hotfn_record_get_function(record, index, &f);
    hotfn_record_close(record);
    return f.calls;
}

static void check_calls(const hotfn_session *session, uint64_t mesh, uint64_t text, uint64_t sound,
                        uint64_t body)
{
    CHECK_EQ_U64(count_calls(session, DRAW_MESH), mesh);
    CHECK_EQ_U64(count_calls(session, DRAW_TEXT), text);
    CHECK_EQ_U64(count_calls(session, PLAY_SOUND), sound);
    CHECK_EQ_U64(count_calls(session, MOVE_BODY), body);
}

static uint32_t count_hooked(const hotfn_session *session)
{
    hotfn_session_stats stats = HOTFN_SESSION_STATS_INIT;

    CHECK_EQ_I64(hotfn_session_get_stats(session, &stats), HOTFN_OK);
    return stats.hooked;
}

static void switch_group(hotfn_session *session, const char *name, int is_on)
{
    hotfn_error err = HOTFN_ERROR_INIT;

    if (!CHECK_EQ_I64(hotfn_session_switch_group(session, name, is_on, &err), HOTFN_OK)) {
        printf("# %s\n", err.text);
    }
}

static const char *const drawing[] = { "draw_*" }, *const loud[] = { "play_*", "draw_mesh" };

static hotfn_session *start_session(uint32_t mode, uint32_t sound_flags)
{
    hotfn_group groups[] = { make_group("render", 0, drawing, 1),
                             make_group("sound", sound_flags, loud, 2) };
    hotfn_session_options options = options_with(groups, 2);
    hotfn_session *session = NULL;

    options.mode = mode;
    copy_code();
    if (!CHECK_EQ_I64(hotfn_session_create(&session, &options, NULL, NULL), HOTFN_OK) ||
        !CHECK_EQ_I64(hotfn_session_start(session, NULL), HOTFN_OK)) {
        exit(1);
    }
    return session;
}

static void check_switching(uint32_t mode)
{
    hotfn_session *session = start_session(mode, 0);

    call_all();
    check_calls(session, 1, 1, 1, 1);
    switch_group(session, "render", 0);
    CHECK(!is_hooked(DRAW_TEXT));
    CHECK(is_hooked(DRAW_MESH)); /* it is in the other group too */
    CHECK_EQ_U64(count_hooked(session), 3);
    call_all();
    check_calls(session, 2, 1, 2, 2);
    switch_group(session, "sound", 0);
    CHECK(!is_hooked(DRAW_MESH) && !is_hooked(PLAY_SOUND) && is_hooked(MOVE_BODY));
    call_all();
    check_calls(session, 2, 1, 2, 3);
    switch_group(session, "sound", 0); /* again: nothing changes */
    switch_group(session, "render", 1);
    CHECK(is_hooked(DRAW_MESH) && is_hooked(DRAW_TEXT) && !is_hooked(PLAY_SOUND));
    CHECK_EQ_U64(count_hooked(session), 3);
    call_all();
    check_calls(session, 3, 2, 2, 4);
    hotfn_session_destroy(session);
    for (int i = 0; i < FUNCTIONS; i++) {
        CHECK(!is_hooked(i));
    }
}

static void a_group_that_is_off_has_its_original_code_and_its_counts(void)
{
    check_switching(HOTFN_SESSION_COUNT);
}

static void groups_are_switched_while_calls_are_timed(void)
{
    check_switching(HOTFN_SESSION_TIME);
}

static const uint8_t *find_page(void)
{
    return (const uint8_t *)((uintptr_t)functions[DRAW_MESH] & ~(uintptr_t)4095);
}

static void off_restores_every_byte_also_of_calls(void)
{
    static const char *const all[] = { "*" };
    hotfn_group group = make_group("all", 0, all, 1);
    hotfn_session_options options = options_with(&group, 1);
    hotfn_session *session = NULL;

    memcpy(whole, find_page(), sizeof whole);
    CHECK_EQ_I64(hotfn_session_create(&session, &options, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_session_start(session, NULL), HOTFN_OK);
    CHECK(memcmp(whole, find_page(), sizeof whole) != 0);
    switch_group(session, "all", 0);
    CHECK(memcmp(whole, find_page(), sizeof whole) == 0);
    CHECK_EQ_U64(count_hooked(session), 0);
    switch_group(session, "all", 1);
    CHECK_EQ_U64(count_hooked(session), FUNCTIONS);
    call_all();
    check_calls(session, 1, 1, 1, 1);
    hotfn_session_destroy(session);
    CHECK(memcmp(whole, find_page(), sizeof whole) == 0);
}

static void a_group_may_be_off_at_first_and_while_the_session_is_stopped(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_COUNT, HOTFN_GROUP_OFF);

    CHECK(!is_hooked(PLAY_SOUND) && is_hooked(DRAW_MESH));
    call_all();
    check_calls(session, 1, 1, 0, 1);
    CHECK_EQ_I64(hotfn_session_stop(session, NULL), HOTFN_OK);
    switch_group(session, "sound", 1);
    switch_group(session, "render", 0);
    CHECK_EQ_I64(hotfn_session_start(session, NULL), HOTFN_OK);
    CHECK(is_hooked(PLAY_SOUND) && is_hooked(DRAW_MESH) && !is_hooked(DRAW_TEXT));
    call_all();
    check_calls(session, 2, 1, 1, 2);
    hotfn_session_destroy(session);
}

/* ---- Under load: threads call the functions while groups are switched. */

enum { THREADS = 3, SWITCHES = 200 };
static volatile int ends;

static void *call_until_the_end(void *user)
{
    uint64_t *calls = user;

    while (!ends) {
        call_all();
        ++*calls;
    }
    return NULL;
}

static void no_call_of_other_functions_is_lost_while_a_group_is_switched(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_COUNT, 0);
    pthread_t threads[THREADS];
    uint64_t calls[THREADS] = { 0 }, sum = 0;

    ends = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, call_until_the_end, &calls[i]);
    }
    for (int i = 0; i < SWITCHES; i++) {
        switch_group(session, i & 2 ? "render" : "sound", i & 1);
    }
    ends = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += calls[i];
    }
    CHECK_EQ_U64(count_calls(session, MOVE_BODY), sum);
    CHECK(count_calls(session, PLAY_SOUND) <= sum);
    hotfn_session_destroy(session);
}

/* ---- Bad input. */

static void check_refused(const hotfn_group *groups, uint32_t count, const char *text)
{
    hotfn_session_options options = options_with(groups, count);
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session = NULL;

    CHECK_EQ_I64(hotfn_session_create(&session, &options, NULL, &err), HOTFN_E_OPTION);
    CHECK(strstr(err.text, text) != NULL);
    CHECK(session == NULL);
}

static void groups_need_names_that_differ_and_good_patterns(void)
{
    static const char *const broken[] = { "draw_[" };
    hotfn_group twice[] = { make_group("a", 0, drawing, 1), make_group("a", 0, loud, 2) };
    hotfn_group unnamed = make_group("", 0, drawing, 1);
    hotfn_group unknown = make_group("a", 2, drawing, 1);
    hotfn_group bad = make_group("a", 0, broken, 1);
    static hotfn_group many[HOTFN_MAX_GROUPS + 1];

    check_refused(twice, 2, "group 1 has no name");
    check_refused(&unnamed, 1, "group 0 has no name");
    check_refused(&unknown, 1, "option of group 0");
    check_refused(&bad, 1, "draw_[");
    check_refused(many, HOTFN_MAX_GROUPS + 1, "at most 64");
    check_refused(NULL, 1, "needs groups");
}

static void an_unknown_group_is_named_in_the_error(void)
{
    hotfn_session *session = start_session(HOTFN_SESSION_COUNT, 0);
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK_EQ_I64(hotfn_session_switch_group(session, "rendr", 0, &err), HOTFN_E_NOT_FOUND);
    CHECK(strstr(err.text, "'rendr'") != NULL);
    CHECK_EQ_I64(hotfn_session_switch_group(session, NULL, 0, NULL), HOTFN_E_OPTION);
    hotfn_session_destroy(session);
}

static const check_test tests[] = {
    CHECK_TEST(a_group_that_is_off_has_its_original_code_and_its_counts),
    CHECK_TEST(groups_are_switched_while_calls_are_timed),
    CHECK_TEST(off_restores_every_byte_also_of_calls),
    CHECK_TEST(a_group_may_be_off_at_first_and_while_the_session_is_stopped),
    CHECK_TEST(no_call_of_other_functions_is_lost_while_a_group_is_switched),
    CHECK_TEST(groups_need_names_that_differ_and_good_patterns),
    CHECK_TEST(an_unknown_group_is_named_in_the_error),
};
CHECK_MAIN(tests)
