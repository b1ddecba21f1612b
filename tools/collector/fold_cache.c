/* SPDX-License-Identifier: MIT */
/* Keep the latest folds. */
#include "fold_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t count_bytes(const folded *f)
{
    return ((size_t)f->function_count + 1) * sizeof *f->functions;
}

/* False if there is no memory; *out is then empty. */
static bool copy_fold(const folded *from, folded *out)
{
    folded_function *functions = malloc(count_bytes(from));

    *out = (folded){ 0 };
    if (!functions) {
        return false;
    }
    memcpy(functions, from->functions, count_bytes(from));
    *out = *from;
    out->functions = functions;
    return true;
}

static kept_fold *find_kept(fold_cache *c, const char *key)
{
    for (int i = 0; i < MAX_KEPT_FOLDS; i++) {
        if (strcmp(c->folds[i].key, key) == 0) {
            return &c->folds[i];
        }
    }
    return NULL;
}

static void drop_kept(fold_cache *c, kept_fold *k)
{
    c->bytes -= k->key[0] ? count_bytes(&k->fold) : 0;
    fold_free(&k->fold);
    k->key[0] = 0;
}

static kept_fold *find_oldest(fold_cache *c)
{
    kept_fold *oldest = NULL;

    for (int i = 0; i < MAX_KEPT_FOLDS; i++) {
        kept_fold *k = &c->folds[i];
        if (k->key[0] && (!oldest || k->used < oldest->used)) {
            oldest = k;
        }
    }
    return oldest;
}

bool fold_cache_find(fold_cache *c, const char *key, const char *snapshot, int64_t since_ns,
                     folded *out)
{
    pthread_mutex_lock(&c->lock);
    kept_fold *k = find_kept(c, key);
    bool ok = k && strcmp(k->fold.snapshot, snapshot) == 0 && k->made_ns >= since_ns &&
              copy_fold(&k->fold, out);
    if (ok) {
        k->used = ++c->turn;
    }
    pthread_mutex_unlock(&c->lock);
    return ok;
}

void fold_cache_keep(fold_cache *c, const char *key, const folded *fold, int64_t now_ns)
{
    size_t bytes = count_bytes(fold);
    folded copy;

    if (bytes > MAX_KEPT_BYTES || !copy_fold(fold, &copy)) {
        return;
    }
    pthread_mutex_lock(&c->lock);
    kept_fold *k = find_kept(c, key);
    if (k) {
        drop_kept(c, k);
    }
    while (c->bytes + bytes > MAX_KEPT_BYTES || !(k = find_kept(c, ""))) {
        drop_kept(c, find_oldest(c));
    }
    snprintf(k->key, sizeof k->key, "%s", key);
    k->fold = copy;
    k->made_ns = now_ns;
    k->used = ++c->turn;
    c->bytes += bytes;
    pthread_mutex_unlock(&c->lock);
}

void fold_cache_clear(fold_cache *c)
{
    for (int i = 0; i < MAX_KEPT_FOLDS; i++) {
        drop_kept(c, &c->folds[i]);
    }
}
