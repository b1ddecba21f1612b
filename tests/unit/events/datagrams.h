/* SPDX-License-Identifier: MIT */
/* Datagrams for tests. */
#ifndef HFN_TESTS_EVENTS_DATAGRAMS_H
#define HFN_TESTS_EVENTS_DATAGRAMS_H

#include "check.h"
#include "events/format.h"

static inline void put_checked(hfn_events_writer *w, hotfn_events_item item)
{
    item.size = sizeof item;
    CHECK(hfn_events_put(w, &item));
}

static inline void put_thread(hfn_events_writer *w, uint32_t thread, uint32_t depth)
{
    put_checked(
        w, (hotfn_events_item){ .kind = HOTFN_EVENTS_THREAD, .thread = thread, .depth = depth });
}

static inline void put_call(hfn_events_writer *w, uint32_t kind, uint32_t function, uint64_t ns)
{
    put_checked(w, (hotfn_events_item){ .kind = kind, .function = function, .time_ns = ns });
}

static inline void put_function(hfn_events_writer *w, uint32_t function, const char *name)
{
    put_checked(w, (hotfn_events_item){ .kind = HOTFN_EVENTS_FUNCTION,
                                        .function = function,
                                        .module = 3,
                                        .rva = 0x1000 + function * 16,
                                        .byte_count = 16,
                                        .text = name,
                                        .text_bytes = (uint32_t)strlen(name) });
}

static inline void put_module(hfn_events_writer *w, uint32_t module, const char *path)
{
    put_checked(w, (hotfn_events_item){ .kind = HOTFN_EVENTS_MODULE,
                                        .module = module,
                                        .flags = 1,
                                        .id_kind = 1,
                                        .id_bytes = 4,
                                        .id = (const uint8_t *)"\xde\xad\xbe\xef",
                                        .text = path,
                                        .text_bytes = (uint32_t)strlen(path) });
}

static inline void put_run(hfn_events_writer *w, uint32_t pid, const char *command)
{
    put_checked(w, (hotfn_events_item){ .kind = HOTFN_EVENTS_RUN,
                                        .pid = pid,
                                        .time_ns = UINT64_C(1700000000000000000),
                                        .text = command,
                                        .text_bytes = (uint32_t)strlen(command) });
}

static inline void seal(hfn_events_writer *w, uint64_t stream, uint64_t sequence, uint64_t skipped,
                        uint32_t flags)
{
    hotfn_events_header h = HOTFN_EVENTS_HEADER_INIT;

    h.stream = stream;
    h.sequence = sequence;
    h.skipped_count = skipped;
    h.flags = flags;
    hfn_events_seal(w, &h);
}

#endif
