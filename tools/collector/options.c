/* SPDX-License-Identifier: MIT */
/* Read the command line and the configuration file. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <hotfn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: hotfn-collector --data DIR [options]              serve the API and the page\n"
    "       hotfn-collector --data DIR token add --role ROLE [--app NAME] [--note TEXT]\n"
    "       hotfn-collector --data DIR token list | token remove HASH\n"
    "       hotfn-collector --data DIR import --app NAME FOLDER      store its records (.hfr)\n"
    "       hotfn-collector --data DIR prune --days N [--app NAME]   delete older records\n"
    "       hotfn-collector --data DIR prune --app NAME --build IMAGE\n"
    "       hotfn-collector --data DIR compact | backup FILE\n"
    "  -d, --data DIR            the folder of the database; it is created\n"
    "  -l, --listen ADDRESS:PORT [127.0.0.1:8780]; port 0 chooses a free one\n"
    "      --config FILE         more options: a line `name = value` for each\n"
    "      --certificate FILE    serve TLS with this chain (PEM)\n"
    "      --key FILE            the key of the certificate (PEM)\n"
    "      --anonymous-read      readers need no token\n"
    "      --known-builds        refuse records of builds that were not registered\n"
    "      --rate N              requests a second for each token, 0: no limit [200]\n"
    "      --max-body BYTES      of a body as it is sent [16777216]\n"
    "      --max-build BYTES     of an image, its symbols or its kit [1073741824]\n"
    "      --max-inflated BYTES  of a body that was inflated [134217728]\n"
    "      --max-ratio N         inflated bytes for each byte received [200]\n"
    "      --max-connections N   [16384]\n"
    "      --timeout SECONDS     close connections that are idle for longer [30]\n"
    "      --workers N           threads that answer queries [4]\n"
    "      --keep-days N         delete records that are older [for ever]\n"
    "      --clickhouse URL[,URL...]  keep counts on these servers of ClickHouse, by HTTP\n"
    "      --clickhouse-database NAME [hotfn]\n"
    "      --clickhouse-cluster NAME  of several servers, in their configuration [hotfn]\n"
    "  -q, --quiet               do not log requests\n"
    "      --version\n";

enum {
    CONFIG = 256,
    CERTIFICATE,
    KEY,
    ANONYMOUS,
    KNOWN,
    RATE,
    MAX_BODY,
    MAX_BUILD,
    MAX_INFLATED,
    MAX_RATIO,
    MAX_CONNECTIONS,
    TIMEOUT,
    WORKERS,
    KEEP_DAYS,
    CLICKHOUSE,
    CLICKHOUSE_DATABASE,
    CLICKHOUSE_CLUSTER,
    SHOW_VERSION,
    HELP
};

static const struct option table[] = {
    { "data", required_argument, NULL, 'd' },
    { "listen", required_argument, NULL, 'l' },
    { "config", required_argument, NULL, CONFIG },
    { "certificate", required_argument, NULL, CERTIFICATE },
    { "key", required_argument, NULL, KEY },
    { "anonymous-read", no_argument, NULL, ANONYMOUS },
    { "known-builds", no_argument, NULL, KNOWN },
    { "rate", required_argument, NULL, RATE },
    { "max-body", required_argument, NULL, MAX_BODY },
    { "max-build", required_argument, NULL, MAX_BUILD },
    { "max-inflated", required_argument, NULL, MAX_INFLATED },
    { "max-ratio", required_argument, NULL, MAX_RATIO },
    { "max-connections", required_argument, NULL, MAX_CONNECTIONS },
    { "timeout", required_argument, NULL, TIMEOUT },
    { "workers", required_argument, NULL, WORKERS },
    { "keep-days", required_argument, NULL, KEEP_DAYS },
    { "clickhouse", required_argument, NULL, CLICKHOUSE },
    { "clickhouse-database", required_argument, NULL, CLICKHOUSE_DATABASE },
    { "clickhouse-cluster", required_argument, NULL, CLICKHOUSE_CLUSTER },
    { "quiet", no_argument, NULL, 'q' },
    { "version", no_argument, NULL, SHOW_VERSION },
    { "help", no_argument, NULL, HELP },
    { NULL, 0, NULL, 0 },
};

static bool report_value(const char *name, const char *text)
{
    fprintf(stderr, "hotfn-collector: --%s: '%s' is not valid; see --help\n", name, text);
    return false;
}

static bool copy_text(char *out, size_t out_bytes, const char *name, const char *text)
{
    if (strlen(text) >= out_bytes) {
        return report_value(name, text);
    }
    strcpy(out, text);
    return true;
}

static bool parse_number(const char *name, const char *text, uint64_t min, uint64_t max,
                         uint64_t *out)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!*text || *end || *text == '-' || errno || value < min || value > max) {
        return report_value(name, text);
    }
    *out = value;
    return true;
}

static bool parse_u32(const char *name, const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
    uint64_t value;
    bool ok = parse_number(name, text, min, max, &value);

    *out = ok ? (uint32_t)value : *out;
    return ok;
}

static bool read_listen(collector_options *o, const char *text)
{
    const char *colon = strrchr(text, ':');
    uint64_t port = 0;

    if (!colon || (size_t)(colon - text) >= sizeof o->listen ||
        !parse_number("listen", colon + 1, 0, 65535, &port)) {
        return colon ? false : report_value("listen", text);
    }
    memcpy(o->listen, text, (size_t)(colon - text));
    o->listen[colon - text] = 0;
    o->server.port = (uint16_t)port;
    return true;
}

static bool read_config(collector_options *o, const char *path);

static bool store_option(collector_options *o, int option, const char *text, bool in_file)
{
    server_options *s = &o->server;

    switch (option) {
    case 'd': return copy_text(o->data, sizeof o->data, "data", text);
    case 'l': return read_listen(o, text);
    case CONFIG: return in_file ? report_value("config", text) : read_config(o, text);
    case CERTIFICATE: return copy_text(o->certificate, sizeof o->certificate, "certificate", text);
    case KEY: return copy_text(o->key, sizeof o->key, "key", text);
    case ANONYMOUS: s->anonymous_read = true; return true;
    case KNOWN: s->known_builds_only = true; return true;
    case RATE: return parse_u32("rate", text, 0, 1000000, &s->rate);
    case MAX_BODY: return parse_number("max-body", text, 1024, UINT32_MAX, &s->limits.max_body);
    case MAX_BUILD:
        return parse_number("max-build", text, 1024, UINT32_MAX, &s->build_limits.max_body);
    case MAX_INFLATED:
        return parse_number("max-inflated", text, 1024, UINT32_MAX, &s->limits.max_inflated);
    case MAX_RATIO: return parse_u32("max-ratio", text, 1, 2000, &s->limits.max_ratio);
    case MAX_CONNECTIONS:
        return parse_u32("max-connections", text, 4, 1000000, &s->max_connections);
    case TIMEOUT: return parse_u32("timeout", text, 1, 3600, &s->timeout_seconds);
    case WORKERS: return parse_u32("workers", text, 1, 16, &s->workers);
    case KEEP_DAYS: return parse_u32("keep-days", text, 1, 36500, &s->keep_days);
    case CLICKHOUSE:
        return clickhouse_parse_servers(&o->clickhouse, text) || report_value("clickhouse", text);
    case CLICKHOUSE_DATABASE:
        return clickhouse_parse_name(o->clickhouse.database, text) ||
               report_value("clickhouse-database", text);
    case CLICKHOUSE_CLUSTER:
        return clickhouse_parse_name(o->clickhouse.cluster, text) ||
               report_value("clickhouse-cluster", text);
    case 'q': s->quiet = true; return true;
    default: return false;
    }
}

static bool store_named_option(collector_options *o, const char *name, const char *value)
{
    for (const struct option *known = table; known->name; known++) {
        if (strcmp(known->name, name) == 0 && known->val != HELP && known->val != SHOW_VERSION) {
            bool flag = known->has_arg == no_argument;
            if (flag && strcmp(value, "yes") != 0) {
                return strcmp(value, "no") == 0 || report_value(name, value);
            }
            return store_option(o, known->val, value, true);
        }
    }
    fprintf(stderr, "hotfn-collector: there is no option '%s'\n", name);
    return false;
}

static bool read_config(collector_options *o, const char *path)
{
    char line[8192], name[64], value[4096];
    FILE *file = fopen(path, "re");
    int number = 0;
    bool ok = file != NULL;

    if (!file) {
        fprintf(stderr, "hotfn-collector: %s: %s\n", path, strerror(errno));
    }
    while (ok && fgets(line, sizeof line, file)) {
        number++;
        if (line[strspn(line, " \t\r\n")] == 0 || line[strspn(line, " \t")] == '#') {
            continue;
        }
        ok = sscanf(line, " %63[a-z-] = %4095[^\r\n]", name, value) == 2 &&
             store_named_option(o, name, value);
        if (!ok) {
            fprintf(stderr, "hotfn-collector: %s, line %d: write NAME = VALUE\n", path, number);
        }
    }
    if (file) {
        fclose(file);
    }
    return ok;
}

static int check_options(collector_options *o)
{
    if (!o->data[0]) {
        fprintf(stderr, "hotfn-collector: --data is missing\n%s", usage);
        return 2;
    }
    if ((o->certificate[0] == 0) != (o->key[0] == 0)) {
        fputs("hotfn-collector: --certificate and --key are needed together\n", stderr);
        return 2;
    }
    o->server.folder = o->data;
    o->server.address = o->listen;
    o->server.certificate = o->certificate[0] ? o->certificate : NULL;
    o->server.key = o->key[0] ? o->key : NULL;
    o->server.clickhouse = o->clickhouse.server_count ? &o->clickhouse : NULL;
    return -1;
}

int read_options(collector_options *o, int argc, char **argv)
{
    int option;

    *o = (collector_options){ .listen = "127.0.0.1",
                              .clickhouse = { .database = "hotfn", .cluster = "hotfn" } };
    o->server = (server_options){ .port = 8780,
                                  .workers = 4,
                                  .max_connections = 16384,
                                  .timeout_seconds = 30,
                                  .rate = 200,
                                  .limits = { 16777216, 134217728, 200 },
                                  .build_limits = { 1073741824, 2147483648, 2000 } };
    while ((option = getopt_long(argc, argv, "+d:l:q", table, NULL)) != -1) {
        if (option == HELP) {
            fputs(usage, stdout);
            return 0;
        }
        if (option == SHOW_VERSION) {
            printf("hotfn-collector %s\n", hotfn_get_version());
            return 0;
        }
        if (option == '?' || !store_option(o, option, optarg, false)) {
            return 2;
        }
    }
    o->command = argv + optind;
    return check_options(o);
}
