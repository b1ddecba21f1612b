/* SPDX-License-Identifier: MIT */
/* Aggregates: fold the runs of a build, client after client, into one value for each function.
 * A client is one value however many runs or increments it sent.  The average, the median, p95
 * and the maximum are over all clients of the selection; a client that did not call a function
 * counts as 0 there, except in the average of the clients that called it. */
#ifndef HOTFN_COLLECTOR_FOLD_H
#define HOTFN_COLLECTOR_FOLD_H

#include "store.h"

enum fold_metric { METRIC_CALLS, METRIC_TOTAL, METRIC_SELF, METRIC_COUNT };
enum fold_aggregate {
    BY_SUM,
    BY_AVERAGE,
    BY_AVERAGE_CALLED,
    BY_MEDIAN,
    BY_P95,
    BY_MAX,
    AGGREGATE_COUNT
};

typedef struct fold_filter {
    int64_t build, client;               /* client 0: all */
    int64_t from_ns, to_ns;              /* the run began in [from, to); 0: no bound */
    const char *label_key, *label_value; /* NULL: all */
} fold_filter;

typedef struct folded_function {
    uint64_t sums[METRIC_COUNT];
    uint64_t max_ns;    /* the longest call */
    uint32_t clients;   /* that called it   */
    uint8_t overflow;   /* 1 << metric: the sum does not fit into 64 bits */
    double value;       /* of the chosen metric and aggregate */
    uint64_t top_value; /* the largest of a client, of the chosen metric */
    int64_t top_client;
} folded_function;

typedef struct folded {
    folded_function *functions; /* by number */
    uint32_t function_count, client_count, run_count, timed_runs;
    double whole; /* the sum of the chosen metric over all functions */
} folded;

/* False after a refusal; free the result either way. */
bool fold_runs(store *s, const fold_filter *filter, enum fold_metric metric,
               enum fold_aggregate aggregate, folded *out, refusal *why);
void fold_free(folded *f);

/* The value of one function for each client that called it, in ascending order of clients. */
typedef struct client_value {
    int64_t client;
    uint64_t value;
} client_value;
bool fold_one_function(store *s, const fold_filter *filter, enum fold_metric metric,
                       uint32_t function, client_value **out, uint32_t *out_count, folded *about,
                       refusal *why);

/* Read the runs of a selection, client after client.  each returns false to stop. */
typedef struct folded_run {
    int64_t client;
    bool timed;
    const void *rows, *callers;
    size_t row_bytes, caller_bytes;
} folded_run;
bool for_each_run(store *s, const fold_filter *filter,
                  bool (*each)(void *user, const folded_run *run), void *user, refusal *why);

#endif
