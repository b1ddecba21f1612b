/* SPDX-License-Identifier: MIT */
/* Runs an analysis and keeps its results: one hfn_verdict for each function.  All other state is
 * freed. */
#include "base/status.h"
#include "verdicts/analysis.h"
#include "verdicts/workers.h"

#include <string.h>

#define BATCH 512u /* functions that a thread decides at a time */

struct hotfn_verdicts {
    hotfn_env env;
    const hotfn_image *image;
    const hotfn_functions *functions;
    const hfn_arch *arch;
    hfn_verdict *items;
    uint32_t count;
    hfn_branch *sites;
    size_t site_count, site_capacity;
    hfn_relocated relocated;
    uint64_t tsc_disable_rva;
    bool has_own_threads;
};

static void decide_batch(hfn_analysis *a, hfn_verdict *items, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        hfn_verdict *out = &items[i];
        out->pub.size = (uint32_t)sizeof out->pub;
        if (hfn_evidence_decide(a, i, out)) {
            continue;
        }
        out->pub.flags = hfn_evidence_flags(a, i);
        hfn_strategy_choose_local(a, i, out);
    }
}

typedef struct first_pass {
    hfn_analysis *analysis;
    hfn_verdict *items;
} first_pass;

static void decide_nth_batch(void *user, uint32_t number)
{
    const first_pass *pass = user;
    uint32_t from = number * BATCH, left = pass->analysis->count - from;

    decide_batch(pass->analysis, pass->items, from, from + (left < BATCH ? left : BATCH));
}

static void decide_all(hfn_analysis *a, hfn_verdict *items)
{
    first_pass pass = { .analysis = a, .items = items };

    hfn_workers_run(
        a->threads, (a->count + BATCH - 1) / BATCH, decide_nth_batch, &pass,
        hfn_progress_begin(&a->env, "judging functions of", hfn_image_path(a->image), a->count));
    for (uint32_t i = 0; i < a->count; i++) {
        if (items[i].pub.verdict == 0) {
            hfn_strategy_choose_any(a, i, &items[i]);
        }
    }
}

static void refuse_all(hfn_verdict *items, uint32_t count, const hotfn_functions *functions)
{
    for (uint32_t i = 0; i < count; i++) {
        items[i].pub = (hotfn_verdict){ .size = (uint32_t)sizeof items[i].pub,
                                        .verdict = HOTFN_VERDICT_REFUSED,
                                        .reason = HOTFN_REASON_MACHINE };
        items[i].site_rva = hfn_functions_at(functions, i)->rva;
    }
}

static bool analyze_image(hotfn_verdicts *v, const hotfn_verdicts_options *options)
{
    hfn_analysis a;
    uint8_t *loops;

    if (!hfn_analysis_init(&a, v->image, v->functions, v->arch, options, &v->env)) {
        return false;
    }
    hfn_flow_scan(&a);
    hfn_tables_scan(&a); /* may decode more code */
    hfn_flow_finish_exits(&a);
    hfn_fixed_sort(&a);
    hfn_fault_ranges_find(&a);
    hfn_own_threads_finish(&a);
    hfn_flags_propagate(&a);
    hfn_unowned_scan(&a);
    hfn_red_zone_scan(&a);
    decide_all(&a, v->items);
    loops = hfn_allocate_zeroed(&a.env, a.count + 1);
    if (!loops) {
        a.no_memory = true;
        return hfn_analysis_finish(&a);
    }
    hfn_owners_find(&a, v->items, loops); /* needs all branches */
    hfn_sites_keep(&a, v->items);
    if (options->flags & HOTFN_VERDICTS_TIMING) {
        hfn_timing_prove_all(&a, v->items);
    }
    hfn_owners_report_loops(&a, v->items, loops);
    hfn_free_memory(&a.env, loops, a.count + 1);
    v->tsc_disable_rva = a.tsc_disable_rva;
    v->has_own_threads = a.has_own_threads;
    v->sites = a.branches;
    v->site_count = a.branch_count;
    v->site_capacity = a.branch_capacity;
    a.branches = NULL;
    v->relocated = a.relocated;
    a.relocated.fields = NULL;
    return hfn_analysis_finish(&a);
}

static hotfn_verdicts *allocate_verdicts(const hotfn_image *image, const hotfn_functions *functions,
                                         const hotfn_env *env)
{
    hotfn_env filled = hfn_env_fill(env);
    hotfn_verdicts *v = hfn_allocate_zeroed(&filled, sizeof *v);
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    if (!v) {
        return NULL;
    }
    hotfn_image_get_info(image, &info);
    v->env = filled;
    v->image = image;
    v->functions = functions;
    v->arch = hfn_arch_find(info.machine);
    v->count = hotfn_functions_get_count(functions);
    v->items = hfn_allocate_zeroed(&filled, v->count * sizeof *v->items);
    if (v->items) {
        return v;
    }
    hfn_free_memory(&filled, v, sizeof *v);
    return NULL;
}

hotfn_status hotfn_verdicts_create(hotfn_verdicts **out, const hotfn_image *image,
                                   const hotfn_functions *functions,
                                   const hotfn_verdicts_options *options, const hotfn_env *env,
                                   hotfn_error *err)
{
    if (!out || !image || !functions) {
        return hfn_report_null(err, __func__);
    }

    hotfn_verdicts_options accepted = HOTFN_VERDICTS_OPTIONS_INIT;

    if (!hfn_copy_options(&accepted, (uint32_t)sizeof accepted, options) ||
        (accepted.flags &
         ~(HOTFN_VERDICTS_ALLOW_INT3 | HOTFN_VERDICTS_TIMING | HOTFN_VERDICTS_NO_TAIL_EXIT)) ||
        accepted.reserved) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "unknown option for verdicts");
    }
    hotfn_verdicts *v = allocate_verdicts(image, functions, env);
    if (!v) {
        goto no_memory;
    }
    if (!v->arch) {
        refuse_all(v->items, v->count, functions);
    } else if (v->count > 0 && !analyze_image(v, &accepted)) {
        goto no_memory;
    }
    *out = v;
    return HOTFN_OK;
no_memory:
    hotfn_verdicts_destroy(v);
    return hfn_report_no_memory(err, hfn_image_path(image));
}

void hotfn_verdicts_destroy(hotfn_verdicts *v)
{
    if (!v) {
        return;
    }
    hotfn_env env = v->env;
    if (v->sites) {
        hfn_free_memory(&env, v->sites, v->site_capacity * sizeof *v->sites);
    }
    if (v->relocated.fields) {
        hfn_free_memory(&env, v->relocated.fields,
                        v->relocated.capacity * sizeof *v->relocated.fields);
    }
    hfn_free_memory(&env, v->items, v->count * sizeof *v->items);
    hfn_free_memory(&env, v, sizeof *v);
}

uint32_t hotfn_verdicts_get_count(const hotfn_verdicts *v)
{
    return v ? v->count : 0;
}

hotfn_status hotfn_verdicts_get(const hotfn_verdicts *v, uint32_t index, hotfn_verdict *out)
{
    if (!v) {
        return HOTFN_E_OPTION;
    }
    if (index >= v->count) {
        return HOTFN_E_NOT_FOUND;
    }
    return hfn_copy_result(out, &v->items[index].pub, (uint32_t)sizeof v->items[index].pub);
}

const hfn_verdict *hfn_verdicts_at(const hotfn_verdicts *v, uint32_t index)
{
    return index < v->count ? &v->items[index] : NULL;
}

bool hfn_verdicts_moved(const hotfn_verdicts *v, uint32_t index, hfn_moved *out)
{
    const hfn_verdict *item = hfn_verdicts_at(v, index);
    uint32_t offset = 0;

    if (!item || item->pub.verdict != HOTFN_VERDICT_HOOKABLE) {
        return false;
    }
    hfn_span bytes = hfn_image_span(v->image, item->site_rva);
    if (item->pub.strategy == HOTFN_STRATEGY_RETARGET) {
        return v->arch->retarget(bytes.data, bytes.size, item->site_rva, out);
    }
    uint32_t wanted =
        item->covered_bytes < item->pub.patch_bytes ? item->covered_bytes : item->pub.patch_bytes;
    return v->arch->move(bytes.data, bytes.size, item->site_rva, wanted,
                         (uint8_t)(item->pc_register - 1), out, &offset) == HFN_MOVED &&
           hfn_relocated_add_fixups(&v->relocated, bytes.data, item->site_rva, out);
}

static hfn_span bytes_at(const hotfn_verdicts *v, uint64_t rva, uint64_t byte_count)
{
    return hfn_span_sub(hfn_image_span(v->image, rva), 0, byte_count);
}

hfn_span hfn_verdicts_original(const hotfn_verdicts *v, uint32_t index)
{
    const hfn_verdict *item = hfn_verdicts_at(v, index);

    if (!item || item->pub.verdict != HOTFN_VERDICT_HOOKABLE) {
        return (hfn_span){ 0 };
    }
    return bytes_at(v, item->site_rva, item->pub.patch_bytes);
}

hfn_span hfn_verdicts_island_original(const hotfn_verdicts *v, uint32_t index)
{
    const hfn_verdict *item = hfn_verdicts_at(v, index);

    if (!item || item->island_rva == 0) {
        return (hfn_span){ 0 };
    }
    return bytes_at(v, item->island_rva, 5);
}

const hfn_branch *hfn_verdicts_sites(const hotfn_verdicts *v, size_t *count)
{
    *count = v->site_count;
    return v->sites;
}

bool hfn_verdicts_has_own_threads(const hotfn_verdicts *v)
{
    return v->has_own_threads;
}

uint64_t hfn_verdicts_get_tsc_disable_rva(const hotfn_verdicts *v)
{
    return v->tsc_disable_rva;
}

const hotfn_image *hfn_verdicts_image(const hotfn_verdicts *v)
{
    return v->image;
}

const hotfn_functions *hfn_verdicts_functions(const hotfn_verdicts *v)
{
    return v->functions;
}

const hfn_arch *hfn_verdicts_arch(const hotfn_verdicts *v)
{
    return v->arch;
}
