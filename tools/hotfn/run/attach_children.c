/* SPDX-License-Identifier: MIT */
/* `hotfn attach --children`: each process that the attached process has started, or starts later,
 * gets a launch and a record of its own.
 *
 *   seen twice with one program --> attached to --> the launch has ended --> record is written
 *                               \-> refused: tried again up to MAX_TRIES times
 *
 * A child that was forked after the attach and runs the same program is counted by the launch of
 * its parent until it executes another program. */
#include "attach.h"

#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_FAMILY = 4096, MAX_TRIES = 4, PAUSE_NS = 50000000 };

typedef enum member_state { SEEN, FORKED, ATTACHED, ENDED, REFUSED } member_state;

/* A program that a process of the family runs. */
typedef struct member {
    uint32_t pid;
    uint64_t program; /* identifies it, from hotfn_launch_find_family      */
    member_state state;
    uint32_t tries;
    uint32_t first_search, last_search; /* the numbers of the searches that found it */
    hotfn_launch *launch;               /* ATTACHED */
    bool has_record;
} member;

typedef struct attached_family {
    const run_options *options;
    const hotfn_env *env;
    member *members;
    size_t count, capacity;
    uint32_t search; /* the number of the latest search, from 1 */
    bool is_good;
} attached_family;

/* ---- Finding. */

static member *find_member(attached_family *f, uint32_t pid, uint64_t program)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->members[i].pid == pid && f->members[i].program == program) {
            return &f->members[i];
        }
    }
    return NULL;
}

static member *add_member(attached_family *f, uint32_t pid, uint64_t program)
{
    if (f->count == f->capacity) {
        size_t capacity = f->capacity ? 2 * f->capacity : 64;
        member *members = realloc(f->members, capacity * sizeof *members);
        if (!members) {
            return NULL;
        }
        f->members = members;
        f->capacity = capacity;
    }
    f->members[f->count] = (member){ .pid = pid, .program = program, .first_search = f->search };
    return &f->members[f->count++];
}

static void search_below(attached_family *f, uint32_t pid)
{
    static uint32_t pids[MAX_FAMILY];
    static uint64_t programs[MAX_FAMILY];
    uint32_t count = hotfn_launch_find_family(pids, programs, MAX_FAMILY, pid);

    for (uint32_t i = 0; i < count; i++) {
        member *m = find_member(f, pids[i], programs[i]);
        if (!m && programs[i]) {
            m = add_member(f, pids[i], programs[i]);
        }
        if (m) {
            m->last_search = f->search;
        }
    }
}

/* A process whose parent has ended is no longer a descendant of the attached process, so the search
 * begins at each attached process that was not found below another one. */
static void search_family(attached_family *f)
{
    f->search++;
    for (size_t i = 0, count = f->count; i < count; i++) {
        if (f->members[i].state == ATTACHED && f->members[i].last_search != f->search) {
            search_below(f, f->members[i].pid);
        }
    }
}

/* ---- Attaching. */

static bool is_forked(const attached_family *f, const member *m)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->members[i].state == ATTACHED && f->members[i].program == m->program &&
            hotfn_launch_counts_process(f->members[i].launch, m->pid)) {
            return true;
        }
    }
    return false;
}

static void name_record(const attached_family *f, const member *m, char *out, size_t bytes)
{
    const char *path = f->options->launch.record_path;
    uint32_t earlier = 0;

    for (size_t i = 0; i < f->count; i++) {
        earlier += f->members[i].pid == m->pid && f->members[i].has_record;
    }
    if (earlier > 0) {
        snprintf(out, bytes, "%s.%" PRIu32 ".%" PRIu32, path, m->pid, earlier + 1);
    } else {
        snprintf(out, bytes, "%s.%" PRIu32, path, m->pid);
    }
}

static void attach_to_member(const attached_family *f, member *m)
{
    hotfn_launch_options options = f->options->launch;
    hotfn_error err = HOTFN_ERROR_INIT;
    char path[4096];

    name_record(f, m, path, sizeof path);
    options.record_path = path;
    options.for_ns = 0; /* all end together */
    if (hotfn_launch_attach(&m->launch, m->pid, &options, f->env, &err) == HOTFN_OK) {
        m->state = ATTACHED;
        m->has_record = true;
        return;
    }
    m->state = ++m->tries < MAX_TRIES ? SEEN : REFUSED;
    if (m->state == REFUSED) {
        fprintf(stderr, "hotfn attach: process %" PRIu32 " is not counted: %s\n", m->pid, err.text);
    }
}

/* A program that was found only once may still be loading its libraries. */
static void attach_to_new(attached_family *f)
{
    for (size_t i = 0; i < f->count; i++) {
        member *m = &f->members[i];
        if (m->state != SEEN || m->first_search == f->search || m->last_search != f->search) {
            continue;
        }
        if (is_forked(f, m)) {
            m->state = FORKED;
        } else {
            attach_to_member(f, m);
        }
    }
}

/* ---- The end. */

static void finish_member(attached_family *f, member *m)
{
    if (!f->options->quiet) {
        fprintf(stderr, "hotfn: process %" PRIu32 ":\n", m->pid);
    }
    f->is_good &= attach_finish_record(f->options, m->launch);
    hotfn_launch_destroy(m->launch);
    m->launch = NULL;
    m->state = ENDED;
}

/* Finish the records of processes that have ended or executed another program; with detaches, of
 * all.  Returns how many processes are still attached. */
static size_t finish_ended(attached_family *f, bool detaches)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    size_t attached = 0;

    for (size_t i = 0; i < f->count; i++) {
        member *m = &f->members[i];
        hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;
        if (m->state != ATTACHED) {
            continue;
        }
        if ((detaches ? hotfn_launch_detach(m->launch, &err)
                      : hotfn_launch_wait(m->launch, 0, &err)) != HOTFN_OK) {
            hotfn_tool_fail("attach", &err);
            f->is_good = false;
        }
        hotfn_launch_get_info(m->launch, &info);
        if (info.state != HOTFN_LAUNCH_RUNNING || detaches) {
            finish_member(f, m);
        } else {
            attached++;
        }
    }
    return attached;
}

static uint64_t get_time_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run_until_end(attached_family *f)
{
    const struct timespec pause = { 0, PAUSE_NS };
    uint64_t start_ns = get_time_ns(), for_ns = f->options->launch.for_ns;
    bool is_over = false;

    do {
        search_family(f);
        attach_to_new(f);
        nanosleep(&pause, NULL);
        is_over = attach_is_interrupted() || (for_ns && get_time_ns() - start_ns >= for_ns);
    } while (finish_ended(f, is_over) > 0);
}

bool attach_run_family(const run_options *options, hotfn_launch *first, const hotfn_env *env)
{
    attached_family f = { .options = options, .env = env, .is_good = true };
    hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;
    uint32_t pid;
    uint64_t program = 0;

    hotfn_launch_get_info(first, &info);
    hotfn_launch_find_family(&pid, &program, 1, info.pid);
    if (!add_member(&f, info.pid, program)) {
        fprintf(stderr, "hotfn attach: not enough memory\n");
        hotfn_launch_destroy(first); /* detaches from the process */
        return false;
    }
    f.members[0].state = ATTACHED;
    f.members[0].launch = first;
    f.members[0].has_record = true;
    run_until_end(&f);
    free(f.members);
    return f.is_good;
}
