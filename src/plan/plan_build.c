/* SPDX-License-Identifier: MIT */
/* Builds a plan from verdicts.  This is the only file of the folder that uses verdicts, so that a
 * process can be patched without linking the analysis and its decoder. */
#include "plan/plan_write.h"

#include "base/memory.h"
#include "base/search.h"
#include "base/status.h"
#include "functions/functions.h"
#include "image/image.h"
#include "verdicts/verdicts.h"

#define NO_ENTRY UINT32_MAX

/* The number of bytes at the site that must equal the file: those that are overwritten or moved,
 * and for a pun the bytes that become part of the jump. */
static uint32_t count_original_bytes(const hfn_verdict *verdict)
{
    uint32_t patched = verdict->pub.strategy == HOTFN_STRATEGY_PUN ? 5 : verdict->pub.patch_bytes;

    return verdict->covered_bytes > patched ? verdict->covered_bytes : patched;
}

/* End of the function's code, limited to the bytes of its section. */
static uint64_t get_end_rva(const hotfn_verdicts *verdicts, uint32_t index, uint64_t site_rva,
                            uint64_t bytes_behind_site)
{
    const hfn_function *f = hfn_functions_at(hfn_verdicts_functions(verdicts), index);
    uint64_t before_site = site_rva - f->rva;

    return f->byte_count < before_site + bytes_behind_site ? f->rva + f->byte_count
                                                           : site_rva + bytes_behind_site;
}

/* Collect the tail jumps to the function's tail target.  False if there are none, or more than
 * the format holds. */
static bool find_tail_exits(const hotfn_verdicts *verdicts, uint32_t index,
                            uint32_t fields[UINT8_MAX], hfn_plan_new_entry *source)
{
    uint32_t target = hfn_verdicts_at(verdicts, index)->pub.tail_target - 1;
    uint64_t end =
        source->rva + hfn_functions_at(hfn_verdicts_functions(verdicts), index)->byte_count;
    size_t count, i;
    const hfn_branch *sites = hfn_verdicts_sites(verdicts, &count);

    source->tail_exits = fields;
    source->tail_target_rva =
        (uint32_t)hfn_functions_at(hfn_verdicts_functions(verdicts), target)->rva;
    i = hfn_count_below_u32(sites, count, sizeof *sites, offsetof(hfn_branch, field), source->rva);
    for (; i < count && sites[i].field < end; i++) {
        if (sites[i].target != target) {
            continue;
        }
        if (source->tail_exit_count == UINT8_MAX) {
            return false;
        }
        fields[source->tail_exit_count++] = sites[i].field;
    }
    return source->tail_exit_count > 0;
}

static hotfn_status add_entry(hfn_plan_writer *writer, const hotfn_verdicts *verdicts,
                              uint32_t index)
{
    const hfn_verdict *verdict = hfn_verdicts_at(verdicts, index);
    const hotfn_image *image = hfn_verdicts_image(verdicts);
    uint32_t original_bytes = count_original_bytes(verdict);
    hfn_span original = hfn_image_span(image, verdict->site_rva);
    hfn_moved moved;
    uint32_t tail_exits[UINT8_MAX];
    hfn_plan_new_entry source = {
        .function_index = index,
        .section = hfn_image_section_of(image, verdict->site_rva),
        .rva = verdict->site_rva - verdict->pub.patch_offset,
        .end_rva = get_end_rva(verdicts, index, verdict->site_rva, original.size),
        .strategy = verdict->pub.strategy,
        .flags = verdict->pub.flags & 0xffu, /* without the reason for not being timed */
        .arguments = verdict->pub.flags >> 24,
        .stored_arguments = verdict->stored_arguments,
        .patch_offset = verdict->pub.patch_offset,
        .patch_bytes = verdict->pub.patch_bytes,
        .scratch = verdict->scratch,
        .island_rva = verdict->island_rva,
        .original = original.data,
        .original_bytes = original_bytes,
        .island_original = hfn_verdicts_island_original(verdicts, index).data,
        .moved = &moved,
    };

    if (original.size < original_bytes || !hfn_verdicts_moved(verdicts, index, &moved)) {
        return HOTFN_E_LIMIT;
    }
    if (verdict->pub.tail_target != 0 && !find_tail_exits(verdicts, index, tail_exits, &source)) {
        source.flags &= ~HOTFN_VERDICT_TIMED;
        source.arguments = source.tail_exit_count = source.tail_target_rva = 0;
    }
    return hfn_plan_writer_add(writer, &source);
}

/* Set entries[function] to the index of its entry, NO_ENTRY if it has none. */
static hotfn_status add_entries(hfn_plan_writer *writer, const hotfn_verdicts *verdicts,
                                uint32_t *entries, const hotfn_env *env, hotfn_error *err)
{
    uint32_t count = hotfn_verdicts_get_count(verdicts), dropped_count = 0, number = 0;

    for (uint32_t i = 0; i < count; i++) {
        const hfn_verdict *verdict = hfn_verdicts_at(verdicts, i);
        hotfn_status status;
        entries[i] = NO_ENTRY;
        if (verdict->pub.verdict != HOTFN_VERDICT_HOOKABLE ||
            verdict->pub.strategy == HOTFN_STRATEGY_INT3) {
            continue;
        }
        status = add_entry(writer, verdicts, i);
        if (status == HOTFN_E_NO_MEMORY) {
            return hfn_report_error(err, status, NULL, HOTFN_NO_OFFSET, "not enough memory");
        }
        dropped_count += status != HOTFN_OK;
        if (status == HOTFN_OK) {
            entries[i] = number++;
        }
    }
    if (dropped_count > 0) {
        hfn_log_message(env, HOTFN_LOG_WARNING,
                        "%u hookable functions cannot be stored in the plan", dropped_count);
    }
    return HOTFN_OK;
}

static hotfn_status add_sites(hfn_plan_writer *writer, const hotfn_verdicts *verdicts,
                              const uint32_t *entries, hotfn_error *err)
{
    size_t count;
    const hfn_branch *sites = hfn_verdicts_sites(verdicts, &count);

    for (size_t i = 0; i < count; i++) {
        if (entries[sites[i].target] != NO_ENTRY &&
            !hfn_plan_writer_add_site(writer, sites[i].field, entries[sites[i].target])) {
            return hfn_report_no_memory(err, NULL);
        }
    }
    return HOTFN_OK;
}

static hotfn_status add_all(hfn_plan_writer *writer, const hotfn_verdicts *verdicts,
                            const hotfn_env *env, hotfn_error *err)
{
    uint32_t count = hotfn_verdicts_get_count(verdicts);
    uint32_t *entries = hfn_allocate_zeroed(env, count * sizeof *entries);
    hotfn_status status;

    if (!entries) {
        return hfn_report_no_memory(err, NULL);
    }
    status = add_entries(writer, verdicts, entries, env, err);
    if (status == HOTFN_OK) {
        status = add_sites(writer, verdicts, entries, err);
    }
    hfn_free_memory(env, entries, count * sizeof *entries);
    return status;
}

static bool set_image(hfn_plan_writer *writer, const hotfn_image *image, uint64_t *loaded_bytes)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    if (hotfn_image_get_info(image, &info) != HOTFN_OK) {
        return false;
    }
    hfn_plan_writer_set_id(writer, info.id_kind, info.id, info.id_bytes);
    *loaded_bytes = info.loaded_bytes;
    return true;
}

hotfn_status hotfn_plan_build(hotfn_plan **out, const hotfn_image *image,
                              const hotfn_functions *functions, const hotfn_verdicts *verdicts,
                              const hotfn_env *env, hotfn_error *err)
{
    if (!out || !image || !functions || !verdicts) {
        return hfn_report_null(err, __func__);
    }

    const hfn_arch *arch = hfn_verdicts_arch(verdicts);
    hfn_plan_writer *writer = hfn_plan_writer_create(
        env, arch ? arch->machine : HOTFN_MACHINE_OTHER, hotfn_functions_get_count(functions));
    uint64_t loaded_bytes = 0;
    hotfn_status status;

    if (!writer) {
        return hfn_report_no_memory(err, NULL);
    }
    if (!set_image(writer, image, &loaded_bytes) || loaded_bytes > UINT32_MAX) {
        status = hfn_report_error(err, HOTFN_E_LIMIT, NULL, HOTFN_NO_OFFSET,
                                  "the image is larger than 4 GiB");
    } else {
        status = add_all(writer, verdicts, hfn_image_env(image), err);
    }
    hfn_plan_writer_set_tsc_disable_rva(writer,
                                        (uint32_t)hfn_verdicts_get_tsc_disable_rva(verdicts));
    hfn_plan_writer_set_flags(writer,
                              hfn_verdicts_has_own_threads(verdicts) ? PLAN_OWN_THREADS : 0);
    if (status == HOTFN_OK) {
        status = hfn_plan_writer_finish(writer, out, err);
    }
    hfn_plan_writer_destroy(writer);
    return status;
}
