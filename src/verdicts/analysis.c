/* SPDX-License-Identifier: MIT */
/* Creates and frees the state of an analysis: functions with their place in the code, and the
 * facts that are known before any code is decoded. */
#include "verdicts/analysis.h"

#include "base/byte_order.h"
#include "base/search.h"
#include "verdicts/workers.h"

#include <string.h>

enum { HOME_BYTES = 32 };

bool hfn_analysis_append(hfn_analysis *a, void **items, size_t *count, size_t *capacity,
                         const void *item, size_t item_bytes)
{
    hfn_os_lock_mutex(&a->lock);
    bool fits = hfn_grow_array(&a->env, items, capacity, *count + 1, item_bytes);
    if (fits) {
        memcpy((char *)*items + (*count)++ * item_bytes, item, item_bytes);
    } else {
        a->no_memory = true;
    }
    hfn_os_unlock_mutex(&a->lock);
    return fits;
}

uint64_t hfn_analysis_next_start(const hfn_analysis *a, uint64_t rva)
{
    return (rva | (a->arch->patching->unit_bytes - 1)) + 1;
}

bool hfn_analysis_takes_address(const hfn_analysis *a, const hfn_instruction *in, uint64_t *target)
{
    *target = in->target;
    if (!in->takes_address || in->relative_bytes || a->fixed_place) {
        return in->takes_address;
    }
    if (!in->from_register || a->pic_base == 0) {
        return false;
    }
    *target = (uint32_t)(in->target + a->info.link_base + a->pic_base);
    return true;
}

bool hfn_analysis_accesses(const hfn_analysis *a, const hfn_instruction *in, const uint8_t *bytes,
                           uint64_t *rva)
{
    if (in->reads_memory_relative) {
        *rva = in->target;
        return true;
    }
    if (in->absolute_at == 0 || !a->fixed_place) {
        return false;
    }
    *rva = (uint64_t)hfn_read_signed_le32(bytes + in->absolute_at) - a->info.link_base;
    if (a->arch->pointer_bytes == 4) {
        *rva = (uint32_t)*rva;
    }
    return true;
}

uint32_t hfn_analysis_find_body(const hfn_analysis *a, uint64_t rva)
{
    return (uint32_t)hfn_count_below(a->bodies, a->count, sizeof *a->bodies,
                                     offsetof(hfn_body, rva), rva);
}

uint32_t hfn_analysis_find_around(const hfn_analysis *a, uint64_t rva)
{
    uint32_t next = hfn_analysis_find_body(a, rva + 1);

    return next > 0 && rva < a->bodies[next - 1].end ? next - 1 : HFN_NO_FUNCTION;
}

hfn_dispatcher hfn_analysis_find_surroundings(const hfn_analysis *a, const hfn_region *region,
                                              uint64_t rva)
{
    uint32_t next = hfn_analysis_find_body(a, rva + 1);
    hfn_dispatcher d = { .from = region->rva, .to = region->end, .function = HFN_NO_FUNCTION };

    if (next < a->count && a->bodies[next].rva < d.to) {
        d.to = a->bodies[next].rva;
    }
    if (next > 0 && a->bodies[next - 1].end > rva) {
        d = (hfn_dispatcher){ a->bodies[next - 1].rva, a->bodies[next - 1].end, next - 1 };
    } else if (next > 0 && a->bodies[next - 1].end > d.from) {
        d.from = a->bodies[next - 1].end;
    }
    return d;
}

bool hfn_analysis_has_pointer(const hfn_body *body)
{
    return body->region && ((body->flags & HOTFN_FUNCTION_EXPORTED) ||
                            (hfn_region_marks(body->region, body->rva) & HFN_MARK_TAKEN));
}

int hfn_analysis_compare_addresses(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static void fill_bodies(hfn_analysis *a)
{
    const hfn_region *region = NULL;
    uint64_t max_end = 0;

    for (uint32_t i = 0; i < a->count; i++) {
        const hfn_function *f = hfn_functions_at(a->functions, i);
        hfn_body *body = &a->bodies[i];
        *body = (hfn_body){ .rva = f->rva, .end = f->rva, .flags = f->flags, .kind = f->kind };
        if (!region || !hfn_region_has(region, f->rva)) {
            region = hfn_code_region(&a->code, f->rva);
            max_end = 0;
        }
        body->region = region;
        if (!region) {
            continue;
        }
        body->end = f->byte_count < region->end - f->rva ? f->rva + f->byte_count : region->end;
        max_end = body->max_end = max_end > body->end ? max_end : body->end;
    }
}

static void find_got(hfn_analysis *a)
{
    const hfn_elf_section *got = hfn_elf_section_named(a->image, ".got");

    if (got && hfn_image_rva(a->image, got->address, &a->got_rva)) {
        a->got_bytes = got->file_bytes;
    }
}

bool hfn_analysis_init(hfn_analysis *a, const hotfn_image *image, const hotfn_functions *functions,
                       const hfn_arch *arch, const hotfn_verdicts_options *options,
                       const hotfn_env *env)
{
    *a = (hfn_analysis){ .env = *env,
                         .image = image,
                         .functions = functions,
                         .arch = arch,
                         .info = HOTFN_IMAGE_INFO_INIT,
                         .threads = options->threads ? options->threads : hfn_workers_default(),
                         .flags = options->flags,
                         .gap_from = UINT64_MAX,
                         .runtimes = hfn_runtimes_find(image, functions),
                         .count = hotfn_functions_get_count(functions) };
    hotfn_image_get_info(image, &a->info);
    a->fixed_place = (a->info.flags & HOTFN_IMAGE_FIXED) != 0;
    a->relocated.link_base = a->info.link_base;
    a->image_base = a->info.format == HOTFN_FORMAT_PE && a->info.machine == HOTFN_MACHINE_X86_64;
    a->home_bytes = a->image_base ? HOME_BYTES : 0;
    a->pic_base = hfn_image_pic_base(image);
    if (!hfn_code_init(&a->code, image, &a->env)) {
        return false;
    }
    a->bodies = hfn_allocate_zeroed(&a->env, a->count * sizeof *a->bodies);
    if (!a->bodies) {
        goto fail_code;
    }
    if (!hfn_references_init(&a->references, image, &a->env)) {
        goto fail_bodies;
    }
    hfn_os_init_mutex(&a->lock);
    fill_bodies(a);
    find_got(a);
    hfn_evidence_prepare(a);
    hfn_rseq_prepare(a);
    hfn_xray_prepare(a);
    hfn_fixed_prepare(a);
    return true;
fail_bodies:
    hfn_free_memory(&a->env, a->bodies, a->count * sizeof *a->bodies);
fail_code:
    hfn_code_finish(&a->code, &a->env);
    return false;
}

bool hfn_analysis_finish(hfn_analysis *a)
{
    hfn_references_finish(&a->references, &a->env);
    hfn_free_memory(&a->env, a->bodies, a->count * sizeof *a->bodies);
    if (a->dispatchers) {
        hfn_free_memory(&a->env, a->dispatchers, a->dispatcher_capacity * sizeof *a->dispatchers);
    }
    if (a->fixed) {
        hfn_free_memory(&a->env, a->fixed, a->fixed_capacity * sizeof *a->fixed);
    }
    if (a->relocated.fields) {
        hfn_free_memory(&a->env, a->relocated.fields,
                        a->relocated.capacity * sizeof *a->relocated.fields);
    }
    if (a->flags_calls) {
        hfn_free_memory(&a->env, a->flags_calls, a->flags_call_capacity * sizeof *a->flags_calls);
    }
    if (a->table_jumps) {
        hfn_free_memory(&a->env, a->table_jumps, a->table_jump_capacity * sizeof *a->table_jumps);
    }
    if (a->reading_jumps) {
        hfn_free_memory(&a->env, a->reading_jumps,
                        a->reading_jump_capacity * sizeof *a->reading_jumps);
    }
    if (a->exits) {
        hfn_free_memory(&a->env, a->exits, a->exit_capacity * sizeof *a->exits);
    }
    if (a->taken) {
        hfn_free_memory(&a->env, a->taken, a->taken_capacity * sizeof *a->taken);
    }
    if (a->known) {
        hfn_free_memory(&a->env, a->known, a->known_capacity * sizeof *a->known);
    }
    if (a->tables) {
        hfn_free_memory(&a->env, a->tables, a->table_capacity * sizeof *a->tables);
    }
    if (a->red_zone) {
        hfn_free_memory(&a->env, a->red_zone, a->red_zone_capacity * sizeof *a->red_zone);
    }
    if (a->branches) {
        hfn_free_memory(&a->env, a->branches, a->branch_capacity * sizeof *a->branches);
    }
    if (a->cross_jumps) {
        hfn_free_memory(&a->env, a->cross_jumps, a->cross_jump_capacity * sizeof *a->cross_jumps);
    }
    if (a->slots) {
        hfn_free_memory(&a->env, a->slots, a->slot_capacity * sizeof *a->slots);
    }
    if (a->unowned) {
        hfn_free_memory(&a->env, a->unowned, a->unowned_capacity * sizeof *a->unowned);
    }
    if (a->hidden) {
        hfn_free_memory(&a->env, a->hidden, a->hidden_capacity * sizeof *a->hidden);
    }
    hfn_code_finish(&a->code, &a->env);
    hfn_os_destroy_mutex(&a->lock);
    return !a->no_memory;
}
