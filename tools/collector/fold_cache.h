/* SPDX-License-Identifier: MIT */
/* The latest folds, which all workers share: a search, another page and another order of a table
 * need the same sums, and read no run again.  A key names a selection, and the snapshot of a fold
 * the runs that were folded. */
#ifndef HOTFN_COLLECTOR_FOLD_CACHE_H
#define HOTFN_COLLECTOR_FOLD_CACHE_H

#include "fold.h"

#include <pthread.h>

enum { MAX_KEPT_FOLDS = 16, MAX_KEPT_BYTES = 32 << 20, MAX_FOLD_KEY = 512 };

typedef struct kept_fold {
    char key[MAX_FOLD_KEY]; /* "": the element is empty */
    folded fold;
    int64_t made_ns; /* monotonic */
    uint64_t used;   /* turn of the last use */
} kept_fold;

typedef struct fold_cache {
    pthread_mutex_t lock;
    kept_fold folds[MAX_KEPT_FOLDS];
    uint64_t turn;
    size_t bytes;
} fold_cache;

/* Returns a copy of a fold that was kept with this key and snapshot; no older than since_ns. */
bool fold_cache_find(fold_cache *c, const char *key, const char *snapshot, int64_t since_ns,
                     folded *out);
/* Keep a copy instead of an older fold with this key, and of those that were not used for long. */
void fold_cache_keep(fold_cache *c, const char *key, const folded *fold, int64_t now_ns);
void fold_cache_clear(fold_cache *c);

#endif
