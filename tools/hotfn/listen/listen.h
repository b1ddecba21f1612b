/* SPDX-License-Identifier: MIT */
/* `hotfn listen`: what listen.c and the two formats, tree and JSON, share. */
#ifndef HOTFN_TOOL_LISTEN_H
#define HOTFN_TOOL_LISTEN_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <stdbool.h>
#include <stdio.h>

/* What is shown, and how. */
typedef struct listen_view {
    FILE *out;
    bool color;
    const char **globs; /* functions to show, unless glob_count is 0; the command owns the array */
    uint32_t glob_count;
    uint64_t slow_ns; /* calls that take at least this long are highlighted; 0: none */
} listen_view;

/* Whether events of this function are shown. */
bool listen_shows_function(const listen_view *view, const char *name);
/* Whether the call that ends took so long that it is highlighted. */
bool listen_is_slow(const listen_view *view, const hotfn_listener_event *event);

/* What happened to an object, if the function is counted for that (runtimes/com.c). */
typedef enum listen_object_event {
    LISTEN_NO_OBJECT,
    LISTEN_CREATED,
    LISTEN_RELEASED,
    LISTEN_FAILED, /* a creation, or a call of a method */
} listen_object_event;
listen_object_event listen_get_object_event(const char *name);

/* listen_tree.c: the events as a tree.  An entry is held back for a short time: if its exit is the
 * next event to be shown, the call has one line. */
#define LISTEN_NAME_BYTES 4096
typedef struct listen_tree {
    const listen_view *view;
    bool has_held;
    hotfn_listener_event held; /* except its name, which is in held_name */
    char held_name[LISTEN_NAME_BYTES];
} listen_tree;
void listen_show_event(listen_tree *tree, const hotfn_listener_event *event);
/* Print the entry that is held back, if any. */
void listen_print_held(listen_tree *tree);

/* listen_json.c: one line of JSON for each event. */
void listen_print_json(const listen_view *view, const hotfn_listener_event *event);
void listen_print_json_summary(const listen_view *view, const hotfn_listener_stats *stats);

#endif
