/* SPDX-License-Identifier: MIT */
/* The level of messages that $HOTFN_LOG names. */
#include "log.h"

#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const levels[] = { "none", "error", "warning", "info", "debug" };

static int32_t find_level(const char *name)
{
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (strcmp(name, levels[i]) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

bool log_is_shown(int32_t level, int32_t default_level)
{
    static bool has_warned;
    const char *name = getenv("HOTFN_LOG");
    int32_t chosen = name && name[0] ? find_level(name) : default_level;

    if (chosen < 0 && !has_warned) {
        has_warned = true;
        fprintf(stderr,
                "hotfn: HOTFN_LOG=%s: not a level: use none, error, warning, info or debug\n",
                name);
    }
    return level <= (chosen < 0 ? default_level : chosen);
}

static void print_log(void *user, int32_t level, const char *text)
{
    (void)user;
    if (log_is_shown(level, 0)) {
        fprintf(stderr, "hotfn: %s\n", text);
    }
}

void log_set_env(hotfn_env *env)
{
    env->log_fn = print_log;
}
