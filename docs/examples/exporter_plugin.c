/* SPDX-License-Identifier: MIT */
/* An exporter built outside of hotfn: it writes all that a record contains as lines of text.
 *
 *     cc -shared -fPIC $(pkg-config --cflags hotfn) -o lines.so exporter_plugin.c
 *     hotfn export -F ./lines.so hotfn.hfr
 */
#include <hotfn.h>
#include <hotfn/lowlevel/timing.h>
#include <inttypes.h>
#include <stdio.h>

static hotfn_status write_lines(void *user, const hotfn_record *record,
                                const hotfn_export_options *options, hotfn_write_fn write,
                                void *write_user, hotfn_error *err)
{
    char line[512];
    int stopped = 0;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_time_info time = HOTFN_RECORD_TIME_INFO_INIT;
    (void)user, (void)options, (void)err;
    hotfn_record_get_info(record, &info);
    hotfn_record_get_time_info(record, &time);
#define PUT(...)                                                                                   \
    (stopped = stopped || write(write_user, line, (size_t)snprintf(line, sizeof line, __VA_ARGS__)))
    PUT("unit %s\n", time.flags ? "ns" : "calls");
    for (uint32_t i = 0; i < info.thread_count; i++) {
        hotfn_record_thread t = HOTFN_RECORD_THREAD_INIT;
        hotfn_record_get_thread(record, i, &t);
        PUT("thread %" PRIu32 " %.16s calls=%" PRIu64 "\n", t.tid, t.name, t.calls);
    }
    for (uint32_t i = 0; i < info.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_timing t = HOTFN_RECORD_TIMING_INIT;
        hotfn_record_get_function(record, i, &f);
        hotfn_record_get_timing(record, i, &t);
        PUT("function %" PRIu32 " %.300s calls=%" PRIu64 " self=%" PRIu64 " error=%" PRIu64 "\n", i,
            f.name, f.calls, t.self_ns, t.timing == HOTFN_TIMING_SAMPLE ? t.self_error_ns : 0);
    }
    for (uint32_t i = 0; i < time.edge_count; i++) {
        hotfn_record_edge e = HOTFN_RECORD_EDGE_INIT;
        hotfn_record_get_edge(record, i, &e);
        PUT("edge %" PRIu32 " %" PRIu32 " calls=%" PRIu64 "\n", e.caller, e.callee, e.calls);
    }
    for (uint32_t i = 0; i < time.node_count; i++) {
        hotfn_record_node n = HOTFN_RECORD_NODE_INIT;
        hotfn_record_get_node(record, i, &n);
        PUT("node %" PRIu32 " parent=%" PRIu32 " function=%" PRIu32 "\n", i, n.parent, n.function);
    }
    return stopped ? HOTFN_E_IO : HOTFN_OK;
}

const hotfn_exporter *hotfn_exporter_plugin(void);
const hotfn_exporter *hotfn_exporter_plugin(void)
{
    static hotfn_exporter lines = HOTFN_EXPORTER_INIT;
    lines.name = "lines", lines.extension = ".lines", lines.about = "all of a record, line by line";
    lines.write = write_lines;
    return &lines;
}
