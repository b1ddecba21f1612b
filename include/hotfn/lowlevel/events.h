/* SPDX-License-Identifier: MIT */
/* Unstable.  Events as they happen: the datagrams that `hotfn run --send` sends, and the listener
 * that receives them.  docs/design/events.md describes the datagrams byte by byte. */
#ifndef HOTFN_EVENTS_H
#define HOTFN_EVENTS_H

#include <hotfn/env.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Datagrams. */

#define HOTFN_EVENTS_VERSION 1u
#define HOTFN_EVENTS_HEADER_BYTES 32u
#define HOTFN_EVENTS_MAX_BYTES 32768u     /* a datagram */
#define HOTFN_EVENTS_MAX_TEXT_BYTES 1024u /* a text in it; longer ones are cut */
#define HOTFN_EVENTS_MAX_NUMBER 0xffffffu /* of functions and modules */

/* Flags of a datagram. */
#define HOTFN_EVENTS_END 1u      /* the last one of its stream                             */
#define HOTFN_EVENTS_REPLACED 2u /* END: the program executed another one, which is a new stream */

/* Kinds of items. */
#define HOTFN_EVENTS_ENTRY 1u    /* a call begins: function, time_ns                        */
#define HOTFN_EVENTS_EXIT 2u     /* and returns: function, time_ns                          */
#define HOTFN_EVENTS_THREAD 3u   /* of the entries and exits after it: thread, depth        */
#define HOTFN_EVENTS_FUNCTION 4u /* function, module, rva, byte_count; text: its name       */
#define HOTFN_EVENTS_MODULE 5u   /* module, flags, id; text: its path                       */
#define HOTFN_EVENTS_RUN 6u      /* pid, time_ns: since 1970, of the time 0; text: the command */

typedef struct hotfn_events_header {
    uint32_t size;          /* sizeof(hotfn_events_header)                                       */
    uint32_t flags;         /* HOTFN_EVENTS_END, _REPLACED                                       */
    uint64_t stream;        /* a random number                                                   */
    uint64_t sequence;      /* 0, 1, 2 ... of the datagrams of the stream                 */
    uint64_t skipped_count; /* events of the stream that were not sent until now          */
} hotfn_events_header;
#define HOTFN_EVENTS_HEADER_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_events_header), 0, 0, 0, 0                                          \
    }

/* A field that the kind does not have is 0. */
typedef struct hotfn_events_item {
    uint32_t size; /* sizeof(hotfn_events_item)                                            */
    uint32_t kind; /* HOTFN_EVENTS_ENTRY ...                                               */
    uint32_t function, module;
    uint32_t thread; /* the system's id                                                   */
    uint32_t depth;  /* open calls of the thread                                          */
    uint32_t flags;  /* HOTFN_MODULE_MAIN                                                 */
    uint32_t pid;
    uint64_t time_ns; /* since the stream began                                           */
    uint64_t rva, byte_count;
    uint32_t id_kind, id_bytes; /* as in hotfn_record_module                               */
    const uint8_t *id;          /* view                                                    */
    const char *text;           /* view, without a NUL                                     */
    uint32_t text_bytes;
    uint32_t reserved;
} hotfn_events_item;
#define HOTFN_EVENTS_ITEM_INIT                                                                     \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_events_item), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0        \
    }

/* Check a whole datagram, and fill out (borrowed) with its header.  HOTFN_OK; HOTFN_E_FORMAT: a
 * byte of it is not as described; HOTFN_E_MISMATCH: another version; HOTFN_E_OPTION.  Any thread.
 * Since 0.1. */
HOTFN_API hotfn_status hotfn_events_open(hotfn_events_header *out, const void *bytes,
                                         uint64_t byte_count);
/* Read the item at *offset of a datagram that hotfn_events_open accepted, and advance *offset,
 * which is 0 for the first item.  HOTFN_OK, HOTFN_E_NOT_FOUND at the end, HOTFN_E_FORMAT,
 * HOTFN_E_OPTION.  Any thread.  Since 0.1. */
HOTFN_API hotfn_status hotfn_events_next(hotfn_events_item *out, uint64_t *offset,
                                         const void *bytes, uint64_t byte_count);

/* ---- A listener. */

typedef struct hotfn_listener hotfn_listener;

/* Flags of hotfn_listener_open. */
#define HOTFN_LISTENER_KEEP 1u /* keep what hotfn_listener_save writes */

/* Further kinds of what a listener reports. */
#define HOTFN_EVENTS_LOST 16u     /* count datagrams did not arrive: the open calls are not known */
#define HOTFN_EVENTS_SKIPPED 17u  /* count events were not sent: the same                         */
#define HOTFN_EVENTS_ENDED 18u    /* the stream is over                                          */
#define HOTFN_EVENTS_EXECUTED 19u /* the same: the program executed another one, a new stream   */

#define HOTFN_NO_DURATION UINT64_MAX

/* What happened.  Strings are views, valid during the call. */
typedef struct hotfn_listener_event {
    uint32_t size;   /* sizeof(hotfn_listener_event)                                      */
    uint32_t kind;   /* HOTFN_EVENTS_ENTRY, _EXIT, _RUN, _LOST, _SKIPPED, _ENDED,
                         _EXECUTED */
    uint32_t stream; /* 1, 2 ... in order of arrival                                      */
    uint32_t pid;    /* of the stream's program; 0: not known yet                        */
    uint32_t thread;
    uint32_t depth; /* calls of the thread that are open around this one                  */
    uint64_t time_ns;
    uint64_t duration_ns; /* EXIT: of the call; HOTFN_NO_DURATION: its entry was not received */
    uint64_t count;       /* LOST, SKIPPED                                                 */
    const char *name;     /* of the function, readable; RUN: the command                   */
    uint32_t function;    /* its number in the stream                                     */
    uint32_t reserved;
} hotfn_listener_event;
#define HOTFN_LISTENER_EVENT_INIT                                                                  \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_listener_event), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                    \
    }

typedef struct hotfn_listener_stats {
    uint32_t size;         /* sizeof(hotfn_listener_stats)                            */
    uint32_t stream_count; /* seen until now                                          */
    uint32_t
        running_count; /* of them, those that have not ended, and were heard of in the last 10 s */
    uint32_t reserved;
    uint64_t event_count;     /* entries and exits                                       */
    uint64_t call_count;      /* entries                                                 */
    uint64_t datagram_count;  /* accepted                                                */
    uint64_t lost_count;      /* datagrams that did not arrive, or arrived too late      */
    uint64_t skipped_count;   /* events that were not sent                               */
    uint64_t malformed_count; /* datagrams that were dropped                             */
} hotfn_listener_stats;
#define HOTFN_LISTENER_STATS_INIT                                                                  \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_listener_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0                          \
    }

/* Borrowed for the call that reports it. */
typedef void (*hotfn_listener_fn)(void *user, const hotfn_listener_event *event);

/*
 * Listen for datagrams.
 *
 * out      receives a listener that the caller owns; untouched on failure.
 * address  borrowed: "udp:PORT" (on all addresses of this machine), "udp:HOST:PORT", "unix:PATH";
 *          port 0: a free one.  NULL: datagrams come only from hotfn_listener_add.
 * flags    HOTFN_LISTENER_KEEP.
 * env      NULL means all defaults.
 *
 * HOTFN_OK.  HOTFN_E_OPTION: not an address.  HOTFN_E_NOT_FOUND: the host is not known.
 * HOTFN_E_STATE: another process listens there.  HOTFN_E_IO, HOTFN_E_UNSUPPORTED (Windows),
 * HOTFN_E_NO_MEMORY.  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_listener_open(hotfn_listener **out, const char *address,
                                           uint32_t flags, const hotfn_env *env, hotfn_error *err);
/* Close a listener; NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_listener_close(hotfn_listener *listener);
/* The address, with the port that was chosen; a view.  "" if it has none.  Since 0.1. */
HOTFN_API const char *hotfn_listener_get_address(const hotfn_listener *listener);
/*
 * Wait for a datagram, at most timeout_ns, and report what is in it and in those that have arrived
 * with it.  A signal handler ends the wait.
 *
 * report  called in this thread.
 *
 * HOTFN_OK, also if nothing has arrived.  HOTFN_E_IO, HOTFN_E_STATE (it has no address),
 * HOTFN_E_NO_MEMORY.  One thread at a time per listener.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_listener_receive(hotfn_listener *listener, uint64_t timeout_ns,
                                              hotfn_listener_fn report, void *user,
                                              hotfn_error *err);
/* The same for a datagram that the caller received.  A malformed one is counted.  HOTFN_OK,
 * HOTFN_E_NO_MEMORY, HOTFN_E_OPTION.  One thread at a time per listener.  Since 0.1. */
HOTFN_API hotfn_status hotfn_listener_add(hotfn_listener *listener, const void *bytes,
                                          uint64_t byte_count, hotfn_listener_fn report,
                                          void *user);
/* Fill out (borrowed) with the counts until now.  HOTFN_OK, HOTFN_E_OPTION.  One thread at a time
 * per listener.  Since 0.1. */
HOTFN_API hotfn_status hotfn_listener_get_stats(const hotfn_listener *listener,
                                                hotfn_listener_stats *out);
/*
 * Write a record of what was received of a stream (1, 2 ...): all calls and times of functions by
 * thread and in call trees, and the latest events of each thread.
 *
 * HOTFN_OK.  HOTFN_E_STATE: the listener does not keep it.  HOTFN_E_NOT_FOUND: there is no such
 * stream.  HOTFN_E_IO, HOTFN_E_LIMIT, HOTFN_E_NO_MEMORY.  One thread at a time per listener.
 * Since 0.1.
 */
HOTFN_API hotfn_status hotfn_listener_save(const hotfn_listener *listener, uint32_t stream,
                                           const char *path, hotfn_error *err);

#ifdef __cplusplus
}
#endif

#endif
