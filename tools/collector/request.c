/* SPDX-License-Identifier: MIT */
/* Parameters of a request, and the choice of its handler. */
#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const route routes[] = {
    { "PUT", "/api/v1/records/{item}", ROLE_WRITE, ROUTE_BODY | ROUTE_WRITER, push_record },
    { "POST", "/api/v1/records", ROLE_WRITE, ROUTE_BODY | ROUTE_WRITER, push_record },
    { "PUT", "/api/v1/names", ROLE_WRITE, ROUTE_BODY | ROUTE_WRITER, push_names },
    { "PUT", "/api/v1/symbols", ROLE_ADMIN, ROUTE_BODY | ROUTE_WRITER | ROUTE_BUILD, push_symbols },
    { "POST", "/api/v1/symbols", ROLE_ADMIN, ROUTE_BODY | ROUTE_WRITER | ROUTE_BUILD,
      push_symbols },
    { "PUT", "/api/v1/kit", ROLE_ADMIN, ROUTE_BODY | ROUTE_WRITER | ROUTE_BUILD, push_kit },
    { "GET", "/api/v1/kit", ROLE_WRITE, 0, read_kit },
    { "GET", "/api/v1/apps", ROLE_READ, 0, read_apps },
    { "GET", "/api/v1/builds", ROLE_READ, 0, read_builds },
    { "GET", "/api/v1/clients", ROLE_READ, 0, read_clients },
    { "GET", "/api/v1/live", ROLE_READ, 0, read_live },
    { "GET", "/api/v1/labels", ROLE_READ, 0, read_labels },
    { "GET", "/api/v1/hot", ROLE_READ, 0, read_hot },
    { "GET", "/api/v1/export", ROLE_READ, 0, read_export },
    { "GET", "/api/v1/function", ROLE_READ, 0, read_function },
    { "GET", "/api/v1/diff", ROLE_READ, 0, read_diff },
    { "GET", "/api/v1/openapi.json", ROLE_NONE, ROUTE_OPEN, read_openapi },
    { "GET", "/healthz", ROLE_NONE, ROUTE_OPEN, read_health },
    { "GET", "/metrics", ROLE_READ, 0, read_metrics },
};

/* Match a path with a route; copies the part that {item} represents. */
static bool match_path(const char *pattern, const char *path, char *item, size_t item_bytes)
{
    const char *open = strchr(pattern, '{');

    if (!open) {
        return strcmp(pattern, path) == 0;
    }
    size_t before = (size_t)(open - pattern), length;
    if (strncmp(pattern, path, before) != 0) {
        return false;
    }
    length = strcspn(path + before, "/");
    if (length == 0 || length >= item_bytes ||
        strcmp(strchr(open, '}') + 1, path + before + length) != 0) {
        return false;
    }
    memcpy(item, path + before, length);
    item[length] = 0;
    return true;
}

const route *find_route(const char *method, const char *path, char *item, size_t item_bytes,
                        bool *other_method)
{
    *other_method = false;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (match_path(routes[i].path, path, item, item_bytes)) {
            if (strcmp(routes[i].method, method) == 0) {
                return &routes[i];
            }
            *other_method = true;
        }
    }
    return NULL;
}

const char *request_get(const request *r, const char *key)
{
    for (uint32_t i = 0; i < r->parameter_count; i++) {
        if (strcmp(r->parameters[i].key, key) == 0) {
            return r->parameters[i].value;
        }
    }
    return NULL;
}

bool request_get_number(request *r, const char *key, int64_t min, int64_t max, int64_t otherwise,
                        int64_t *out)
{
    const char *text = request_get(r, key);
    char *end;

    *out = otherwise;
    if (!text || !*text) {
        return true;
    }
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end || errno || value < min || value > max) {
        return request_refuse(r, 400, "%s is not a number from %lld to %lld", key, (long long)min,
                              (long long)max);
    }
    *out = value;
    return true;
}

bool request_get_word(request *r, const char *key, const char *const *words, int count,
                      int otherwise, int *out)
{
    const char *text = request_get(r, key);

    char list[256] = "";

    *out = otherwise;
    for (int i = 0; text && i < count; i++) {
        size_t used = strlen(list);
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return true;
        }
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", words[i]);
    }
    return !text || request_refuse(r, 400, "%s is none of: %s", key, list);
}

const char *request_get_app(request *r)
{
    const char *app = request_get(r, "app");

    if (!app || !*app || strlen(app) > MAX_TEXT) {
        request_refuse(r, 400,
                       "app is missing or longer than %d bytes: name it (--app NAME, or "
                       "?app=NAME)",
                       MAX_TEXT);
        return NULL;
    }
    if (r->access.app[0] && strcmp(r->access.app, app) != 0) {
        request_refuse(r, 403, "this token is for another app: use a token for %.64s", app);
        return NULL;
    }
    return app;
}
