/* SPDX-License-Identifier: MIT */
/* Send records to a hotfn-collector.  These calls are in a library of their own, hotfn-push,
 * which loads libcurl when it sends for the first time; libhotfn itself opens no connection.
 * What is sent: counts and times of functions, image ids, the file names of modules (without
 * their folders), when the run began and ended, the labels, and a random id of this
 * installation.  Names of functions are sent once per build, when the collector asks for them. */
#ifndef HOTFN_PUSH_H
#define HOTFN_PUSH_H

#include <hotfn/lowlevel/functions.h>
#include <hotfn/record.h>

#define HOTFN_PUSH_API HOTFN_API

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_push_options {
    uint32_t size;             /* sizeof(hotfn_push_options)                             */
    uint32_t flags;            /* 0 */
    const char *url;           /* of the collector: "http://127.0.0.1:8780"              */
    const char *token;         /* that may write [none]                                  */
    const char *app;           /* [the file name of the program]                         */
    const char *version;       /* of the build, for people [none]                        */
    const char *const *labels; /* "level=3" [none]                                       */
    uint32_t label_count;
    uint32_t attempts;        /* before the record is spooled [4]                       */
    uint32_t timeout_ms;      /* of each attempt [20000]                                */
    uint32_t reserved;        /* 0 */
    const char *state_dir;    /* for the installation's id and the spool [that of the user] */
    uint64_t max_spool_bytes; /* [64 MiB]                                               */
    const char *certificates; /* PEM file of the authorities to trust [those of the system] */
} hotfn_push_options;
#define HOTFN_PUSH_OPTIONS_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_push_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                \
    }

#define HOTFN_PUSH_STORED 1  /* the collector stored the record              */
#define HOTFN_PUSH_KNOWN 2   /* it had stored the record before              */
#define HOTFN_PUSH_SPOOLED 3 /* it was away: a later push sends the record   */

typedef struct hotfn_push_result {
    uint32_t size;           /* sizeof(hotfn_push_result)                           */
    uint32_t state;          /* HOTFN_PUSH_*; 0 if the record was refused           */
    uint32_t http_status;    /* of the last answer, 0: none came                    */
    uint32_t spooled_sent;   /* records of the spool that were sent too             */
    uint32_t spooled_remain; /* records of the spool that wait                      */
    uint32_t sent_names;     /* 1: the collector asked for names and got them       */
} hotfn_push_result;
#define HOTFN_PUSH_RESULT_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_push_result), 0, 0, 0, 0, 0                                         \
    }

/*
 * Send the record of a run that has ended, and after it what waits in the spool.
 *
 * path     borrowed; NULL sends only what waits in the spool.
 * options  borrowed.
 * env      borrowed; its demangler makes the names.
 * result   borrowed; may be NULL.
 * err      borrowed; NULL if only the status matters.
 *
 * HOTFN_OK (the record is stored, or spooled: result says which, and err->text why it is spooled),
 * the statuses of
 * hotfn_record_open, HOTFN_E_OPTION, HOTFN_E_STATE (the run has not ended, or the record is
 * merged), HOTFN_E_DENIED (the token), HOTFN_E_MISMATCH (the collector refuses the record; err has
 * its sentence),
 * HOTFN_E_UNSUPPORTED (libcurl is not installed), HOTFN_E_LIMIT (the spool is full), HOTFN_E_IO,
 * HOTFN_E_NO_MEMORY.  Any thread; different processes may push at a time.  Since 0.1.
 */
HOTFN_PUSH_API hotfn_status hotfn_push_record(const char *path, const hotfn_push_options *options,
                                              const hotfn_env *env, hotfn_push_result *result,
                                              hotfn_error *err);

typedef struct hotfn_push_series hotfn_push_series;

/*
 * Send the counts of one program while it runs: each increment has what was counted since the one
 * before, so that the collector shows the run as it goes on, as one run of one client.
 *
 * out            receives a series that the caller owns; untouched on failure.
 * options        borrowed; its texts must live until the series is closed.
 * every_seconds  1 to 300: how often the caller will add; the collector shows a run as lost when
 *                three increments are overdue.
 *
 * HOTFN_OK, HOTFN_E_OPTION, HOTFN_E_IO (the folder of the spool), HOTFN_E_NO_MEMORY.  Any thread.
 * Since 0.1.
 */
HOTFN_PUSH_API hotfn_status hotfn_push_series_open(hotfn_push_series **out,
                                                   const hotfn_push_options *options,
                                                   uint32_t every_seconds, hotfn_error *err);

/*
 * Send what a record has more than at the last call.
 *
 * record  of the program while it runs (hotfn_launch_open_record), and at last the finished one,
 *         which ends the series.
 * result  borrowed; may be NULL.
 *
 * While the program runs, one attempt is made, which takes at most every_seconds; if the collector
 * does not answer (result->state 0), the next call sends the same increment again, and the rest
 * with the next one.  What the last call cannot send waits in the spool.  A record of a run that
 * was sent in increments cannot be sent by hotfn_push_record as well.
 *
 * The statuses of hotfn_push_record.  One thread at a time per series.  Since 0.1.
 */
HOTFN_PUSH_API hotfn_status hotfn_push_series_add(hotfn_push_series *series,
                                                  const hotfn_record *record,
                                                  hotfn_push_result *result, hotfn_error *err);

/* Free the series.  An increment that was not sent is lost.  NULL is fine.  Since 0.1. */
HOTFN_PUSH_API void hotfn_push_series_close(hotfn_push_series *series);

/*
 * Register a build: send the names of its functions, which come from its symbols, PDB or map, and
 * tie options->version to its image id.  From then on the collector refuses records of that version
 * with another image id.  The token must be that of an admin.
 *
 * image, functions  borrowed; functions of this image (hotfn_functions_build).
 * file              borrowed; the file name of the image, without folders.
 *
 * The statuses of hotfn_push_record, HOTFN_E_IO if the collector does not answer; nothing is
 * spooled.  Any thread.  Since 0.1.
 */
HOTFN_PUSH_API hotfn_status hotfn_push_build(const hotfn_image *image, const char *file,
                                             const hotfn_functions *functions,
                                             const hotfn_push_options *options,
                                             const hotfn_env *env, hotfn_error *err);

/*
 * Store the kit of a registered build (`hotfn kit`), so that testers can download it.  The token
 * must be that of an admin.
 *
 * image    borrowed; the image that the kit is for.
 * file     borrowed; its file name, without folders.
 * archive  borrowed; a tar archive, compressed by gzip.
 *
 * The statuses of hotfn_push_build.  Any thread.  Since 0.1.
 */
HOTFN_PUSH_API hotfn_status hotfn_push_kit(const hotfn_image *image, const char *file,
                                           const void *archive, uint64_t byte_count,
                                           const hotfn_push_options *options, hotfn_error *err);

#ifdef __cplusplus
}
#endif

#endif
