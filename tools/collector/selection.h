/* SPDX-License-Identifier: MIT */
/* The selection that most queries have: app, build, client, time, label, metric, aggregate,
 * page. */
#ifndef HOTFN_COLLECTOR_SELECTION_H
#define HOTFN_COLLECTOR_SELECTION_H

#include "fold.h"
#include "reply.h"

typedef struct selection {
    fold_filter filter;
    char label_key[MAX_LABEL_KEY + 1];
    enum fold_metric metric;
    enum fold_aggregate aggregate;
    int64_t app, limit, offset;
    char build[80], version[MAX_TEXT + 1];
    const char *snapshot; /* of an earlier answer, or NULL */
} selection;

/* Refuse the request if there is no such app. */
bool find_app(request *r, store *s, int64_t *out);
/* Read all parameters; `build` is an image id, a version that one build has, or "latest". */
bool read_selection(request *r, store *s, selection *out);
/* The same selection of the build that a parameter names. */
bool choose_build(request *r, store *s, const char *key, selection *out);
void write_build(hotfn_json_writer *out, const selection *sel);

/* Fold the runs of a selection, or copy what was folded before.  False after a refusal; free the
 * result either way. */
bool fold_selection(request *r, store *s, const selection *sel, folded *out);

/* "missing": null, or what the numbers lack. */
void write_gap(hotfn_json_writer *out, const fold_gap *gap);

extern const char *const metric_names[METRIC_COUNT], *const aggregate_names[AGGREGATE_COUNT];

#endif
