/* SPDX-License-Identifier: MIT */
/* Every id has a name of its own and a sentence. */
#include <hotfn/lowlevel/verdicts.h>

#include "check.h"

#define LAST_REASON HOTFN_REASON_OWN_THREADS

static void reasons_have_names_of_their_own(void)
{
    for (uint32_t i = 0; i <= LAST_REASON; i++) {
        const char *name = hotfn_reason_get_name(i);
        if (strcmp(name, "unknown") == 0) {
            CHECK((i > HOTFN_REASON_RUNTIME_READS && i < HOTFN_REASON_BYTES_DIFFER) ||
                  (i > HOTFN_REASON_OVERWRITTEN && i < HOTFN_REASON_NOT_PROVEN));
            continue;
        }
        CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz-") == strlen(name));
        for (uint32_t k = 0; k < i; k++) {
            CHECK(strcmp(name, hotfn_reason_get_name(k)) != 0);
        }
    }
}

static void reasons_have_one_sentence(void)
{
    for (uint32_t i = 0; i <= LAST_REASON; i++) {
        const char *text = hotfn_reason_get_text(i);
        CHECK(text[0] >= 'A' && text[0] <= 'Z');
        CHECK(strchr(text, '.') == text + strlen(text) - 1);
        CHECK(!strchr(text, '\n'));
    }
}

static void strategies_have_names(void)
{
    CHECK_STR(hotfn_strategy_get_name(HOTFN_STRATEGY_RETARGET), "retarget");
    CHECK_STR(hotfn_strategy_get_name(HOTFN_STRATEGY_JUMP), "jump");
    CHECK_STR(hotfn_strategy_get_name(HOTFN_STRATEGY_JUMP_PAD), "jump-pad");
    CHECK_STR(hotfn_strategy_get_name(HOTFN_STRATEGY_ISLAND), "island");
    CHECK_STR(hotfn_strategy_get_name(HOTFN_STRATEGY_PUN), "pun");
    CHECK_STR(hotfn_strategy_get_name(HOTFN_STRATEGY_INT3), "int3");
    CHECK_STR(hotfn_strategy_get_name(HOTFN_STRATEGY_NONE), "none");
}

static void unassigned_numbers_are_unknown(void)
{
    CHECK_STR(hotfn_reason_get_name(LAST_REASON + 1), "unknown");
    CHECK_STR(hotfn_reason_get_name(UINT32_MAX), "unknown");
    CHECK_STR(hotfn_strategy_get_name(HOTFN_STRATEGY_INT3 + 1), "unknown");
}

static const check_test tests[] = {
    CHECK_TEST(reasons_have_names_of_their_own),
    CHECK_TEST(reasons_have_one_sentence),
    CHECK_TEST(strategies_have_names),
    CHECK_TEST(unassigned_numbers_are_unknown),
};
CHECK_MAIN(tests)
