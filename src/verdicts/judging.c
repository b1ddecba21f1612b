/* SPDX-License-Identifier: MIT */
/*
 * The working state of a judge: the functions with their place in the code, and what is known of them
 * before any code is read.
 */
#include "verdicts/judging.h"

#include "base/search.h"
#include "verdicts/workers.h"

#include <string.h>

bool hfn_judging_append(hfn_judging *j, void **items, size_t *count, size_t *capacity,
                        const void *item, size_t item_bytes)
{
    hfn_os_lock_mutex(&j->lock);
    bool fits = hfn_grow(&j->env, items, capacity, *count + 1, item_bytes);
    if (fits) {
        memcpy((char *)*items + (*count)++ * item_bytes, item, item_bytes);
    } else {
        j->no_memory = true;
    }
    hfn_os_unlock_mutex(&j->lock);
    return fits;
}

uint64_t hfn_judging_skip(const hfn_judging *j, uint64_t rva)
{
    return (rva | (j->arch->patching->unit_bytes - 1)) + 1;
}

bool hfn_judging_takes(const hfn_judging *j, const hfn_instruction *in, uint64_t *target)
{
    *target = in->target;
    if (!in->takes_address || in->relative_bytes || j->fixed_place) {
        return in->takes_address;
    }
    if (!in->from_register || j->pic_base == 0) {
        return false;
    }
    *target = (uint32_t)(in->target + j->info.link_base + j->pic_base);
    return true;
}

uint32_t hfn_judging_lower(const hfn_judging *j, uint64_t rva)
{
    return (uint32_t)hfn_count_below(j->subjects, j->count, sizeof *j->subjects,
                                     offsetof(hfn_subject, rva), rva);
}

static void fill_subjects(hfn_judging *j)
{
    const hfn_region *region = NULL;
    uint64_t reach = 0;

    for (uint32_t i = 0; i < j->count; i++) {
        const hfn_function *f = hfn_functions_at(j->functions, i);
        hfn_subject *s = &j->subjects[i];
        *s = (hfn_subject){ .rva = f->rva, .end = f->rva, .flags = f->flags, .kind = f->kind };
        if (!region || !hfn_region_has(region, f->rva)) {
            region = hfn_code_region(&j->code, f->rva);
            reach = 0;
        }
        s->region = region;
        if (!region) {
            continue;
        }
        s->end = f->byte_count < region->end - f->rva ? f->rva + f->byte_count : region->end;
        reach = s->reach = reach > s->end ? reach : s->end;
    }
}

bool hfn_judging_init(hfn_judging *j, const hotfn_image *image, const hotfn_functions *functions,
                      const hfn_arch *arch, const hotfn_verdicts_options *options,
                      const hotfn_env *env)
{
    *j = (hfn_judging){ .env = *env,
                        .image = image,
                        .functions = functions,
                        .arch = arch,
                        .info = HOTFN_IMAGE_INFO_INIT,
                        .threads = options->threads ? options->threads : hfn_workers_default(),
                        .flags = options->flags,
                        .count = hotfn_functions_get_count(functions) };
    hotfn_image_get_info(image, &j->info);
    j->fixed_place = (j->info.flags & HOTFN_IMAGE_FIXED) != 0;
    j->image_base = j->info.format == HOTFN_FORMAT_PE && j->info.machine == HOTFN_MACHINE_X86_64;
    j->pic_base = hfn_image_pic_base(image);
    if (!hfn_code_init(&j->code, image, &j->env)) {
        return false;
    }
    j->subjects = hfn_alloc(&j->env, j->count * sizeof *j->subjects);
    if (!j->subjects) {
        goto fail_code;
    }
    if (!hfn_references_init(&j->references, image, &j->env)) {
        goto fail_subjects;
    }
    hfn_os_init_mutex(&j->lock);
    fill_subjects(j);
    hfn_evidence_prepare(j);
    hfn_rseq_prepare(j);
    hfn_fixed_prepare(j);
    return true;
fail_subjects:
    hfn_free(&j->env, j->subjects, j->count * sizeof *j->subjects);
fail_code:
    hfn_code_finish(&j->code, &j->env);
    return false;
}

bool hfn_judging_finish(hfn_judging *j)
{
    hfn_references_finish(&j->references, &j->env);
    hfn_free(&j->env, j->subjects, j->count * sizeof *j->subjects);
    if (j->dispatchers) {
        hfn_free(&j->env, j->dispatchers, j->dispatcher_capacity * sizeof *j->dispatchers);
    }
    if (j->fixed) {
        hfn_free(&j->env, j->fixed, j->fixed_capacity * sizeof *j->fixed);
    }
    if (j->flag_hands) {
        hfn_free(&j->env, j->flag_hands, j->flag_hand_capacity * sizeof *j->flag_hands);
    }
    if (j->branches) {
        hfn_free(&j->env, j->branches, j->branch_capacity * sizeof *j->branches);
    }
    if (j->far_cases) {
        hfn_free(&j->env, j->far_cases, j->far_case_capacity * sizeof *j->far_cases);
    }
    if (j->slots) {
        hfn_free(&j->env, j->slots, j->slot_capacity * sizeof *j->slots);
    }
    if (j->orphans) {
        hfn_free(&j->env, j->orphans, j->orphan_capacity * sizeof *j->orphans);
    }
    hfn_code_finish(&j->code, &j->env);
    hfn_os_destroy_mutex(&j->lock);
    return !j->no_memory;
}
