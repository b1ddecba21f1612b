/* SPDX-License-Identifier: MIT */
/* Between the HTTP library and the requests: check who asks, receive the body, hand the request
 * to a worker, and send the reply.  libmicrohttpd calls handle_connection once for the headers,
 * once for each piece of the body, once at its end, and again after a suspended connection was
 * resumed. */
#include "server_inside.h"
#include "web.h"

#include <hotfn/lowlevel/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CROWDED_TIMEOUT_SECONDS 2u
#define MAX_REQUEST_NS INT64_C(300000000000) /* a body must arrive within five minutes */

static const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* ---- Replies. */

static void write_refusal(request *r)
{
    hotfn_json_writer *out;

    r->status = r->refused.status;
    r->type = "application/json";
    r->static_reply = NULL;
    buffer_free(&r->reply);
    if (hotfn_json_writer_create(&out, 0, buffer_write, &r->reply) != HOTFN_OK) {
        return;
    }
    hotfn_json_begin_object(out, NULL);
    hotfn_json_write(out, "error", hotfn_json_create_text(r->refused.text));
    hotfn_json_end(out);
    hotfn_json_writer_destroy(out);
}

static void add_headers(struct MHD_Response *response, const request *r)
{
    MHD_add_response_header(response, "Content-Type", r->type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cache-Control", r->static_reply ? "no-cache" : "no-store");
    MHD_add_response_header(response, "Content-Security-Policy", page_policy);
    if (r->download[0]) {
        char value[160];
        snprintf(value, sizeof value, "attachment; filename=\"%s\"", r->download);
        MHD_add_response_header(response, "Content-Disposition", value);
    }
    if (r->status == 401) {
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    }
    if (r->status == 429 || r->status == 503) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%u", r->retry_after ? r->retry_after : 5);
        MHD_add_response_header(response, "Retry-After", seconds);
    }
}

static enum MHD_Result send_reply(struct MHD_Connection *connection, request *r)
{
    struct MHD_Response *response;

    if (r->reply.failed) {
        request_refuse(r, 503, "the collector has not enough memory: ask again later");
    }
    if (r->refused.status) {
        write_refusal(r);
    }
    if (r->static_reply) {
        response = MHD_create_response_from_buffer(r->static_bytes, (void *)r->static_reply,
                                                   MHD_RESPMEM_PERSISTENT);
    } else {
        response =
            MHD_create_response_from_buffer(r->reply.used, r->reply.data, MHD_RESPMEM_MUST_FREE);
        if (response) {
            r->sent_bytes = r->reply.used;
            r->reply = (byte_buffer){ 0 };
        }
    }
    if (!response) {
        return MHD_NO;
    }
    add_headers(response, r);
    enum MHD_Result result = MHD_queue_response(connection, (unsigned)r->status, response);
    MHD_destroy_response(response);
    atomic_fetch_add(&r->server->counters.by_class[r->status / 100 % 6], 1);
    if (!r->server->options.quiet) {
        log_request(r);
    }
    return result;
}

void finish_request(request *r)
{
    r->is_done = true;
    MHD_resume_connection(r->connection);
}

/* ---- The headers. */

static enum MHD_Result add_parameter(void *user, enum MHD_ValueKind kind, const char *key,
                                     const char *value)
{
    request *r = user;

    (void)kind;
    if (r->parameter_count == MAX_PARAMETERS) {
        request_refuse(r, 400, "there are more than %d parameters", MAX_PARAMETERS);
        return MHD_NO;
    }
    r->parameters[r->parameter_count++] = (parameter){ key, value ? value : "" };
    return MHD_YES;
}

/* The role of the caller is checked by a worker, which has a database; this only finds the
 * token. */
static void read_token(request *r)
{
    const char *header =
        MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);

    if (header && strncmp(header, "Bearer ", 7) == 0) {
        r->token = header + 7;
    }
}

static void begin_body(request *r)
{
    const char *encoding = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND,
                                                       MHD_HTTP_HEADER_CONTENT_ENCODING);
    bool gzip = encoding && strcmp(encoding, "gzip") == 0;

    if (encoding && !gzip && strcmp(encoding, "identity") != 0) {
        request_refuse(r, 415, "Content-Encoding must be gzip or identity");
        return;
    }
    r->has_body = true;
    const server_options *o = &r->server->options;
    body_begin(&r->body, o->folder, gzip,
               r->route->flags & ROUTE_BUILD ? &o->build_limits : &o->limits, &r->refused);
}

static request *begin_request(server *s, struct MHD_Connection *connection, const char *url,
                              const char *method)
{
    request *r = calloc(1, sizeof *r);
    bool other_method = false;

    if (!r) {
        return NULL;
    }
    if (strcmp(method, "HEAD") == 0) {
        method = "GET"; /* the HTTP library omits the body of the reply */
    }
    atomic_fetch_add(&s->counters.requests, 1);
    atomic_fetch_add(&s->open_requests, 1);
    r->server = s;
    r->connection = connection;
    r->method = method;
    r->begin_ns = get_monotonic_ns();
    r->type = "application/json";
    r->body.fd = -1;
    copy_bounded(r->path, sizeof r->path, url);
    if (find_web_file(r)) {
        return r;
    }
    r->route = strlen(url) < sizeof r->path
                   ? find_route(method, url, r->item, sizeof r->item, &other_method)
                   : NULL;
    if (!r->route) {
        if (other_method) {
            request_refuse(r, 405, "this address has no method %.16s", method);
        } else {
            request_refuse(r, 404, "nothing is at the address %.200s: see /api/v1/openapi.json",
                           r->path);
        }
        return r;
    }
    read_token(r);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_parameter, r);
    if (r->route->flags & ROUTE_BODY && !r->refused.status) {
        begin_body(r);
    }
    return r;
}

/* ---- Pieces and end of the body. */

/* The rest of a refused body is read and thrown away, so that the client reads the reply instead of
 * a broken connection; more than the limit is not read. */
static enum MHD_Result receive_piece(request *r, const char *bytes, size_t *byte_count)
{
    const server_options *o = &r->server->options;
    uint64_t most = r->body.limits ? r->body.limits->max_body : o->limits.max_body;

    r->received += *byte_count;
    atomic_fetch_add(&r->server->counters.received_bytes, *byte_count);
    if (r->received > 2 * most || get_monotonic_ns() - r->begin_ns > MAX_REQUEST_NS) {
        return MHD_NO;
    }
    if (!r->refused.status) {
        if (!r->has_body) {
            request_refuse(r, 400, "this address takes no body");
        } else {
            body_add(&r->body, bytes, *byte_count, &r->refused);
        }
    }
    *byte_count = 0;
    return MHD_YES;
}

static enum MHD_Result queue_request(struct MHD_Connection *connection, request *r)
{
    r->is_queued = true;
    MHD_suspend_connection(connection);
    if (!queue_push(&r->server->for_workers, r)) {
        request_refuse(r, 503, "the collector is busy: send again later");
        finish_request(r);
    }
    return MHD_YES;
}

enum MHD_Result handle_connection(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *byte_count, void **state)
{
    server *s = user;
    request *r = *state;

    (void)version;
    if (!r) {
        r = *state = begin_request(s, connection, url, method);
        return r ? MHD_YES : MHD_NO;
    }
    if (*byte_count > 0) {
        return receive_piece(r, bytes, byte_count);
    }
    if (r->is_done || r->refused.status || r->static_reply) {
        return send_reply(connection, r);
    }
    return r->is_queued ? MHD_YES : queue_request(connection, r);
}

void end_request(void *user, struct MHD_Connection *connection, void **state,
                 enum MHD_RequestTerminationCode code)
{
    request *r = *state;

    (void)user;
    (void)connection;
    (void)code;
    if (!r) {
        return;
    }
    if (r->submission) {
        decode_free(&r->decoded, r->submission);
        free(r->submission);
    }
    body_free(&r->body);
    buffer_free(&r->reply);
    atomic_fetch_sub(&r->server->open_requests, 1);
    free(r);
    *state = NULL;
}

enum MHD_Result accept_connection(void *user, const struct sockaddr *address, socklen_t bytes)
{
    server *s = user;

    (void)address, (void)bytes;
    return s->stopping ? MHD_NO : MHD_YES;
}

/* Once most connections are in use, a new one must not stay idle, so that idle connections
 * cannot keep others out for long. */
void count_connection(void *user, struct MHD_Connection *connection, void **state,
                      enum MHD_ConnectionNotificationCode code)
{
    server *s = user;

    (void)state;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        atomic_fetch_sub(&s->counters.connections, 1);
        return;
    }
    int count = atomic_fetch_add(&s->counters.connections, 1);
    if ((uint64_t)count * 4 > (uint64_t)s->max_connections * 3) {
        MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                  CROWDED_TIMEOUT_SECONDS);
    }
}
