/* SPDX-License-Identifier: MIT */
/* The n-th request for memory fails, for every n, over a PE image: open, load, exports, build, judge:
 * each call either does all of its work or says HOTFN_E_NO_MEMORY, and gives back what it had. */
#include "base/counting_env.h"
#include "check.h"
#include "image/pe_sample.h"

#include <hotfn/verdicts.h>

typedef struct held {
    hotfn_image *image;
    hotfn_symbols *symbols;
    hotfn_exports *exports;
    hotfn_functions *functions;
    hotfn_verdicts *verdicts;
} held;

static hotfn_status walk(held *h, const pe_builder *b, const hotfn_env *env, hotfn_error *err)
{
    hotfn_verdicts_options one_thread = HOTFN_VERDICTS_OPTIONS_INIT;
    hotfn_status status;

    one_thread.threads = 1;
    status = hotfn_image_from_bytes(&h->image, b->data, b->size, "oom", env, err);
    if (status == HOTFN_OK)
        status = hotfn_symbols_load(&h->symbols, h->image, NULL, env, err);
    if (status == HOTFN_OK)
        status = hotfn_exports_load(&h->exports, h->image, NULL, env, err);
    if (status == HOTFN_OK)
        status = hotfn_functions_build(&h->functions, h->image, h->symbols, env, err);
    if (status == HOTFN_OK)
        status = hotfn_verdicts_judge(&h->verdicts, h->image, h->functions, &one_thread, env, err);
    return status;
}

static void release(held *h)
{
    hotfn_verdicts_destroy(h->verdicts);
    hotfn_functions_destroy(h->functions);
    hotfn_exports_destroy(h->exports);
    hotfn_symbols_destroy(h->symbols);
    hotfn_image_close(h->image);
}

static void fail_each_request(bool once)
{
    pe_builder *b = pe_new_sample();
    size_t requests = SIZE_MAX;
    hotfn_status status = HOTFN_OK;

    for (size_t n = 1; requests >= n - 1; n++) {
        counting c;
        hotfn_env env = counting_env(&c);
        hotfn_error err = HOTFN_ERROR_INIT;
        held h = { NULL, NULL, NULL, NULL, NULL };
        c.fail_at = n;
        c.fail_once = once;
        status = walk(&h, b, &env, &err);
        release(&h);
        requests = c.requests;
        if (!CHECK(status == HOTFN_OK || status == HOTFN_E_NO_MEMORY) ||
            !CHECK_EQ_I64(err.status, status) || !CHECK_EQ_U64(c.live_bytes, 0) ||
            !CHECK_EQ_I64(c.size_mismatches, 0)) {
            printf("#   where request %zu failed\n", n);
            break;
        }
    }
    CHECK_EQ_I64(status, HOTFN_OK);
    CHECK(requests > 20);
    free(b);
}

static void a_pe_image_survives_every_failure(void)
{
    fail_each_request(false);
}

static void a_pe_image_survives_each_single_failure(void)
{
    fail_each_request(true);
}

static const check_test tests[] = {
    CHECK_TEST(a_pe_image_survives_every_failure),
    CHECK_TEST(a_pe_image_survives_each_single_failure),
};
CHECK_MAIN(tests)
