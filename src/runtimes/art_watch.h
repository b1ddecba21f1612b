/* SPDX-License-Identifier: MIT */
/* Events of watched calls.  While a thread is in a call of a watched method, its events are held
 * back.  If the call takes longer than the limit, they go to the trace, and so do all further ones
 * up to the call's end; else they are dropped. */
#ifndef HFN_RUNTIMES_ART_WATCH_H
#define HFN_RUNTIMES_ART_WATCH_H

#include "runtimes/methods.h"

typedef struct hfn_art_event {
    uint64_t arguments[6]; /* of the function that stores it                     */
    uint64_t trace;        /* the trace that it goes to; 0 if there is only one  */
    uint64_t thread;       /* identifies the thread                              */
    hotfn_code function;   /* counts calls of the method                         */
    bool is_enter, is_watched;
} hfn_art_event;

/* Where events go. */
typedef struct hfn_art_sink {
    void (*store)(const hfn_art_event *event);
    void (*drop)(uint64_t count);
    uint64_t (*get_ns)(void);
    uint64_t limit_ns;
} hfn_art_sink;

/* Make room for the threads; false if there is no memory. */
bool hfn_art_watch_open(void);
/* Events of one thread are passed one after the other.  True if the event is inside a watched
 * call, or begins or ends one. */
bool hfn_art_watch_pass(const hfn_art_sink *sink, const hfn_art_event *event);

#endif
