/* SPDX-License-Identifier: MIT */
/* The sizes of the public structs by name.  A binding that declares the structs itself (ctypes)
 * compares its sizes with these before its first call.  tests/abi/layout.py checks that the table
 * is complete. */
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include <string.h>

typedef struct struct_size {
    const char *name;
    uint32_t bytes;
} struct_size;

/* clang-format off */
#define STRUCT_SIZE(name) { #name, (uint32_t)sizeof(name) }

/* In the order of the headers. */
static const struct_size struct_sizes[] = {
    STRUCT_SIZE(hotfn_error),
    STRUCT_SIZE(hotfn_progress),
    STRUCT_SIZE(hotfn_env),
    STRUCT_SIZE(hotfn_image_info),
    STRUCT_SIZE(hotfn_section),
    STRUCT_SIZE(hotfn_symbol),
    STRUCT_SIZE(hotfn_symbols_options),
    STRUCT_SIZE(hotfn_symbols_info),
    STRUCT_SIZE(hotfn_source_line),
    STRUCT_SIZE(hotfn_source_frame),
    STRUCT_SIZE(hotfn_function),
    STRUCT_SIZE(hotfn_selection),
    STRUCT_SIZE(hotfn_list_entry),
    STRUCT_SIZE(hotfn_list_info),
    STRUCT_SIZE(hotfn_verdict),
    STRUCT_SIZE(hotfn_verdicts_options),
    STRUCT_SIZE(hotfn_plan_info),
    STRUCT_SIZE(hotfn_plan_entry),
    STRUCT_SIZE(hotfn_row_access),
    STRUCT_SIZE(hotfn_hook_options),
    STRUCT_SIZE(hotfn_hook_action),
    STRUCT_SIZE(hotfn_replace_options),
    STRUCT_SIZE(hotfn_commit_stats),
    STRUCT_SIZE(hotfn_stub_region),
    STRUCT_SIZE(hotfn_alloc_cell),
    STRUCT_SIZE(hotfn_record_time_info),
    STRUCT_SIZE(hotfn_record_timing),
    STRUCT_SIZE(hotfn_record_edge),
    STRUCT_SIZE(hotfn_record_node),
    STRUCT_SIZE(hotfn_record_slow_call),
    STRUCT_SIZE(hotfn_record_event),
    STRUCT_SIZE(hotfn_record_thread_timing),
    STRUCT_SIZE(hotfn_record_function),
    STRUCT_SIZE(hotfn_record_module),
    STRUCT_SIZE(hotfn_record_info),
    STRUCT_SIZE(hotfn_record_thread),
    STRUCT_SIZE(hotfn_record_caller),
    STRUCT_SIZE(hotfn_record_child),
    STRUCT_SIZE(hotfn_launch_options),
    STRUCT_SIZE(hotfn_launch_info),
    STRUCT_SIZE(hotfn_switch_order),
    STRUCT_SIZE(hotfn_switch_result),
    STRUCT_SIZE(hotfn_record_budget),
    STRUCT_SIZE(hotfn_record_change),
    STRUCT_SIZE(hotfn_events_header),
    STRUCT_SIZE(hotfn_events_item),
    STRUCT_SIZE(hotfn_listener_event),
    STRUCT_SIZE(hotfn_listener_stats),
    STRUCT_SIZE(hotfn_exported),
    STRUCT_SIZE(hotfn_export_options),
    STRUCT_SIZE(hotfn_exporter_info),
    STRUCT_SIZE(hotfn_exporter),
    STRUCT_SIZE(hotfn_scan_options),
    STRUCT_SIZE(hotfn_scan_info),
    STRUCT_SIZE(hotfn_group),
    STRUCT_SIZE(hotfn_session_options),
    STRUCT_SIZE(hotfn_session_stats),
    STRUCT_SIZE(hotfn_zone),
    STRUCT_SIZE(hotfn_frame_options),
    STRUCT_SIZE(hotfn_frame_info),
    STRUCT_SIZE(hotfn_frame_times),
};
/* clang-format on */

uint32_t hotfn_get_struct_bytes(const char *struct_name)
{
    if (!struct_name) {
        return 0;
    }
    for (size_t i = 0; i < sizeof struct_sizes / sizeof struct_sizes[0]; i++) {
        if (strcmp(struct_sizes[i].name, struct_name) == 0) {
            return struct_sizes[i].bytes;
        }
    }
    return 0;
}
