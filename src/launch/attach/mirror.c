/* SPDX-License-Identifier: MIT */
/* Mirrors of the target's modules: local copies of their code.  A hook set patches the mirrors, and
 * the changed bytes are then copied into the target. */
#include "launch/attach/attachment.h"

#include "hooks/quiesce.h"
#include "launch/attach/call_sites.h"

#include <string.h>

enum {
    PAGE_BYTES = 4096,
    MAX_GAPS = HFN_ATTACH_BUFFER_BYTES / sizeof(hfn_os_gap),
    BLOCK_BYTES = 64,
    MAX_EQUAL_BYTES = 8, /* between two bytes of a patch that differ */
    PATCH_BYTES = 1024,
    JOURNAL_FACTOR = 5, /* an entry takes at most 40 bytes for 9 bytes of code */
    MIN_JOURNAL_BYTES = 1 << 20,
};

#define LOWEST_ADDRESS UINT64_C(0x10000)
#define LOW_END UINT64_C(0x40000000)
#define HIGHEST_ADDRESS UINT64_C(0x7fff00000000)

static uint8_t *get_local_bytes(const hfn_mirror *m, uint64_t address)
{
    return (uint8_t *)(uintptr_t)(address + m->distance);
}

/* ---- Creating. */

static uint64_t get_zone_bytes(const hfn_mirror *m)
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
        memcpy(get_local_bytes(m, m->code[i].begin), m->shown[i], bytes);
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
        hfn_os_unmap(m->zone.begin + m->distance, get_zone_bytes(m));
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
                       .is_needed = module->is_main,
                       .live_module = UINT32_MAX,
                       .hooks_module = UINT32_MAX };
    memcpy(m->code, module->code, sizeof m->code);
    m->zone.begin = module->base > reach + LOWEST_ADDRESS ? module->base - reach : LOWEST_ADDRESS;
    m->zone.end = module->end + reach;
    local = hfn_os_map_pages(get_zone_bytes(m));
    m->distance = local ? (uint64_t)(uintptr_t)local - m->zone.begin : 0;
    if (!local || !copy_code(a, m)) {
        free_mirror(m);
        return false;
    }
    *index = (uint32_t)a->mirror_count++;
    return true;
}

bool hfn_mirror_need(hfn_attachment *a, const hfn_remote_module *module)
{
    hfn_mirror *m = hfn_mirror_of(a, module->base);
    uint32_t index;

    if (!m && hfn_mirror_add(a, module, &index)) {
        m = &a->mirrors[index];
    }
    if (m) {
        m->is_needed = true;
    }
    return m != NULL;
}

void hfn_mirrors_finish(hfn_attachment *a)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        free_mirror(&a->mirrors[i]);
    }
    hfn_free_memory(&a->env, a->mirrors, a->mirror_capacity * sizeof *a->mirrors);
    hfn_free_memory(&a->env, a->stubs, a->stub_capacity * sizeof *a->stubs);
    hfn_free_memory(&a->env, a->sites, a->site_capacity * sizeof *a->sites);
    hfn_code_files_free(&a->files, &a->env);
    a->sites = NULL;
    a->site_count = a->site_capacity = 0;
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
hfn_mirror *hfn_mirror_of_local(const hfn_attachment *a, uint64_t local)
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

static bool is_planned(const hfn_attachment *a, uint64_t begin, uint64_t end)
{
    for (size_t i = 0; i < a->stub_count; i++) {
        if (begin < a->stubs[i].end && end > a->stubs[i].begin) {
            return true;
        }
    }
    return false;
}

/* Reserve pages for stubs, which are mapped in the target later; false if they are already reserved
 * or there is no memory. */
static bool plan_stubs(hfn_attachment *a, uint32_t mirror, uint64_t address, uint64_t bytes)
{
    const hfn_mirror *m = &a->mirrors[mirror];

    if (address < m->zone.begin || address + bytes > m->zone.end ||
        is_planned(a, address, address + bytes) ||
        !hfn_grow_array(&a->env, (void **)&a->stubs, &a->stub_capacity, a->stub_count + 1,
                        sizeof *a->stubs)) {
        return false;
    }
    a->stubs[a->stub_count++] = (hfn_stub_pages){ address, address + bytes, mirror, false };
    return true;
}

/* Remove planned pages from a list of gaps. */
static void subtract_planned(const hfn_attachment *a, hfn_os_gap *gaps, uint32_t *count,
                             uint32_t capacity)
{
    for (size_t i = 0; i < a->stub_count; i++) {
        uint64_t begin = a->stubs[i].begin, end = a->stubs[i].end;
        for (uint32_t n = 0; n < *count; n++) {
            hfn_os_gap old = gaps[n];
            if (begin >= old.end || end <= old.begin) {
                continue;
            }
            gaps[n].end = begin > old.begin ? begin : old.begin;
            if (end < old.end && *count < capacity) {
                memmove(&gaps[n + 2], &gaps[n + 1], (*count - n - 1) * sizeof *gaps);
                gaps[n + 1] = (hfn_os_gap){ end, old.end };
                ++*count;
            }
        }
    }
}

static uint32_t find_free(const hfn_attachment *a, uint64_t begin, uint64_t end, hfn_os_gap *out,
                          uint32_t capacity)
{
    uint32_t count = hfn_os_remote_find_gaps(&a->remote, begin, end, out, capacity);

    subtract_planned(a, out, &count, capacity);
    return count;
}

typedef struct place_search {
    const hfn_os_gap *gaps;
    uint32_t count;
    uint64_t bytes;
} place_search;

/* The highest address of a range of s->bytes that ends at or below `limit`; 0: none. */
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

/* The last s->bytes of the lowest gap above `limit` that is large enough; 0: none. */
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
    const hfn_mirror *m = hfn_mirror_of_local(a, near_end); /* near_begin may be address 0 */
    uint64_t bytes = (byte_count + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1), lowest, at;
    place_search search = { gaps, 0, bytes };
    uint32_t index;

    if (!m) {
        return 0;
    }
    index = (uint32_t)(m - a->mirrors);
    near_begin -= m->distance;
    near_end -= m->distance;
    lowest = near_end > range_bytes ? near_end - range_bytes : 0;
    search.count = find_free(a, lowest, near_begin + range_bytes, gaps, MAX_GAPS);
    at = find_below(&search, near_begin);
    if (at == 0 || !plan_stubs(a, index, at, bytes)) {
        at = find_above(&search, near_end);
        if (at == 0 || !plan_stubs(a, index, at, bytes)) {
            return 0;
        }
    }
    return at + m->distance;
}

uint64_t hfn_mirrors_find_room(const hfn_attachment *a, uint64_t byte_count)
{
    hfn_os_gap *gaps = (hfn_os_gap *)(void *)a->buffer, largest = { 0, 0 };
    uint32_t count =
        hfn_os_remote_find_gaps(&a->remote, LOWEST_ADDRESS, HIGHEST_ADDRESS, gaps, MAX_GAPS);
    uint64_t at;

    for (uint32_t i = 0; i < count; i++) {
        if (gaps[i].end - gaps[i].begin > largest.end - largest.begin) {
            largest = gaps[i];
        }
    }
    if (largest.end - largest.begin < byte_count) {
        return 0;
    }
    at = largest.begin + (largest.end - largest.begin - byte_count) / 2;
    return at & ~(uint64_t)(PAGE_BYTES - 1);
}

/* A page in the middle of the lowest gap, of which only the part below LOW_END counts: further up
 * the program's heap may grow. */
uint64_t hfn_mirrors_find_low_page(const hfn_attachment *a)
{
    hfn_os_gap gap = { 0, 0 };
    uint64_t end;

    if (hfn_os_remote_find_gaps(&a->remote, LOWEST_ADDRESS, LOW_END, &gap, 1) == 0 ||
        gap.end - gap.begin < PAGE_BYTES) {
        return 0;
    }
    end = gap.end < LOW_END ? gap.end : LOW_END;
    return (gap.begin + (end - gap.begin) / 2) & ~(uint64_t)(PAGE_BYTES - 1);
}

static bool space_map_at(void *user, uint64_t address, uint64_t byte_count)
{
    hfn_attachment *a = user;
    const hfn_mirror *m = hfn_mirror_of_local(a, address);

    return m && plan_stubs(a, (uint32_t)(m - a->mirrors), address - m->distance, byte_count);
}

static uint32_t space_find_gaps(void *user, uint64_t begin, uint64_t end, hfn_os_gap *out,
                                uint32_t capacity)
{
    hfn_attachment *a = user;
    const hfn_mirror *m = hfn_mirror_of_local(a, begin + (end - begin) / 2);
    uint32_t count;

    if (!m) {
        return 0;
    }
    begin -= m->distance;
    end -= m->distance;
    begin = begin < m->zone.begin || begin > m->zone.end ? m->zone.begin : begin;
    end = end > m->zone.end ? m->zone.end : end;
    count = find_free(a, begin, end, out, capacity);
    for (uint32_t i = 0; i < count; i++) {
        out[i].begin += m->distance;
        out[i].end += m->distance;
    }
    return count;
}

/* The range is always the end of reserved pages, or all of them. */
static void space_unmap(void *user, uint64_t address, uint64_t byte_count)
{
    hfn_attachment *a = user;
    const hfn_mirror *m = hfn_mirror_of_local(a, address);

    if (!m) {
        return;
    }
    address -= m->distance;
    for (size_t i = 0; i < a->stub_count; i++) {
        hfn_stub_pages *s = &a->stubs[i];
        if (address >= s->begin && address + byte_count == s->end) {
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

/* No thread executes a mirror, so none is stopped.  hfn_mirrors_adjust_threads moves the target's
 * threads later. */
static bool space_run_stopped(void *user, hfn_adjust_pc_fn adjust, hfn_quiesced_fn work,
                              void *work_user)
{
    (void)user, (void)adjust;
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

void hfn_mirrors_reset(hfn_attachment *a)
{
    for (size_t i = 0; i < a->stub_count; i++) {
        const hfn_stub_pages *s = &a->stubs[i];
        hfn_os_replace_pages(get_local_bytes(&a->mirrors[s->mirror], s->begin), s->end - s->begin);
    }
    a->stub_count = 0;
    for (size_t i = 0; i < a->mirror_count; i++) {
        hfn_mirror *m = &a->mirrors[i];
        m->hooks_module = UINT32_MAX;
        for (uint32_t c = 0; c < m->code_count; c++) {
            memcpy(get_local_bytes(m, m->code[c].begin), m->shown[c],
                   m->code[c].end - m->code[c].begin);
        }
    }
}

/* ---- The journal of changed bytes. */

static bool journal_range(hfn_journal *journal, uint32_t kind, uint64_t address,
                          const uint8_t *shown, const uint8_t *wanted, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes;) {
        uint64_t block = bytes - i < BLOCK_BYTES ? bytes - i : BLOCK_BYTES, last;

        if (i % BLOCK_BYTES == 0 && memcmp(shown + i, wanted + i, block) == 0) {
            i += block;
            continue;
        }
        if (shown[i] == wanted[i]) {
            i++;
            continue;
        }
        last = i;
        for (uint64_t n = i; n < bytes && n - last <= MAX_EQUAL_BYTES && n - i < PATCH_BYTES; n++) {
            last = shown[n] != wanted[n] ? n : last;
        }
        if (!hfn_journal_add_patch(journal, kind, address + i, shown + i, wanted + i,
                                   (uint32_t)(last + 1 - i))) {
            return false;
        }
        i = last + 1;
    }
    return true;
}

static bool journal_island(void *user, uint64_t island, uint64_t site)
{
    hfn_attachment *a = user;
    const hfn_mirror *m = hfn_mirror_of_local(a, island);
    hfn_journal_entry entry = { HFN_JOURNAL_ISLAND, 0, island, site };

    entry.address -= m ? m->distance : 0;
    entry.end -= m ? m->distance : 0;
    return hfn_journal_add(&a->journal, &entry);
}

/* The first replaced function at or above an address; NULL: none. */
static const hfn_replacement *find_replaced(const hfn_mirror *m, uint64_t at, uint64_t end)
{
    const hfn_replacement *first = NULL;

    for (uint32_t i = 0; i < HFN_REPLACED_COUNT; i++) {
        const hfn_replacement *r = &m->replaced[i];
        if (r->address >= at && r->address < end && (!first || r->address < first->address)) {
            first = r;
        }
    }
    return first;
}

/* The jumps at replaced functions are entries of their own. */
static bool journal_code(hfn_journal *journal, const hfn_mirror *m, uint32_t range)
{
    uint64_t begin = m->code[range].begin, end = m->code[range].end, at = begin;

    while (at < end) {
        const hfn_replacement *r = find_replaced(m, at, end);
        bool is_late = r && r->address == at;
        uint64_t next = is_late ? at + HFN_REPLACED_BYTES : r ? r->address : end;

        if (!journal_range(journal, is_late ? HFN_JOURNAL_LATE_PATCH : HFN_JOURNAL_PATCH, at,
                           m->shown[range] + (at - begin), get_local_bytes(m, at), next - at)) {
            return false;
        }
        at = next;
    }
    return true;
}

bool hfn_mirrors_write_journal(hfn_attachment *a)
{
    for (size_t i = 0; i < a->mirror_count; i++) {
        const hfn_mirror *m = &a->mirrors[i];
        for (uint32_t c = 0; c < m->code_count; c++) {
            if (!hfn_journal_add_file(&a->journal, &m->code[c]) ||
                !journal_code(&a->journal, m, c)) {
                return false;
            }
        }
    }
    return hfn_hooks_each_island(a->hooks, journal_island, a) && hfn_call_sites_write_journal(a);
}

uint64_t hfn_mirrors_bound_journal(const hfn_attachment *a)
{
    uint64_t bytes = MIN_JOURNAL_BYTES;

    for (size_t i = 0; i < a->mirror_count; i++) {
        for (uint32_t c = 0; c < a->mirrors[i].code_count; c++) {
            bytes += JOURNAL_FACTOR * (a->mirrors[i].code[c].end - a->mirrors[i].code[c].begin);
        }
    }
    return bytes & ~(uint64_t)(PAGE_BYTES - 1);
}
