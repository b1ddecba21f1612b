/* SPDX-License-Identifier: MIT */
/* Start and stop the server; its workers and its writer. */
#include "server_inside.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Of each connection, for its headers.  The longest address that hotfn push sends, with 16 labels
 * whose bytes are all escaped, has 17,000 bytes. */
enum { CONNECTION_BYTES = 32768 };

int64_t get_wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t get_monotonic_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

const server_options *server_get_options(const server *s)
{
    return &s->options;
}

server_counters *server_get_counters(server *s)
{
    return &s->counters;
}

uint32_t server_get_queue_length(server *s)
{
    return queue_get_length(&s->for_workers) + queue_get_length(&s->for_writer);
}

/* ---- Workers. */

static bool check_rate(request *r)
{
    uint64_t key;

    memcpy(&key, r->access.hash, sizeof key);
    r->retry_after = rate_count(&r->server->rates, key, get_monotonic_ns());
    return r->retry_after == 0 ||
           request_refuse(
               r, 429, "this token sends more than %u requests a second: send again in %u seconds",
               r->server->options.rate, r->retry_after);
}

/* Roles do not include each other, except that an admin may do everything. */
static bool check_access(request *r, store *s)
{
    const route *asked = r->route;

    if (asked->flags & ROUTE_OPEN) {
        return true;
    }
    if (r->token && !token_find(s, r->token, &r->access, &r->refused)) {
        return false;
    }
    if (r->token && r->access.role == ROLE_NONE) {
        return request_refuse(r, 401, "the token is unknown or was removed: ask for a new one");
    }
    if (!r->token && asked->role == ROLE_READ && r->server->options.anonymous_read) {
        return true;
    }
    if (!r->token) {
        return request_refuse(r, 401,
                              "a token is needed: send it as Authorization: Bearer TOKEN "
                              "(hotfn push: --token-file, or HOTFN_TOKEN)");
    }
    if (r->access.role != ROLE_ADMIN && r->access.role != asked->role) {
        return request_refuse(r, 403, "a %s token may not do this: use a %s token",
                              token_role_name(r->access.role), token_role_name(asked->role));
    }
    return check_rate(r);
}

/* All statements of a query see one state of the database. */
static void answer_request(request *r, store *s)
{
    bool reads = !(r->route->flags & ROUTE_WRITER);

    r->status = 200;
    if (!reads) {
        r->route->handler(r, s);
        return;
    }
    pthread_rwlock_rdlock(&r->server->moving);
    if (store_execute(s, "BEGIN")) {
        r->route->handler(r, s);
        store_execute(s, "COMMIT");
    } else {
        refuse_for_database(&r->refused, s);
    }
    pthread_rwlock_unlock(&r->server->moving);
}

static void *run_worker(void *user)
{
    struct worker_start {
        server *server;
        store *store;
    } start = *(struct worker_start *)user;
    void *item;

    free(user);
    while (queue_take(&start.server->for_workers, &item, 1) > 0) {
        request *r = item;
        if (check_access(r, start.store)) {
            answer_request(r, start.store);
        }
        if (r->refused.status || !(r->route->flags & ROUTE_WRITER)) {
            finish_request(r);
        } else if (!queue_push(&start.server->for_writer, r)) {
            request_refuse(r, 503, "the collector is busy: send again later");
            finish_request(r);
        }
    }
    return NULL;
}

/* ---- The writer. */

static void *run_writer(void *user)
{
    server *s = user;
    void *items[BATCH_LENGTH];
    submission *list[BATCH_LENGTH];
    uint32_t count;

    while ((count = queue_take(&s->for_writer, items, BATCH_LENGTH)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            list[i] = ((request *)items[i])->submission;
        }
        ingest_batch(s->writer_store, list, count);
        atomic_fetch_add(&s->counters.batches, 1);
        for (uint32_t i = 0; i < count; i++) {
            finish_push(items[i]);
            finish_request(items[i]);
        }
    }
    return NULL;
}

/* ---- Start and stop. */

/* Idle connections need descriptors; the soft limit is often 1024. */
static uint32_t raise_descriptor_limit(uint32_t connections)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 256;
    }
    rlim_t wanted = (rlim_t)connections + 512; /* bodies and the database have files too */
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    uint64_t room = limit.rlim_cur > 1024 ? limit.rlim_cur - 512 : limit.rlim_cur / 2;
    return room < connections ? (uint32_t)room : connections;
}

/* kind: what the PEM file must contain. */
static char *read_pem(const char *path, const char *kind, refusal *why)
{
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 65536);
    size_t length = file && text ? fread(text, 1, 65535, file) : 0;

    if (file) {
        fclose(file);
    }
    if (length == 0 || !strstr(text, kind)) {
        free(text);
        refuse_request(why, 500, "%s %s: give a PEM file", path,
                       length ? "does not contain what its option needs" : "cannot be read");
        return NULL;
    }
    return text;
}

static bool start_daemon(server *s, refusal *why)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(s->options.port) };
    uint32_t connections = s->max_connections = raise_descriptor_limit(s->options.max_connections);
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;

    if (inet_pton(AF_INET, s->options.address, &address.sin_addr) != 1) {
        return refuse_request(why, 500, "--listen: %s is not an IPv4 address", s->options.address);
    }
    struct MHD_OptionItem tls[] = {
        { s->certificate ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, s->certificate },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, s->key },
        { MHD_OPTION_END, 0, NULL },
    };
    flags |= s->certificate ? MHD_USE_TLS : 0;
    s->daemon = MHD_start_daemon(
        flags, s->options.port, accept_connection, s, handle_connection, s, MHD_OPTION_SOCK_ADDR,
        &address, MHD_OPTION_THREAD_POOL_SIZE, 2u, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)s->options.timeout_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_LISTEN_BACKLOG_SIZE, 4096u,
        MHD_OPTION_NOTIFY_COMPLETED, end_request, s, MHD_OPTION_NOTIFY_CONNECTION, count_connection,
        s, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    return s->daemon ||
           refuse_request(why, 500,
                          "cannot listen on %s:%u: is another program there? choose another "
                          "address with --listen%s",
                          s->options.address, s->options.port,
                          s->certificate ? "; or --key does not belong to --certificate" : "");
}

static bool start_workers(server *s, refusal *why)
{
    for (; s->worker_count < s->options.workers; s->worker_count++) {
        store **own = &s->worker_stores[s->worker_count];
        void **start = calloc(2, sizeof *start);
        if (!start || !store_open(own, s->options.folder, false, why) ||
            (s->options.clickhouse &&
             !clickhouse_open(&(*own)->clickhouse, s->options.clickhouse, why))) {
            free(start);
            return false;
        }
        start[0] = s;
        start[1] = *own;
        if (pthread_create(&s->workers[s->worker_count], NULL, run_worker, start) != 0) {
            free(start);
            store_close(*own);
            return refuse_request(why, 500, "cannot start a thread");
        }
    }
    s->has_writer = pthread_create(&s->writer, NULL, run_writer, s) == 0;
    return s->has_writer || refuse_request(why, 500, "cannot start a thread");
}

static bool start_delivery(server *s, refusal *why)
{
    const clickhouse_options *o = s->options.clickhouse;
    pthread_rwlockattr_t kind;

    /* Else a stream of queries would keep the delivery waiting. */
    pthread_rwlockattr_init(&kind);
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&s->moving, &kind);
    pthread_rwlockattr_destroy(&kind);
    if (!o) {
        return delivery_check_folder(s->writer_store, NULL, NULL, why);
    }
    s->writer_store->shard_count = o->server_count;
    return delivery_start(&s->delivery, s->options.folder, o, &s->moving, s->options.keep_days,
                          why);
}

bool server_start(server **out, const server_options *options, refusal *why)
{
    server *s = calloc(1, sizeof *s);

    if (!s || !queue_init(&s->for_workers, QUEUE_LENGTH) ||
        !queue_init(&s->for_writer, QUEUE_LENGTH)) {
        return refuse_request(why, 500, "not enough memory");
    }
    s->options = *options;
    s->options.workers = options->workers > MAX_WORKERS ? MAX_WORKERS : options->workers;
    rate_init(&s->rates, options->rate);
    pthread_mutex_init(&s->folds.lock, NULL);
    bool ok = store_open(&s->writer_store, options->folder, true, why);
    if (ok && options->certificate) {
        s->certificate = read_pem(options->certificate, "CERTIFICATE-----", why);
        s->key = s->certificate ? read_pem(options->key, "PRIVATE KEY-----", why) : NULL;
        ok = s->key != NULL;
    }
    ok = ok && start_delivery(s, why);
    if (!ok || !start_workers(s, why) || !start_daemon(s, why)) {
        server_stop(s);
        return false;
    }
    *out = s;
    return true;
}

uint16_t server_get_port(const server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : s->options.port;
}

void server_stop(server *s)
{
    /* MHD_quiesce_daemon ends the process at times: it and its threads remove the same descriptor
     * (libmicrohttpd 0.9.75). */
    s->stopping = true;
    /* Workers first: they still feed the writer.  Then every suspended connection is resumed. */
    queue_close(&s->for_workers);
    for (uint32_t i = 0; i < s->worker_count; i++) {
        pthread_join(s->workers[i], NULL);
        store_close(s->worker_stores[i]);
    }
    queue_close(&s->for_writer);
    if (s->has_writer) {
        pthread_join(s->writer, NULL);
    }
    if (s->delivery) {
        delivery_stop(s->delivery);
    }
    /* Give replies two seconds to reach their clients. */
    for (int i = 0; s->daemon && i < 200 && atomic_load(&s->open_requests) > 0; i++) {
        usleep(10000);
    }
    if (s->daemon) {
        MHD_stop_daemon(s->daemon);
    }
    store_close(s->writer_store);
    queue_finish(&s->for_workers);
    queue_finish(&s->for_writer);
    fold_cache_clear(&s->folds);
    free(s->certificate);
    free(s->key);
    free(s);
}
