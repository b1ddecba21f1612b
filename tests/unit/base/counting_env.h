/* SPDX-License-Identifier: MIT */
/* An env for tests.  Its allocator stores the size of every block, checks it when the block is
 * freed or resized, and can fail at the n-th request; the last warning is kept. */
#ifndef HFN_TESTS_COUNTING_ENV_H
#define HFN_TESTS_COUNTING_ENV_H

#include <hotfn/env.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct counting {
    size_t live_bytes, requests;
    size_t fail_at; /* this request and all after it fail; 0 never */
    bool fail_once; /* only this one fails                         */
    int size_mismatches;
    int warnings;
    char last_log[1024];
} counting;

/* The size is stored in front of each block; 16 bytes keep the alignment. */
static inline void *counting_realloc(void *user, void *memory, size_t old_bytes, size_t new_bytes)
{
    counting *c = user;
    unsigned char *block = memory ? (unsigned char *)memory - 16 : NULL;
    size_t known = 0;

    if (block) {
        memcpy(&known, block, sizeof known);
    }
    c->size_mismatches += known != old_bytes;
    c->requests += new_bytes != 0;
    if (new_bytes && c->fail_at &&
        (c->fail_once ? c->requests == c->fail_at : c->requests >= c->fail_at)) {
        return NULL;
    }
    c->live_bytes -= known;
    if (!new_bytes) {
        free(block);
        return NULL;
    }
    block = realloc(block, new_bytes + 16);
    if (!block) {
        abort();
    }
    memcpy(block, &new_bytes, sizeof new_bytes);
    c->live_bytes += new_bytes;
    return block + 16;
}

static inline void counting_log(void *user, int32_t level, const char *text)
{
    counting *c = user;

    c->warnings += level <= HOTFN_LOG_WARNING;
    if (level <= HOTFN_LOG_WARNING) {
        snprintf(c->last_log, sizeof c->last_log, "%s", text);
    }
}

static inline hotfn_env counting_env(counting *c)
{
    hotfn_env env = HOTFN_ENV_INIT;

    memset(c, 0, sizeof *c);
    env.realloc_fn = counting_realloc;
    env.realloc_user = c;
    env.log_fn = counting_log;
    env.log_user = c;
    return env;
}

#endif
