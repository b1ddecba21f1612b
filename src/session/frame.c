/* SPDX-License-Identifier: MIT */
/* A frame stores the sum of each slot at its beginning.  At its end all rows are summed again; the
 * differences are the calls of the frame.  The functions with the most calls are collected in a
 * heap, whose root has the fewest calls of them. */
#include "base/memory.h"
#include "base/status.h"
#include "counters/rows.h"
#include "live/live.h"
#include "session/session.h"

#include <hotfn/frame.h>

#include <string.h>

enum { DEFAULT_TOP = 20, SLOTS_AT_ONCE = 256 }; /* slots whose sums fit in the L1 cache */

typedef struct ranked_slot {
    uint64_t calls;
    uint32_t slot;
} ranked_slot;

struct hotfn_frame {
    hotfn_env env;
    const hfn_live *live; /* of the session */
    uint64_t *begin;      /* [slot_count]: sums at the beginning of the frame                  */
    uint32_t slot_count;  /* slots summed so far                                               */
    ranked_slot *top;     /* [top_capacity]; a heap while a frame ends, then sorted by calls   */
    uint32_t top_capacity, top_wanted;
    uint32_t top_count; /* of the frame that ended last */
};

/* ---- The most called functions. */

/* Functions with equal calls are ordered by slot, so that equal frames give the same order. */
static bool is_less(ranked_slot a, ranked_slot b)
{
    return a.calls != b.calls ? a.calls < b.calls : a.slot > b.slot;
}

static void replace_root(ranked_slot *heap, uint32_t count, ranked_slot item)
{
    uint32_t at = 0;

    for (uint32_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_less(heap[child + 1], heap[child])) {
            child++;
        }
        if (!is_less(heap[child], item)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = item;
}

/* Fill the heap with entries that are less than any called function. */
static void clear_top(hotfn_frame *f)
{
    for (uint32_t i = 0; i < f->top_capacity; i++) {
        f->top[i] = (ranked_slot){ 0, UINT32_MAX };
    }
}

/* Sort by calls, highest first: move the root, which has the fewest calls, to the end repeatedly.
 * Entries without calls are dropped. */
static void sort_top(hotfn_frame *f)
{
    for (uint32_t last = f->top_capacity; last-- > 1;) {
        ranked_slot min = f->top[0];

        replace_root(f->top, last, f->top[last]);
        f->top[last] = min;
    }
    f->top_count = f->top_capacity;
    while (f->top_count > 0 && f->top[f->top_count - 1].calls == 0) {
        f->top_count--;
    }
}

/* ---- Frames. */

/* Make room for more slots. */
static bool resize_frame(hotfn_frame *f, uint32_t slots)
{
    uint32_t top = slots < f->top_wanted ? slots : f->top_wanted;
    ranked_slot *larger =
        hfn_resize_memory(&f->env, f->top, f->top_capacity * sizeof *f->top, top * sizeof *f->top);
    uint64_t *begin;

    if (!larger) {
        return false;
    }
    f->top = larger;
    f->top_capacity = top;
    begin =
        hfn_resize_memory(&f->env, f->begin, f->slot_count * sizeof *begin, slots * sizeof *begin);
    if (!begin) {
        return false;
    }
    memset(begin + f->slot_count, 0, (slots - f->slot_count) * sizeof *begin);
    f->begin = begin;
    f->slot_count = slots;
    return true;
}

static void end_frame(hotfn_frame *f, hotfn_frame_info *info)
{
    const hfn_row_memory memory = hfn_live_get_rows(f->live);
    uint64_t sums[SLOTS_AT_ONCE];

    clear_top(f);
    for (uint32_t first = 0; first < f->slot_count; first += SLOTS_AT_ONCE) {
        uint32_t left = f->slot_count - first;
        uint32_t count = left < SLOTS_AT_ONCE ? left : SLOTS_AT_ONCE;

        hfn_rows_sum(&memory, first, count, sums);
        for (uint32_t i = 0; i < count; i++) {
            ranked_slot item = { sums[i] - f->begin[first + i], first + i };

            f->begin[first + i] = sums[i];
            info->calls += item.calls;
            info->called_count += item.calls > 0;
            if (is_less(f->top[0], item)) {
                replace_root(f->top, f->top_capacity, item);
            }
        }
    }
    sort_top(f);
    info->top_count = f->top_count;
}

hotfn_status hotfn_frame_next(hotfn_frame *f, hotfn_frame_info *out, hotfn_error *err)
{
    if (!f) {
        return hfn_report_null(err, __func__);
    }

    hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;
    void *paused = hotfn_counters_pause();
    uint32_t slots = hfn_live_slots_used(f->live);
    bool has_room = slots <= f->slot_count || resize_frame(f, slots);

    if (has_room && f->slot_count > 0) {
        end_frame(f, &info);
    }
    hotfn_counters_resume(paused);
    if (!has_room) {
        return hfn_report_no_memory(err, NULL);
    }
    if (out && !hfn_copy_out(out, &info, sizeof info)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "a hotfn_frame_info of unknown size: use HOTFN_FRAME_INFO_INIT");
    }
    return HOTFN_OK;
}

hotfn_status hotfn_frame_create(hotfn_frame **out, const hotfn_session *session, uint32_t top_count,
                                const hotfn_env *env, hotfn_error *err)
{
    if (!out || !session) {
        return hfn_report_null(err, __func__);
    }

    hotfn_env filled = hfn_env_fill(env);
    hotfn_frame *f = hfn_allocate_zeroed(&filled, sizeof *f);
    hotfn_status status;

    if (!f) {
        return hfn_report_no_memory(err, NULL);
    }
    *f = (hotfn_frame){ .env = filled,
                        .live = session->live,
                        .top_wanted = top_count ? top_count : DEFAULT_TOP };
    status = hotfn_frame_next(f, NULL, err); /* exclude the calls so far */
    if (status != HOTFN_OK) {
        hotfn_frame_destroy(f);
        return status;
    }
    f->top_count = 0;
    *out = f;
    return HOTFN_OK;
}

hotfn_status hotfn_frame_get_function(const hotfn_frame *f, uint32_t index,
                                      hotfn_record_function *function, hotfn_record_module *module)
{
    if (!f) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_function found = HOTFN_RECORD_FUNCTION_INIT;

    if (index >= f->top_count || !hfn_live_find_slot(f->live, f->top[index].slot, &found)) {
        return HOTFN_E_NOT_FOUND;
    }
    found.calls = f->top[index].calls;
    found.counted = 1;
    if (function && !hfn_copy_out(function, &found, sizeof found)) {
        return HOTFN_E_OPTION;
    }
    return module ? hfn_live_get_module(f->live, found.module, module) : HOTFN_OK;
}

void hotfn_frame_destroy(hotfn_frame *f)
{
    hotfn_env env;

    if (!f) {
        return;
    }
    env = f->env;
    hfn_free_memory(&env, f->top, f->top_capacity * sizeof *f->top);
    hfn_free_memory(&env, f->begin, f->slot_count * sizeof *f->begin);
    hfn_free_memory(&env, f, sizeof *f);
}
