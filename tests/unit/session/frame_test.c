/* SPDX-License-Identifier: MIT */
/* Frames over a live record whose counts the test writes. */
#include <hotfn/frame.h>

#include "base/compiler.h"
#include "base/counting_env.h"
#include "records/sample.h"
#include "session/session.h"

/* A number of functions above SLOTS_AT_ONCE of frame.c, and not a multiple of it. */
enum { MANY = 700 };

static hotfn_frame *make_frame(hfn_live *live, uint32_t top_count, const hotfn_env *env)
{
    hotfn_session session = { .live = live };
    hotfn_frame_options options = HOTFN_FRAME_OPTIONS_INIT;
    hotfn_frame *frame = NULL;

    options.top_count = top_count;
    CHECK_EQ_I64(hotfn_frame_create(&frame, &session, &options, env, NULL), HOTFN_OK);
    return frame;
}

static hotfn_frame_info next_frame(hotfn_frame *frame)
{
    hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;

    CHECK_EQ_I64(hotfn_frame_next(frame, &info, NULL), HOTFN_OK);
    return info;
}

static hotfn_record_function get_function_at(const hotfn_frame *frame, uint32_t index)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    CHECK_EQ_I64(hotfn_frame_get_function(frame, index, &f, NULL), HOTFN_OK);
    return f;
}

static void frame_counts_calls_of_all_threads_since_it_began(void)
{
    hfn_live *live = sample_live(NULL);
    hotfn_frame *frame;
    hotfn_frame_info info;

    sample_count(live, 0, 70, 70, 0, 1000);
    frame = make_frame(live, 0, NULL);
    sample_count(live, 0, 70, 70, 0, 5);
    sample_count(live, 1, 70, 71, 1, 4);
    sample_count(live, 0, 70, 70, 1, 3);
    info = next_frame(frame);
    CHECK_EQ_U64(info.calls, 12);
    CHECK_EQ_U64(info.called_count, 2);
    CHECK_EQ_U64(info.top_count, 2);
    CHECK_STR(get_function_at(frame, 0).name, "_ZN4beta3runEv");
    CHECK_EQ_U64(get_function_at(frame, 0).calls, 7);
    CHECK_STR(get_function_at(frame, 1).name, "alpha");
    CHECK_EQ_U64(get_function_at(frame, 1).calls, 5);
    sample_count(live, 1, 70, 71, 0, 1);
    info = next_frame(frame);
    CHECK_EQ_U64(info.calls, 1);
    CHECK_EQ_U64(get_function_at(frame, 0).calls, 1);
    info = next_frame(frame);
    CHECK_EQ_U64(info.top_count, 0);
    CHECK_EQ_U64(info.calls, 0);
    hotfn_frame_destroy(frame);
    hfn_live_close(live);
}

/* The same fields as hotfn_record_get_function, and the module. */
static void frame_reports_function_and_module(void)
{
    hfn_live *live = sample_live(NULL);
    hotfn_frame *frame = make_frame(live, 1, NULL);
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

    sample_count(live, 0, 70, 70, 0, 2);
    sample_count(live, 0, 70, 70, 2, 1);
    next_frame(frame);
    CHECK_EQ_I64(hotfn_frame_get_function(frame, 0, &f, &m), HOTFN_OK);
    CHECK_STR(m.file, "game");
    CHECK_EQ_U64(f.module, 0);
    CHECK_EQ_U64(f.slot, 0);
    CHECK_EQ_U64(f.state, HOTFN_STATE_HOOKED);
    CHECK_EQ_U64(f.rva, 0x1000);
    CHECK_EQ_U64(f.byte_count, 16);
    CHECK_EQ_U64(f.counted, 1);
    CHECK_EQ_U64(f.name_count, 3);
    CHECK_MEM(f.names, "alpha_alias\0alpha_other\0", 25);
    CHECK_STR(f.strategy, "jump");
    CHECK_STR(f.reason, "");
    CHECK_EQ_I64(hotfn_frame_get_function(frame, 1, &f, &m), HOTFN_E_NOT_FOUND);
    hfn_live_set_function(live, 1, 0, HOTFN_STATE_REFUSED, HOTFN_REASON_NO_SLOTS, 7);
    sample_count(live, 0, 70, 70, 2, 1);
    next_frame(frame);
    CHECK_EQ_I64(hotfn_frame_get_function(frame, 0, &f, &m), HOTFN_OK);
    CHECK_STR(m.file, "libgamma.so");
    CHECK_STR(f.name, "gamma");
    CHECK_STR(f.reason, "no-slots");
    CHECK_EQ_U64(f.reason_offset, 7);
    hotfn_frame_destroy(frame);
    hfn_live_close(live);
}

/* ---- Many functions, some without a slot. */

static hfn_live *empty_live(void)
{
    hfn_live_options o = { 0 };
    hfn_live *live = NULL;

    o.slot_capacity = 2 * MANY;
    o.thread_capacity = 4;
    CHECK_EQ_I64(hfn_live_create(&live, &o, NULL, NULL), HOTFN_OK);
    return live;
}

/* Every third function has no slot. */
static void add_many(hfn_live *live)
{
    static char names[MANY][16];
    static hotfn_record_function f[MANY];
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    uint32_t index;

    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "f%u", i);
        f[i] = sample_function(names[i], 0x1000 + 16 * i,
                               i % 3 == 1 ? HOTFN_STATE_REFUSED : HOTFN_STATE_HOOKED);
    }
    m.path = "many.so";
    m.function_count = MANY;
    CHECK_EQ_I64(hfn_live_add_module(live, &m, f, &index, NULL), HOTFN_OK);
}

static uint64_t calls_of(uint32_t function)
{
    return function % 3 == 1 ? 0 : (uint64_t)(function * 7919u % 1009u);
}

/* The frame lists the most called functions, each once, under its name. */
static void check_top(const hotfn_frame *frame, hotfn_frame_info info, uint32_t wanted)
{
    uint64_t sum = 0, last = UINT64_MAX;
    uint32_t called = 0, more = 0;

    for (uint32_t i = 0; i < MANY; i++) {
        called += calls_of(i) > 0;
    }
    CHECK_EQ_U64(info.called_count, called);
    CHECK_EQ_U64(info.top_count, wanted < called ? wanted : called);
    for (uint32_t index = 0; index < info.top_count; index++) {
        hotfn_record_function f = get_function_at(frame, index);

        CHECK_EQ_U64(f.calls, calls_of((uint32_t)strtoul(f.name + 1, NULL, 10)));
        CHECK(f.calls <= last);
        last = f.calls;
        sum += f.calls;
    }
    for (uint32_t i = 0; i < MANY; i++) {
        more += calls_of(i) > last;
    }
    CHECK(more <= info.top_count);
    CHECK(wanted < called || sum == info.calls);
}

static void frame_lists_the_most_called_of_many_functions(void)
{
    const uint32_t sizes[] = { 1, 2, 3, 20, 255, 466, UINT32_MAX };
    hfn_live *live = empty_live();
    hotfn_frame *frames[HFN_COUNT_OF(sizes)];
    const uint32_t *slots;

    add_many(live);
    for (size_t i = 0; i < HFN_COUNT_OF(sizes); i++) {
        frames[i] = make_frame(live, sizes[i], NULL);
    }
    slots = hfn_live_get_slots(live, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        if (slots[i] != HOTFN_NO_SLOT) {
            sample_count(live, i % 4, 70, 70 + i % 4, slots[i], calls_of(i));
        }
    }
    for (size_t i = 0; i < HFN_COUNT_OF(sizes); i++) {
        check_top(frames[i], next_frame(frames[i]), sizes[i]);
        hotfn_frame_destroy(frames[i]);
    }
    hfn_live_close(live);
}

static void frame_grows_with_added_modules(void)
{
    hfn_live *live = empty_live();
    hotfn_frame *frame = make_frame(live, UINT32_MAX, NULL);

    CHECK_EQ_U64(next_frame(frame).top_count, 0);
    add_many(live);
    sample_count(live, 0, 70, 70, 0, 6);
    CHECK_EQ_U64(next_frame(frame).calls, 6);
    add_many(live);
    sample_count(live, 0, 70, 70, 467, 8); /* first slot of the second module */
    sample_count(live, 0, 70, 70, 0, 2);
    CHECK_EQ_U64(next_frame(frame).calls, 10);
    CHECK_EQ_U64(get_function_at(frame, 0).module, 1);
    CHECK_STR(get_function_at(frame, 0).name, "f0");
    CHECK_EQ_U64(get_function_at(frame, 1).module, 0);
    hotfn_frame_destroy(frame);
    hfn_live_close(live);
}

/* ---- Failures. */

/* Whichever allocation fails, no call is lost: the next frame has the calls of the failed one. */
static void frame_continues_after_failed_allocation(void)
{
    for (size_t failed = 1; failed <= 2; failed++) {
        hotfn_error err = HOTFN_ERROR_INIT;
        hfn_live *live = sample_live(NULL);
        counting c;
        hotfn_env env = counting_env(&c);
        hotfn_frame *frame = make_frame(live, UINT32_MAX, &env);
        hotfn_record_function more = sample_function("more", 0x3000, HOTFN_STATE_HOOKED);
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        uint32_t index;

        sample_count(live, 0, 70, 70, 0, 3);
        m.path = "libmore.so";
        m.function_count = 1;
        CHECK_EQ_I64(hfn_live_add_module(live, &m, &more, &index, NULL), HOTFN_OK);
        sample_count(live, 0, 70, 70, 3, 4);
        c.fail_at = c.requests + failed;
        c.fail_once = true;
        CHECK_EQ_I64(hotfn_frame_next(frame, NULL, &err), HOTFN_E_NO_MEMORY);
        CHECK_EQ_I64(err.status, HOTFN_E_NO_MEMORY);
        CHECK_EQ_U64(next_frame(frame).calls, 7);
        CHECK_STR(get_function_at(frame, 0).name, "more");
        hotfn_frame_destroy(frame);
        CHECK_EQ_U64(c.live_bytes, 0);
        CHECK_EQ_I64(c.size_mismatches, 0);
        hfn_live_close(live);
    }
}

static void frame_rejects_structs_of_unknown_size(void)
{
    hfn_live *live = sample_live(NULL);
    hotfn_frame *frame = make_frame(live, 0, NULL);
    hotfn_frame_info info = { .size = sizeof info + 8 };
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

    CHECK_EQ_I64(hotfn_frame_next(frame, &info, NULL), HOTFN_E_OPTION);
    sample_count(live, 0, 70, 70, 0, 1);
    next_frame(frame);
    f.size = 0;
    CHECK_EQ_I64(hotfn_frame_get_function(frame, 0, &f, NULL), HOTFN_E_OPTION);
    CHECK_EQ_I64(hotfn_frame_get_function(frame, 0, NULL, NULL), HOTFN_OK);
    hotfn_frame_destroy(frame);
    hotfn_frame_destroy(NULL);
    hfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(frame_counts_calls_of_all_threads_since_it_began),
    CHECK_TEST(frame_reports_function_and_module),
    CHECK_TEST(frame_lists_the_most_called_of_many_functions),
    CHECK_TEST(frame_grows_with_added_modules),
    CHECK_TEST(frame_continues_after_failed_allocation),
    CHECK_TEST(frame_rejects_structs_of_unknown_size),
};
CHECK_MAIN(tests)
