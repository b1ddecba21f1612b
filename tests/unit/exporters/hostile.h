/* SPDX-License-Identifier: MIT */
/* A finished record with difficult names: exporters must accept any bytes. */
#ifndef HFN_TESTS_EXPORTERS_HOSTILE_H
#define HFN_TESTS_EXPORTERS_HOSTILE_H

#include "records/sample.h"

static const char *const hostile_names[] = {
    "plain",
    "quote\"back\\slash",
    "comma,semicolon;",
    "line\nfeed\r\ntab\t",
    "escape\033[31mred",
    ("c1\xc2\x9b"
     "31m"),
    "latin1 \xe9\xe8",
    "utf8 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
    "overlong \xc0\x80 \xe0\x80\x80",
    "surrogate \xed\xa0\x80",
    "too high \xf4\x90\x80\x80",
    "cut \xe2\x82",
    "_ZN4beta3runEv",
    "", /* as after a repair that lost the names */
    "<script>alert(1)</script>",
    "=1+1",
};
#define HOSTILE_COUNT (sizeof hostile_names / sizeof hostile_names[0])

/* Write the record: function i was called i times, the last function UINT64_MAX times. */
static inline void hostile_write(const char *path)
{
    hfn_live_options o = { 0 };
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    hotfn_record_function f[HOSTILE_COUNT + 1];
    hfn_live *live = NULL;
    uint32_t index;

    o.command = "./game 'a \"b\"'\n\x80";
    o.directory = "/tmp";
    o.slot_capacity = 64;
    o.thread_capacity = 2;
    hfn_live_create(&live, &o, NULL, NULL);
    for (uint32_t i = 0; i < HOSTILE_COUNT; i++) {
        f[i] = sample_function(hostile_names[i], 0x1000 + 16 * i, HOTFN_STATE_HOOKED);
    }
    f[0].names = "alias one\0alias \"two\"\0";
    f[0].name_count = 3;
    f[HOSTILE_COUNT] = sample_function("tiny", 0x9000, HOTFN_STATE_REFUSED);
    m.path = "/opt/ga\"me\033";
    m.function_count = HOSTILE_COUNT + 1;
    hfn_live_add_module(live, &m, f, &index, NULL);
    hfn_live_set_module(live, 0, HOTFN_MODULE_LOADED | HOTFN_MODULE_MAIN, 0, "a \"note\"\n");
    for (uint32_t i = 0; i < HOSTILE_COUNT; i++) {
        sample_count(live, 0, 1, 1, i, i + 1 < HOSTILE_COUNT ? i : UINT64_MAX);
    }
    hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL);
    hfn_live_close(live);
}

#endif
