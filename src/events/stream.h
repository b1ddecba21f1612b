/* SPDX-License-Identifier: MIT */
/* What a listener knows of one stream: the names of functions, and for each thread the calls that
 * are open.  With `keeps`, also what a record is made of (keep.c).
 *
 * A gap (a lost datagram, skipped events) makes the open calls of all threads unknown: they are
 * forgotten, and each thread begins again with the depth that the sender gives.  Everything comes
 * from the network, so that all numbers are limited. */
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
#define HFN_STREAM_KEPT_EVENTS (1u << 16) /* of each thread, the latest */

typedef struct hfn_stream_function {
    char *name;    /* as the linker has it; NULL: not received yet */
    char *display; /* readable, without control characters        */
    uint64_t rva, byte_count;
    uint32_t number; /* in the stream */
    uint32_t module; /* number in the stream */
} hfn_stream_function;

typedef struct hfn_stream_module {
    char *path;
    uint32_t number, flags, id_kind, id_bytes;
    uint8_t id[32];
} hfn_stream_module;

typedef struct hfn_stream_call {
    uint64_t begin_ns;
    uint32_t function; /* index */
    uint32_t node;     /* of the kept tree */
} hfn_stream_call;

typedef struct hfn_stream_thread {
    uint32_t thread_id;
    uint32_t outer_depth; /* open calls whose entries were not received */
    hfn_stream_call *open;
    size_t open_count, open_capacity;
    bool is_stale;    /* there was a gap since its last event */
    uint64_t last_ns; /* of its latest event */
    /* kept */
    uint32_t root;          /* its node + 1; 0: none */
    uint64_t first_ns;      /* of its first event */
    uint64_t charged_ns;    /* the time until here belongs to a place; 0: not known */
    hfn_time_event *events; /* a ring; slots are indices of functions */
    size_t event_capacity;
    uint64_t event_count;
} hfn_stream_thread;

/* A place in the kept tree. */
typedef struct hfn_stream_node {
    uint32_t parent, function, thread;  /* a root is its own parent, function UINT32_MAX */
    uint32_t first_child, next_sibling; /* index + 1 */
    uint64_t calls, own_ns, max_ns;
} hfn_stream_node;

typedef struct hfn_stream {
    hotfn_env env;
    bool keeps;
    uint64_t id;
    uint32_t number; /* 1, 2 ... */
    uint32_t pid;
    uint64_t start_ns; /* since 1970 */
    char *command;     /* NULL: not received yet */
    bool has_begun, has_ended;
    uint64_t next_sequence, skipped_count;
    uint64_t heard_ns;                                       /* when the latest datagram arrived */
    hfn_names *function_index, *module_index, *thread_index; /* numbers to indices */
    hfn_stream_function *functions;
    size_t function_count, function_capacity;
    hfn_stream_module *modules;
    size_t module_count, module_capacity;
    hfn_stream_thread *threads;
    size_t thread_count, thread_capacity;
    hfn_stream_node *nodes;
    size_t node_count, node_capacity;
    uint32_t *hints; /* by a hash of parent and function: index + 1 of a node; NULL: none yet */
    uint64_t dropped_calls; /* not in the tree: it is full */
} hfn_stream;

/* What a datagram of a stream is reported to. */
typedef struct hfn_stream_report {
    hotfn_listener_fn report; /* may be NULL */
    void *user;
    hotfn_listener_stats *stats;
} hfn_stream_report;

/* NULL: no memory. */
hfn_stream *hfn_stream_create(uint64_t id, uint32_t number, bool keeps, const hotfn_env *env);
void hfn_stream_destroy(hfn_stream *stream); /* NULL is fine */
/* Handle a datagram that hotfn_events_open accepted.  HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_LIMIT:
 * it is beyond the limits, and the rest of it is dropped. */
hotfn_status hfn_stream_handle(hfn_stream *stream, const hotfn_events_header *header,
                               const void *bytes, uint64_t byte_count, const hfn_stream_report *to);

/* keep.c: the calls for a record.  False: no memory. */
bool hfn_keep_entry(hfn_stream *stream, uint32_t thread, hfn_stream_call *call, uint64_t time_ns);
bool hfn_keep_exit(hfn_stream *stream, uint32_t thread, const hfn_stream_call *call,
                   uint64_t time_ns);
void hfn_keep_free(hfn_stream *stream);
/* save.c: write the record.  The statuses of hotfn_listener_save. */
hotfn_status hfn_stream_save(const hfn_stream *stream, const char *path, hotfn_error *err);

#endif
