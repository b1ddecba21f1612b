/* SPDX-License-Identifier: MIT */
/* Exporters write a record in the formats that people and programs read.  A program may register
 * exporters of its own; docs/examples/exporter_plugin.c is one. */
#ifndef HOTFN_EXPORT_H
#define HOTFN_EXPORT_H

#include <hotfn/record.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOTFN_EXPORT_COLOR 1u     /* table: with colours                                   */
#define HOTFN_EXPORT_MANGLED 2u   /* the linker's names instead of demangled ones           */
#define HOTFN_EXPORT_REFUSED 4u   /* table: list the functions without a hook, with reasons */
#define HOTFN_EXPORT_EDGES 8u     /* table, json: list callers and callees                  */
#define HOTFN_EXPORT_NO_LINES 16u /* table, json, html: do not call env's line_fn           */

typedef struct hotfn_export_options {
    uint32_t size;       /* sizeof(hotfn_export_options) */
    uint32_t flags;      /* HOTFN_EXPORT_* [none]        */
    uint32_t limit;      /* maximum number of functions [all] */
    uint32_t width;      /* table: columns of the terminal [unbounded] */
    const char *match;   /* borrowed; only functions with a name that this glob matches [all] */
    uint32_t by;         /* HOTFN_BY_*, the order; a run without times is always sorted by calls */
    uint32_t name_width; /* table without width: maximum characters of a name [unbounded] */
} hotfn_export_options;
#define HOTFN_EXPORT_OPTIONS_INIT                                                                  \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_export_options), 0, 0, 0, 0, 0, 0                                   \
    }

/* Contents of a record that a format requires. */
#define HOTFN_NEEDS_FLAT 1u   /* counts                                 */
#define HOTFN_NEEDS_TIMES 2u  /* times of functions (--mode time)       */
#define HOTFN_NEEDS_TREE 4u   /* a call tree (without --flat)           */
#define HOTFN_NEEDS_EVENTS 8u /* each entry and exit (--events)         */

/* A format: of the library ("table", "json", "csv" ...), or registered. */
typedef struct hotfn_exporter_info {
    uint32_t size;         /* sizeof(hotfn_exporter_info) */
    uint32_t needs;        /* HOTFN_NEEDS_*               */
    const char *name;      /* static text                 */
    const char *extension; /* ".json"                     */
    const char *about;     /* one line for people         */
} hotfn_exporter_info;
#define HOTFN_EXPORTER_INFO_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_exporter_info), 0, 0, 0, 0                                          \
    }

/*
 * The number of formats, and the format at an index; registered ones come last.
 *
 * hotfn_exporter_get: HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Any thread.
 * Since 0.1.
 */
HOTFN_API uint32_t hotfn_exporter_get_count(void);
HOTFN_API hotfn_status hotfn_exporter_get(uint32_t index, hotfn_exporter_info *out);

/*
 * Write record in a format.
 *
 * record    borrowed.
 * format    borrowed; the name of a format.
 * options   borrowed; NULL means all defaults.
 * write     called with user for each part of the output.
 * env       borrowed; its demangler makes display names, its line_fn finds source lines.
 *
 * HOTFN_OK, HOTFN_E_NOT_FOUND (no such format, or no function matches), HOTFN_E_UNSUPPORTED (the
 * record does not hold what the format needs), HOTFN_E_OPTION, HOTFN_E_IO (write stopped),
 * HOTFN_E_NO_MEMORY, or the status of a registered exporter.  Any thread, and several at a time
 * with different records.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_export(const hotfn_record *record, const char *format,
                                    const hotfn_export_options *options, hotfn_write_fn write,
                                    void *user, const hotfn_env *env, hotfn_error *err);

/* ---- Exporters outside of the library. */

#define HOTFN_EXPORTER_ABI 1u

/*
 * Write record through write(write_user, ...), reading it only by hotfn_record_* calls.  If write
 * returns a value other than 0, stop and return HOTFN_E_IO.  On any other failure return its status
 * and write the reason to err->text; err is never NULL.  options has been checked.  A format that
 * lists functions writes only those that options->match selects.
 */
typedef hotfn_status (*hotfn_exporter_write_fn)(void *user, const hotfn_record *record,
                                                const hotfn_export_options *options,
                                                hotfn_write_fn write, void *write_user,
                                                hotfn_error *err);

typedef struct hotfn_exporter {
    uint32_t size;        /* sizeof(hotfn_exporter)                               */
    uint32_t abi_version; /* HOTFN_EXPORTER_ABI of the headers it was built with  */
    uint32_t needs;       /* HOTFN_NEEDS_*: records without it are refused        */
    uint32_t reserved;    /* 0                                                    */
    const char *name;     /* 1 to 31 of a-z, 0-9, - and _                         */
    const char *extension;
    const char *about; /* one line, at most 127 bytes                             */
    hotfn_exporter_write_fn write;
    void *user;
} hotfn_exporter;
#define HOTFN_EXPORTER_INIT                                                                        \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_exporter), HOTFN_EXPORTER_ABI, HOTFN_NEEDS_FLAT, 0, 0, 0, 0, 0, 0   \
    }

/*
 * Add a format to the process.
 *
 * exporter   kept, with its texts, until the process ends.
 * err        borrowed; NULL if only the status matters.
 *
 * HOTFN_OK, HOTFN_E_MISMATCH (built for another exporter ABI), HOTFN_E_OPTION (a member is missing
 * or invalid), HOTFN_E_STATE (the name is taken), HOTFN_E_LIMIT (64 are registered).  Any thread.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_exporter_register(const hotfn_exporter *exporter, hotfn_error *err);

/* A shared object for `hotfn export -F ./x.so` defines this function, which returns the exporter to
 * register.  Since 0.1. */
#define HOTFN_EXPORTER_PLUGIN "hotfn_exporter_plugin"
typedef const hotfn_exporter *(*hotfn_exporter_plugin_fn)(void);

/* ---- Names. */

/*
 * Shorten a function's name in place to at most `columns` characters, as the table does.  The
 * return type is dropped first, then leading scopes; the last component keeps one scope.  Then the
 * contents of brackets are replaced by an ellipsis (UTF-8), the innermost brackets first and the
 * last argument first: `void std::vector<int, std::allocator<int> >::clear()` becomes
 * `vector<int, ...>::clear()`.  A name that is still longer is cut, at the left if its last
 * component fits.
 *
 * Any thread.  Since 0.1.
 */
HOTFN_API void hotfn_fold_name(char *name, uint32_t columns);

#ifdef __cplusplus
}
#endif

#endif
