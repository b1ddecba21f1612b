/* SPDX-License-Identifier: MIT */
/*
 * Compares the patches in the target with memory while the target runs, once a second or, with very
 * many functions, for at most a 50th of a processor's time.  The target compares them itself when
 * it ends, but not if it is killed.
 *
 *   UNSEEN -> SEEN (the site leads elsewhere than its original bytes) -> CHANGED -> overwritten
 *
 * The launcher has the plan, but not the addresses of the stubs, so it judges only a patch that it
 * has seen.  Two looks must find other bytes, because the target reports an unloaded module after
 * the memory is gone.
 */
#include "arch/stub.h"
#include "base/status.h"
#include "launch/launch.h"
#include "os/clock.h"
#include "os/memory.h"
#include "os/remote.h"
#include "plan/plan.h"

#include <string.h>

enum { SITE_BYTES = 8, PAGE_BYTES = 4096, SHORT_JUMP = 0xeb };
#define FIRST_NS UINT64_C(100000000)
#define INTERVAL_NS UINT64_C(1000000000)
#define MAX_SHARE 50u

typedef enum patch_state { UNSEEN, SEEN, CHANGED } patch_state;

typedef struct watched_patch {
    uint8_t bytes[SITE_BYTES];
    uint8_t state; /* patch_state */
} watched_patch;

typedef struct watched_module {
    hotfn_plan *plan;  /* NULL: it has none, or it was not read yet */
    const void *bytes; /* of the plan, mapped */
    uint64_t byte_count, base;
    watched_patch *patches; /* by entry of the plan */
} watched_module;

struct hfn_patch_watch {
    hotfn_env env;
    hfn_live *live;
    hfn_plan_channel *channel;
    hfn_watcher watcher;
    hfn_remote remote;
    watched_module *modules;
    uint32_t module_capacity;
    uint64_t page_at; /* address of the page in `page`; 0: none */
    uint8_t page[PAGE_BYTES];
};

/* ---- The target's memory. */

static bool read_bytes(hfn_patch_watch *w, uint64_t address, uint8_t *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t page_at = (address + i) & ~(uint64_t)(PAGE_BYTES - 1);
        if (page_at != w->page_at) {
            w->page_at = 0;
            if (page_at == 0 || !hfn_os_remote_read(&w->remote, page_at, w->page, PAGE_BYTES)) {
                return false;
            }
            w->page_at = page_at;
        }
        out[i] = w->page[address + i - page_at];
    }
    return true;
}

static bool is_patch(const hfn_plan_hook *hook, const uint8_t *bytes, uint64_t address)
{
    if (memcmp(bytes, hook->original, hook->patch_bytes) == 0) {
        return false;
    }
    return hook->strategy == HOTFN_STRATEGY_ISLAND
               ? bytes[0] == SHORT_JUMP
               : hfn_stub_get_patching()->jump_target(bytes, address) != 0;
}

/* ---- Modules. */

/* A plan may have no entry. */
static size_t get_patches_bytes(const watched_module *m)
{
    return (m->plan->entry_count + 1u) * sizeof *m->patches;
}

static void forget_module(hfn_patch_watch *w, watched_module *m)
{
    if (m->plan) {
        hfn_free_memory(&w->env, m->patches, get_patches_bytes(m));
        hotfn_plan_destroy(m->plan);
        hfn_os_unmap((uint64_t)(uintptr_t)m->bytes, m->byte_count);
    }
    *m = (watched_module){ 0 };
}

static void read_plan(hfn_patch_watch *w, watched_module *m, uint32_t index)
{
    m->bytes = hfn_plan_channel_view_plan(w->channel, index, &m->byte_count);
    if (!m->bytes) {
        return;
    }
    if (hotfn_plan_open(&m->plan, m->bytes, m->byte_count, 0, &w->env, NULL) == HOTFN_OK) {
        m->patches = hfn_allocate_zeroed(&w->env, get_patches_bytes(m));
    }
    if (!m->patches) {
        hotfn_plan_destroy(m->plan);
        hfn_os_unmap((uint64_t)(uintptr_t)m->bytes, m->byte_count);
        *m = (watched_module){ 0 };
    }
}

static bool grow_modules(hfn_patch_watch *w, uint32_t count)
{
    if (count > w->module_capacity) {
        watched_module *more = hfn_resize_memory(
            &w->env, w->modules, w->module_capacity * sizeof *more, count * sizeof *more);
        if (!more) {
            return false;
        }
        memset(more + w->module_capacity, 0, (count - w->module_capacity) * sizeof *more);
        w->modules = more;
        w->module_capacity = count;
    }
    return true;
}

/* Is the module loaded where it was seen last? */
static bool is_in_place(hfn_patch_watch *w, uint32_t index)
{
    hotfn_record_module known = HOTFN_RECORD_MODULE_INIT;
    watched_module *m = &w->modules[index];

    if (hfn_live_get_module(w->live, index, &known) != HOTFN_OK || known.load_base == 0 ||
        known.function_count == 0 || !(known.flags & HOTFN_MODULE_LOADED) ||
        (known.flags & HOTFN_MODULE_UNLOADED)) {
        forget_module(w, m);
        return false;
    }
    if (known.load_base != m->base) {
        forget_module(w, m);
        read_plan(w, m, index);
        m->base = m->plan ? known.load_base : 0;
    }
    return m->plan != NULL;
}

/* ---- A look. */

/* True if the patch is in place; false if it was never seen, or is not judged. */
static bool look_at_patch(hfn_patch_watch *w, uint32_t index, watched_patch *patch,
                          const hfn_plan_hook *hook)
{
    uint64_t address = w->modules[index].base + hook->site_rva;
    uint8_t now[SITE_BYTES];

    if (hook->patch_bytes > SITE_BYTES ||
        hfn_live_was_unhooked(w->live, index, hook->function_index) ||
        !read_bytes(w, address, now, SITE_BYTES)) {
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
    if (patch->state == CHANGED) {
        hfn_live_set_function(w->live, index, hook->function_index, HOTFN_STATE_REFUSED,
                              HOTFN_REASON_OVERWRITTEN, hook->patch_offset);
    }
    patch->state = CHANGED;
    return false;
}

static bool look_at_module(hfn_patch_watch *w, uint32_t index)
{
    const watched_module *m = &w->modules[index];
    bool all_in_place = true;
    hfn_plan_hook hook;

    for (uint32_t i = 0; i < m->plan->entry_count; i++) {
        hfn_plan_hook_at(m->plan, i, &hook);
        if (hfn_live_is_hooked(w->live, index, hook.function_index)) {
            all_in_place &= look_at_patch(w, index, &m->patches[i], &hook);
        }
    }
    return all_in_place;
}

static void look_at_all(hfn_patch_watch *w)
{
    uint32_t count = hfn_shared_get32(w->live->base + HFN_AT_MODULES), seen = 0;
    bool all_in_place = true;

    if (!grow_modules(w, count) || hfn_os_remote_open(&w->remote) != 0) {
        return;
    }
    w->page_at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_in_place(w, i)) {
            all_in_place &= look_at_module(w, i);
            seen++;
        }
    }
    hfn_os_remote_close(&w->remote);
    if (all_in_place && seen > 0) {
        hfn_live_set_checked(w->live, hfn_os_wall_ns());
    }
}

static void watch_patches(void *user)
{
    hfn_patch_watch *w = user;
    uint64_t wait_ns = FIRST_NS;

    while (hfn_watcher_sleep(&w->watcher, wait_ns)) {
        uint64_t begin_ns = hfn_os_monotonic_ns();
        look_at_all(w);
        uint64_t spent_ns = hfn_os_monotonic_ns() - begin_ns;
        wait_ns = spent_ns * MAX_SHARE > INTERVAL_NS ? spent_ns * MAX_SHARE : INTERVAL_NS;
    }
}

/* ---- Start and end. */

void hfn_patch_watch_start(hotfn_launch *l)
{
    if (l->options.target_glob || !hfn_os_can_change_others()) {
        return; /* the target is another process, or its memory cannot be read here */
    }
    hfn_patch_watch *w = hfn_allocate_zeroed(&l->env, sizeof *w);
    if (!w) {
        return;
    }
    w->env = l->env;
    w->live = l->live;
    w->channel = l->channel;
    w->remote = (hfn_remote){ .env = hfn_env_fill(&l->env),
                              .pid = l->child.pid,
                              .is_child = true,
                              .memory = HFN_OS_NO_FILE };
    l->patch_watch = w;
    if (!hfn_watcher_start(&w->watcher, watch_patches, w)) {
        hfn_log_message(&l->env, HOTFN_LOG_WARNING,
                        "no thread can be started: hooks are not compared while the program runs");
    }
}

void hfn_patch_watch_stop(hotfn_launch *l)
{
    hfn_patch_watch *w = l->patch_watch;

    if (!w) {
        return;
    }
    hfn_watcher_stop(&w->watcher);
    for (uint32_t i = 0; i < w->module_capacity; i++) {
        forget_module(w, &w->modules[i]);
    }
    hfn_free_memory(&w->env, w->modules, w->module_capacity * sizeof *w->modules);
    hfn_os_remote_finish(&w->remote);
    l->patch_watch = NULL;
    hfn_free_memory(&l->env, w, sizeof *w);
}
