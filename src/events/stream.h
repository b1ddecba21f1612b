/* SPDX-License-Identifier: MIT */
/* The state of one stream in a listener: the names of functions, and the open calls of each thread.
 * With `keeps`, it also has what is needed to make a record (keep.c).
 *
 * After a gap (lost datagrams or skipped events) the open calls of all threads are unknown.  They
 * are forgotten, and each thread continues with the depth that the sender gives.  All data come
 * from the network and are not trusted, so all sizes are limited. */
#ifndef HFN_EVENTS_STREAM_H
#define HFN_EVENTS_STREAM_H

#include "base/memory.h"
#include "base/names.h"
#include "live/time_memory.h"

#include <hotfn/lowlevel/events.h>

/* Limits of what one stream can make a listener store. */
#define HFN_STREAM_MAX_FUNCTIONS (1u << 18)
#define HFN_STREAM_MAX_MODULES 4096u
#define HFN_STREAM_MAX_THREADS (1u << 14)
#define HFN_STREAM_MAX_DEPTH 4096u
#define HFN_STREAM_MAX_NODES (1u << 20)
#define HFN_STREAM_KEPT_EVENTS (1u << 16) /* the latest ones of each thread */

typedef struct hfn_stream_function {
    char *name;    /* the linker's name; NULL: not received yet   */
    char *display; /* readable name without control characters    */
    uint64_t rva, byte_count;
    uint32_t number; /* of the function in the stream   */
    uint32_t module; /* number of its module in the stream */
} hfn_stream_function;

typedef struct hfn_stream_module {
    char *path;
    uint32_t number, flags, id_kind, id_bytes;
    uint8_t id[32];
} hfn_stream_module;

typedef struct hfn_stream_call {
    uint64_t begin_ns;
    uint32_t function; /* index in `functions`               */
    uint32_t node;     /* index in `nodes` + 1; 0: none      */
} hfn_stream_call;

typedef struct hfn_stream_thread {
    uint32_t thread_id;
    uint32_t outer_depth; /* open calls whose entries were not received */
    hfn_stream_call *open;
    size_t open_count, open_capacity;
    bool is_stale;    /* there was a gap since its latest event */
    uint64_t last_ns; /* time of its latest event */
    /* with `keeps` */
    uint32_t root;          /* index of its root in `nodes` + 1; 0: none                      */
    uint64_t first_ns;      /* time of its first event                                        */
    uint64_t charged_ns;    /* self times include the time until here; 0: unknown, after a gap */
    hfn_time_event *events; /* a ring; a slot is an index in `functions`                       */
    size_t event_capacity;
    uint64_t event_count;
} hfn_stream_thread;

/* A node of the call tree.  A root is its own parent, and its function is UINT32_MAX. */
typedef struct hfn_stream_node {
    uint32_t parent, function, thread;  /* indices   */
    uint32_t first_child, next_sibling; /* index + 1 */
    uint64_t calls, self_ns, max_ns;
} hfn_stream_node;

typedef struct hfn_stream {
    hotfn_env env;
    bool keeps;
    uint64_t id;
    uint32_t number; /* 1, 2 ... in order of arrival */
    uint32_t pid;
    uint64_t start_ns; /* since 1970 */
    char *command;     /* NULL: not received yet */
    bool has_begun, has_ended;
    uint64_t next_sequence, skipped_count;
    uint64_t heard_ns;                                       /* when the latest datagram arrived */
    hfn_names *function_index, *module_index, *thread_index; /* from numbers to indices */
    hfn_stream_function *functions;
    size_t function_count, function_capacity;
    hfn_stream_module *modules;
    size_t module_count, module_capacity;
    hfn_stream_thread *threads;
    size_t thread_count, thread_capacity;
    hfn_stream_node *nodes;
    size_t node_count, node_capacity;
    uint32_t *node_cache;   /* by hash of parent and function: index + 1 of a node; NULL: unused */
    uint64_t dropped_calls; /* calls that are not in the tree because it is full */
} hfn_stream;

/* Where the events of a datagram are reported and counted. */
typedef struct hfn_stream_report {
    hotfn_listener_fn report; /* may be NULL */
    void *user;
    hotfn_listener_stats *stats;
} hfn_stream_report;

/* NULL: no memory. */
hfn_stream *hfn_stream_create(uint64_t id, uint32_t number, bool keeps, const hotfn_env *env);
void hfn_stream_destroy(hfn_stream *stream); /* NULL is fine */
/* Handle a datagram that hotfn_events_open accepted.  HOTFN_OK; HOTFN_E_NO_MEMORY; HOTFN_E_LIMIT:
 * the stream has too many functions, modules or threads, and the rest of the datagram is
 * dropped. */
hotfn_status hfn_stream_handle(hfn_stream *stream, const hotfn_events_header *header,
                               const void *bytes, uint64_t byte_count, const hfn_stream_report *to);

/* keep.c: store an entry or exit for the record.  False: no memory. */
bool hfn_keep_entry(hfn_stream *stream, uint32_t thread, hfn_stream_call *call, uint64_t time_ns);
bool hfn_keep_exit(hfn_stream *stream, uint32_t thread, const hfn_stream_call *call,
                   uint64_t time_ns);
void hfn_keep_free(hfn_stream *stream);
/* save.c: write the record.  It returns the statuses of hotfn_listener_save. */
hotfn_status hfn_stream_save(const hfn_stream *stream, const char *path, hotfn_error *err);

#endif
