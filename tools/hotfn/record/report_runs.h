/* SPDX-License-Identifier: MIT */
/* `hotfn report --runs`: the distribution of each function over the runs of a merged record. */
#ifndef HOTFN_TOOL_REPORT_RUNS_H
#define HOTFN_TOOL_REPORT_RUNS_H

#include <hotfn.h>

enum { RUNS_TABLE, RUNS_CSV, RUNS_JSON };

typedef struct runs_options {
    int format;          /* RUNS_*                                    */
    uint32_t by;         /* HOTFN_BY_*, also the order of the rows    */
    uint32_t limit;      /* 0: all functions that any run called      */
    const char *match;   /* borrowed; a glob, or NULL                 */
    uint32_t name_width; /* columns of a name in the table; 0: whole */
} runs_options;

/* Write to stdout; returns an exit status.  Changes the choice of threads of the record. */
int report_runs(hotfn_record *record, const char *path, const runs_options *options);

#endif
