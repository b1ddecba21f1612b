/* SPDX-License-Identifier: MIT */
/* Invariants of the verdicts of any image, on which hooks/ relies; a violation aborts. */
#ifndef HFN_FUZZ_VERDICTS_PROMISES_H
#define HFN_FUZZ_VERDICTS_PROMISES_H

#include "verdicts/verdicts.h"

#include <stdlib.h>

/* Bytes that a patch changes or relies on; no other patch may change them. */
typedef struct claim {
    uint64_t from, to;
} claim;

static inline int compare_claims(const void *a, const void *b)
{
    const claim *left = a, *right = b;

    return (left->from > right->from) - (left->from < right->from);
}

static inline void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static inline uint32_t add_claims(const hotfn_verdicts *verdicts, uint32_t i, claim *claims)
{
    const hfn_verdict *v = hfn_verdicts_at(verdicts, i);
    uint32_t kept = v->pub.strategy == HOTFN_STRATEGY_PUN ? 5 : v->pub.patch_bytes;
    hfn_moved moved;

    must(v->pub.verdict >= HOTFN_VERDICT_HOOKABLE && v->pub.verdict <= HOTFN_VERDICT_FRAGMENT);
    must((v->pub.verdict == HOTFN_VERDICT_HOOKABLE) == (v->pub.reason == HOTFN_REASON_NONE));
    must((v->pub.verdict == HOTFN_VERDICT_HOOKABLE) == (v->pub.strategy != HOTFN_STRATEGY_NONE));
    must(hfn_verdicts_moved(verdicts, i, &moved) == (v->pub.verdict == HOTFN_VERDICT_HOOKABLE));
    must(v->pub.verdict == HOTFN_VERDICT_HOOKABLE || !(v->pub.flags & HOTFN_VERDICT_TIMED));
    if (v->pub.verdict != HOTFN_VERDICT_HOOKABLE) {
        return 0;
    }
    must(((v->pub.flags & HOTFN_VERDICT_TIMED) != 0) ==
         (HOTFN_VERDICT_TIMING_REASON(v->pub.flags) == HOTFN_REASON_NONE));
    must(moved.original_bytes == v->covered_bytes);
    must(hfn_verdicts_original(verdicts, i).size == v->pub.patch_bytes);
    claims[0] = (claim){ v->site_rva, v->site_rva + kept };
    if (v->island_rva == 0) {
        return 1;
    }
    must(hfn_verdicts_island_original(verdicts, i).size == 5);
    claims[1] = (claim){ v->island_rva, v->island_rva + 5 };
    return 2;
}

static inline void check_claims(const hotfn_verdicts *verdicts)
{
    uint32_t count = hotfn_verdicts_get_count(verdicts), claimed = 0;
    claim *claims = malloc((2 * (size_t)count + 1) * sizeof *claims);

    must(claims != NULL);
    for (uint32_t i = 0; i < count; i++) {
        claimed += add_claims(verdicts, i, claims + claimed);
    }
    qsort(claims, claimed, sizeof *claims, compare_claims);
    for (uint32_t i = 1; i < claimed; i++) {
        must(claims[i - 1].to <= claims[i].from);
    }
    free(claims);
}

/* Analyse the image with one thread and with three.  Both must give the same verdicts, and the
 * verdicts must keep all invariants. */
static inline void check_image(const hotfn_image *image)
{
    hotfn_symbols_options no_files = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_verdicts_options options = HOTFN_VERDICTS_OPTIONS_INIT;
    hotfn_symbols *symbols = NULL;
    hotfn_functions *functions = NULL;
    hotfn_verdicts *one = NULL, *three = NULL;

    no_files.flags = HOTFN_SYMBOLS_NO_SEPARATE;
    hotfn_symbols_load(&symbols, image, &no_files, NULL, NULL);
    if (hotfn_functions_build(&functions, image, symbols, NULL, NULL) == HOTFN_OK &&
        hotfn_verdicts_find_functions(functions, image, 1, NULL, NULL) == HOTFN_OK) {
        options.flags = HOTFN_VERDICTS_TIMING;
        options.threads = 1;
        must(hotfn_verdicts_create(&one, image, functions, &options, NULL, NULL) == HOTFN_OK);
        options.threads = 3;
        must(hotfn_verdicts_create(&three, image, functions, &options, NULL, NULL) == HOTFN_OK);
        for (uint32_t i = 0; i < hotfn_verdicts_get_count(one); i++) {
            must(hfn_verdicts_at(one, i)->pub.strategy == hfn_verdicts_at(three, i)->pub.strategy &&
                 hfn_verdicts_at(one, i)->island_rva == hfn_verdicts_at(three, i)->island_rva &&
                 hfn_verdicts_at(one, i)->pub.flags == hfn_verdicts_at(three, i)->pub.flags);
        }
        check_claims(one);
    }
    hotfn_verdicts_destroy(three);
    hotfn_verdicts_destroy(one);
    hotfn_functions_destroy(functions);
    hotfn_symbols_destroy(symbols);
}

#endif
