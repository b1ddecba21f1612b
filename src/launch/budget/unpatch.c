/* SPDX-License-Identifier: MIT */
/* Unpatches and repatches the hook of one function in a running program, from outside: the patch at
 * the function's entry and the direct calls that lead to its stub.  The stub stays, since a thread
 * may be executing it, and its bytes identify the patch.  The patched bytes are read from the
 * target: the launcher has the plan, but not the addresses of the stubs.  Bytes are written only
 * where the current bytes are the expected ones. */
#include "launch/budget/budget.h"

#include "arch/stub.h"
#include "arch/uncount.h"
#include "base/memory.h"
#include "os/memory.h"

#include <string.h>

enum {
    SHORT_JUMP = 0xeb,
    CALL = 0xe8,
    TRIES = 4,
    MAX_GROWTH_CALLS = 4,
    MAX_GROWTH_BYTES = 1 << 16
};

/* ---- An index of call sites by the entry of the plan that they call. */

static bool index_sites(hfn_patched_module *m, const hotfn_env *env)
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
        ends[i] = at; /* the entry's first site; the next loop advances it to the end */
        at += own;
    }
    for (walk = hfn_site_walk_begin(m->plan); hfn_site_walk_next(&walk);) {
        m->site_fields[ends[walk.entry]++] = walk.field_rva;
    }
    return true;
}

void hfn_patched_module_finish(hfn_patched_module *m, const hotfn_env *env)
{
    if (!m->plan) {
        return;
    }
    hfn_free_memory(env, m->site_ends, (m->plan->entry_count + 1u) * sizeof *m->site_ends);
    hfn_free_memory(env, m->site_fields, (m->site_count + 1u) * sizeof *m->site_fields);
    hotfn_plan_destroy(m->plan);
    hfn_os_unmap((uint64_t)(uintptr_t)m->bytes, m->byte_count);
    *m = (hfn_patched_module){ 0 };
}

/* ---- A cache of the target's pages, because many call sites share a page. */

static uint8_t *get_page_bytes(hfn_target_pages *pages, const hfn_target_page *page)
{
    return pages->bytes[page - pages->pages];
}

/* A function must not be changed in one page and left in another: steps that fail are repeated. */
static void write_back(hfn_target_pages *pages, hfn_target_page *page)
{
    const uint8_t *bytes = get_page_bytes(pages, page) + page->begin;
    uint32_t count = page->end - page->begin;

    for (int i = 0; i < TRIES && page->begin < page->end; i++) {
        if (hfn_os_remote_write(pages->remote, page->address + page->begin, bytes, count)) {
            break;
        }
    }
    page->begin = page->end = 0;
}

static hfn_target_page *load_page(hfn_target_pages *pages, uint64_t address)
{
    uint64_t base = address & ~(uint64_t)(HFN_TARGET_PAGE_BYTES - 1);
    hfn_target_page *page = &pages->pages[base / HFN_TARGET_PAGE_BYTES % HFN_TARGET_PAGES];

    if (page->address == base && base != 0) {
        return page;
    }
    write_back(pages, page);
    page->address = 0;
    for (int i = 0; i < TRIES && page->address == 0; i++) {
        if (hfn_os_remote_read(pages->remote, base, get_page_bytes(pages, page),
                               HFN_TARGET_PAGE_BYTES)) {
            page->address = base;
        }
    }
    return page->address != 0 ? page : NULL;
}

static bool read_bytes(hfn_target_pages *pages, uint64_t address, uint8_t *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const hfn_target_page *page = load_page(pages, address + i);
        if (!page) {
            return false;
        }
        out[i] = get_page_bytes(pages, page)[(address + i) % HFN_TARGET_PAGE_BYTES];
    }
    return true;
}

/* ---- Recording a hook. */

/* The target of the jump or call at `at`; 0 if another instruction is there. */
static uint64_t find_jump_target(hfn_target_pages *pages, uint64_t at,
                                 uint8_t out[HFN_STUB_PATCH_MAX])
{
    const hfn_patching *patching = hfn_stub_get_patching();

    return read_bytes(pages, at, out, patching->jump_bytes) ? patching->jump_target(out, at) : 0;
}

/* Record the patch at the function's entry; false if the entry is not patched. */
static bool read_entry(hfn_unpatch_record *unpatch, const hfn_plan_hook *hook, uint64_t base,
                       hfn_target_pages *pages)
{
    hfn_patch_write *w = &unpatch->writes[0];
    uint8_t bytes[HFN_STUB_PATCH_MAX];
    uint64_t site = base + hook->site_rva;

    *w = (hfn_patch_write){ site, hook->patch_bytes, 1, { 0 }, { 0 } };
    if (hook->patch_bytes > HFN_MAX_PATCH_WRITE_BYTES) {
        return false;
    }
    memcpy(w->unhooked, hook->original, hook->patch_bytes);
    if (hook->strategy == HOTFN_STRATEGY_ISLAND) {
        if (!read_bytes(pages, site, bytes, 2) || bytes[0] != SHORT_JUMP ||
            site + 2 + (uint64_t)(int64_t)(int8_t)bytes[1] != base + hook->island_rva) {
            return false;
        }
        memcpy(w->hooked, bytes, 2);
        unpatch->stub = find_jump_target(pages, base + hook->island_rva, bytes);
    } else {
        unpatch->stub = find_jump_target(pages, site, bytes);
        memcpy(w->hooked, bytes, hfn_stub_get_patching()->jump_bytes);
    }
    unpatch->write_count = 1;
    /* a jump of the original code is not a patch */
    return unpatch->stub != 0 && memcmp(w->hooked, w->unhooked, w->byte_count) != 0 &&
           read_bytes(pages, unpatch->stub, unpatch->stub_bytes, sizeof unpatch->stub_bytes);
}

static void read_site(hfn_unpatch_record *unpatch, uint64_t field, uint64_t function,
                      hfn_target_pages *pages)
{
    hfn_patch_write *w = &unpatch->writes[unpatch->write_count];
    uint64_t behind = field + PLAN_FIELD_BYTES;

    *w = (hfn_patch_write){ field, PLAN_FIELD_BYTES, 0, { 0 }, { 0 } };
    hfn_write_le32(w->unhooked, (uint32_t)(function - behind));
    hfn_write_le32(w->hooked, (uint32_t)(unpatch->stub - behind));
    uint8_t now[PLAN_FIELD_BYTES];
    if (read_bytes(pages, field, now, sizeof now) && memcmp(now, w->hooked, sizeof now) == 0) {
        unpatch->write_count++;
    }
}

/* Record the call at `at` if it leads through code that takes back a count of its function. */
static void read_growth_call(hfn_unpatch_record *unpatch, uint64_t at, hfn_target_pages *pages)
{
    hfn_patch_write *w = &unpatch->writes[unpatch->write_count];
    uint64_t field = at + 1, behind = field + PLAN_FIELD_BYTES, stub, target;
    uint8_t code[HFN_UNCOUNT_BYTES];

    *w = (hfn_patch_write){ field, PLAN_FIELD_BYTES, 0, { 0 }, { 0 } };
    if (unpatch->write_count == unpatch->write_capacity ||
        !read_bytes(pages, field, w->hooked, PLAN_FIELD_BYTES)) {
        return;
    }
    stub = behind + (uint64_t)(int64_t)(int32_t)hfn_read_le32(w->hooked);
    target = read_bytes(pages, stub, code, sizeof code) ? hfn_find_uncount_target(code, stub) : 0;
    if (target != 0) {
        hfn_write_le32(w->unhooked, (uint32_t)(target - behind));
        unpatch->write_count++;
    }
}

static void read_growth_calls(hfn_unpatch_record *unpatch, const hfn_patched_module *m,
                              uint32_t entry, hfn_target_pages *pages)
{
    uint64_t at = m->base + hfn_plan_rva_at(m->plan, entry), end = at + MAX_GROWTH_BYTES;
    uint8_t byte;

    if (entry + 1 < m->plan->entry_count) {
        uint64_t next = m->base + hfn_plan_rva_at(m->plan, entry + 1);
        end = next < end ? next : end;
    }
    for (; at < end && read_bytes(pages, at, &byte, 1); at++) {
        if (byte == CALL) {
            read_growth_call(unpatch, at, pages);
        }
    }
}

hfn_unpatch_record *hfn_unpatch_create_record(hfn_patched_module *m, uint32_t entry,
                                              hfn_target_pages *pages, const hotfn_env *env)
{
    uint32_t begin, end, capacity;
    hfn_plan_hook hook;
    hfn_unpatch_record *unpatch;

    if (!m->site_ends && !index_sites(m, env)) {
        return NULL;
    }
    begin = entry > 0 ? m->site_ends[entry - 1] : 0;
    end = m->site_ends[entry];
    capacity = end - begin + 1u + (m->uncounts ? MAX_GROWTH_CALLS : 0);
    unpatch = hfn_allocate_zeroed(env, sizeof *unpatch + capacity * sizeof *unpatch->writes);
    if (!unpatch) {
        return NULL;
    }
    unpatch->write_capacity = capacity;
    hfn_plan_hook_at(m->plan, entry, &hook);
    if (!read_entry(unpatch, &hook, m->base, pages)) {
        hfn_unpatch_free_record(unpatch, env);
        return NULL;
    }
    for (uint32_t i = begin; i < end; i++) {
        read_site(unpatch, m->base + m->site_fields[i], m->base + hook.rva, pages);
    }
    if (m->uncounts) {
        read_growth_calls(unpatch, m, entry, pages);
    }
    return unpatch;
}

hfn_unpatch_record *hfn_unpatch_create_timing(uint64_t stub, hfn_target_pages *pages,
                                              const hotfn_env *env)
{
    hfn_stub_edit edits[HFN_STUB_MAX_EDITS];
    uint8_t bytes[HFN_STUB_TIMED_BYTES];
    uint32_t count = 0, edit_count;
    hfn_unpatch_record *unpatch;

    while (count < sizeof bytes && read_bytes(pages, stub + count, bytes + count, 1)) {
        count++;
    }
    edit_count = count < HFN_RECORDED_STUB_BYTES ? 0 : hfn_stub_find_timing(edits, bytes, count);
    if (edit_count == 0) {
        return NULL;
    }
    unpatch = hfn_allocate_zeroed(env, sizeof *unpatch + edit_count * sizeof *unpatch->writes);
    if (!unpatch) {
        return NULL;
    }
    unpatch->write_count = unpatch->write_capacity = edit_count;
    unpatch->stub = stub;
    memcpy(unpatch->stub_bytes, bytes, sizeof unpatch->stub_bytes);
    for (uint32_t i = 0; i < edit_count; i++) {
        hfn_patch_write *w = &unpatch->writes[i];
        *w = (hfn_patch_write){ stub + edits[i].at, edits[i].byte_count, 0, { 0 }, { 0 } };
        memcpy(w->hooked, edits[i].timed, edits[i].byte_count);
        memcpy(w->unhooked, edits[i].counted, edits[i].byte_count);
    }
    return unpatch;
}

void hfn_unpatch_free_record(hfn_unpatch_record *unpatch, const hotfn_env *env)
{
    if (unpatch) {
        hfn_free_memory(env, unpatch,
                        sizeof *unpatch + unpatch->write_capacity * sizeof *unpatch->writes);
    }
}

/* ---- Comparing and changing the stopped target. */

static bool matches_target(hfn_target_pages *pages, uint64_t address, const uint8_t *bytes,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const hfn_target_page *page = load_page(pages, address + i);
        if (!page ||
            get_page_bytes(pages, page)[(address + i) % HFN_TARGET_PAGE_BYTES] != bytes[i]) {
            return false;
        }
    }
    return true;
}

/* The caller has compared these bytes before, so their pages are readable. */
static void write_bytes(hfn_target_pages *pages, uint64_t address, const uint8_t *bytes,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hfn_target_page *page = load_page(pages, address + i);
        uint32_t at = (uint32_t)((address + i) % HFN_TARGET_PAGE_BYTES);
        if (!page) {
            return;
        }
        get_page_bytes(pages, page)[at] = bytes[i];
        page->begin = page->begin < page->end && page->begin < at ? page->begin : at;
        page->end = page->end > at + 1 ? page->end : at + 1;
    }
}

void hfn_target_pages_write_back(hfn_target_pages *pages)
{
    for (uint32_t i = 0; i < HFN_TARGET_PAGES; i++) {
        write_back(pages, &pages->pages[i]);
        pages->pages[i].address = 0; /* other processes may change the page from now on */
    }
}

/* ---- Unpatching and repatching. */

static void write_sites(const hfn_unpatch_record *unpatch, hfn_target_pages *pages, bool hook)
{
    for (uint32_t i = 1; i < unpatch->write_count; i++) {
        const hfn_patch_write *w = &unpatch->writes[i];
        if (matches_target(pages, w->address, hook ? w->unhooked : w->hooked, w->byte_count)) {
            write_bytes(pages, w->address, hook ? w->hooked : w->unhooked, w->byte_count);
        }
    }
}

bool hfn_unpatch_function(const hfn_unpatch_record *unpatch, hfn_target_pages *pages)
{
    const hfn_patch_write *w = unpatch->writes;

    if (!matches_target(pages, w->address, w->hooked, w->byte_count)) {
        return false;
    }
    write_bytes(pages, w->address, w->unhooked, w->byte_count);
    write_sites(unpatch, pages, false);
    return true;
}

bool hfn_repatch_function(const hfn_unpatch_record *unpatch, hfn_target_pages *pages)
{
    const hfn_patch_write *w = unpatch->writes;

    if (!matches_target(pages, unpatch->stub, unpatch->stub_bytes, sizeof unpatch->stub_bytes) ||
        !matches_target(pages, w->address, w->unhooked, w->byte_count)) {
        return false;
    }
    write_bytes(pages, w->address, w->hooked, w->byte_count);
    write_sites(unpatch, pages, true);
    return true;
}

uint32_t hfn_unpatch_get_range(const hfn_unpatch_record *unpatch, hfn_remote_range *out)
{
    const hfn_patch_write *w = unpatch->writes;

    *out = (hfn_remote_range){ w->address + hfn_stub_get_patching()->unit_bytes,
                               w->address + w->byte_count };
    return out->begin < out->end;
}
