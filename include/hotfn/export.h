/* SPDX-License-Identifier: MIT */
/* Exporters: a record in the formats that people and tools open. */
#ifndef HOTFN_EXPORTERS_H
#define HOTFN_EXPORTERS_H

#include <hotfn/record.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_EXPORT_COLOR 1u     /* table: colours                                  */
#define HOTFN_EXPORT_MANGLED 2u   /* table: linker's names instead of demangled ones */
#define HOTFN_EXPORT_REFUSED 4u   /* table: list what could not be hooked, with why  */
#define HOTFN_EXPORT_EDGES 8u     /* table, json: who called whom                     */
#define HOTFN_EXPORT_NO_LINES 16u /* table, json: do not ask env's line_fn            */

typedef struct hotfn_export_options {
    uint32_t size;     /* sizeof(hotfn_export_options) */
    uint32_t flags;    /* HOTFN_EXPORT_* [none]       */
    uint32_t limit;    /* at most this many functions [all] */
    uint32_t width;    /* table: what does not fit so many columns is cut or left out [unbounded] */
    const char *match; /* borrowed; only functions with a name that this glob matches [all] */
    uint32_t by;       /* HOTFN_BY_*: the order; without times always by calls */
    uint32_t reserved;
} hotfn_export_options;
#define HOTFN_EXPORT_OPTIONS_INIT                                                                  \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_export_options), 0, 0, 0, 0, 0, 0                                   \
    }

/* The formats: "table", "json", "csv", and what hotfn_exporter_get lists. */
typedef struct hotfn_exporter_info {
    uint32_t size;  /* sizeof(hotfn_exporter_info) */
    uint32_t needs; /* HOTFN_NEEDS_*: what the record must hold */
    const char *name;
    const char *extension; /* ".json"             */
    const char *about;     /* one line for people */
} hotfn_exporter_info;
#define HOTFN_EXPORTER_INFO_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_exporter_info), 0, 0, 0, 0                                          \
    }
#define HOTFN_NEEDS_FLAT 1u   /* counts are enough                     */
#define HOTFN_NEEDS_TIMES 2u  /* times of functions (--mode time)      */
#define HOTFN_NEEDS_TREE 4u   /* who called whom from where            */
#define HOTFN_NEEDS_EVENTS 8u /* each entry and exit                   */

/* How many formats there are, and the index-th, as `hotfn export --list` prints them: static text.  HOTFN_OK,
 * HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API uint32_t hotfn_exporter_get_count(void);
HOTFN_API hotfn_status hotfn_exporter_get(uint32_t index, hotfn_exporter_info *out);

/*
 * Write record in format through write(user).  env's demangler gives the display names, its line_fn the
 * source lines (table: of the rows shown).
 * HOTFN_OK, HOTFN_E_NOT_FOUND (no such format, or no function that matches), HOTFN_E_UNSUPPORTED (the record lacks what the format
 * needs), HOTFN_E_IO (write stopped), HOTFN_E_NO_MEMORY.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_export(const hotfn_record *record, const char *format,
                                    const hotfn_export_options *options, hotfn_write_fn write,
                                    void *user, const hotfn_env *env, hotfn_error *err);

/* Shorten a function's name in place, as the table does where there is no room: what stands between brackets goes,
 * from within, behind the first argument before that one, until so many characters are left or no bracket is.
 * `vector<int, allocator<int> >::clear()` becomes `vector<int, ...>::clear()`, with an ellipsis of UTF-8.  Since 0.1. */
HOTFN_API void hotfn_fold_name(char *name, uint32_t columns);

#ifdef __cplusplus
}
#endif

#endif
