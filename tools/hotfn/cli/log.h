/* SPDX-License-Identifier: MIT */
/* Which messages of the library are printed. */
#ifndef HOTFN_TOOL_LOG_H
#define HOTFN_TOOL_LOG_H

#include <hotfn.h>
#include <stdbool.h>

/* Whether messages of this level (HOTFN_LOG_*) are printed: it is at most the level in $HOTFN_LOG,
 * or else default_level. */
bool log_is_shown(int32_t level, int32_t default_level);
/* Print messages only if $HOTFN_LOG names a level, for commands without a log of their own. */
void log_set_env(hotfn_env *env);

#endif
