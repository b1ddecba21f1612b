/* SPDX-License-Identifier: MIT */
/* One HTTP request and its reply, independent of the HTTP library; the handlers of the API. */
#ifndef HOTFN_COLLECTOR_REQUEST_H
#define HOTFN_COLLECTOR_REQUEST_H

#include "body.h"
#include "buffer.h"
#include "decode.h"
#include "tokens.h"

enum { MAX_PARAMETERS = 48 };

typedef struct parameter {
    const char *key, *value; /* views into the connection */
} parameter;

struct server;
struct route;

typedef struct request {
    struct server *server;
    void *connection; /* of the HTTP library */
    const struct route *route;
    const char *method;
    char path[256], item[128]; /* item: the part of the path in place of the route's {item} */
    parameter parameters[MAX_PARAMETERS];
    uint32_t parameter_count;
    const char *token; /* view; NULL: none was sent */
    token_access access;
    uint64_t received, sent_bytes;
    uint32_t retry_after; /* seconds */
    int64_t begin_ns;     /* monotonic */
    request_body body;
    bool has_body, is_queued, is_done;
    refusal refused; /* status 0: not refused */
    decoded_body decoded;
    submission *submission;
    /* The reply. */
    int status;
    const char *type;
    char download[96]; /* name of the file, "" to show the reply */
    byte_buffer reply;
    const void *static_reply; /* instead of reply: bytes that outlive the server */
    size_t static_bytes;
} request;

/* Work on a request in a worker thread, whose connection to the database is s. */
typedef void (*request_handler)(request *r, store *s);

#define ROUTE_BODY 1u   /* the request has a body                     */
#define ROUTE_WRITER 2u /* the handler made a submission for the writer */
#define ROUTE_OPEN 4u   /* no token is needed                         */
#define ROUTE_BUILD 8u  /* the body may be as large as a build          */

typedef struct route {
    const char *method, *path; /* "{item}" is one part of the path */
    enum token_role role;      /* the lowest role that may use it  */
    uint32_t flags;
    request_handler handler;
} route;

/* NULL if there is no such route; *other_method: whether the path has one for another method. */
const route *find_route(const char *method, const char *path, char *item, size_t item_bytes,
                        bool *other_method);

const char *request_get(const request *r, const char *key);
/* The value, or `otherwise` if there is none; refuses the request if it is not a number in
 * bounds. */
bool request_get_number(request *r, const char *key, int64_t min, int64_t max, int64_t otherwise,
                        int64_t *out);
/* The position of a value in words, `otherwise` if there is none; refuses unknown ones. */
bool request_get_word(request *r, const char *key, const char *const *words, int count,
                      int otherwise, int *out);
/* The app of the request.  Refuses the request if there is none, or if the token is for another. */
const char *request_get_app(request *r);

#define request_refuse(r, status, ...) refuse_request(&(r)->refused, status, __VA_ARGS__)

/* Handlers, by file. */
void push_record(request *r, store *s); /* api_push.c */
void push_names(request *r, store *s);
void push_symbols(request *r, store *s);
void push_kit(request *r, store *s);
void finish_push(request *r);         /* the reply, after the writer */
void read_apps(request *r, store *s); /* api_lists.c */
void read_builds(request *r, store *s);
void read_clients(request *r, store *s);
void read_live(request *r, store *s);
void read_kit(request *r, store *s); /* api_export.c */
void read_labels(request *r, store *s);
void read_hot(request *r, store *s);      /* api_hot.c */
void read_export(request *r, store *s);   /* api_export.c */
void read_function(request *r, store *s); /* api_function.c */
void read_diff(request *r, store *s);     /* api_diff.c */
void read_health(request *r, store *s);   /* api_state.c */
void read_metrics(request *r, store *s);
void read_openapi(request *r, store *s);

#endif
