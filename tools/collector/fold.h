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
    bool wants_top_client;               /* with any aggregate, not only the maximum */
} fold_filter;

typedef struct folded_function {
    uint64_t sums[METRIC_COUNT];
    uint64_t max_ns;                   /* the longest call, 0: unknown */
    uint32_t clients;                  /* that called it   */
    uint32_t unresolved[METRIC_COUNT]; /* of them, those whose time is unknown, and 0 in a sum */
    uint8_t overflow;                  /* 1 << metric: the sum does not fit into 64 bits */
    double value;                      /* of the chosen metric and aggregate */
    uint64_t top_value;                /* the largest of a client, of the chosen metric */
    int64_t top_client;                /* of a maximum, or if it is wanted */
} folded_function;

/* What a selection has, but its numbers do not: only with ClickHouse. */
typedef struct fold_gap {
    uint64_t rows;     /* on servers that do not answer        */
    uint32_t waiting;  /* runs that wait to be sent to a server */
    char servers[256]; /* that do not answer                   */
} fold_gap;

enum { SNAPSHOT_BYTES = 64 };

typedef struct folded {
    folded_function *functions; /* by number */
    fold_gap gap;
    uint32_t function_count, client_count, run_count, timed_runs;
    double whole;                  /* the sum of the chosen metric over all functions */
    char snapshot[SNAPSHOT_BYTES]; /* see fold_selection.c */
} folded;

/* Whether a time is unknown: it was called, but by no client long enough. */
bool is_unresolved(const folded_function *f, enum fold_metric metric);

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

/* The callers of a function and the functions it calls, with the numbers of calls: by number + 1 of
 * the other function, slot 0 is code that is not timed.  The arrays have function_count + 1
 * elements that are 0. */
typedef struct fold_edges {
    uint32_t function, function_count;
    uint64_t *from, *to;
    bool overflow;
} fold_edges;
bool fold_callers(store *s, const fold_filter *filter, fold_edges *edges, refusal *why);
/* Add one edge; false if its numbers are not those of functions. */
bool fold_add_edge(fold_edges *e, uint64_t caller, uint64_t callee, uint64_t calls);

/* Read the runs of a selection, client after client.  each returns false to stop. */
typedef struct folded_run {
    int64_t client;
    bool timed;
    const void *rows, *callers;
    size_t row_bytes, caller_bytes;
} folded_run;
bool for_each_run(store *s, const fold_filter *filter,
                  bool (*each)(void *user, const folded_run *run), void *user, refusal *why);

/* The ranks (hotfn/lowlevel/ranks.h) whose values have the median or p95 as their mean; 0 without
 * clients. */
void fold_find_ranks(enum fold_aggregate aggregate, uint32_t clients, uint32_t *low,
                     uint32_t *high);

#endif
