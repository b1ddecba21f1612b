/* SPDX-License-Identifier: MIT */
/* hotfn.report/1, described in docs/report.schema.json.  Written by hand, as a stream: u64 are
 * written raw (cJSON keeps numbers as doubles), and a record may list a million functions.
 * RFC 8259; names are bytes, so what is not UTF-8 becomes U+FFFD. */
#include "exporters/exporter.h"

#include <inttypes.h>
#include <string.h>

static void put_string(hfn_sink *sink, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    hfn_sink_text(sink, "\"");
    while (*s) {
        size_t length = hfn_utf8_length(s);
        if (*s == '"' || *s == '\\') {
            hfn_sink_format(sink, "\\%c", *s);
        } else if (*s < 0x20 || *s == 0x7f) {
            hfn_sink_format(sink, "\\u%04x", *s);
        } else if (length == 0) {
            hfn_sink_text(sink, "\\ufffd");
        } else {
            hfn_sink_bytes(sink, (const char *)s, length);
        }
        s += length ? length : 1;
    }
    hfn_sink_text(sink, "\"");
}

static void put_key_string(hfn_sink *sink, const char *key, const char *text)
{
    hfn_sink_format(sink, ",\"%s\":", key);
    put_string(sink, text);
}

static void put_id(hfn_sink *sink, const hotfn_record_module *m)
{
    hfn_sink_text(sink, ",\"image_id\":\"");
    for (uint32_t i = 0; i < m->id_bytes && i < sizeof m->id; i++) {
        hfn_sink_format(sink, "%02x", m->id[i]);
    }
    hfn_sink_text(sink, "\"");
}

static const char *module_state(uint32_t flags)
{
    if (flags & HOTFN_MODULE_FAILED) {
        return "failed";
    }
    if (flags & HOTFN_MODULE_LEFT_OUT) {
        return "left-out";
    }
    return flags & HOTFN_MODULE_UNLOADED ? "unloaded"
           : flags & HOTFN_MODULE_LOADED ? "loaded"
                                         : "not-loaded";
}

static void put_modules(const hfn_view *view, hfn_sink *sink)
{
    hfn_sink_text(sink, ",\n\"modules\":[");
    for (uint32_t i = 0; i < view->info.module_count; i++) {
        hotfn_record_module m;
        hfn_view_module(view, i, &m);
        hfn_sink_text(sink, i ? ",\n{\"module\":" : "\n{\"module\":");
        put_string(sink, m.file);
        put_key_string(sink, "path", m.path);
        put_id(sink, &m);
        put_key_string(sink, "state", module_state(m.flags));
        put_key_string(sink, "note", m.note);
        hfn_sink_format(sink, ",\"main\":%s,\"functions\":%" PRIu32 "}",
                        m.flags & HOTFN_MODULE_MAIN ? "true" : "false", m.function_count);
    }
    hfn_sink_text(sink, "]");
}

static void put_record(const hfn_view *view, hfn_sink *sink)
{
    const hotfn_record_info *info = &view->info;
    hfn_sink_text(sink, "{\"schema\":\"hotfn.report/1\"");
    put_key_string(sink, "version", hotfn_version());
    hfn_sink_text(sink, ",\n\"record\":{\"state\":");
    put_string(sink, hfn_record_state_name(info->state));
    put_key_string(sink, "command", info->command);
    put_key_string(sink, "directory", info->directory);
    put_key_string(sink, "tool", info->tool);
    hfn_sink_format(sink, ",\"pid\":%" PRIu32 ",\"exit_code\":%" PRId32, info->pid,
                    info->exit_code);
    hfn_sink_format(sink, ",\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64, info->start_ns,
                    info->end_ns);
    hfn_sink_format(sink, ",\"window_start_ns\":%" PRIu64 ",\"window_end_ns\":%" PRIu64,
                    info->window_start_ns, info->window_end_ns);
    hfn_sink_format(sink, ",\"threads\":%" PRIu32 ",\"threads_lost\":%" PRIu32, info->thread_count,
                    info->threads_lost);
    hfn_sink_format(sink, ",\"functions\":%" PRIu32 ",\"calls\":%" PRIu64 "}", info->function_count,
                    view->total_calls);
}

static void put_names(hfn_sink *sink, const hotfn_record_function *f)
{
    hfn_sink_text(sink, ",\"names\":[");
    put_string(sink, f->name);
    for (const char *name = f->names; name && *name; name += strlen(name) + 1) {
        hfn_sink_text(sink, ",");
        put_string(sink, name);
    }
    hfn_sink_text(sink, "]");
}

static void put_function(const hfn_view *view, hfn_sink *sink, uint32_t index, char *shown,
                         size_t shown_bytes)
{
    hotfn_record_function f;
    hotfn_record_module m;
    hfn_view_function(view, index, &f);
    hfn_view_module(view, f.module, &m);
    hfn_sink_text(sink, "{\"module\":");
    put_string(sink, m.file);
    put_key_string(sink, "file", m.path);
    hfn_sink_format(sink, ",\"rva\":%" PRIu64 ",\"size\":%" PRIu64, f.rva, f.byte_count);
    put_key_string(sink, "name", f.name);
    put_key_string(sink, "display", hfn_view_display(view, &f, shown, shown_bytes));
    put_names(sink, &f);
    if (f.counted) {
        hfn_sink_format(sink, ",\"calls\":%" PRIu64, f.calls);
    } else {
        hfn_sink_text(sink, ",\"calls\":null");
    }
    put_key_string(sink, "state", hfn_state_name(f.state));
    put_key_string(sink, "strategy", f.strategy);
    put_key_string(sink, "reason", f.reason);
    put_key_string(sink, "reason_text", f.reason_text);
    hfn_sink_format(sink, ",\"entry_is_loop\":%s}",
                    f.flags & HOTFN_VERDICT_ENTRY_LOOP ? "true" : "false");
}

static void write_json(const hfn_view *view, hfn_sink *sink)
{
    char shown[8192];
    put_record(view, sink);
    put_modules(view, sink);
    hfn_sink_text(sink, ",\n\"functions\":[");
    for (uint32_t i = 0; i < view->limit && !sink->failed; i++) {
        hfn_sink_text(sink, i ? ",\n" : "\n");
        put_function(view, sink, view->order[i], shown, sizeof shown);
    }
    hfn_sink_text(sink, "]}\n");
}

const hfn_exporter hfn_exporter_json = {
    .name = "json",
    .extension = ".json",
    .about = "hotfn.report/1, every field of every function",
    .needs = HOTFN_NEEDS_FLAT,
    .write = write_json,
};
