/* SPDX-License-Identifier: MIT */
/* Aggregates by ClickHouse, with the results of fold.h.  The runs of a selection are read from
 * SQLite; what ClickHouse does not return is the gap of the result. */
#ifndef HOTFN_COLLECTOR_CLICKHOUSE_FOLD_H
#define HOTFN_COLLECTOR_CLICKHOUSE_FOLD_H

#include "fold.h"

bool clickhouse_fold(store *s, const fold_filter *filter, enum fold_metric metric,
                     enum fold_aggregate aggregate, folded *out, refusal *why);
bool clickhouse_fold_function(store *s, const fold_filter *filter, enum fold_metric metric,
                              uint32_t function, client_value **out, uint32_t *out_count,
                              folded *about, refusal *why);
bool clickhouse_fold_callers(store *s, const fold_filter *filter, fold_edges *edges, refusal *why);

#endif
