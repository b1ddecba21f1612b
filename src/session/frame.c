/* SPDX-License-Identifier: MIT */
/* A frame stores the sum of each slot at its beginning.  At its end all rows are summed again; the
 * differences are the calls of the frame.  The functions with the highest keys are collected in a
 * heap, whose root has the lowest of these keys.  Times and spikes also need snapshots
 * (frame_period.h). */
#include "base/memory.h"
#include "base/status.h"
#include "counters/rows.h"
#include "live/live.h"
#include "os/clock.h"
#include "os/process.h"
#include "session/frame_period.h"
#include "session/session.h"

#include <string.h>

enum {
    DEFAULT_TOP = 20,
    SLOTS_AT_ONCE = 256, /* their sums fit in the L1 cache */
    KEPT_DURATIONS = 64,
    MIN_DURATIONS = 16, /* before the median can make a frame a spike */
};

typedef struct ranked_slot {
    uint64_t key; /* calls, self or total ticks, according to options.by */
    uint64_t calls;
    uint32_t slot;
} ranked_slot;

struct hotfn_frame {
    hotfn_env env;
    hotfn_frame_options options;
    hfn_live *live;      /* of the session */
    uint64_t *begin;     /* [slot_count]: sums at the beginning of the frame                */
    uint32_t slot_count; /* slots summed so far                                             */
    ranked_slot *top;    /* [top_capacity]; a heap while a frame ends, then sorted by key   */
    uint32_t top_capacity, top_wanted;
    uint32_t top_count; /* of the frame that ended last                          */
    uint64_t number;    /* of the current frame                                  */
    bool keeps_period;  /* period is used, because times or spikes are requested */
    hfn_frame_period period;
    uint64_t begin_ns, begin_cpu_ns;
    uint64_t durations[KEPT_DURATIONS]; /* that of frame n is at n % KEPT_DURATIONS */
};

/* ---- The functions with the highest keys. */

/* Functions with equal keys are ordered by calls, then by slot, so that frames with the same counts
 * have the same order. */
static bool is_less(ranked_slot a, ranked_slot b)
{
    if (a.key != b.key) {
        return a.key < b.key;
    }
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

/* Fill the heap with empty entries, which are less than any called function. */
static void clear_top(hotfn_frame *f)
{
    for (uint32_t i = 0; i < f->top_capacity; i++) {
        f->top[i] = (ranked_slot){ 0, 0, UINT32_MAX };
    }
}

/* Sort by key, highest first: move the root, which has the lowest key, to the end repeatedly.
 * Empty entries are dropped. */
static void sort_top(hotfn_frame *f)
{
    for (uint32_t last = f->top_capacity; last-- > 1;) {
        ranked_slot min = f->top[0];

        replace_root(f->top, last, f->top[last]);
        f->top[last] = min;
    }
    f->top_count = f->top_capacity;
    while (f->top_count > 0 && f->top[f->top_count - 1].slot == UINT32_MAX) {
        f->top_count--;
    }
}

/* ---- Calls. */

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

static uint64_t get_key(const hotfn_frame *f, uint32_t slot, uint64_t calls)
{
    const uint64_t *ticks = f->options.by == HOTFN_BY_SELF    ? f->period.self
                            : f->options.by == HOTFN_BY_TOTAL ? f->period.total
                                                              : NULL;

    return f->options.by == HOTFN_BY_CALLS        ? calls
           : ticks && slot < f->period.slot_count ? ticks[slot]
                                                  : 0;
}

static void count_calls(hotfn_frame *f, hotfn_frame_info *info)
{
    const hfn_row_memory memory = hfn_live_get_rows(f->live);
    uint64_t sums[SLOTS_AT_ONCE];

    clear_top(f);
    for (uint32_t first = 0; first < f->slot_count; first += SLOTS_AT_ONCE) {
        uint32_t left = f->slot_count - first;
        uint32_t count = left < SLOTS_AT_ONCE ? left : SLOTS_AT_ONCE;

        hfn_rows_sum(&memory, first, count, sums);
        for (uint32_t i = 0; i < count; i++) {
            ranked_slot item = { .calls = sums[i] - f->begin[first + i], .slot = first + i };

            item.key = get_key(f, item.slot, item.calls);
            f->begin[first + i] = sums[i];
            info->calls += item.calls;
            info->called_count += item.calls > 0;
            if ((item.calls > 0 || item.key > 0) && is_less(f->top[0], item)) {
                replace_root(f->top, f->top_capacity, item);
            }
        }
    }
    sort_top(f);
    info->top_count = f->top_count;
}

/* ---- Durations. */

static uint64_t find_median(const hotfn_frame *f)
{
    uint64_t sorted[KEPT_DURATIONS];
    uint32_t count = f->number < KEPT_DURATIONS ? (uint32_t)f->number : KEPT_DURATIONS;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > f->durations[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = f->durations[i];
    }
    return count ? sorted[count / 2] : 0;
}

static bool is_spike(const hotfn_frame *f, const hotfn_frame_info *info)
{
    const hotfn_frame_options *o = &f->options;

    return (o->spike_ns && info->duration_ns > o->spike_ns) ||
           (o->spike_percent && f->number >= MIN_DURATIONS &&
            (double)info->duration_ns > (double)info->median_ns * o->spike_percent / 100);
}

static void measure_duration(hotfn_frame *f, hotfn_frame_info *info)
{
    uint64_t now_ns = hfn_os_monotonic_ns();
    uint64_t cpu_ns = hfn_os_get_process_cpu_ns(hfn_os_get_process_id());

    info->number = f->number;
    info->duration_ns = now_ns - f->begin_ns;
    info->median_ns = find_median(f);
    info->cpu_ns = cpu_ns - f->begin_cpu_ns;
    info->is_spike = is_spike(f, info);
    f->durations[f->number % KEPT_DURATIONS] = info->duration_ns;
    f->begin_ns = now_ns;
    f->begin_cpu_ns = cpu_ns;
    f->number++;
}

/* ---- Frames. */

/* All steps that can fail precede those that change the frame. */
static hotfn_status end_frame(hotfn_frame *f, hotfn_frame_info *info, hotfn_error *err)
{
    uint32_t slots = hfn_live_slots_used(f->live);

    if (slots > f->slot_count && !resize_frame(f, slots)) {
        return hfn_report_no_memory(err, NULL);
    }
    if (f->keeps_period) {
        hotfn_status status = hfn_frame_period_next(&f->period, f->slot_count, err);
        if (status != HOTFN_OK) {
            return status;
        }
    }
    measure_duration(f, info);
    if (f->slot_count > 0) {
        count_calls(f, info);
    }
    return HOTFN_OK;
}

hotfn_status hotfn_frame_next(hotfn_frame *f, hotfn_frame_info *out, hotfn_error *err)
{
    if (!f) {
        return hfn_report_null(err, __func__);
    }

    hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;
    void *paused = hotfn_counters_pause();
    hotfn_status status = end_frame(f, &info, err);

    hotfn_counters_resume(paused);
    if (status != HOTFN_OK) {
        return status;
    }
    if (out && !hfn_copy_out(out, &info, sizeof info)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "a hotfn_frame_info of unknown size: use HOTFN_FRAME_INFO_INIT");
    }
    return HOTFN_OK;
}

static hotfn_status check_options(const hotfn_frame_options *o, const hfn_live *live,
                                  hotfn_error *err)
{
    const hfn_time_header *times = hfn_live_time_header(live);
    bool has_times = (o->flags & HOTFN_FRAME_TIMES) != 0;

    if (o->flags & ~HOTFN_FRAME_TIMES ||
        (o->by != HOTFN_BY_CALLS && o->by != HOTFN_BY_SELF && o->by != HOTFN_BY_TOTAL)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "an unknown flag or sort key in hotfn_frame_options");
    }
    if (o->by != HOTFN_BY_CALLS && !has_times) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "frames are sorted by time only with HOTFN_FRAME_TIMES");
    }
    if (has_times && (!times || times->flags & HOTFN_TIMING_SAMPLED)) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "HOTFN_FRAME_TIMES needs a session with HOTFN_SESSION_TIME that "
                                "times every call");
    }
    return HOTFN_OK;
}

static hotfn_status create_frame(hotfn_frame **out, const hotfn_session *session,
                                 const hotfn_frame_options *options, const hotfn_env *env,
                                 hotfn_error *err)
{
    hotfn_frame *f = hfn_allocate_zeroed(env, sizeof *f);
    bool is_timed = (options->flags & HOTFN_FRAME_TIMES) != 0;
    hotfn_status status;

    if (!f) {
        return hfn_report_no_memory(err, NULL);
    }
    f->env = *env;
    f->options = *options;
    f->live = session->live;
    f->top_wanted = options->top_count ? options->top_count : DEFAULT_TOP;
    f->keeps_period = is_timed || options->spike_ns || options->spike_percent;
    hfn_frame_period_init(&f->period, f->live, is_timed, &f->env);
    status = hotfn_frame_next(f, NULL, err); /* stores the counts so far, which are excluded */
    if (status != HOTFN_OK) {
        hotfn_frame_destroy(f);
        return status;
    }
    f->top_count = 0;
    f->number = 0;
    *out = f;
    return HOTFN_OK;
}

hotfn_status hotfn_frame_create(hotfn_frame **out, const hotfn_session *session,
                                const hotfn_frame_options *options, const hotfn_env *env,
                                hotfn_error *err)
{
    if (!out || !session) {
        return hfn_report_null(err, __func__);
    }

    hotfn_frame_options copy;
    hotfn_env filled = hfn_env_fill(env);

    if (!hfn_copy_options(&copy, sizeof copy, options)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "hotfn_frame_options of another version");
    }
    copy.by = copy.by == HOTFN_BY_DEFAULT ? HOTFN_BY_CALLS : copy.by;
    hotfn_status status = check_options(&copy, session->live, err);

    return status == HOTFN_OK ? create_frame(out, session, &copy, &filled, err) : status;
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

static hotfn_status check_times(const hotfn_frame *f, uint32_t index)
{
    return !f                                        ? HOTFN_E_OPTION
           : !(f->options.flags & HOTFN_FRAME_TIMES) ? HOTFN_E_UNSUPPORTED
           : index >= f->top_count                   ? HOTFN_E_NOT_FOUND
                                                     : HOTFN_OK;
}

hotfn_status hotfn_frame_get_times(const hotfn_frame *f, uint32_t index, hotfn_frame_times *out)
{
    hotfn_frame_times times = HOTFN_FRAME_TIMES_INIT;
    hotfn_status status = check_times(f, index);

    if (status != HOTFN_OK) {
        return status;
    }
    hfn_frame_period_sum(&f->period, f->top[index].slot, &times);
    return hfn_copy_result(out, &times, sizeof times);
}

hotfn_status hotfn_frame_get_thread_times(const hotfn_frame *f, uint32_t index, uint32_t position,
                                          hotfn_frame_times *out)
{
    hotfn_frame_times times = HOTFN_FRAME_TIMES_INIT;
    hotfn_status status = check_times(f, index);

    if (status != HOTFN_OK) {
        return status;
    }
    if (!hfn_frame_period_get_thread(&f->period, f->top[index].slot, position, &times)) {
        return HOTFN_E_NOT_FOUND;
    }
    return hfn_copy_result(out, &times, sizeof times);
}

hotfn_status hotfn_frame_save(const hotfn_frame *f, const char *path, hotfn_error *err)
{
    if (!f || !path) {
        return hfn_report_null(err, __func__);
    }
    if (f->number == 0 || !f->keeps_period) {
        return hfn_report_error(err, HOTFN_E_STATE, path, HOTFN_NO_OFFSET, "%s",
                                f->keeps_period ? "no frame has ended yet"
                                                : "the begin of the frame was not kept: set "
                                                  "HOTFN_FRAME_TIMES, spike_ns or spike_percent");
    }

    void *paused = hotfn_counters_pause();
    hotfn_status status =
        hfn_live_finish(f->live, path, HOTFN_RECORD_FINISHED, 0, f->period.from, f->period.to, err);
    hotfn_counters_resume(paused);
    return status;
}

void hotfn_frame_destroy(hotfn_frame *f)
{
    hotfn_env env;

    if (!f) {
        return;
    }
    env = f->env;
    hfn_frame_period_finish(&f->period);
    hfn_free_memory(&env, f->top, f->top_capacity * sizeof *f->top);
    hfn_free_memory(&env, f->begin, f->slot_count * sizeof *f->begin);
    hfn_free_memory(&env, f, sizeof *f);
}
