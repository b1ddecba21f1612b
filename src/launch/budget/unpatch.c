/* SPDX-License-Identifier: MIT */
/* One function's hook, out of a running program and in again, from outside: the patch at its entry and
 * the direct calls that lead to its stub.  The stub stays: a thread may stand in it, and it is what the
 * patch is recognised by.  What stands there is read from the target, not computed: the parent knows
 * the plan, but not where the target put its stubs.  Nothing is written that was not just compared. */
#include "launch/budget/budget.h"

#include "arch/stub.h"
#include "base/memory.h"
#include "os/memory.h"

#include <string.h>

enum { SHORT_JUMP = 0xeb };

/* ---- Sites by entry. */

static bool make_sites(hfn_cut_module *m, const hotfn_env *env)
{
    hfn_site_walk walk = hfn_site_walk_begin(m->plan);
    uint32_t count = 0, at = 0;
    uint32_t *ends = hfn_allocate_zeroed(env, (m->plan->entry_count + 1u) * sizeof *ends);

    if (!ends) {
        return false;
    }
    while (hfn_site_walk_next(&walk)) {
        count++;
    }
    m->site_fields = hfn_allocate_zeroed(env, (count + 1u) * sizeof *m->site_fields);
    if (!m->site_fields) {
        hfn_free_memory(env, ends, (m->plan->entry_count + 1u) * sizeof *ends);
        return false;
    }
    m->site_count = count;
    m->site_ends = ends;
    for (walk = hfn_site_walk_begin(m->plan); hfn_site_walk_next(&walk);) {
        ends[walk.entry]++;
    }
    for (uint32_t i = 0; i < m->plan->entry_count; i++) {
        uint32_t own = ends[i];
        ends[i] = at; /* where they begin, for now */
        at += own;
    }
    for (walk = hfn_site_walk_begin(m->plan); hfn_site_walk_next(&walk);) {
        m->site_fields[ends[walk.entry]++] = walk.field_rva;
    }
    return true;
}

void hfn_cut_module_finish(hfn_cut_module *m, const hotfn_env *env)
{
    if (!m->plan) {
        return;
    }
    hfn_free_memory(env, m->site_ends, (m->plan->entry_count + 1u) * sizeof *m->site_ends);
    hfn_free_memory(env, m->site_fields, (m->site_count + 1u) * sizeof *m->site_fields);
    hotfn_plan_destroy(m->plan);
    hfn_os_unmap((uint64_t)(uintptr_t)m->bytes, m->byte_count);
    *m = (hfn_cut_module){ 0 };
}

/* ---- The target's text by pages: sites are many, and near each other. */

static uint8_t *page_bytes(hfn_cut_pages *pages, const hfn_cut_page *page)
{
    return pages->bytes[page - pages->pages];
}

static void write_back(hfn_cut_pages *pages, hfn_cut_page *page)
{
    if (page->begin < page->end) {
        hfn_os_remote_write(pages->remote, page->address + page->begin,
                            page_bytes(pages, page) + page->begin, page->end - page->begin);
    }
    page->begin = page->end = 0;
}

static hfn_cut_page *page_of(hfn_cut_pages *pages, uint64_t address)
{
    uint64_t base = address & ~(uint64_t)(HFN_CUT_PAGE_BYTES - 1);
    hfn_cut_page *page = &pages->pages[base / HFN_CUT_PAGE_BYTES % HFN_CUT_PAGES];

    if (page->address == base && base != 0) {
        return page;
    }
    write_back(pages, page);
    page->address = 0;
    if (!hfn_os_remote_read(pages->remote, base, page_bytes(pages, page), HFN_CUT_PAGE_BYTES)) {
        return NULL;
    }
    page->address = base;
    return page;
}

static bool read_bytes(hfn_cut_pages *pages, uint64_t address, uint8_t *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const hfn_cut_page *page = page_of(pages, address + i);
        if (!page) {
            return false;
        }
        out[i] = page_bytes(pages, page)[(address + i) % HFN_CUT_PAGE_BYTES];
    }
    return true;
}

/* ---- What stands. */

/* Where the jump or call at `at` leads; 0 if none stands there. */
static uint64_t jump_target(hfn_cut_pages *pages, uint64_t at, uint8_t out[HFN_STUB_PATCH_MAX])
{
    const hfn_patching *patching = hfn_stub_get_patching();

    return read_bytes(pages, at, out, patching->jump_bytes) ? patching->jump_target(out, at) : 0;
}

/* The entry's patch as it stands: false if it is none. */
static bool read_entry(hfn_cut *cut, const hfn_plan_hook *hook, uint64_t base, hfn_cut_pages *pages)
{
    hfn_cut_write *w = &cut->writes[0];
    uint8_t bytes[HFN_STUB_PATCH_MAX];
    uint64_t site = base + hook->site_rva;

    *w = (hfn_cut_write){ site, hook->patch_bytes, 1, { 0 }, { 0 } };
    if (hook->patch_bytes > HFN_CUT_BYTES_MAX) {
        return false;
    }
    memcpy(w->bare, hook->original, hook->patch_bytes);
    if (hook->strategy == HOTFN_STRATEGY_ISLAND) {
        if (!read_bytes(pages, site, bytes, 2) || bytes[0] != SHORT_JUMP ||
            site + 2 + (uint64_t)(int64_t)(int8_t)bytes[1] != base + hook->island_rva) {
            return false;
        }
        memcpy(w->hooked, bytes, 2);
        cut->stub = jump_target(pages, base + hook->island_rva, bytes);
    } else {
        cut->stub = jump_target(pages, site, bytes);
        memcpy(w->hooked, bytes, hfn_stub_get_patching()->jump_bytes);
    }
    cut->write_count = 1;
    /* one that leads where it did bare is no patch */
    return cut->stub != 0 && memcmp(w->hooked, w->bare, w->byte_count) != 0 &&
           read_bytes(pages, cut->stub, cut->stub_bytes, sizeof cut->stub_bytes);
}

static void read_site(hfn_cut *cut, uint64_t field, uint64_t function, hfn_cut_pages *pages)
{
    hfn_cut_write *w = &cut->writes[cut->write_count];
    uint64_t behind = field + PLAN_FIELD_BYTES;

    *w = (hfn_cut_write){ field, PLAN_FIELD_BYTES, 0, { 0 }, { 0 } };
    hfn_write_le32(w->bare, (uint32_t)(function - behind));
    hfn_write_le32(w->hooked, (uint32_t)(cut->stub - behind));
    uint8_t now[PLAN_FIELD_BYTES];
    if (read_bytes(pages, field, now, sizeof now) && memcmp(now, w->hooked, sizeof now) == 0) {
        cut->write_count++;
    }
}

hfn_cut *hfn_cut_make(hfn_cut_module *m, uint32_t entry, hfn_cut_pages *pages, const hotfn_env *env)
{
    uint32_t begin, end;
    hfn_plan_hook hook;
    hfn_cut *cut;

    if (!m->site_ends && !make_sites(m, env)) {
        return NULL;
    }
    begin = entry > 0 ? m->site_ends[entry - 1] : 0;
    end = m->site_ends[entry];
    cut = hfn_allocate_zeroed(env, sizeof *cut + (end - begin + 1u) * sizeof *cut->writes);
    if (!cut) {
        return NULL;
    }
    cut->write_capacity = end - begin + 1;
    hfn_plan_hook_at(m->plan, entry, &hook);
    if (!read_entry(cut, &hook, m->base, pages)) {
        hfn_cut_free(cut, env);
        return NULL;
    }
    for (uint32_t i = begin; i < end; i++) {
        read_site(cut, m->base + m->site_fields[i], m->base + hook.rva, pages);
    }
    return cut;
}

void hfn_cut_free(hfn_cut *cut, const hotfn_env *env)
{
    if (cut) {
        hfn_free_memory(env, cut, sizeof *cut + cut->write_capacity * sizeof *cut->writes);
    }
}

/* ---- What is compared and changed while it is stopped. */

static bool stands(hfn_cut_pages *pages, uint64_t address, const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const hfn_cut_page *page = page_of(pages, address + i);
        if (!page || page_bytes(pages, page)[(address + i) % HFN_CUT_PAGE_BYTES] != bytes[i]) {
            return false;
        }
    }
    return true;
}

/* They were compared before, so the pages can be read. */
static void put(hfn_cut_pages *pages, uint64_t address, const uint8_t *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hfn_cut_page *page = page_of(pages, address + i);
        uint32_t at = (uint32_t)((address + i) % HFN_CUT_PAGE_BYTES);
        if (!page) {
            return;
        }
        page_bytes(pages, page)[at] = bytes[i];
        page->begin = page->begin < page->end && page->begin < at ? page->begin : at;
        page->end = page->end > at + 1 ? page->end : at + 1;
    }
}

void hfn_cut_pages_finish(hfn_cut_pages *pages)
{
    for (uint32_t i = 0; i < HFN_CUT_PAGES; i++) {
        write_back(pages, &pages->pages[i]);
        pages->pages[i].address = 0; /* what stands there may be changed by others from now on */
    }
}

/* ---- Out and in. */

static void put_sites(const hfn_cut *cut, hfn_cut_pages *pages, bool is_in)
{
    for (uint32_t i = 1; i < cut->write_count; i++) {
        const hfn_cut_write *w = &cut->writes[i];
        if (stands(pages, w->address, is_in ? w->bare : w->hooked, w->byte_count)) {
            put(pages, w->address, is_in ? w->hooked : w->bare, w->byte_count);
        }
    }
}

bool hfn_cut_take_out(const hfn_cut *cut, hfn_cut_pages *pages)
{
    const hfn_cut_write *w = cut->writes;

    if (!stands(pages, w->address, w->hooked, w->byte_count)) {
        return false;
    }
    put(pages, w->address, w->bare, w->byte_count);
    put_sites(cut, pages, false);
    return true;
}

bool hfn_cut_put_in(const hfn_cut *cut, hfn_cut_pages *pages)
{
    const hfn_cut_write *w = cut->writes;

    if (!stands(pages, cut->stub, cut->stub_bytes, sizeof cut->stub_bytes) ||
        !stands(pages, w->address, w->bare, w->byte_count)) {
        return false;
    }
    put(pages, w->address, w->hooked, w->byte_count);
    put_sites(cut, pages, true);
    return true;
}

uint32_t hfn_cut_range(const hfn_cut *cut, hfn_remote_range *out)
{
    const hfn_cut_write *w = cut->writes;

    *out = (hfn_remote_range){ w->address + hfn_stub_get_patching()->unit_bytes,
                               w->address + w->byte_count };
    return out->begin < out->end;
}
