/* SPDX-License-Identifier: MIT */
/* Adding members to JSON objects, and a JSON writer into a sink. */
#ifndef HFN_EXPORTERS_JSON_FIELDS_H
#define HFN_EXPORTERS_JSON_FIELDS_H

#include "exporters/exporter.h"

#include <hotfn/lowlevel/json.h>

static inline void hfn_add_text(hotfn_json *object, const char *key, const char *text)
{
    hotfn_json_add(object, key, hotfn_json_create_text(text));
}

static inline void hfn_add_number(hotfn_json *object, const char *key, uint64_t value)
{
    hotfn_json_add(object, key, hotfn_json_create_number(value));
}

/* Add the value, or null if it is not present. */
static inline void hfn_add_optional(hotfn_json *object, const char *key, bool present,
                                    uint64_t value)
{
    hotfn_json_add(object, key,
                   present ? hotfn_json_create_number(value) : hotfn_json_create_text(NULL));
}

static inline void hfn_add_decimal(hotfn_json *object, const char *key, double value,
                                   uint32_t digits)
{
    hotfn_json_add(object, key, hotfn_json_create_decimal(value, digits));
}

static inline void hfn_add_bool(hotfn_json *object, const char *key, bool value)
{
    hotfn_json_add(object, key, hotfn_json_create_bool(value));
}

static inline void hfn_add_raw(hotfn_json *object, const char *key, const char *raw)
{
    hotfn_json_add(object, key, hotfn_json_create_raw(raw));
}

/* Add the bytes of an id in hexadecimal digits; at most 32 bytes. */
void hfn_add_id(hotfn_json *object, const char *key, const hotfn_record_module *module);

/* Add what a record knows of its tick clock. */
void hfn_add_ticker(hotfn_json *object, const hotfn_record_time_info *time);

/* Create a writer into sink; NULL if there is no memory. */
hotfn_json_writer *hfn_json_open(hfn_sink *sink, uint32_t flags);
/* Destroy the writer; false if there was no memory for all of the output. */
bool hfn_json_close(hotfn_json_writer *writer);

/* An array with the programs of children that were not counted. */
hotfn_json *hfn_create_children(const hotfn_record *record);

#endif
