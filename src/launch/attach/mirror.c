/* SPDX-License-Identifier: MIT */
/* Mirrors of the target's modules: local copies of their code, which a hook set patches, and the
 * copying of what it changed into the target. */
#include "launch/attach/attachment.h"

#include <string.h>

enum {
    PAGE_BYTES = 4096,
    MAX_GAPS = HFN_ATTACH_BUFFER_BYTES / sizeof(hfn_os_gap),
    WRITE_TRIES = 4,
};

#define LOWEST_ADDRESS UINT64_C(0x10000)

static uint8_t *local_bytes(const hfn_mirror *m, uint64_t address)
{
    return (uint8_t *)(uintptr_t)(address + m->distance);
}

/* ---- Creating. */

static uint64_t zone_bytes(const hfn_mirror *m)
{
    return m->zone.end - m->zone.begin;
}

static bool copy_code(hfn_attachment *a, hfn_mirror *m)
{
    for (uint32_t i = 0; i < m->code_count; i++) {
        uint64_t bytes = m->code[i].end - m->code[i].begin;
        if (bytes > UINT32_MAX) {
            return false;
        }
        m->shown[i] = hfn_os_map_pages(bytes);
        if (!m->shown[i] ||
            !hfn_os_remote_read(&a->remote, m->code[i].begin, m->shown[i], (uint32_t)bytes)) {
            return false;
        }
        memcpy(local_bytes(m, m->code[i].begin), m->shown[i], bytes);
    }
    return true;
}

static void free_mirror(hfn_mirror *m)
{
    for (uint32_t i = 0; i < m->code_count; i++) {
        if (m->shown[i]) {
            hfn_os_unmap((uint64_t)(uintptr_t)m->shown[i], m->code[i].end - m->code[i].begin);
        }
    }
    if (m->distance != 0) {
        hfn_os_unmap(m->zone.begin + m->distance, zone_bytes(m));
    }
    hotfn_plan_destroy(m->plan);
    if (m->plan_bytes) {
        hfn_os_unmap((uint64_t)(uintptr_t)m->plan_bytes, m->plan_byte_count);
    }
}

bool hfn_mirror_add(hfn_attachment *a, const hfn_remote_module *module, uint32_t *index)
{
    uint64_t reach = hfn_stub_get_patching()->jump_reach_bytes;
    hfn_mirror *m;
    void *local;

    if (!hfn_grow_array(&a->env, (void **)&a->mirrors, &a->mirror_capacity, a->mirror_count + 1,
                        sizeof *a->mirrors)) {
        return false;
    }
    m = &a->mirrors[a->mirror_count];
    *m = (hfn_mirror){ .base = module->base,
                       .end = module->end,
                       .code_count = module->code_count,
                       .live_module = UINT32_MAX,
                       .hooks_module = UINT32_MAX };
    memcpy(m->code, module->code, sizeof m->code);
    m->zone.begin = module->base > reach + LOWEST_ADDRESS ? module->base - reach : LOWEST_ADDRESS;
    m->zone.end = module->end + reach;
    local = hfn_os_map_pages(zone_bytes(m));
    m->distance = local ? (uint64_t)(uintptr_t)local - m->zone.begin : 0;
    if (!local || !copy_code(a, m)) {
        free_mirror(m);
        return false;
    }
    *index = (uint32_t)a->mirror_count++;
    return true;
}

void hfn_mirrors_finish(hfn_attachment *a)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        free_mirror(&a->mirrors[i]);
    }
    hfn_free_memory(&a->env, a->mirrors, a->mirror_capacity * sizeof *a->mirrors);
    hfn_free_memory(&a->env, a->stubs, a->stub_capacity * sizeof *a->stubs);
    a->mirrors = NULL;
    a->stubs = NULL;
    a->mirror_count = a->mirror_capacity = a->stub_count = a->stub_capacity = 0;
}

hfn_mirror *hfn_mirror_of(const hfn_attachment *a, uint64_t address)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        hfn_mirror *m = &a->mirrors[i];
        if (address >= m->base && address < m->end) {
            return m;
        }
    }
    for (size_t i = 0; i < a->stub_count; i++) {
        if (address >= a->stubs[i].begin && address < a->stubs[i].end) {
            return &a->mirrors[a->stubs[i].mirror];
        }
    }
    return NULL;
}

/* The mirror in which an address of this process lies. */
static hfn_mirror *mirror_at(const hfn_attachment *a, uint64_t local)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        hfn_mirror *m = &a->mirrors[i];
        if (local - m->distance >= m->zone.begin && local - m->distance < m->zone.end) {
            return m;
        }
    }
    return NULL;
}

/* ---- The space of the hook set. */

/* Map pages of stubs in the target; false also if the range is not free there. */
static bool map_stubs(hfn_attachment *a, const hfn_mirror *m, uint64_t address, uint64_t bytes)
{
    hfn_os_error error;
    uint64_t got;

    if (address < m->zone.begin || address + bytes > m->zone.end ||
        !hfn_grow_array(&a->env, (void **)&a->stubs, &a->stub_capacity, a->stub_count + 1,
                        sizeof *a->stubs)) {
        return false;
    }
    error = hfn_os_remote_map(&a->remote, address, bytes, &got);
    if (error != 0) {
        a->error = error;
        return false;
    }
    a->stubs[a->stub_count++] =
        (hfn_stub_pages){ address, address + bytes, (uint32_t)(m - a->mirrors), false };
    return true;
}

typedef struct place_search {
    const hfn_os_gap *gaps;
    uint32_t count;
    uint64_t bytes;
} place_search;

/* The highest place that ends at or below `limit`; 0: none. */
static uint64_t find_below(const place_search *s, uint64_t limit)
{
    for (uint32_t i = s->count; i > 0; i--) {
        uint64_t end = s->gaps[i - 1].end < limit ? s->gaps[i - 1].end : limit;
        end &= ~(uint64_t)(PAGE_BYTES - 1);
        if (end > s->gaps[i - 1].begin && end - s->gaps[i - 1].begin >= s->bytes) {
            return end - s->bytes;
        }
    }
    return 0;
}

/* The place at the high end of the lowest gap that begins at or above `limit`. */
static uint64_t find_above(const place_search *s, uint64_t limit)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint64_t begin = s->gaps[i].begin > limit ? s->gaps[i].begin : limit;
        uint64_t end = s->gaps[i].end & ~(uint64_t)(PAGE_BYTES - 1);
        if (end > begin && end - begin >= s->bytes) {
            return end - s->bytes;
        }
    }
    return 0;
}

static uint64_t space_map_near(void *user, uint64_t near_begin, uint64_t near_end,
                               uint64_t byte_count, uint64_t range_bytes)
{
    hfn_attachment *a = user;
    hfn_os_gap *gaps = (hfn_os_gap *)(void *)a->buffer;
    const hfn_mirror *m = mirror_at(a, near_begin);
    uint64_t bytes = (byte_count + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1), lowest, at;
    place_search search = { gaps, 0, bytes };

    if (!m) {
        return 0;
    }
    near_begin -= m->distance;
    near_end -= m->distance;
    lowest = near_end > range_bytes ? near_end - range_bytes : 0;
    search.count =
        hfn_os_remote_find_gaps(&a->remote, lowest, near_begin + range_bytes, gaps, MAX_GAPS);
    at = find_below(&search, near_begin);
    if (at == 0 || !map_stubs(a, m, at, bytes)) {
        at = find_above(&search, near_end);
        if (at == 0 || !map_stubs(a, m, at, bytes)) {
            return 0;
        }
    }
    return at + m->distance;
}

static bool space_map_at(void *user, uint64_t address, uint64_t byte_count)
{
    hfn_attachment *a = user;
    const hfn_mirror *m = mirror_at(a, address);

    return m && map_stubs(a, m, address - m->distance, byte_count);
}

static uint32_t space_find_gaps(void *user, uint64_t begin, uint64_t end, hfn_os_gap *out,
                                uint32_t capacity)
{
    hfn_attachment *a = user;
    const hfn_mirror *m = mirror_at(a, begin + (end - begin) / 2);
    uint32_t count;

    if (!m) {
        return 0;
    }
    begin -= m->distance;
    end -= m->distance;
    begin = begin < m->zone.begin || begin > m->zone.end ? m->zone.begin : begin;
    end = end > m->zone.end ? m->zone.end : end;
    count = hfn_os_remote_find_gaps(&a->remote, begin, end, out, capacity);
    for (uint32_t i = 0; i < count; i++) {
        out[i].begin += m->distance;
        out[i].end += m->distance;
    }
    return count;
}

/* Always the end of some pages, or all of them. */
static void space_unmap(void *user, uint64_t address, uint64_t byte_count)
{
    hfn_attachment *a = user;
    const hfn_mirror *m = mirror_at(a, address);

    if (!m) {
        return;
    }
    address -= m->distance;
    for (size_t i = 0; i < a->stub_count; i++) {
        hfn_stub_pages *s = &a->stubs[i];
        if (address >= s->begin && address < s->end &&
            hfn_os_remote_unmap(&a->remote, address, byte_count) == 0) {
            s->end = address;
            if (s->begin == s->end) {
                *s = a->stubs[--a->stub_count];
            }
            return;
        }
    }
}

static bool space_make_executable(void *user, uint64_t address, uint64_t byte_count)
{
    (void)user, (void)address, (void)byte_count;
    return true; /* hfn_mirror_write_stubs does it */
}

typedef struct translation {
    const hfn_attachment *attachment;
    hfn_adjust_pc_fn adjust;
    void *user;
} translation;

static uint64_t adjust_in_target(void *user, uint64_t pc)
{
    const translation *t = user;
    const hfn_mirror *m = hfn_mirror_of(t->attachment, pc);

    return m ? t->adjust(t->user, pc + m->distance) - m->distance : pc;
}

/* The target's threads stand already. */
static bool space_run_stopped(void *user, hfn_adjust_pc_fn adjust, hfn_quiesced_fn work,
                              void *work_user)
{
    hfn_attachment *a = user;
    translation t = { a, adjust, work_user };

    if (!hfn_mirror_write_stubs(a) || !hfn_os_remote_adjust(&a->remote, adjust_in_target, &t)) {
        return false;
    }
    work(work_user);
    return true;
}

void hfn_mirror_init_space(hfn_attachment *a)
{
    a->space = (hfn_hook_space){ .map_near = space_map_near,
                                 .map_at = space_map_at,
                                 .find_gaps = space_find_gaps,
                                 .unmap = space_unmap,
                                 .make_executable = space_make_executable,
                                 .run_stopped = space_run_stopped,
                                 .user = a };
}

static bool run_without_target(void *user, hfn_adjust_pc_fn adjust, hfn_quiesced_fn work,
                               void *work_user)
{
    (void)user, (void)adjust;
    work(work_user);
    return true;
}

void hfn_mirror_leave_target(hfn_attachment *a)
{
    a->space.run_stopped = run_without_target;
}

/* ---- Into the target. */

bool hfn_mirror_write_stubs(hfn_attachment *a)
{
    for (size_t i = 0; i < a->stub_count; i++) {
        hfn_stub_pages *s = &a->stubs[i];
        uint64_t bytes = s->end - s->begin;
        if (s->is_written) {
            continue;
        }
        if (!hfn_os_remote_write(&a->remote, s->begin,
                                 local_bytes(&a->mirrors[s->mirror], s->begin), (uint32_t)bytes)) {
            return false;
        }
        a->error = hfn_os_remote_make_executable(&a->remote, s->begin, bytes);
        if (a->error != 0) {
            return false;
        }
        s->is_written = true;
    }
    return true;
}

/* Visit the pages whose bytes in the mirror differ from the target's. */
typedef bool (*page_fn)(hfn_attachment *a, uint64_t address, const uint8_t *shown,
                        const uint8_t *wanted);

static bool each_changed_page(hfn_attachment *a, page_fn visit)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        hfn_mirror *m = &a->mirrors[i];
        for (uint32_t c = 0; c < m->code_count; c++) {
            for (uint64_t at = m->code[c].begin; at < m->code[c].end; at += PAGE_BYTES) {
                const uint8_t *shown = m->shown[c] + (at - m->code[c].begin);
                const uint8_t *wanted = local_bytes(m, at);
                if (memcmp(shown, wanted, PAGE_BYTES) != 0 && !visit(a, at, shown, wanted)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool is_unchanged(hfn_attachment *a, uint64_t address, const uint8_t *shown,
                         const uint8_t *wanted)
{
    uint8_t now[PAGE_BYTES];

    (void)wanted;
    return hfn_os_remote_read(&a->remote, address, now, sizeof now) &&
           memcmp(now, shown, sizeof now) == 0;
}

static bool write_page(hfn_attachment *a, uint64_t address, const uint8_t *shown,
                       const uint8_t *wanted)
{
    (void)shown;
    return hfn_os_remote_write(&a->remote, address, wanted, PAGE_BYTES);
}

static bool restore_page(hfn_attachment *a, uint64_t address, const uint8_t *shown,
                         const uint8_t *wanted)
{
    (void)wanted;
    for (int i = 0; i < WRITE_TRIES; i++) {
        if (hfn_os_remote_write(&a->remote, address, shown, PAGE_BYTES)) {
            return true;
        }
    }
    return true; /* the process has ended: nothing else prevents it */
}

bool hfn_mirror_show_code(hfn_attachment *a)
{
    if (!each_changed_page(a, is_unchanged)) {
        return false;
    }
    if (!each_changed_page(a, write_page)) {
        each_changed_page(a, restore_page);
        return false;
    }
    for (size_t i = 0; i < a->mirror_count; i++) {
        hfn_mirror *m = &a->mirrors[i];
        for (uint32_t c = 0; c < m->code_count; c++) {
            memcpy(m->shown[c], local_bytes(m, m->code[c].begin),
                   m->code[c].end - m->code[c].begin);
        }
    }
    return true;
}

/* ---- Back. */

static bool merge_page(hfn_attachment *a, uint64_t address, const uint8_t *shown,
                       const uint8_t *wanted, uint32_t *foreign)
{
    uint8_t now[PAGE_BYTES];

    if (!hfn_os_remote_read(&a->remote, address, now, sizeof now)) {
        return false;
    }
    for (int i = 0; i < PAGE_BYTES; i++) {
        if (shown[i] != wanted[i] && now[i] == shown[i]) {
            now[i] = wanted[i];
        } else if (shown[i] != wanted[i]) {
            ++*foreign;
        }
    }
    return hfn_os_remote_write(&a->remote, address, now, sizeof now);
}

bool hfn_mirror_restore_code(hfn_attachment *a, uint32_t *foreign)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        hfn_mirror *m = &a->mirrors[i];
        for (uint32_t c = 0; c < m->code_count; c++) {
            for (uint64_t at = m->code[c].begin; at < m->code[c].end; at += PAGE_BYTES) {
                uint8_t *shown = m->shown[c] + (at - m->code[c].begin);
                const uint8_t *wanted = local_bytes(m, at);
                if (memcmp(shown, wanted, PAGE_BYTES) == 0) {
                    continue;
                }
                if (!merge_page(a, at, shown, wanted, foreign)) {
                    return false;
                }
                memcpy(shown, wanted, PAGE_BYTES);
            }
        }
    }
    return true;
}
