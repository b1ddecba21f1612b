/* SPDX-License-Identifier: MIT */
/* Delete runs by age, and whole builds.  `seen` keeps their UUIDs, so that a run which is sent
 * again later is not stored again. */
#ifndef HOTFN_COLLECTOR_RETENTION_H
#define HOTFN_COLLECTOR_RETENTION_H

#include "store.h"

/* Delete the runs that began before a time, of one app or of all (0), in short transactions between
 * which others may write.  Returns how many, -1 after a refusal. */
int64_t delete_old_runs(store *s, int64_t app, int64_t before_ns, refusal *why);
/* The id of a build; -1 after a refusal. */
int64_t find_build(store *s, int64_t app, const char *image, refusal *why);
/* Delete a build with all that belongs to it; -1 after a refusal. */
int64_t delete_build(store *s, int64_t app, const char *image, refusal *why);

#endif
