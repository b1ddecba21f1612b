/* SPDX-License-Identifier: MIT */
/* What clients send: records and names from testers, symbols and kits from administrators
 * (request.c has the addresses).  POST /api/v1/records takes the UUID from the record. */
#include "server.h"

#include <hotfn/lowlevel/json.h>
#include <stdlib.h>
#include <string.h>

static bool copy_parameter(request *r, const char *key, char *out, size_t out_bytes)
{
    const char *value = request_get(r, key);

    if (value && strlen(value) >= out_bytes) {
        return request_refuse(r, 400, "%s has more than %zu bytes: shorten it", key, out_bytes - 1);
    }
    strcpy(out, value ? value : "");
    return true;
}

static bool read_client(request *r, submission *sub)
{
    const char *client = request_get(r, "client");

    sub->has_client = client != NULL;
    return !client || parse_uuid(client, sub->client) ||
           request_refuse(r, 400, "client is not 32 hexadecimal digits");
}

/* A label is KEY=VALUE. */
static bool read_label(request *r, submission *sub, const char *text)
{
    const char *equal = strchr(text, '=');

    if (!equal || equal == text || equal - text > MAX_LABEL_KEY || strlen(equal + 1) > MAX_TEXT) {
        return request_refuse(r, 400,
                              "a label is not KEY=VALUE with at most %d and %d bytes: shorten it",
                              MAX_LABEL_KEY, MAX_TEXT);
    }
    if (sub->label_count == MAX_LABELS) {
        return request_refuse(r, 400, "there are more than %d labels", MAX_LABELS);
    }
    run_label *label = &sub->labels[sub->label_count++];
    memcpy(label->key, text, (size_t)(equal - text));
    strcpy(label->value, equal + 1);
    return true;
}

static bool begin_submission(request *r)
{
    submission *sub = r->submission = calloc(1, sizeof *sub);
    const char *app = sub ? request_get_app(r) : NULL;

    if (!sub) {
        return request_refuse(r, 503, "the collector has not enough memory: send again later");
    }
    if (!app || !copy_parameter(r, "version", sub->version, sizeof sub->version) ||
        !read_client(r, sub)) {
        return false;
    }
    strcpy(sub->app, app);
    for (uint32_t i = 0; i < r->parameter_count; i++) {
        if (strcmp(r->parameters[i].key, "label") == 0 &&
            !read_label(r, sub, r->parameters[i].value)) {
            return false;
        }
    }
    sub->received_ns = get_wall_ns();
    sub->known_builds_only = server_get_options(r->server)->known_builds_only;
    return body_finish(&r->body, sub->checksum, &r->refused);
}

void push_record(request *r, store *s)
{
    uint8_t uuid[16] = { 0 };

    (void)s;
    if (r->item[0] && !parse_uuid(r->item, uuid)) {
        request_refuse(r, 400, "the address does not end with the UUID of a run");
        return;
    }
    if (!begin_submission(r) ||
        !request_get_number(r, "sequence", 0, INT32_MAX, 0, &r->submission->sequence) ||
        !request_get_number(r, "every", 0, MAX_EVERY_SECONDS, 0, &r->submission->every_seconds) ||
        !decode_run_body(&r->decoded, r->body.fd, r->submission, &r->refused)) {
        return;
    }
    if (r->item[0] && memcmp(uuid, r->submission->run.uuid, sizeof uuid) != 0) {
        request_refuse(
            r, 422,
            "the address has another UUID than the record: use that of the record, or POST it");
    }
}

void push_names(request *r, store *s)
{
    const char *registers = request_get(r, "register");

    (void)s;
    if (!begin_submission(r)) {
        return;
    }
    r->submission->registers_build = registers != NULL;
    /* A tester must not be able to tie a version to another image. */
    if (registers && r->access.role != ROLE_ADMIN) {
        request_refuse(r, 403, "a %s token may not register a build: use an admin token",
                       token_role_name(r->access.role));
    } else {
        decode_names_body(&r->decoded, r->body.fd, r->submission, &r->refused);
    }
}

void push_symbols(request *r, store *s)
{
    const char *file = request_get(r, "file");

    (void)s;
    if (begin_submission(r)) {
        r->submission->registers_build = true;
        decode_symbols_body(&r->decoded, r->body.fd, file ? file : r->submission->app,
                            r->submission, &r->refused);
    }
}

void push_kit(request *r, store *s)
{
    submission *sub;

    (void)s;
    if (!begin_submission(r) || !decode_map_body(&r->decoded, r->body.fd, &r->refused)) {
        return;
    }
    sub = r->submission;
    sub->kit = r->decoded.mapped;
    sub->kit_bytes = r->decoded.mapped_bytes;
    if (sub->kit_bytes < 2 || sub->kit[0] != 0x1f || sub->kit[1] != 0x8b) { /* RFC 1952 */
        request_refuse(r, 422,
                       "the kit is not an archive compressed by gzip: send it with hotfn "
                       "push --kit");
        return;
    }
    copy_parameter(r, "build", sub->image, sizeof sub->image);
}

static void count_result(server_counters *c, const submission *sub)
{
    if (sub->result.status == 201) {
        atomic_fetch_add(&c->stored, 1);
        atomic_fetch_add(&c->rows, sub->run.row_count);
    } else {
        atomic_fetch_add(sub->result.status == 200  ? &c->repeated
                         : sub->result.status < 500 ? &c->refused
                                                    : &c->failed,
                         1);
    }
}

void finish_push(request *r)
{
    const submission *sub = r->submission;
    hotfn_json_writer *out;

    count_result(server_get_counters(r->server), sub);
    r->status = sub->result.status;
    if (r->status >= 300) {
        r->refused = sub->result;
        return;
    }
    if (hotfn_json_writer_create(&out, 0, buffer_write, &r->reply) != HOTFN_OK) {
        r->reply.failed = true;
        return;
    }
    hotfn_json_begin_object(out, NULL);
    hotfn_json_write(out, "stored", hotfn_json_create_bool(r->status == 201));
    hotfn_json_write(out, "build", hotfn_json_create_text(sub->image));
    hotfn_json_write(out, "need_names", hotfn_json_create_bool(sub->need_names));
    if (sub->registers_build) {
        hotfn_json_write(out, "names", hotfn_json_create_number(sub->names.name_count));
    }
    hotfn_json_end(out);
    r->reply.failed |= hotfn_json_writer_destroy(out) != HOTFN_OK;
}
