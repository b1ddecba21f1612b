/* SPDX-License-Identifier: MIT */
/* Objects that a program has created and not released, by the names under which runtimes/com.c
 * counts both. */
#include "base/status.h"
#include "launch/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char created[] = " created", released[] = " released";

/* The calls of the function of this name; 0 if there is none. */
static uint64_t get_calls(const hotfn_record *record, const char *name)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    uint32_t index;

    return hotfn_record_find_function(record, name, &index, NULL) == HOTFN_OK &&
                   hotfn_record_get_function(record, index, &f) == HOTFN_OK
               ? f.calls
               : 0;
}

static void warn_of_class(const hotfn_launch *l, const hotfn_record *record,
                          const hotfn_record_function *f)
{
    size_t length = strlen(f->name), end = sizeof created - 1;
    char name[128];
    uint64_t gone;

    if (length <= end || length >= sizeof name - sizeof released ||
        strcmp(f->name + length - end, created) != 0) {
        return;
    }
    snprintf(name, sizeof name, "%.*s%s", (int)(length - end), f->name, released);
    gone = get_calls(record, name);
    if (f->calls > gone) {
        hfn_log_message(&l->env, HOTFN_LOG_WARNING,
                        "%" PRIu64 " objects of the class %.*s were not released", f->calls - gone,
                        (int)(length - end), f->name);
    }
}

void hfn_objects_check(const hotfn_launch *l)
{
    hotfn_record *record = NULL;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;

    if (!l->options.runtime || strcmp(l->options.runtime, "com") != 0 ||
        hotfn_record_open(&record, l->options.record_path, &l->env, NULL) != HOTFN_OK) {
        return;
    }
    hotfn_record_get_info(record, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;

        if (hotfn_record_get_function(record, i, &f) == HOTFN_OK && f.counted) {
            warn_of_class(l, record, &f);
        }
    }
    hotfn_record_close(record);
}
