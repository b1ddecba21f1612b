/* SPDX-License-Identifier: MIT */
/* The data of the page of a record.  It is in columns, in several script elements, which the page
 * reads when it first needs them.  Functions are numbered by their rank: called functions come
 * first, in the order of the page's table, then the others in the order of the record. */
#ifndef HFN_EXPORTERS_HTML_DATA_H
#define HFN_EXPORTERS_HTML_DATA_H

#include "exporters/json_fields.h"

/* Time and bytes of a node together with all nodes below it. */
typedef struct hfn_page_sum {
    uint64_t ns, bytes; /* with those below; ns without waiting */
    uint64_t waited_ns;
} hfn_page_sum;

typedef struct hfn_page {
    const hfn_view *view;
    hfn_sink *sink;
    hotfn_json_writer *out;
    uint32_t *order;                  /* by rank: the function's index in the record */
    uint32_t *ranks;                  /* by index: the rank */
    uint32_t called_count, timed_end; /* all timed functions have ranks below timed_end */
    uint32_t *indices; /* by node: its index in the page, UINT32_MAX if it is omitted */
    hfn_page_sum *sums, all;
    uint32_t omitted;
    uint64_t omitted_events;
    uint64_t *buckets;
    char shown[8192];
} hfn_page;

typedef hotfn_json *(*hfn_page_create_fn)(hfn_page *page, uint32_t index);

/* Write an array with create(page, i) for each i from begin to end - 1. */
void hfn_page_write_column(hfn_page *page, const char *key, uint32_t begin, uint32_t end,
                           hfn_page_create_fn create);
/* The page uses -1 for "none". */
hotfn_json *hfn_page_create_index(uint32_t index, uint32_t none);
/* The rank of a function, -1 for HOTFN_NO_FUNCTION. */
hotfn_json *hfn_page_create_rank(const hfn_page *page, uint32_t function);

/* Fill order and ranks; false if there is no memory. */
bool hfn_page_sort(hfn_page *page);
/* The columns of the functions from one rank to another. */
void hfn_page_write_functions(hfn_page *page, uint32_t begin, uint32_t end);
/* For each timed function the list bucket, count, bucket, count ... without empty buckets. */
void hfn_page_write_histograms(hfn_page *page);

/* Choose the nodes of the call tree, before anything about nodes is written. */
void hfn_page_choose_nodes(hfn_page *page);
void hfn_page_write_nodes(hfn_page *page);
void hfn_page_write_edges(hfn_page *page);
/* The entries and exits, of the latest calls if there are many. */
void hfn_page_write_events(hfn_page *page);

#endif
