/* SPDX-License-Identifier: MIT */
/* Requests to hotfn-collector, with a database that has one run.  The first line of the input is a
 * method and a path, the lines up to an empty one are parameters, and the rest is the body.  Each
 * request is answered, or refused with a status and a sentence. */
#include "../tools/collector/server_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The run of image 1-41, whose functions are at 0x10 and 0x20, with one call from outside. */
static const uint8_t run_body[] = "HFC1"
                                  "\x00"                                 /* not timed           */
                                  "\x41\x42\x43\x44\x45\x46\x47\x48"     /* UUID                */
                                  "\x41\x42\x43\x44\x45\x46\x47\x48"     /*                     */
                                  "\x80\x80\x90\xbb\xba\xd6\xad\xf0\x0d" /* start, in 2001      */
                                  "\x80\x80\x90\xbb\xba\xd6\xad\xf0\x0d" /* end                 */
                                  "\x02\x02\x00"                         /* state, hooked, not  */
                                  "\x01\x01\x01\x01\x41\x04game\x02"     /* one module, 2 rows  */
                                  "\x10\x05\x10\x07"                     /* RVAs and calls      */
                                  "\x01\x00\x00\x05";                    /* callers             */

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* The files have no names any more, so that nothing of the database remains. */
static void remove_files(const char *folder)
{
    static const char *const names[] = { "hotfn.db", "hotfn.db-wal", "hotfn.db-shm" };
    char path[256];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static store *make_store(void)
{
    char folder[] = "/tmp/hotfn-requests-XXXXXX";
    static submission sub = { .app = "game", .version = "1" };
    submission *list[] = { &sub };
    refusal why = { 0 };
    store *s = NULL;

    check(mkdtemp(folder) && store_open(&s, folder, true, &why));
    check(!wire_decode_run(&sub.run, run_body, sizeof run_body - 1));
    sub.run.start_ns = sub.run.end_ns = UINT64_C(1700000000000000000);
    sub.received_ns = INT64_C(1700000001000000000);
    sub.label_count = 1;
    strcpy(sub.labels[0].key, "level");
    strcpy(sub.labels[0].value, "3");
    ingest_batch(s, list, 1);
    check(sub.result.status == 201);
    wire_free(&sub.run);
    remove_files(folder);
    return s;
}

/* Split off the next line; NULL if it is empty or the last one. */
static char *take_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');

    if (!end || end == line) {
        *at = end ? end + 1 : line;
        return NULL;
    }
    *end = 0;
    *at = end + 1;
    return line;
}

static void add_parameters(request *r, char **at)
{
    char *line;

    while ((line = take_line(at))) {
        char *equal = strchr(line, '=');
        if (equal && r->parameter_count < MAX_PARAMETERS) {
            *equal = 0;
            r->parameters[r->parameter_count++] = (parameter){ line, equal + 1 };
        }
    }
}

static void answer(request *r, store *s, const char *body, size_t body_bytes)
{
    static const body_limits limits = { 1 << 20, 8 << 20, 100 };
    bool ok = true;

    if (r->route->flags & ROUTE_BODY) {
        ok = body_begin(&r->body, "/tmp", false, &limits, &r->refused) &&
             body_add(&r->body, body, body_bytes, &r->refused);
        r->has_body = true;
    }
    if (ok) {
        r->access.role = ROLE_ADMIN;
        r->route->handler(r, s);
    }
    check(r->refused.status == 0 ||
          (r->refused.status >= 400 && r->refused.text[0] && !strchr(r->refused.text, '\n')));
    check(r->refused.status || r->route->flags & ROUTE_WRITER || r->reply.used > 0 ||
          r->static_reply);
    check(!r->reply.failed);
    body_free(&r->body);
    if (r->submission) {
        decode_free(&r->decoded, r->submission);
        free(r->submission);
    }
    buffer_free(&r->reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static store *s;
    static server state = { .options = { .folder = "/tmp" } };
    char *text = malloc(size + 1), *at = text, *line;
    request *r = calloc(1, sizeof *r);
    bool other_method;

    s = s ? s : make_store();
    check(text && r);
    memcpy(text, data, size);
    text[size] = 0;
    r->server = &state;
    r->body.fd = -1;
    line = take_line(&at);
    char *path = line ? strchr(line, ' ') : NULL;
    if (path) {
        *path++ = 0;
        r->route = find_route(line, path, r->item, sizeof r->item, &other_method);
    }
    if (r->route) {
        add_parameters(r, &at);
        answer(r, s, at, size - (size_t)(at - text));
    }
    free(r);
    free(text);
    return 0;
}
