/* SPDX-License-Identifier: MIT */
/* A PE image is opened, its symbols and exports are read, its functions built and analysed. */
#include "each_failure.h"
#include "image/pe_sample.h"

#include <hotfn/lowlevel/verdicts.h>

typedef struct held {
    hotfn_image *image;
    hotfn_symbols *symbols;
    hotfn_exports *exports;
    hotfn_functions *functions;
    hotfn_verdicts *verdicts;
} held;

static hotfn_status load(held *h, const pe_builder *b, const hotfn_env *env, hotfn_error *err)
{
    hotfn_verdicts_options one_thread = HOTFN_VERDICTS_OPTIONS_INIT;
    hotfn_status status;

    one_thread.threads = 1;
    status = hotfn_image_open_bytes(&h->image, b->data, b->size, "oom", env, err);
    if (status == HOTFN_OK) {
        status = hotfn_symbols_load(&h->symbols, h->image, NULL, env, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_exports_load(&h->exports, h->image, NULL, env, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_functions_build(&h->functions, h->image, h->symbols, env, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_verdicts_create(&h->verdicts, h->image, h->functions, &one_thread, env, err);
    }
    return status;
}

static hotfn_status walk(const void *user, const hotfn_env *env, hotfn_error *err)
{
    held h = { NULL, NULL, NULL, NULL, NULL };
    hotfn_status status = load(&h, user, env, err);

    hotfn_verdicts_destroy(h.verdicts);
    hotfn_functions_destroy(h.functions);
    hotfn_exports_destroy(h.exports);
    hotfn_symbols_destroy(h.symbols);
    hotfn_image_close(h.image);
    return status;
}

static void a_pe_image_survives_every_failure(void)
{
    pe_builder *b = pe_new_sample();

    fail_each_request(walk, b, 20);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(a_pe_image_survives_every_failure),
};
CHECK_MAIN(tests)
