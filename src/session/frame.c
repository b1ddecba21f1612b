/* SPDX-License-Identifier: MIT */
/* A window remembers each slot's sum at its begin.  At its end all rows are summed once more, and what
 * was added since is its calls; the largest are kept in a heap whose root is the least of them. */
#include "base/memory.h"
#include "base/status.h"
#include "counters/rows.h"
#include "live/live.h"
#include "session/session.h"

#include <hotfn/frame.h>

#include <string.h>

enum { DEFAULT_TOP = 20, SLOTS_AT_ONCE = 256 }; /* sums that stay in the first cache */

typedef struct ranked {
    uint64_t calls;
    uint32_t slot;
} ranked;

struct hotfn_frame {
    hotfn_env env;
    const hotfn_live *live; /* the session's */
    uint64_t *begin;        /* [slot_count]: sums at the begin of the window                     */
    uint32_t slot_count;    /* that have been looked at                                          */
    ranked *top;            /* [top_capacity]; a heap while it is filled, then by falling calls  */
    uint32_t top_capacity, top_wanted;
    uint32_t top_count; /* of the window that ended last */
};

/* ---- The largest. */

/* Ties go to the lower slot: a window with the same calls has the same order. */
static bool is_less(ranked a, ranked b)
{
    return a.calls != b.calls ? a.calls < b.calls : a.slot > b.slot;
}

static void put_at_root(ranked *heap, uint32_t count, ranked item)
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

/* A heap of nothing: any call is more. */
static void empty_top(hotfn_frame *w)
{
    for (uint32_t i = 0; i < w->top_capacity; i++) {
        w->top[i] = (ranked){ 0, UINT32_MAX };
    }
}

/* The least goes to the end, again and again; what was never called goes away. */
static void sort_top(hotfn_frame *w)
{
    for (uint32_t last = w->top_capacity; last-- > 1;) {
        ranked least = w->top[0];

        put_at_root(w->top, last, w->top[last]);
        w->top[last] = least;
    }
    w->top_count = w->top_capacity;
    while (w->top_count > 0 && w->top[w->top_count - 1].calls == 0) {
        w->top_count--;
    }
}

/* ---- Windows. */

static bool provide(hotfn_frame *w, uint32_t slots)
{
    uint32_t top = slots < w->top_wanted ? slots : w->top_wanted;
    ranked *larger =
        hfn_resize(&w->env, w->top, w->top_capacity * sizeof *w->top, top * sizeof *w->top);
    uint64_t *begin;

    if (!larger) {
        return false;
    }
    w->top = larger;
    w->top_capacity = top;
    begin = hfn_resize(&w->env, w->begin, w->slot_count * sizeof *begin, slots * sizeof *begin);
    if (!begin) {
        return false;
    }
    memset(begin + w->slot_count, 0, (slots - w->slot_count) * sizeof *begin);
    w->begin = begin;
    w->slot_count = slots;
    return true;
}

static void look(hotfn_frame *w, hotfn_frame_info *info)
{
    const hfn_row_memory memory = hfn_live_get_rows(w->live);
    uint64_t sums[SLOTS_AT_ONCE];

    empty_top(w);
    for (uint32_t first = 0; first < w->slot_count; first += SLOTS_AT_ONCE) {
        uint32_t left = w->slot_count - first;
        uint32_t count = left < SLOTS_AT_ONCE ? left : SLOTS_AT_ONCE;

        hfn_rows_sum(&memory, first, count, sums);
        for (uint32_t i = 0; i < count; i++) {
            ranked item = { sums[i] - w->begin[first + i], first + i };

            w->begin[first + i] = sums[i];
            info->calls += item.calls;
            info->called_count += item.calls > 0;
            if (is_less(w->top[0], item)) {
                put_at_root(w->top, w->top_capacity, item);
            }
        }
    }
    sort_top(w);
    info->top_count = w->top_count;
}

hotfn_status hotfn_frame_next(hotfn_frame *w, hotfn_frame_info *out, hotfn_error *err)
{
    if (!w) {
        return hfn_fail_null(err, __func__);
    }

    hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;
    void *paused = hotfn_counters_pause();
    uint32_t slots = hfn_live_slots_used(w->live);
    bool has_room = slots <= w->slot_count || provide(w, slots);

    if (has_room && w->slot_count > 0) {
        look(w, &info);
    }
    hotfn_counters_resume(paused);
    if (!has_room) {
        return hfn_fail(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET, "no memory for a window");
    }
    if (out && !hfn_give(out, &info, sizeof info)) {
        return hfn_fail(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                        "a hotfn_frame_info of unknown size: use HOTFN_FRAME_INFO_INIT");
    }
    return HOTFN_OK;
}

hotfn_status hotfn_frame_create(hotfn_frame **out, const hotfn_session *session, uint32_t top_count,
                                const hotfn_env *env, hotfn_error *err)
{
    if (!out || !session) {
        return hfn_fail_null(err, __func__);
    }

    hotfn_env filled = hfn_env_fill(env);
    hotfn_frame *w = hfn_alloc(&filled, sizeof *w);
    hotfn_status status;

    if (!w) {
        return hfn_fail(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET, "no memory for a window");
    }
    *w = (hotfn_frame){ .env = filled,
                        .live = session->live,
                        .top_wanted = top_count ? top_count : DEFAULT_TOP };
    status = hotfn_frame_next(w, NULL, err); /* what was counted before is no part of it */
    if (status != HOTFN_OK) {
        hotfn_frame_destroy(w);
        return status;
    }
    w->top_count = 0;
    *out = w;
    return HOTFN_OK;
}

hotfn_status hotfn_frame_get_function(const hotfn_frame *w, uint32_t rank,
                                      hotfn_record_function *function, hotfn_record_module *module)
{
    if (!w) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    if (rank >= w->top_count || !hfn_live_find_slot(w->live, w->top[rank].slot, &f)) {
        return HOTFN_E_NOT_FOUND;
    }
    f.calls = w->top[rank].calls;
    f.counted = 1;
    if (function && !hfn_give(function, &f, sizeof f)) {
        return HOTFN_E_OPTION;
    }
    return module ? hotfn_live_get_module(w->live, f.module, module) : HOTFN_OK;
}

void hotfn_frame_destroy(hotfn_frame *w)
{
    hotfn_env env;

    if (!w) {
        return;
    }
    env = w->env;
    hfn_free(&env, w->top, w->top_capacity * sizeof *w->top);
    hfn_free(&env, w->begin, w->slot_count * sizeof *w->begin);
    hfn_free(&env, w, sizeof *w);
}
