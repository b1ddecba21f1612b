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
#define HOTFN_EVENTS_MAX_BYTES 32768u     /* of a datagram */
#define HOTFN_EVENTS_MAX_TEXT_BYTES 1024u /* of a name, path or command; longer ones are cut */
#define HOTFN_EVENTS_MAX_NUMBER 0xffffffu /* highest number of a function or a module */

/* Flags of a datagram. */
#define HOTFN_EVENTS_END 1u      /* the last datagram of its stream */
#define HOTFN_EVENTS_REPLACED 2u /* with END: the program executed another one; a stream follows */

/* Kinds of items, and the fields that each has. */
#define HOTFN_EVENTS_ENTRY 1u    /* a call begins: function, time_ns */
#define HOTFN_EVENTS_EXIT 2u     /* a call ends: function, time_ns */
#define HOTFN_EVENTS_THREAD 3u   /* whose entries and exits follow: thread, depth */
#define HOTFN_EVENTS_FUNCTION 4u /* function, module, rva, byte_count; text: name of the function */
#define HOTFN_EVENTS_MODULE 5u   /* module, flags, id; text: path of the module */
#define HOTFN_EVENTS_RUN 6u      /* pid; time_ns: start, in ns since 1970; text: the command */

typedef struct hotfn_events_header {
    uint32_t size;          /* sizeof(hotfn_events_header)                                       */
    uint32_t flags;         /* HOTFN_EVENTS_END, _REPLACED                                       */
    uint64_t stream;        /* a random number that identifies the stream                        */
    uint64_t sequence;      /* 0, 1, 2 ... for the datagrams of the stream                       */
    uint64_t skipped_count; /* number of the stream's events that were not sent, so far          */
} hotfn_events_header;
#define HOTFN_EVENTS_HEADER_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_events_header), 0, 0, 0, 0                                          \
    }

/* Fields that this kind of item does not have are 0; text is "" if there is none. */
typedef struct hotfn_events_item {
    uint32_t size; /* sizeof(hotfn_events_item)                                            */
    uint32_t kind; /* HOTFN_EVENTS_ENTRY ...                                               */
    uint32_t function, module;
    uint32_t thread; /* the system's id                                                   */
    uint32_t depth;  /* number of open calls of the thread                                */
    uint32_t flags;  /* HOTFN_MODULE_MAIN or 0                                            */
    uint32_t pid;
    uint64_t time_ns; /* since the stream's start, except in HOTFN_EVENTS_RUN             */
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

/* Check a whole datagram, and fill out (borrowed) with its header.  HOTFN_OK; HOTFN_E_FORMAT: it
 * does not have the documented format; HOTFN_E_MISMATCH: another version; HOTFN_E_OPTION.  Any
 * thread.  Since 0.1. */
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
#define HOTFN_LISTENER_KEEP 1u /* store calls and events for hotfn_listener_save */

/* Kinds of events that a listener reports, in addition to ENTRY, EXIT and RUN. */
#define HOTFN_EVENTS_LOST 16u     /* datagrams did not arrive: the open calls are not known */
#define HOTFN_EVENTS_SKIPPED 17u  /* events were not sent: the open calls are not known */
#define HOTFN_EVENTS_ENDED 18u    /* the stream has ended */
#define HOTFN_EVENTS_EXECUTED 19u /* it has ended because the program executed another one */

#define HOTFN_NO_DURATION UINT64_MAX

/* What a listener reports.  The string is a view, valid during the callback. */
typedef struct hotfn_listener_event {
    uint32_t size;        /* sizeof(hotfn_listener_event)                                      */
    uint32_t kind;        /* HOTFN_EVENTS_ENTRY, _EXIT, _RUN, _LOST, _SKIPPED, _ENDED or
                             _EXECUTED */
    uint32_t stream;      /* 1, 2 ... in order of arrival                                      */
    uint32_t pid;         /* process id of the stream's program; 0: not known yet              */
    uint32_t thread;      /* ENTRY, EXIT: the system's id                                      */
    uint32_t depth;       /* ENTRY, EXIT: number of open calls around this call                */
    uint64_t time_ns;     /* ENTRY, EXIT: since the stream's start                        */
    uint64_t duration_ns; /* EXIT; HOTFN_NO_DURATION: the entry is not known              */
    uint64_t count;       /* LOST: of datagrams; SKIPPED: of events                       */
    const char *name;     /* ENTRY, EXIT: readable name of the function; RUN: the command */
    uint32_t function;    /* ENTRY, EXIT: number of the function in the stream            */
    uint32_t reserved;
} hotfn_listener_event;
#define HOTFN_LISTENER_EVENT_INIT                                                                  \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_listener_event), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                    \
    }

typedef struct hotfn_listener_stats {
    uint32_t size;          /* sizeof(hotfn_listener_stats)                            */
    uint32_t stream_count;  /* all streams so far                                      */
    uint32_t running_count; /* streams that have not ended, and sent something in the last 10 s */
    uint32_t reserved;
    uint64_t event_count;     /* entries and exits                                       */
    uint64_t call_count;      /* entries                                                 */
    uint64_t datagram_count;  /* datagrams that were accepted                            */
    uint64_t lost_count;      /* datagrams that did not arrive, or arrived too late      */
    uint64_t skipped_count;   /* events that were not sent                               */
    uint64_t malformed_count; /* datagrams that were dropped: malformed, of another version, or
                                 beyond the limits of a listener (64 streams at a time ...) */
} hotfn_listener_stats;
#define HOTFN_LISTENER_STATS_INIT                                                                  \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_listener_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0                          \
    }

/* Receives an event, which is borrowed. */
typedef void (*hotfn_listener_fn)(void *user, const hotfn_listener_event *event);

/*
 * Listen for datagrams.
 *
 * out      receives a listener that the caller owns; untouched on failure.
 * address  borrowed: "udp:PORT" (all addresses of this machine), "udp:HOST:PORT" or "unix:PATH".
 *          With port 0, the system chooses a free port.  NULL: the caller gets datagrams by other
 *          means, and passes them to hotfn_listener_add.
 * flags    HOTFN_LISTENER_KEEP or 0.
 * env      copied; NULL means all defaults.
 *
 * HOTFN_OK.  HOTFN_E_OPTION: not an address.  HOTFN_E_NOT_FOUND: the host is not known.
 * HOTFN_E_STATE: another process uses the address.  HOTFN_E_IO, HOTFN_E_UNSUPPORTED (Windows),
 * HOTFN_E_NO_MEMORY.  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_listener_open(hotfn_listener **out, const char *address,
                                           uint32_t flags, const hotfn_env *env, hotfn_error *err);
/* Close a listener.  NULL is fine.  One thread at a time.  Since 0.1. */
HOTFN_API void hotfn_listener_close(hotfn_listener *listener);
/* Get the address, with the port that the system chose; a view.  "" if the listener was opened
 * without an address.  Any thread.  Since 0.1. */
HOTFN_API const char *hotfn_listener_get_address(const hotfn_listener *listener);
/*
 * Wait up to timeout_ns for a datagram, and report its events and those of other datagrams that
 * have already arrived.  A signal handler ends the wait.
 *
 * report  called in this thread for each event; may be NULL.
 *
 * HOTFN_OK, even if nothing has arrived.  HOTFN_E_IO, HOTFN_E_STATE (opened without an address),
 * HOTFN_E_NO_MEMORY.  One thread at a time per listener.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_listener_receive(hotfn_listener *listener, uint64_t timeout_ns,
                                              hotfn_listener_fn report, void *user,
                                              hotfn_error *err);
/* Report the events of a datagram that the caller has received.  HOTFN_OK, even if the datagram is
 * malformed (see malformed_count); HOTFN_E_NO_MEMORY, HOTFN_E_OPTION.  One thread at a time per
 * listener.  Since 0.1. */
HOTFN_API hotfn_status hotfn_listener_add(hotfn_listener *listener, const void *bytes,
                                          uint64_t byte_count, hotfn_listener_fn report,
                                          void *user);
/* Fill out (borrowed) with the counts so far.  HOTFN_OK, HOTFN_E_OPTION.  One thread at a time
 * per listener.  Since 0.1. */
HOTFN_API hotfn_status hotfn_listener_get_stats(const hotfn_listener *listener,
                                                hotfn_listener_stats *out);
/*
 * Write a record of what was received of a stream (1, 2 ...): the calls and times of each function,
 * by thread and in call trees of up to 2^20 nodes, and the latest events of each thread.  Calls for
 * which the trees have no more room are missing; a warning in the log gives their number.
 *
 * HOTFN_OK.  HOTFN_E_STATE: opened without HOTFN_LISTENER_KEEP.  HOTFN_E_NOT_FOUND: there is no
 * such stream, or it was replaced by a later one.  HOTFN_E_IO, HOTFN_E_LIMIT, HOTFN_E_NO_MEMORY.
 * One thread at a time per listener.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_listener_save(const hotfn_listener *listener, uint32_t stream,
                                           const char *path, hotfn_error *err);

#ifdef __cplusplus
}
#endif

#endif
