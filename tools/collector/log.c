/* SPDX-License-Identifier: MIT */
/* The log: a line of JSON for each event, on stderr.  Tokens and bodies are never logged. */
#include "server.h"

#include <hotfn/lowlevel/json.h>
#include <stdio.h>
#include <time.h>

static void write_time(hotfn_json_writer *out)
{
    char text[40];
    time_t now = time(NULL);
    struct tm parts;

    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    hotfn_json_write(out, "time", hotfn_json_create_text(text));
}

/* The writer breaks lines between values; a log line is one line. */
static void print_line(byte_buffer *line)
{
    size_t used = 0;

    for (size_t i = 0; i < line->used; i++) {
        bool breaks = line->data[i] == '\n';
        if (!breaks) {
            line->data[used++] = line->data[i];
        }
    }
    if (used > 0 && !line->failed) {
        fprintf(stderr, "%.*s\n", (int)used, (const char *)line->data);
    }
    buffer_free(line);
}

void log_event(const char *level, const char *event, const char *text)
{
    byte_buffer line = { 0 };
    hotfn_json_writer *out;

    if (hotfn_json_writer_create(&out, 0, buffer_write, &line) != HOTFN_OK) {
        return;
    }
    hotfn_json_begin_object(out, NULL);
    write_time(out);
    hotfn_json_write(out, "level", hotfn_json_create_text(level));
    hotfn_json_write(out, "event", hotfn_json_create_text(event));
    hotfn_json_write(out, "text", hotfn_json_create_text(text));
    hotfn_json_end(out);
    hotfn_json_writer_destroy(out);
    print_line(&line);
}

void log_request(const request *r)
{
    byte_buffer line = { 0 };
    hotfn_json_writer *out;

    if (hotfn_json_writer_create(&out, 0, buffer_write, &line) != HOTFN_OK) {
        return;
    }
    hotfn_json_begin_object(out, NULL);
    write_time(out);
    hotfn_json_write(out, "level", hotfn_json_create_text(r->status >= 500 ? "error" : "info"));
    hotfn_json_write(out, "event", hotfn_json_create_text("request"));
    hotfn_json_write(out, "method", hotfn_json_create_text(r->method));
    hotfn_json_write(out, "path", hotfn_json_create_text(r->path));
    hotfn_json_write(out, "status", hotfn_json_create_signed(r->status));
    hotfn_json_write(out, "received", hotfn_json_create_number(r->received));
    hotfn_json_write(out, "sent",
                     hotfn_json_create_number(r->static_reply ? r->static_bytes : r->sent_bytes));
    hotfn_json_write(out, "microseconds",
                     hotfn_json_create_signed((get_monotonic_ns() - r->begin_ns) / 1000));
    if (r->access.role != ROLE_NONE) {
        hotfn_json_write(out, "role", hotfn_json_create_text(token_role_name(r->access.role)));
    }
    if (r->refused.status) {
        hotfn_json_write(out, "error", hotfn_json_create_text(r->refused.text));
    }
    hotfn_json_end(out);
    hotfn_json_writer_destroy(out);
    print_line(&line);
}
