/* SPDX-License-Identifier: MIT */
/* The functions that one thread called: its row of counts joined with its cells of times. */
#include "base/search.h"
#include "base/status.h"
#include "profile/profile.h"

typedef struct thread_row {
    const hotfn_record *record;
    uint32_t row;
    uint64_t *calls;               /* [slot_count], owned        */
    const hfn_time_entry *entries; /* the thread's, by slot      */
    size_t entry_count;
} thread_row;

/* Entries are sorted by thread, then by slot. */
static void find_entries(thread_row *t)
{
    const hfn_time_entry *all = t->record->times.entries;
    size_t count = t->record->times.entry_count, at = offsetof(hfn_time_entry, thread);
    size_t first = hfn_count_below_u32(all, count, sizeof *all, at, t->row);

    t->entries = all ? all + first : NULL;
    t->entry_count = hfn_count_below_u32(all, count, sizeof *all, at, t->row + 1) - first;
}

static const hfn_time_entry *find_entry(const thread_row *t, uint32_t slot)
{
    size_t index = hfn_count_below_u32(t->entries, t->entry_count, sizeof *t->entries,
                                       offsetof(hfn_time_entry, slot), slot);

    return index < t->entry_count && t->entries[index].slot == slot ? &t->entries[index] : NULL;
}

static void fill_times(const thread_row *t, uint32_t slot, hotfn_record_thread_timing *out)
{
    const hfn_time_entry *entry = find_entry(t, slot);
    hfn_slot_sum sum = { .calls = out->calls, .function = out->function };
    hotfn_record_timing timing = HOTFN_RECORD_TIMING_INIT;

    if (entry) {
        hfn_time_sums_add_entry(&sum, entry, t->record->times.header.flags);
    }
    hfn_times_fill_timing(t->record, out->function, &sum, &timing);
    out->timing = timing.timing;
    out->timed_calls = timing.timed_calls;
    out->total_ns = timing.total_ns;
    out->self_ns = timing.self_ns;
    out->total_error_ns = timing.total_error_ns;
    out->self_error_ns = timing.self_error_ns;
    out->max_ns = timing.max_ns;
    out->waited_ns = timing.waited_ns;
    out->total_waited_ns = timing.total_waited_ns;
}

/* False: the thread did not call the function, or its calls are not known. */
static bool make_element(const thread_row *t, uint32_t function, hotfn_record_thread_timing *out)
{
    const hotfn_record *r = t->record;
    uint32_t slot = hfn_read_le32(hfn_record_get_element(r, HFN_SECTION_SLOTS, function));
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    if (slot >= r->slot_count || t->calls[slot] == 0) {
        return false;
    }
    hotfn_record_get_function(r, function, &f);
    if (!f.counted) {
        return false;
    }
    *out = (hotfn_record_thread_timing)HOTFN_RECORD_THREAD_TIMING_INIT;
    out->function = function;
    out->calls = t->calls[slot];
    if (r->times.present) {
        fill_times(t, slot, out);
    }
    return true;
}

hotfn_status hotfn_record_get_thread_timings(const hotfn_record *r, uint32_t thread,
                                             hotfn_record_thread_timing *out, uint32_t struct_bytes,
                                             uint32_t capacity, uint32_t *count)
{
    if (!r || !count || (!out && capacity > 0) ||
        !hfn_profile_is_element_size(struct_bytes, (uint32_t)sizeof *out)) {
        return HOTFN_E_OPTION;
    }

    thread_row t = { .record = r, .row = hfn_record_shown_row(r, thread) };
    hotfn_record_thread_timing element;
    uint32_t found = 0;

    if (t.row >= r->thread_count) {
        return HOTFN_E_NOT_FOUND;
    }
    t.calls = hfn_allocate_zeroed(&r->env, r->slot_count * sizeof *t.calls);
    if (!t.calls) {
        return HOTFN_E_NO_MEMORY;
    }
    hfn_unpack_add(hfn_packed_row(&r->rows, t.row), t.calls, r->slot_count);
    find_entries(&t);
    for (uint32_t i = 0; i < r->function_count; i++) {
        if (!make_element(&t, i, &element)) {
            continue;
        }
        if (found < capacity) {
            uint8_t *at = (uint8_t *)out + (size_t)found * struct_bytes;

            memcpy(at, &struct_bytes, sizeof struct_bytes); /* the size field */
            hfn_copy_out(at, &element, sizeof element);
        }
        found++;
    }
    hfn_free_memory(&r->env, t.calls, r->slot_count * sizeof *t.calls);
    *count = found;
    return HOTFN_OK;
}
