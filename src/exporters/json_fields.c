/* SPDX-License-Identifier: MIT */
/* Helpers of the exporters that write JSON. */
#include "exporters/json_fields.h"

#include <stdio.h>

void hfn_add_id(hotfn_json *object, const char *key, const hotfn_record_module *m)
{
    char digits[2 * sizeof m->id + 1] = "";
    for (uint32_t i = 0; i < m->id_bytes && i < sizeof m->id; i++) {
        snprintf(digits + 2 * (size_t)i, 3, "%02x", m->id[i]);
    }
    hfn_add_text(object, key, digits);
}

static const char *get_ticker_name(uint32_t ticker)
{
    switch (ticker) {
    case HOTFN_TICKER_SPINS: return "spins";
    case HOTFN_TICKER_ONE_PROCESSOR: return "one-processor";
    case HOTFN_TICKER_QUOTA: return "quota";
    default: return NULL;
    }
}

void hfn_add_ticker(hotfn_json *object, const hotfn_record_time_info *t)
{
    hfn_add_text(object, "ticker", get_ticker_name(t->ticker));
    hfn_add_number(object, "ticker_cpu_ns", t->ticker_cpu_ns);
    hfn_add_decimal(object, "tick_ns", t->tick_ns, 1);
    hfn_add_decimal(object, "tick_error_ns", t->tick_error_ns, 1);
    hfn_add_decimal(object, "coarse_share", t->coarse_share, 6);
    hfn_add_decimal(object, "missing_share", t->missing_share, 6);
}

static int32_t write_to_sink(void *user, const void *bytes, size_t byte_count)
{
    hfn_sink *sink = user;
    hfn_sink_bytes(sink, bytes, byte_count);
    return sink->failed;
}

hotfn_json_writer *hfn_json_open(hfn_sink *sink, uint32_t flags)
{
    hotfn_json_writer *writer = NULL;
    hotfn_json_writer_create(&writer, flags, write_to_sink, sink);
    return writer;
}

bool hfn_json_close(hotfn_json_writer *writer)
{
    return hotfn_json_writer_destroy(writer) != HOTFN_E_NO_MEMORY;
}

hotfn_json *hfn_create_children(const hotfn_record *record)
{
    hotfn_json *children = hotfn_json_create_array();
    hotfn_record_child child = HOTFN_RECORD_CHILD_INIT;

    for (uint32_t i = 0; hotfn_record_get_child(record, i, &child) == HOTFN_OK; i++) {
        hotfn_json *o = hotfn_json_create_object();
        hfn_add_text(o, "file", child.file);
        hfn_add_text(o, "path", child.path);
        hfn_add_number(o, "processes", child.process_count);
        hfn_add_number(o, "cpu_ns", child.cpu_ns);
        hfn_add_text(o, "option", "--target");
        hotfn_json_add(children, NULL, o);
    }
    return children;
}
