/* SPDX-License-Identifier: MIT */
/* JSON through cJSON, which only this file includes.  Numbers are raw text, since cJSON keeps
 * numbers as doubles.  A value that could not be created marks its parent as broken, and a writer
 * rejects a broken value, so that no output lacks a member silently. */
#include "base/compiler.h"
#include "base/utf8.h"

#include <cjson/cJSON.h>
#include <hotfn/lowlevel/json.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BROKEN (1 << 16) /* in cJSON.type, of which cJSON reads the low 10 bits */
#define MAX_OPEN 16u

enum { FIRST_BUFFER_BYTES = 4096, MAX_PRINTED_BYTES = 1 << 30 };

static cJSON *to_cjson(hotfn_json *value)
{
    return (cJSON *)(void *)value;
}

static hotfn_json *from_cjson(cJSON *value)
{
    return (hotfn_json *)(void *)value;
}

/* ---- Values. */

hotfn_json *hotfn_json_create_object(void)
{
    return from_cjson(cJSON_CreateObject());
}

hotfn_json *hotfn_json_create_array(void)
{
    return from_cjson(cJSON_CreateArray());
}

static bool is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t length = 1;
    while (*at && (length = hfn_utf8_length(at)) > 0) {
        at += length;
    }
    return length > 0;
}

static hotfn_json *create_cleaned_text(const char *text)
{
    char *clean = malloc(3 * strlen(text) + 1), *end = clean;
    if (!clean) {
        return NULL;
    }
    while (*text) {
        size_t length = hfn_utf8_length((const unsigned char *)text);
        const char *from = length ? text : "\xef\xbf\xbd";
        memcpy(end, from, length ? length : 3);
        end += length ? length : 3;
        text += length ? length : 1;
    }
    *end = 0;
    cJSON *value = cJSON_CreateString(clean);
    free(clean);
    return from_cjson(value);
}

hotfn_json *hotfn_json_create_text(const char *text)
{
    if (!text) {
        return from_cjson(cJSON_CreateNull());
    }
    return is_utf8(text) ? from_cjson(cJSON_CreateString(text)) : create_cleaned_text(text);
}

hotfn_json *hotfn_json_create_number(uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    return from_cjson(cJSON_CreateRaw(digits));
}

hotfn_json *hotfn_json_create_signed(int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    return from_cjson(cJSON_CreateRaw(digits));
}

hotfn_json *hotfn_json_create_decimal(double value, uint32_t digits)
{
    char text[400];
    if (!(value - value == 0)) { /* JSON has neither infinity nor NaN */
        return from_cjson(cJSON_CreateNull());
    }
    snprintf(text, sizeof text, "%.*f", digits < 9 ? (int)digits : 9, value);
    return from_cjson(cJSON_CreateRaw(text));
}

hotfn_json *hotfn_json_create_bool(int32_t value)
{
    return from_cjson(cJSON_CreateBool(value != 0));
}

hotfn_json *hotfn_json_create_raw(const char *raw)
{
    return raw ? from_cjson(cJSON_CreateRaw(raw)) : from_cjson(cJSON_CreateNull());
}

void hotfn_json_add(hotfn_json *parent, const char *key, hotfn_json *value)
{
    cJSON *to = to_cjson(parent), *item = to_cjson(value);
    bool added = to && item &&
                 (key ? cJSON_AddItemToObjectCS(to, key, item) : cJSON_AddItemToArray(to, item));
    if (to && (!added || item->type & BROKEN)) {
        to->type |= BROKEN;
    }
    if (!added) {
        cJSON_Delete(item);
    }
}

void hotfn_json_destroy(hotfn_json *value)
{
    cJSON_Delete(to_cjson(value));
}

/* ---- The stream. */

struct hotfn_json_writer {
    hotfn_write_fn write;
    void *user;
    uint32_t flags;
    hotfn_status status; /* of the first failure */
    uint32_t depth;      /* of open objects and arrays */
    struct {
        char closing; /* '}' or ']' */
        bool has_items;
    } open[MAX_OPEN];
    char *buffer;
    size_t buffer_bytes;
};

hotfn_status hotfn_json_writer_create(hotfn_json_writer **out, uint32_t flags, hotfn_write_fn write,
                                      void *user)
{
    if (!out || !write || flags & ~HOTFN_JSON_PAGE) {
        return HOTFN_E_OPTION;
    }
    hotfn_json_writer *writer = calloc(1, sizeof *writer);
    char *buffer = malloc(FIRST_BUFFER_BYTES);
    if (!writer || !buffer) {
        free(writer);
        free(buffer);
        return HOTFN_E_NO_MEMORY;
    }
    writer->write = write;
    writer->user = user;
    writer->flags = flags;
    writer->buffer = buffer;
    writer->buffer_bytes = FIRST_BUFFER_BYTES;
    *out = writer;
    return HOTFN_OK;
}

hotfn_status hotfn_json_writer_destroy(hotfn_json_writer *writer)
{
    if (!writer) {
        return HOTFN_E_OPTION;
    }
    hotfn_status status = writer->status;
    if (status == HOTFN_OK && writer->depth > 0) {
        status = HOTFN_E_STATE;
    }
    free(writer->buffer);
    free(writer);
    return status;
}

static void set_status(hotfn_json_writer *writer, hotfn_status status)
{
    if (writer->status == HOTFN_OK) {
        writer->status = status;
    }
}

static void put_bytes(hotfn_json_writer *writer, const char *bytes, size_t count)
{
    if (writer->status == HOTFN_OK && count > 0 && writer->write(writer->user, bytes, count) != 0) {
        writer->status = HOTFN_E_IO;
    }
}

static void put_text(hotfn_json_writer *writer, const char *text)
{
    put_bytes(writer, text, strlen(text));
}

/* Objects in an array, and the containers in the outermost one, begin on a new line, so that people
 * and diff can read the text. */
static void put_separator(hotfn_json_writer *writer, const char *key, bool is_object, bool is_open)
{
    if (writer->depth == 0) {
        return;
    }
    bool *has_items = &writer->open[writer->depth - 1].has_items;
    put_text(writer, *has_items ? "," : "");
    put_text(writer, (!key && is_object) || (writer->depth == 1 && is_open) ? "\n" : "");
    *has_items = true;
    if (key) {
        put_text(writer, "\"");
        put_text(writer, key);
        put_text(writer, "\":");
    }
}

static void begin_container(hotfn_json_writer *writer, const char *key, bool is_object)
{
    if (!writer) {
        return;
    }
    put_separator(writer, key, is_object, true);
    put_text(writer, is_object ? "{" : "[");
    if (writer->depth < MAX_OPEN) {
        writer->open[writer->depth].closing = is_object ? '}' : ']';
        writer->open[writer->depth++].has_items = false;
    } else {
        set_status(writer, HOTFN_E_STATE);
    }
}

void hotfn_json_begin_object(hotfn_json_writer *writer, const char *key)
{
    begin_container(writer, key, true);
}

void hotfn_json_begin_array(hotfn_json_writer *writer, const char *key)
{
    begin_container(writer, key, false);
}

void hotfn_json_end(hotfn_json_writer *writer)
{
    if (!writer) {
        return;
    }
    if (writer->depth == 0) {
        set_status(writer, HOTFN_E_STATE);
        return;
    }
    put_bytes(writer, &writer->open[--writer->depth].closing, 1);
    if (writer->depth == 0 && !(writer->flags & HOTFN_JSON_PAGE)) {
        put_text(writer, "\n");
    }
}

/* "<" occurs only in strings, where an escape is equivalent. */
static void put_page_text(hotfn_json_writer *writer, const char *text)
{
    for (const char *found; (found = strchr(text, '<')); text = found + 1) {
        put_bytes(writer, text, (size_t)(found - text));
        put_text(writer, "\\u003c");
    }
    put_text(writer, text);
}

/* Print value into the writer's buffer, which grows as needed; false if there is no memory. */
static bool print_value(hotfn_json_writer *writer, cJSON *value)
{
    while (!cJSON_PrintPreallocated(value, writer->buffer, (int)writer->buffer_bytes, 0)) {
        size_t bytes = writer->buffer_bytes * 2;
        char *larger = bytes <= MAX_PRINTED_BYTES ? realloc(writer->buffer, bytes) : NULL;
        if (!larger) {
            return false;
        }
        writer->buffer = larger;
        writer->buffer_bytes = bytes;
    }
    return true;
}

void hotfn_json_write(hotfn_json_writer *writer, const char *key, hotfn_json *value)
{
    cJSON *item = to_cjson(value);
    if (!writer || writer->status != HOTFN_OK) {
        cJSON_Delete(item);
        return;
    }
    if (!item || item->type & BROKEN || !print_value(writer, item)) {
        cJSON_Delete(item);
        set_status(writer, HOTFN_E_NO_MEMORY);
        return;
    }
    put_separator(writer, key, cJSON_IsObject(item), false);
    if (writer->flags & HOTFN_JSON_PAGE) {
        put_page_text(writer, writer->buffer);
    } else {
        put_text(writer, writer->buffer);
    }
    cJSON_Delete(item);
}
