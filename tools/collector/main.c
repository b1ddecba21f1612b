/* SPDX-License-Identifier: MIT */
/* hotfn-collector: collects the records of many testers, and shows which functions are hot over all
 * of them.  On its first start it creates a folder, a database and the token of an admin. */
#include "commands.h"
#include "retention.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Two collectors in one folder would both number functions. */
int lock_folder(const char *folder)
{
    char path[4200];

    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        fprintf(stderr, "hotfn-collector: %s: %s\n", folder, strerror(errno));
        return -1;
    }
    snprintf(path, sizeof path, "%s/lock", folder);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        fprintf(stderr, "hotfn-collector: %s: %s: the folder must be writable\n", path,
                strerror(errno));
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        fprintf(stderr, "hotfn-collector: another hotfn-collector serves %s\n", folder);
        close(fd);
        return -1;
    }
    return fd;
}

/* Write the first token of an admin to DIR/admin.token, if the database has no token. */
static bool create_first_token(const char *folder, refusal *why)
{
    char path[4200], text[TOKEN_TEXT_BYTES];
    store *s;

    if (!store_open(&s, folder, true, why)) {
        return false;
    }
    int64_t count = store_read_integer(store_get_statement(s, "SELECT count(*) FROM token"), -1);
    bool ok = count >= 0 || refuse_for_database(why, s);
    if (count == 0) {
        snprintf(path, sizeof path, "%s/admin.token", folder);
        ok = token_create(s, "", ROLE_ADMIN, "first start", get_wall_ns(), text, why);
        int fd = ok ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
        if (ok && (fd < 0 || dprintf(fd, "%s\n", text) < 0)) {
            ok = refuse_request(why, 500, "%s: %s", path, strerror(errno));
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    store_close(s);
    return ok;
}

/* Retention: --keep-days.  With ClickHouse the delivery does it. */
static void delete_by_age(const collector_options *o)
{
    store *s;
    refusal why = { 0 };
    char text[64];

    if (o->server.keep_days == 0 || o->server.clickhouse || !store_open(&s, o->data, true, &why)) {
        return;
    }
    int64_t before = get_wall_ns() - (int64_t)o->server.keep_days * INT64_C(86400000000000);
    int64_t count = delete_old_runs(s, 0, before, &why);
    store_close(s);
    snprintf(text, sizeof text, "%lld records deleted", (long long)count);
    log_event(count < 0 ? "error" : "info", "retention", count < 0 ? why.text : text);
}

static int serve_until_signal(const collector_options *o)
{
    sigset_t signals;
    server *s;
    refusal why = { 0 };
    char text[4400];
    int arrived = 0;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (!create_first_token(o->data, &why) || !server_start(&s, &o->server, &why)) {
        return report_refusal(&why);
    }
    snprintf(text, sizeof text, "%s://%s:%u/ (the token of the admin is in %s/admin.token)",
             o->server.certificate ? "https" : "http", o->listen, server_get_port(s), o->data);
    log_event("info", "listening", text);
    const struct timespec hour = { 3600, 0 };
    delete_by_age(o);
    while ((arrived = sigtimedwait(&signals, NULL, &hour)) < 0) {
        delete_by_age(o);
    }
    log_event("info", "stopping", strsignal(arrived));
    server_stop(s);
    log_event("info", "stopped", "everything that was acknowledged is stored");
    return 0;
}

int main(int argc, char **argv)
{
    static collector_options options;
    int status = read_options(&options, argc, argv);

    if (status >= 0) {
        return status;
    }
    umask(077);
    if (options.command[0] && strcmp(options.command[0], "token") == 0) {
        return command_token(&options, options.command + 1);
    }
    if (options.command[0]) {
        return command_data(&options, options.command);
    }
    int lock = lock_folder(options.data);
    if (lock < 0) {
        return 1;
    }
    status = serve_until_signal(&options);
    close(lock);
    return status;
}
