/* SPDX-License-Identifier: MIT */
/* Replaced and filtered functions: with every strategy that patches an entry, calls reach the
 * replacement or the filter, and the original still does its work. */
#include "strategies.h"

#include <stdint.h>
#include <string.h>

typedef uint32_t(TARGET_CALL *two_arguments)(int, int);

static void (*original_of[FUNCTIONS])(void);
static uint32_t replaced_calls;

static two_arguments as_function(void (*address)(void))
{
    two_arguments function;

    memcpy(&function, &address, sizeof function);
    return function;
}

static void (*as_address(two_arguments function))(void)
{
    void (*address)(void);

    memcpy(&address, &function, sizeof address);
    return address;
}

/* Adds 7 to what the original returns. */
#define REPLACEMENT(index)                                                                         \
    static uint32_t TARGET_CALL replace_##index(int x, int y)                                      \
    {                                                                                              \
        replaced_calls++;                                                                          \
        return as_function(original_of[index])(x, y) + 7;                                          \
    }
REPLACEMENT(PLAIN)
REPLACEMENT(LANDING_PAD)
REPLACEMENT(JUMP_PAD)
REPLACEMENT(ISLAND)
REPLACEMENT(PUN)
REPLACEMENT(ADDRESS_OF)

static const two_arguments replacements[FUNCTIONS] = {
    [PLAIN] = replace_PLAIN,       [LANDING_PAD] = replace_LANDING_PAD,
    [JUMP_PAD] = replace_JUMP_PAD, [ISLAND] = replace_ISLAND,
    [PUN] = replace_PUN,           [ADDRESS_OF] = replace_ADDRESS_OF,
};

static hotfn_status add_action(fixture *f, uint32_t index, const hotfn_hook_action *action)
{
    uint32_t module;

    return hotfn_hooks_add(f->hooks, f->plan, base_of(f), index, action, &module, NULL);
}

static hotfn_status add_replacement(fixture *f, uint32_t index)
{
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;

    action.kind = HOTFN_ACTION_REPLACE;
    action.replacement = as_address(replacements[index] ? replacements[index] : replace_PLAIN);
    action.original = &original_of[index];
    return add_action(f, index, &action);
}

static uint32_t bare_answer(const fixture *f, uint32_t index)
{
    uint64_t address = base_of(f) + f->rva[ADDRESS_OF] + answer_at[0];

    return index == ADDRESS_OF ? (uint32_t)address : 1020 + (index == PLAIN);
}

static void check_each(const fixture *f, uint32_t more)
{
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        uint32_t added = replacements[i] ? more : 0;
        if (!CHECK_EQ_U64(call(f, i, 1000, 20), bare_answer(f, i) + added)) {
            printf("# function %u\n", i);
        }
    }
}

/* ---- Claims. */

static void a_replacement_runs_and_calls_the_original(void)
{
    fixture f = make_fixture();

    make_hooks(&f, 0);
    replaced_calls = 0;
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        CHECK_EQ_I64(add_replacement(&f, i), replacements[i] ? HOTFN_OK : HOTFN_E_UNSUPPORTED);
    }
    CHECK_EQ_U64(commit(&f).hooked, 6);
    check_each(&f, 7);
    CHECK_EQ_U64(replaced_calls, 6);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    check_each(&f, 0);
    CHECK_EQ_U64(as_function(original_of[PLAIN])(1000, 20), 1021); /* also after the removal */
    finish_fixture(&f);
}

static void a_refused_function_keeps_its_bytes_and_its_reason(void)
{
    static const uint32_t refused[] = { RETARGET, READS_FLAGS };
    fixture f = make_fixture();
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;

    make_hooks(&f, 0);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        hotfn_error err = HOTFN_ERROR_INIT;
        uint32_t module;

        action.kind = HOTFN_ACTION_REPLACE;
        action.replacement = as_address(replace_PLAIN);
        CHECK_EQ_I64(
            hotfn_hooks_add(f.hooks, f.plan, base_of(&f), refused[i], &action, &module, &err),
            HOTFN_E_UNSUPPORTED);
        CHECK(strstr(err.text, "can be counted, but not replaced: ") != NULL);
    }
    action.replacement = NULL;
    CHECK_EQ_I64(add_action(&f, PLAIN, &action), HOTFN_E_OPTION);
    action.kind = HOTFN_ACTION_FILTER;
    CHECK_EQ_I64(add_action(&f, PLAIN, &action), HOTFN_E_OPTION);
    CHECK_MEM(f.code.bytes, f.before, sizeof f.before);
    finish_fixture(&f);
}

/* ---- Filters. */

typedef struct seen_call {
    uint64_t arguments[2];
    uint32_t calls;
    int32_t decision;
    uint64_t result;
} seen_call;

static int32_t record_call(void *user, hotfn_hooked_call *call)
{
    seen_call *seen = user;

    seen->calls++;
    seen->arguments[0] = hotfn_hooked_call_get_argument(call, 0);
    seen->arguments[1] = hotfn_hooked_call_get_argument(call, 1);
    if (!seen->decision) {
        hotfn_hooked_call_set_result(call, seen->result);
    }
    return seen->decision;
}

static void add_filter(fixture *f, uint32_t index, seen_call *seen)
{
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;

    action.kind = HOTFN_ACTION_FILTER;
    action.filter = record_call;
    action.user = seen;
    CHECK_EQ_I64(add_action(f, index, &action), HOTFN_OK);
}

/* On i386 the targets have no proof of what they remove from the stack, so no filter. */
static void a_filter_lets_calls_pass_or_answers_for_them(void)
{
    fixture f = make_fixture();
    seen_call seen[FUNCTIONS] = { { { 0 }, 0, 1, 0 } };

    if (TARGET_MACHINE == HOTFN_MACHINE_X86) {
        hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
        action.kind = HOTFN_ACTION_FILTER;
        action.filter = record_call;
        make_hooks(&f, 0);
        CHECK_EQ_I64(add_action(&f, PLAIN, &action), HOTFN_E_UNSUPPORTED);
        finish_fixture(&f);
        return;
    }
    make_hooks(&f, 0);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        seen[i] = (seen_call){ { 0 }, 0, 1, 5000 + i };
        if (replacements[i]) {
            add_filter(&f, i, &seen[i]);
        }
    }
    CHECK_EQ_U64(commit(&f).hooked, 6);
    check_each(&f, 0);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        CHECK_EQ_U64(seen[i].calls, replacements[i] ? 1 : 0);
        CHECK_EQ_U64((uint32_t)seen[i].arguments[0], replacements[i] ? 1000 : 0);
        CHECK_EQ_U64((uint32_t)seen[i].arguments[1], replacements[i] ? 20 : 0);
        seen[i].decision = 0;
        CHECK_EQ_U64(call(&f, i, 1, 2), replacements[i]                     ? 5000 + i
                                        : i == READS_FLAGS || i == RETARGET ? 3
                                                                            : 0);
    }
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    check_each(&f, 0);
    finish_fixture(&f);
}

/* A set that replaces, filters and removes many times reuses its stubs. */
static void repeated_replacement_takes_no_more_memory(void)
{
    fixture f = make_fixture();
    seen_call seen = { { 0 }, 0, 1, 0 };
    uint64_t first = 0;

    make_hooks(&f, 0);
    for (int i = 0; i < 50; i++) {
        hotfn_commit_stats stats;

        CHECK_EQ_I64(add_replacement(&f, PLAIN), HOTFN_OK);
        if (TARGET_MACHINE != HOTFN_MACHINE_X86) {
            add_filter(&f, JUMP_PAD, &seen);
        }
        stats = commit(&f);
        CHECK_EQ_U64(call(&f, PLAIN, 1, 1), 3 + 7);
        CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
        first = i == 0 ? stats.stub_bytes : first;
        CHECK_EQ_U64(stats.stub_bytes, i == 0 ? first : 0);
    }
    finish_fixture(&f);
}

static const check_test tests[] = {
    CHECK_TEST(a_replacement_runs_and_calls_the_original),
    CHECK_TEST(a_refused_function_keeps_its_bytes_and_its_reason),
    CHECK_TEST(a_filter_lets_calls_pass_or_answers_for_them),
    CHECK_TEST(repeated_replacement_takes_no_more_memory),
};
CHECK_MAIN(tests)
