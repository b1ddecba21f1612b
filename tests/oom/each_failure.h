/* SPDX-License-Identifier: MIT */
/* The rule that the tests of this folder check: whichever allocation fails, a call completes its
 * work or returns HOTFN_E_NO_MEMORY, and it leaks no memory. */
#ifndef HFN_TESTS_EACH_FAILURE_H
#define HFN_TESTS_EACH_FAILURE_H

#include "base/counting_env.h"
#include "check.h"

/* A piece of work that allocates only through env, frees all its memory, and returns the first
 * failure. */
typedef hotfn_status (*oom_work)(const void *user, const hotfn_env *env, hotfn_error *err);

/* Run the work while request n fails, and all later requests too unless `once` is set.  False if
 * the work violated the rule. */
static inline bool fail_request(oom_work work, const void *user, size_t n, bool once,
                                size_t *requests, hotfn_status *status)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    counting c;
    hotfn_env env = counting_env(&c);

    c.fail_at = n;
    c.fail_once = once;
    *status = work(user, &env, &err);
    *requests = c.requests;
    if (CHECK(*status == HOTFN_OK || *status == HOTFN_E_NO_MEMORY) &&
        CHECK_EQ_I64(err.status, *status) && CHECK_EQ_U64(c.live_bytes, 0) &&
        CHECK_EQ_I64(c.size_mismatches, 0)) {
        return true;
    }
    printf("#   where request %zu failed\n", n);
    return false;
}

/* Let each request fail in turn, until the work ends before it reaches the failing request.  That
 * last run must succeed. */
static inline void fail_each_request(oom_work work, const void *user, size_t requests_min)
{
    for (int once = 0; once < 2; once++) {
        size_t requests = SIZE_MAX;
        hotfn_status status = HOTFN_OK;
        for (size_t n = 1; requests >= n - 1; n++) {
            if (!fail_request(work, user, n, once, &requests, &status)) {
                return;
            }
        }
        CHECK_EQ_I64(status, HOTFN_OK);
        CHECK(requests > requests_min);
    }
}

#endif
