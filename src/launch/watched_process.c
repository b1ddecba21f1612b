/* SPDX-License-Identifier: MIT */
/*
 * Looks at the patches in one process.  The modules are listed at each look, because a module may
 * be unloaded, and may have another address in each process.
 *
 *   UNSEEN -> SEEN (the site leads elsewhere than its original bytes) -> CHANGED -> overwritten
 *
 * The launcher has the plan, but not the addresses of the stubs, so it judges only a patch that it
 * has seen.  Two looks must find other bytes, because a module may be unloaded, and another one
 * mapped in its place, between the list and the reading.  At the last look, one is enough.
 */
#include "launch/watched_process.h"

#include "arch/stub.h"
#include "base/memory.h"

#include <hotfn/function.h>
#include <string.h>

enum { SHORT_JUMP = 0xeb };

typedef enum patch_state { UNSEEN, SEEN, CHANGED } patch_state;

/* ---- Memory of the process. */

static bool read_bytes(hfn_watched_process *p, uint64_t address, uint8_t *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t page_at = (address + i) & ~(uint64_t)(HFN_WATCHED_PAGE_BYTES - 1);
        if (page_at != p->page_at) {
            p->page_at = 0;
            if (page_at == 0 ||
                !hfn_os_remote_read(&p->remote, page_at, p->page, HFN_WATCHED_PAGE_BYTES)) {
                return false;
            }
            p->page_at = page_at;
        }
        out[i] = p->page[address + i - page_at];
    }
    return true;
}

static bool is_original(const hfn_plan_hook *hook, const uint8_t *bytes)
{
    return memcmp(bytes, hook->original, hook->patch_bytes) == 0;
}

static bool is_patch(const hfn_plan_hook *hook, const uint8_t *bytes, uint64_t address)
{
    if (is_original(hook, bytes)) {
        return false;
    }
    return hook->strategy == HOTFN_STRATEGY_ISLAND
               ? bytes[0] == SHORT_JUMP
               : hfn_stub_get_patching()->jump_target(bytes, address) != 0;
}

/* ---- Places of modules. */

static void forget_place(hfn_watched_place *place, const hotfn_env *env)
{
    if (place->patches) {
        hfn_free_memory(env, place->patches, place->patch_count * sizeof *place->patches);
    }
    *place = (hfn_watched_place){ 0 };
}

static void set_place(hfn_watched_place *place, uint64_t base, const hfn_patch_look *look,
                      const hotfn_plan *plan)
{
    if (place->base != base) {
        forget_place(place, &look->env);
        place->patch_count = plan->entry_count + 1; /* a plan may have no entry */
        place->patches =
            hfn_allocate_zeroed(&look->env, place->patch_count * sizeof *place->patches);
        place->base = place->patches ? base : 0;
    }
    place->is_listed = place->base != 0;
}

static bool grow_places(hfn_watched_process *p, const hfn_patch_look *look)
{
    if (look->plan_count > p->place_capacity) {
        hfn_watched_place *more =
            hfn_resize_memory(&look->env, p->places, p->place_capacity * sizeof *more,
                              look->plan_count * sizeof *more);
        if (!more) {
            return false;
        }
        memset(more + p->place_capacity, 0, (look->plan_count - p->place_capacity) * sizeof *more);
        p->places = more;
        p->place_capacity = look->plan_count;
    }
    return true;
}

typedef struct listing {
    hfn_watched_process *process;
    const hfn_patch_look *look;
} listing;

static bool list_module(void *user, const hfn_remote_module *module)
{
    const listing *l = user;
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    hfn_os_file_info file;

    if (!module->is_available || hfn_os_get_path_info(module->path, &file) != 0) {
        return true;
    }
    for (uint32_t i = 0; i < l->look->plan_count; i++) {
        if (l->look->plans[i].plan && hfn_live_get_module(l->look->live, i, &known) == HOTFN_OK &&
            known.file_device == file.device && known.file_inode == file.inode) {
            set_place(&l->process->places[i], module->base, l->look, l->look->plans[i].plan);
        }
    }
    return true;
}

static bool list_modules(hfn_watched_process *p, const hfn_patch_look *look)
{
    listing l = { p, look };
    bool ok = grow_places(p, look);

    for (uint32_t i = 0; i < p->place_capacity; i++) {
        p->places[i].is_listed = false;
    }
    ok = ok && hfn_os_remote_each_module(p->remote.pid, list_module, &l);
    for (uint32_t i = 0; i < p->place_capacity; i++) {
        if (!p->places[i].is_listed) {
            forget_place(&p->places[i], &look->env);
        }
    }
    return ok;
}

/* ---- Patches. */

/* Whether the bytes, which are not those of the patch, were written by other code. */
static bool is_overwritten(const hfn_patch_look *look, const hfn_watched_patch *patch,
                           const hfn_plan_hook *hook, const uint8_t *now)
{
    return (patch->state == CHANGED || (look->is_last && !is_original(hook, now))) &&
           !(look->is_removed && look->is_removed(look->user));
}

/* True if the patch is in place. */
static bool look_at_patch(hfn_watched_process *p, const hfn_patch_look *look, uint32_t module,
                          hfn_watched_patch *patch, const hfn_plan_hook *hook)
{
    uint64_t address = p->places[module].base + hook->site_rva;
    uint8_t now[HFN_WATCHED_SITE_BYTES];

    if (hook->patch_bytes > HFN_WATCHED_SITE_BYTES ||
        hfn_live_was_unhooked(look->live, module, hook->function_index) ||
        !read_bytes(p, address, now, HFN_WATCHED_SITE_BYTES)) {
        patch->state = UNSEEN;
        return false;
    }
    if (patch->state == UNSEEN) {
        memcpy(patch->bytes, now, sizeof now);
        patch->state = is_patch(hook, now, address) ? SEEN : UNSEEN;
        return patch->state == SEEN;
    }
    if (memcmp(patch->bytes, now, hook->patch_bytes) == 0) {
        patch->state = SEEN;
        return true;
    }
    if (is_overwritten(look, patch, hook, now)) {
        hfn_live_set_function(look->live, module, hook->function_index, HOTFN_STATE_REFUSED,
                              HOTFN_REASON_OVERWRITTEN, hook->patch_offset);
    }
    patch->state = CHANGED;
    return false;
}

static bool look_at_module(hfn_watched_process *p, const hfn_patch_look *look, uint32_t module)
{
    const hotfn_plan *plan = look->plans[module].plan;
    bool all_in_place = true;
    hfn_plan_hook hook;

    for (uint32_t i = 0; i < plan->entry_count; i++) {
        hfn_plan_hook_at(plan, i, &hook);
        if (hfn_live_is_hooked(look->live, module, hook.function_index)) {
            all_in_place &= look_at_patch(p, look, module, &p->places[module].patches[i], &hook);
        }
    }
    return all_in_place;
}

bool hfn_watched_process_look(hfn_watched_process *p, const hfn_patch_look *look)
{
    bool all_in_place = true, any = false;

    if (!list_modules(p, look) || hfn_os_remote_open(&p->remote) != 0) {
        hfn_watched_process_forget(p, &look->env);
        return false;
    }
    p->page_at = 0;
    for (uint32_t i = 0; i < look->plan_count; i++) {
        if (p->places[i].base != 0) {
            all_in_place &= look_at_module(p, look, i);
            any = true;
        }
    }
    hfn_os_remote_close(&p->remote);
    return all_in_place && any;
}

void hfn_watched_process_forget(hfn_watched_process *p, const hotfn_env *env)
{
    for (uint32_t i = 0; i < p->place_capacity; i++) {
        forget_place(&p->places[i], env);
    }
    hfn_free_memory(env, p->places, p->place_capacity * sizeof *p->places);
    p->places = NULL;
    p->place_capacity = 0;
}
