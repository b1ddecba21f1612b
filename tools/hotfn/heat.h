/* SPDX-License-Identifier: MIT */
/* Which functions of a module were called most the last time, kept in the cache beside its scan: the next
 * run puts their counters and stubs side by side.  Nothing but speed depends on it. */
#ifndef HOTFN_TOOL_HEAT_H
#define HOTFN_TOOL_HEAT_H

#include <hotfn.h>

/* The module of live that scan was added as, before it is hooked. */
void heat_apply(const char *cache_folder, const hotfn_scan *scan, hotfn_live *live,
                uint32_t module);
/* Of all modules of a finished record. */
void heat_keep(const char *cache_folder, const hotfn_record *record);

#endif
