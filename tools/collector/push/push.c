/* SPDX-License-Identifier: MIT */
/* Sends a record: encodes it, uploads it by HTTP PUT, sends names if the collector asks for them,
 * and spools the record while the collector is unavailable.  Attempts are repeated after random
 * delays, so that many clients do not reconnect at the same moment. */
#include "push/files.h"
#include "push/push_inside.h"
#include "push/spool.h"
#include "wire_encode.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ATTEMPTS = 4, FIRST_WAIT_MS = 250, MAX_WAIT_MS = 10000, MAX_TEXT_BYTES = 256 };

hotfn_status push_fail(hotfn_error *err, hotfn_status status, const char *format, ...)
{
    va_list arguments;

    if (err) {
        *err = (hotfn_error)HOTFN_ERROR_INIT;
        err->status = status;
        va_start(arguments, format);
        vsnprintf(err->text, sizeof err->text, format, arguments);
        va_end(arguments);
    }
    return status;
}

void push_free_run(pushed_run *run)
{
    buffer_free(&run->query);
    buffer_free(&run->body);
    buffer_free(&run->names);
}

/* ---- Encoding. */

void push_append_parameter(byte_buffer *out, const char *key, const char *value)
{
    buffer_append_format(out, "%s%s=", out->used ? "&" : "", key);
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     strchr("-_.~", c);
        if (plain) {
            buffer_append(out, value, 1);
        } else {
            buffer_append_format(out, "%%%02X", c);
        }
    }
}

static void format_uuid(char out[UUID_BYTES], const uint8_t uuid[16])
{
    int length = 0;

    for (int i = 0; i < 16; i++) {
        length += snprintf(out + length, UUID_BYTES - (size_t)length,
                           i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
    }
}

/* The module of the program itself; its file name is the default name of the app. */
static void find_program(const hotfn_record *record, hotfn_record_module *out)
{
    for (uint32_t i = 0;; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        if (hotfn_record_get_module(record, i, &m) != HOTFN_OK) {
            return;
        }
        if (m.flags & HOTFN_MODULE_MAIN) {
            *out = m;
            return;
        }
    }
}

static void make_query(pushing *p, pushed_run *run, const hotfn_record_module *program)
{
    const hotfn_push_options *o = p->options;

    push_append_parameter(&run->query, "app", o->app && o->app[0] ? o->app : program->file);
    push_append_parameter(&run->query, "client", p->client);
    if (o->version && o->version[0]) {
        push_append_parameter(&run->query, "version", o->version);
    }
    for (uint32_t i = 0; i < o->label_count; i++) {
        push_append_parameter(&run->query, "label", o->labels[i]);
    }
    if (run->sequence) {
        buffer_append_format(&run->query, "&sequence=%u&every=%u", run->sequence,
                             run->every_seconds);
    }
    buffer_append(&run->query, "", 1);
}

hotfn_status push_describe_run(pushing *p, pushed_run *run, const hotfn_record *record)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_module program = HOTFN_RECORD_MODULE_INIT;

    hotfn_record_get_info(record, &info);
    find_program(record, &program);
    if (program.id_bytes == 0 || !program.file) {
        return push_fail(p->err, HOTFN_E_MISMATCH,
                         "the program has no image id: link it with -Wl,--build-id, so that the "
                         "collector can distinguish its builds");
    }
    wire_format_image(run->image, program.id_kind, program.id, program.id_bytes);
    format_uuid(run->uuid, info.uuid);
    make_query(p, run, &program);
    return run->query.failed ? push_fail(p->err, HOTFN_E_NO_MEMORY, "not enough memory") : HOTFN_OK;
}

static hotfn_status encode_run(pushing *p, pushed_run *run, const char *path, const hotfn_env *env)
{
    hotfn_record *record;
    hotfn_status status = hotfn_record_open(&record, path, env, p->err);

    if (status != HOTFN_OK) {
        return status;
    }
    status = wire_encode_run(&run->body, record, false, p->err);
    status = status ? status : wire_encode_names(&run->names, record, false, p->err);
    status = status ? status : push_describe_run(p, run, record);
    hotfn_record_close(record);
    return status;
}

/* ---- Sending. */

/* Copy the sentence of a refusal: {"error":"..."}.  It is empty if the answer is not that of a
 * collector, for instance if a proxy answered. */
static void copy_sentence(char *out, size_t out_bytes, const char *body)
{
    const char *at = strstr(body, "\"error\"");
    size_t used = 0;

    at = at ? strchr(at + 7, '"') : NULL;
    for (at = at ? at + 1 : ""; *at && *at != '"' && used + 1 < out_bytes; at++) {
        at += *at == '\\' && at[1];
        out[used++] = *at;
    }
    out[used] = 0;
}

static void wait_before(uint32_t attempt, long retry_after)
{
    uint32_t random = 0, wait = FIRST_WAIT_MS << (attempt < 6 ? attempt : 6);

    fill_random(&random, sizeof random);
    wait = wait / 2 + random % wait; /* 50 % to 150 % of the wait */
    if (retry_after > 0 && (uint32_t)retry_after * 1000 > wait) {
        wait = (uint32_t)retry_after * 1000 + random % 500;
    }
    wait = wait > MAX_WAIT_MS ? MAX_WAIT_MS : wait;
    sleep_ms(wait);
}

bool push_is_temporary(long status)
{
    return status == 0 || status == 429 || status == 408 || status >= 500;
}

hotfn_status push_put_body(pushing *p, http_answer *answer, const char *path, const char *query,
                           const byte_buffer *body)
{
    uint32_t attempts = p->options->attempts ? p->options->attempts : DEFAULT_ATTEMPTS;
    byte_buffer url = { 0 };
    const char *base = p->options->url;
    size_t base_bytes = strlen(base);

    while (base_bytes > 0 && base[base_bytes - 1] == '/') {
        base_bytes--;
    }
    buffer_append(&url, base, base_bytes);
    buffer_append_text(&url, path);
    buffer_append_text(&url, "?");
    buffer_append(&url, query, strlen(query) + 1);
    if (url.failed) {
        return push_fail(p->err, HOTFN_E_NO_MEMORY, "not enough memory");
    }
    hotfn_status status = HOTFN_OK;
    for (uint32_t i = 0; i < attempts && status == HOTFN_OK; i++) {
        if (i > 0) {
            wait_before(i - 1, answer->retry_after);
            buffer_free(&answer->body);
        }
        status =
            http_put(answer, (const char *)url.data, p->options, body->data, body->used, p->err);
        if (!push_is_temporary(answer->status)) {
            break;
        }
    }
    buffer_free(&url);
    return status;
}

hotfn_status push_describe_delay(pushing *p, const http_answer *answer)
{
    char sentence[400];

    copy_sentence(sentence, sizeof sentence, (const char *)answer->body.data);
    if (answer->status && sentence[0]) {
        return push_fail(p->err, HOTFN_E_IO, "%ld: %s", answer->status, sentence);
    }
    return push_fail(p->err, HOTFN_E_IO, "%s",
                     answer->status ? "the collector cannot store it now" : answer->text);
}

hotfn_status push_refuse_answer(pushing *p, const http_answer *answer)
{
    char sentence[400];

    copy_sentence(sentence, sizeof sentence, (const char *)answer->body.data);
    hotfn_status status =
        answer->status == 401 || answer->status == 403 ? HOTFN_E_DENIED : HOTFN_E_MISMATCH;
    return push_fail(p->err, status, "the collector refuses it (%ld): %s", answer->status,
                     sentence[0] ? sentence : "is this the address of a hotfn-collector?");
}

hotfn_status push_send_run(pushing *p, const pushed_run *run, bool *unavailable, uint32_t *state)
{
    http_answer answer = { 0 };
    char path[96];

    snprintf(path, sizeof path, "/api/v1/records/%s", run->uuid);
    hotfn_status status =
        push_put_body(p, &answer, path, (const char *)run->query.data, &run->body);
    p->result->http_status = (uint32_t)answer.status;
    *unavailable = status == HOTFN_OK && push_is_temporary(answer.status);
    if (*unavailable) {
        push_describe_delay(p, &answer);
    } else if (status == HOTFN_OK && answer.status / 100 != 2) {
        status = push_refuse_answer(p, &answer);
    } else if (status == HOTFN_OK) {
        *state = answer.status == 201 ? HOTFN_PUSH_STORED : HOTFN_PUSH_KNOWN;
        bool wants = strstr((const char *)answer.body.data, "\"need_names\":\ttrue") ||
                     strstr((const char *)answer.body.data, "\"need_names\":true") ||
                     strstr((const char *)answer.body.data, "\"need_names\": true");
        if (wants && run->names.used > 0) {
            buffer_free(&answer.body);
            status = push_put_body(p, &answer, "/api/v1/names", (const char *)run->query.data,
                                   &run->names);
            p->result->sent_names |= status == HOTFN_OK && answer.status / 100 == 2;
        }
    }
    buffer_free(&answer.body);
    return status;
}

/* ---- The spool. */

hotfn_status push_spool_run(pushing *p, const pushed_run *run)
{
    char name[128];
    byte_buffer file = { 0 };

    buffer_append_format(&file, "%s\n%s\n", p->options->url, run->image);
    buffer_append_text(&file, (const char *)run->query.data);
    buffer_append_text(&file, "\n");
    buffer_append(&file, run->body.data, run->body.used);
    snprintf(name, sizeof name, "%s.names", run->image);
    hotfn_status status = file.failed ? push_fail(p->err, HOTFN_E_NO_MEMORY, "not enough memory")
                                      : spool_write(p->folder, name, &run->names,
                                                    p->options->max_spool_bytes, p->err);
    if (status == HOTFN_OK) {
        /* The sequence number, which is also in the query, makes the name unique. */
        snprintf(name, sizeof name, "%s-%u.run", run->uuid, run->sequence);
        status = spool_write(p->folder, name, &file, p->options->max_spool_bytes, p->err);
    }
    buffer_free(&file);
    if (status == HOTFN_OK) {
        p->result->state = HOTFN_PUSH_SPOOLED;
        p->result->spooled_remain++;
    }
    return status;
}

/* Take the next line of a file of the spool; NULL if there is none. */
static const char *next_line(byte_cursor *c)
{
    const char *begin = (const char *)c->at;
    uint8_t *end = memchr(c->at, '\n', (size_t)(c->end - c->at));

    if (!end) {
        return NULL;
    }
    *end = 0;
    c->at = end + 1;
    return begin;
}

/* False if the file is not a record for this collector. */
static bool load_spooled(pushing *p, const char *name, byte_buffer *file, pushed_run *out)
{
    char names[128];

    if (!spool_read(p->folder, name, file)) {
        return false;
    }
    byte_cursor c = cursor_begin(file->data, file->used);
    const char *url = next_line(&c), *image = url ? next_line(&c) : NULL,
               *query = image ? next_line(&c) : NULL;
    if (!query || strcmp(url, p->options->url) != 0) {
        return false;
    }
    copy_bounded(out->uuid, UUID_BYTES, name);
    copy_bounded(out->image, sizeof out->image, image);
    buffer_append(&out->query, query, strlen(query) + 1);
    buffer_append(&out->body, c.at, (size_t)(c.end - c.at));
    snprintf(names, sizeof names, "%s.names", out->image);
    spool_read(p->folder, names, &out->names);
    return !out->query.failed && !out->body.failed;
}

/* The error is that of the refusal. */
static void report_removal(pushing *p, const pushed_run *run)
{
    char reason[sizeof p->err->text];

    if (p->err) {
        copy_bounded(reason, sizeof reason, p->err->text);
        push_fail(p->err, HOTFN_E_MISMATCH, "run %s was removed from the spool: %.440s", run->uuid,
                  reason);
    }
}

static bool send_spooled(void *user, const char *name)
{
    pushing *p = user;
    pushed_run run = { 0 };
    byte_buffer file = { 0 };
    bool unavailable = true;
    uint32_t state = 0;

    if (load_spooled(p, name, &file, &run)) {
        hotfn_status status = push_send_run(p, &run, &unavailable, &state);
        /* A refused record would be refused again, so it is removed and reported. */
        if (!unavailable && (status == HOTFN_OK || status == HOTFN_E_MISMATCH)) {
            spool_remove(p->folder, name);
            if (status != HOTFN_OK) {
                report_removal(p, &run);
            }
            p->result->spooled_sent += status == HOTFN_OK;
        } else {
            p->result->spooled_remain++;
        }
        p->spool_status = status ? status : p->spool_status;
    } else {
        unavailable = false;
        p->result->spooled_remain++;
    }
    push_free_run(&run);
    buffer_free(&file);
    return !unavailable;
}

void push_send_spool(pushing *p)
{
    spool_for_each(p->folder, send_spooled, p);
}

/* ---- Entry points. */

hotfn_status push_find_state(pushing *p)
{
    hotfn_status status = state_find_folder(p->folder, p->options, p->err);

    return status ? status : state_get_client(p->client, p->folder, p->err);
}

hotfn_status push_check_options(const hotfn_push_options *o, hotfn_error *err)
{
    if (!o || o->size < sizeof *o || o->flags || o->reserved || !o->url ||
        (strncmp(o->url, "http://", 7) != 0 && strncmp(o->url, "https://", 8) != 0)) {
        return push_fail(err, HOTFN_E_OPTION,
                         "the address of the collector does not begin with http:// or "
                         "https://");
    }
    if ((o->app && strlen(o->app) > MAX_TEXT_BYTES) ||
        (o->version && strlen(o->version) > MAX_TEXT_BYTES)) {
        return push_fail(err, HOTFN_E_OPTION,
                         "the name of the app or its version has more than %d bytes: shorten it",
                         MAX_TEXT_BYTES);
    }
    for (uint32_t i = 0; i < o->label_count; i++) {
        const char *equal = strchr(o->labels[i], '=');
        if (!equal || equal == o->labels[i] || equal - o->labels[i] > 64 ||
            strlen(equal + 1) > MAX_TEXT_BYTES || i >= 16) {
            return push_fail(
                err, HOTFN_E_OPTION,
                "'%.80s' is not a label: give at most 16 of the form KEY=VALUE, with keys of at most "
                "64 and values of at most 256 bytes",
                o->labels[i]);
        }
    }
    if (o->token && (strlen(o->token) > 400 || strpbrk(o->token, "\r\n"))) {
        return push_fail(err, HOTFN_E_OPTION, "the token is not one line");
    }
    return HOTFN_OK;
}

static hotfn_status push_one(pushing *p, const char *path, const hotfn_env *env)
{
    pushed_run run = { 0 };
    bool unavailable = false;
    hotfn_status status = encode_run(p, &run, path, env);

    if (status == HOTFN_OK) {
        status = push_send_run(p, &run, &unavailable, &p->result->state);
    }
    if (status == HOTFN_OK && unavailable) {
        status = push_spool_run(p, &run);
    }
    push_free_run(&run);
    return status;
}

hotfn_status hotfn_push_record(const char *path, const hotfn_push_options *options,
                               const hotfn_env *env, hotfn_push_result *result, hotfn_error *err)
{
    hotfn_push_result own = HOTFN_PUSH_RESULT_INIT;
    pushing p = { .options = options, .result = &own, .err = err };
    hotfn_status status = push_check_options(options, err);

    status = status ? status : push_find_state(&p);
    if (status == HOTFN_OK && path) {
        status = push_one(&p, path, env);
    }
    if (status == HOTFN_OK && own.state != HOTFN_PUSH_SPOOLED) {
        push_send_spool(&p);
        status = path ? HOTFN_OK : p.spool_status;
    }
    if (result && result->size >= sizeof own) {
        *result = own;
    }
    return status;
}
