/* SPDX-License-Identifier: MIT */
/*
 * A filter of Android's method trace.  The function by which the virtual machine (ART, Dalvik)
 * stores an event is replaced.  Events of methods that are passed reach the original, and their
 * calls are counted; all others are counted as dropped.
 *
 *     the machine's listener -> our function -> table: method -> function of the pool
 *       passed:  the pool's function (count), then the original, which stores the event
 *       dropped: a function of the pool whose name is the reason
 *
 * Methods are passed if the globs select them or, without globs, if their class has a class loader.
 * If methods are watched, only the events of their slow calls are stored (art_watch.h).  The
 * virtual machine neither moves nor unloads classes while a thread reports an event.
 */
#include "runtimes/art.h"

#include "functions/glob.h"
#include "os/os.h"
#include "runtimes/art_calls.h"
#include "runtimes/art_versions.h"
#include "runtimes/art_watch.h"

#include <hotfn/lowlevel/counters.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t store_fn(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

typedef enum drop_reason {
    DROP_SYSTEM,
    DROP_UNSELECTED,
    DROP_FAST,
    DROP_NO_ROOM,
    DROP_REASONS,
} drop_reason;

static const char *const drop_names[DROP_REASONS] = {
    "(dropped: events of system methods)",
    "(dropped: events of methods that are not selected)",
    "(dropped: events outside of slow calls)",
    "(dropped: events of methods without room)",
};

/* What is known of a method.  An entry is claimed by its method, and published by its function. */
typedef struct known_method {
    uint64_t method; /* atomic; 0: free */
    uint64_t class;
    hotfn_code function; /* atomic; counts a call, or a dropped event; NULL: not published */
    uint32_t slot;       /* of a passed method */
    bool is_passed, is_watched;
} known_method;

#define ENTRIES 262144u /* a power of two */
#define MAX_PROBES 32u

static struct {
    hfn_runtime_process process;
    hfn_methods methods;
    hfn_art_symbols symbols;
    hotfn_code store; /* the original */
    known_method *entries;
    hotfn_code dropped[DROP_REASONS]; /* atomic; NULL: nothing was dropped yet */
    hfn_art_sink sink;
    const char *watched; /* glob; NULL: none */
    bool is_timed;
} art;

/* ---- Counting. */

static void count_nothing(void)
{
}

static hotfn_code get_drop_function(drop_reason reason)
{
    hotfn_code function = __atomic_load_n(&art.dropped[reason], __ATOMIC_RELAXED);

    if (!function) {
        function = hfn_methods_get_any(&art.methods, drop_names[reason], count_nothing);
        function = function ? function : count_nothing;
        __atomic_store_n(&art.dropped[reason], function, __ATOMIC_RELAXED);
    }
    return function;
}

static void store_event(const hfn_art_event *event)
{
    const uint64_t *a = event->arguments;

    ((store_fn *)art.store)(a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Events that were held back are stored later than they occurred.  In a run that times, their calls
 * were counted when they occurred. */
static void store_held_event(const hfn_art_event *event)
{
    if (event->is_enter && !art.is_timed) {
        event->function();
    }
    store_event(event);
}

/* The time of the call does not include that of storing its events. */
static void store_timed_event(const hfn_art_event *event, uint64_t method, uint32_t slot)
{
    if (!event->is_enter) {
        hfn_art_calls_leave(event->thread, method);
    }
    store_event(event);
    if (event->is_enter) {
        hfn_art_calls_enter(event->thread, method, slot);
    }
}

/* In a run that times, all calls inside watched ones have times: whether a watched call is slow is
 * known only later. */
static void watch_event(const hfn_art_event *event, uint64_t method, uint32_t slot)
{
    bool is_inside;

    if (art.is_timed && !event->is_enter) {
        hfn_art_calls_leave(event->thread, method);
    }
    is_inside = hfn_art_watch_pass(&art.sink, event);
    if (art.is_timed && event->is_enter && is_inside) {
        hfn_art_calls_enter(event->thread, method, slot);
    }
}

static void drop_fast(uint64_t count)
{
    hotfn_code function = get_drop_function(DROP_FAST);

    while (count-- > 0) {
        function();
    }
}

/* ---- Known methods. */

/* Fill in what the method's class and name decide.  Returns why its events are dropped. */
static drop_reason judge_method(known_method *out, uint64_t method)
{
    bool has_includes = hfn_methods_has_includes(&art.methods);
    bool is_system = hfn_art_is_system(art.symbols.version, method);
    char name[1024];

    if (is_system && ((!has_includes && !art.watched) || out->class == 0)) {
        return DROP_SYSTEM;
    }
    hfn_art_write_name(name, sizeof name, &art.symbols, method);
    out->is_watched = art.watched && hfn_glob_match_method(art.watched, name);
    if (is_system && !has_includes && !out->is_watched) {
        return DROP_SYSTEM;
    }
    if (!out->is_watched && !hfn_methods_is_selected(&art.methods, name)) {
        return DROP_UNSELECTED;
    }
    out->function = hfn_methods_get_any(&art.methods, name, count_nothing);
    out->is_passed = out->function != NULL;
    out->slot = hfn_methods_get_slot(&art.methods, out->function);
    return DROP_NO_ROOM;
}

static known_method make_method(uint64_t method, uint64_t class)
{
    void *paused = hotfn_counters_pause();
    known_method made = { .method = method, .class = class };
    drop_reason reason = judge_method(&made, method);

    if (!made.is_passed) {
        made.function = get_drop_function(reason);
    }
    hotfn_counters_resume(paused);
    return made;
}

/* HOT PATH: runs at each event.  If the memory of a method is used again for a method of another
 * class, the new one takes another entry. */
static known_method get_method(uint64_t method, uint64_t class)
{
    uint32_t at = (uint32_t)((method ^ class << 29) * UINT64_C(0x9E3779B97F4A7C15) >> 40);

    for (uint32_t i = 0; i < MAX_PROBES; i++) {
        known_method *e = &art.entries[(at + i) % ENTRIES];
        uint64_t before = __atomic_load_n(&e->method, __ATOMIC_RELAXED);
        /* Pairs with the release store below. */
        hotfn_code function = __atomic_load_n(&e->function, __ATOMIC_ACQUIRE);

        if (before == method && function && e->class == class) {
            return *e;
        }
        if (before == 0 && __atomic_compare_exchange_n(&e->method, &before, method, false,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            known_method made = make_method(method, class);

            e->class = class;
            e->slot = made.slot;
            e->is_passed = made.is_passed;
            e->is_watched = made.is_watched;
            __atomic_store_n(&e->function, made.function, __ATOMIC_RELEASE);
            return made;
        }
    }
    return (known_method){ .function = get_drop_function(DROP_NO_ROOM) };
}

/* ---- Events. */

static void pass_event(uint64_t method, hfn_art_event *event)
{
    known_method known = get_method(method, hfn_art_get_class(art.symbols.version, method));

    event->function = known.function;
    event->is_watched = known.is_watched;
    if (!known.is_passed) {
        known.function();
    } else if (art.watched) {
        watch_event(event, method, known.slot);
    } else {
        store_timed_event(event, method, known.slot);
    }
}

/* art::Trace::LogMethodTraceEvent(this, thread, method, event, clock, clock) */
static void take_art_event(uint64_t trace, uint64_t thread, uint64_t method, uint64_t action,
                           uint64_t clock, uint64_t other_clock)
{
    hfn_art_event event = {
        { trace, thread, method, action, clock, other_clock }, trace, thread, NULL,
        (uint32_t)action == art.symbols.version->enter,        false
    };

    if (art.methods.live) {
        pass_event(method, &event);
    } else {
        ((store_fn *)art.store)(trace, thread, method, action, clock, other_clock);
    }
}

/* dvmMethodTraceAdd(thread, method, action[, clock, clock]) */
static void take_dalvik_event(uint64_t thread, uint64_t method, uint64_t action, uint64_t clock,
                              uint64_t other_clock)
{
    hfn_art_event event = { { thread, method, action, clock, other_clock, 0 }, 0,    thread, NULL,
                            (uint32_t)action == art.symbols.version->enter,    false };

    if (art.methods.live) {
        pass_event(method, &event);
    } else {
        ((store_fn *)art.store)(thread, method, action, clock, other_clock, 0);
    }
}

/* ---- Start. */

static uint32_t find_replaced(void *user, uint64_t base, hfn_replaced out[HFN_MAX_REPLACED])
{
    hfn_art_search search = art.store
                                ? HFN_ART_NONE
                                : hfn_art_find_version(&art.symbols, art.process.find_symbol, base);

    (void)user;
    if (search == HFN_ART_UNKNOWN) {
        art.process.warn("the method trace is not filtered: this virtual machine exports no event "
                         "function of Android 2.2 to 14");
    }
    if (search != HFN_ART_FOUND) {
        return 0;
    }
    art.entries = hfn_os_map_pages((uint64_t)ENTRIES * sizeof *art.entries);
    if (!art.entries || !hfn_art_watch_open() || !hfn_art_calls_open()) {
        art.process.warn("the method trace is not filtered: not enough memory");
        return 0;
    }
    out[0] = (hfn_replaced){ (uint64_t)(uintptr_t)art.symbols.store_event,
                             art.symbols.get_name ? (hotfn_code)take_art_event
                                                  : (hotfn_code)take_dalvik_event,
                             &art.store, false };
    return 1;
}

static void use_methods(void *user, hfn_live *live, uint32_t module, uint64_t base)
{
    hfn_methods methods = { .live = NULL };
    const char *watch;

    (void)user;
    hfn_methods_open(&methods, live, module, art.process.find_symbol, base);
    watch = methods.live ? hfn_methods_get_watch(&methods) : NULL;
    if (watch) {
        const char *glob = strchr(watch, ' ') + 1;
        uint64_t limit_ns = 0;

        for (const char *at = watch; *at != ' '; at++) {
            limit_ns = limit_ns * 10 + (uint64_t)(*at - '0');
        }
        art.sink = (hfn_art_sink){ store_held_event, drop_fast, hfn_os_monotonic_ns, limit_ns };
        art.watched = glob;
        art.is_timed = hfn_live_time_header(live) != NULL;
    }
    art.methods = methods;
}

static void report_failure(void *user, const char *why)
{
    char text[400];

    (void)user;
    snprintf(text, sizeof text, "the method trace is not filtered: %.300s", why);
    art.process.warn(text);
}

const hfn_runtime *hfn_art_get_runtime(const hfn_runtime_process *process)
{
    static const hfn_runtime runtime = { find_replaced, use_methods, report_failure, NULL };

    art.process = *process;
    return &runtime;
}
