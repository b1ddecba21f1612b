/* SPDX-License-Identifier: MIT */
/* Writes a finished record from a live one, for the whole run or for the time between two
 * snapshots. */
#ifndef HFN_RECORDS_FINISH_H
#define HFN_RECORDS_FINISH_H

#include "live/live.h"
#include "records/times.h"

/* A copy of all counts and times at one moment. */
typedef struct hfn_snapshot hfn_snapshot;

/* HOTFN_OK, HOTFN_E_STATE (not the creator of the record), HOTFN_E_NO_MEMORY, HOTFN_E_IO,
 * HOTFN_E_FORMAT (the header of the times was overwritten). */
hotfn_status hfn_live_snapshot(hfn_snapshot **out, const hfn_live *live, hotfn_error *err);
/* NULL is fine. */
void hfn_snapshot_destroy(hfn_snapshot *snapshot);
/* When it was taken: nanoseconds since 1970. */
uint64_t hfn_snapshot_get_time_ns(const hfn_snapshot *snapshot);

/* The times between two snapshots, as the finished record of that period has them; `times` is
 * initialised, and the caller finishes it.  False: no memory. */
bool hfn_snapshot_subtract_times(hfn_times *times, const hfn_snapshot *from, const hfn_snapshot *to,
                                 uint32_t slot_count);

/*
 * Write the finished record to path: a new file is written, which then replaces path.  Functions
 * that still wait for their module become refused ("not-loaded").  path may be that of the durable
 * record itself.
 *
 * state, exit_code  as in hotfn_record_info: FINISHED, KILLED or MERGED.
 * from, to          NULL, or snapshots: the record has the counts of to - from (from NULL: 0,
 *                   to NULL: now).
 *
 * HOTFN_OK, HOTFN_E_IO, HOTFN_E_STATE (not the creator), HOTFN_E_OPTION (another state),
 * HOTFN_E_NO_MEMORY, HOTFN_E_FORMAT as hfn_live_snapshot.
 */
hotfn_status hfn_live_finish(hfn_live *live, const char *path, uint32_t state, int32_t exit_code,
                             const hfn_snapshot *from, const hfn_snapshot *to, hotfn_error *err);

#endif
