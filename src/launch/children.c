/* SPDX-License-Identifier: MIT */
/* Searches for the target's children at intervals, so that a child that ends between two searches
 * is not seen. */
#include "launch/children.h"

#include "os/child.h"
#include "os/descendants.h"
#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SEARCH_COST 100u /* a search takes at most a hundredth of the time */
#define MAX_SEARCH_PAUSE_NS 500000000u
#define MAX_PROGRAMS 64u
#define FEW_SAMPLES 3u

/* ---- Programs. */

static hfn_child_program *add_program(hfn_children *c, const char *path)
{
    for (size_t i = 0; i < c->program_count; i++) {
        if (strcmp(c->programs[i].path, path) == 0) {
            return &c->programs[i];
        }
    }
    size_t bytes = strlen(path) + 1;
    char *copy = c->program_count < MAX_PROGRAMS ? hfn_allocate_zeroed(&c->env, bytes) : NULL;
    if (!copy || !hfn_grow_array(&c->env, (void **)&c->programs, &c->program_capacity,
                                 c->program_count + 1, sizeof *c->programs)) {
        hfn_free_memory(&c->env, copy, bytes);
        return NULL;
    }
    memcpy(copy, path, bytes);
    c->programs[c->program_count] = (hfn_child_program){ .path = copy };
    return &c->programs[c->program_count++];
}

static uint32_t begin_program(hfn_children *c, const char *path)
{
    hfn_child_program *program = add_program(c, path);
    if (!program) {
        return HFN_CHILD_COUNTED;
    }
    program->processes++;
    return (uint32_t)(program - c->programs);
}

/* A path as it was passed to exec: by its place in PATH if it is a name. */
static uint32_t begin_announced(hfn_children *c, const char *announced)
{
    char found[HFN_OS_PATH_BYTES], real[HFN_OS_PATH_BYTES];
    const char *path = hfn_os_find_program(announced, found) == 0 ? found : announced;
    return begin_program(c, hfn_os_resolve_path(path, real, sizeof real) ? real : path);
}

/* ---- Processes. */

static void end_program(hfn_children *c, hfn_child_process *p)
{
    /* A child that a followed run would count may end before it has joined the record. */
    bool is_proven = !c->follows || p->samples >= FEW_SAMPLES;

    c->ended_count++;
    c->ended_ns += p->cpu_ns - p->begin_ns;
    if (p->program == HFN_CHILD_COUNTED && p->announced[0] && !c->follows) {
        p->program = begin_announced(c, p->announced);
    }
    if (p->program == HFN_CHILD_COUNTED) {
        return;
    }
    if (is_proven) {
        c->programs[p->program].cpu_ns += p->cpu_ns - p->begin_ns;
    } else {
        c->programs[p->program].processes--;
    }
}

static void identify_program(hfn_children *c, hfn_child_process *p, const hfn_live *live)
{
    static const char deleted[] = " (deleted)";
    char path[HFN_OS_PATH_BYTES];

    p->program = HFN_CHILD_COUNTED;
    p->samples = 0;
    if (hfn_os_process_maps_file(p->pid, hfn_live_get_fd(live)) ||
        !hfn_os_get_process_program(p->pid, path, sizeof path)) {
        return;
    }
    size_t length = strlen(path), tail = sizeof deleted - 1;
    if (length > tail && strcmp(path + length - tail, deleted) == 0) {
        path[length - tail] = 0;
    }
    p->program = begin_program(c, path);
}

/* A child that has just started may join the record later. */
static void check_whether_counted(hfn_children *c, hfn_child_process *p, const hfn_live *live)
{
    if (c->follows && p->program != HFN_CHILD_COUNTED &&
        hfn_os_process_maps_file(p->pid, hfn_live_get_fd(live))) {
        c->programs[p->program].processes--;
        p->program = HFN_CHILD_COUNTED;
    }
}

static hfn_child_process *find_process(hfn_children *c, uint32_t pid)
{
    for (size_t i = 0; i < c->process_count; i++) {
        if (c->processes[i].pid == pid) {
            return &c->processes[i];
        }
    }
    if (!hfn_grow_array(&c->env, (void **)&c->processes, &c->process_capacity, c->process_count + 1,
                        sizeof *c->processes)) {
        return NULL;
    }
    c->processes[c->process_count] =
        (hfn_child_process){ .pid = pid, .program = HFN_CHILD_COUNTED };
    return &c->processes[c->process_count++];
}

static void sample_process(hfn_children *c, hfn_child_process *p, const hfn_live *live)
{
    hfn_os_process_facts facts;

    p->is_seen = hfn_os_get_process_facts(p->pid, &facts) && (!p->start || p->start == facts.start);
    if (!p->is_seen) {
        return;
    }
    bool is_new = p->start == 0;
    if (is_new || p->image != facts.program) {
        uint64_t begin_ns = is_new ? 0 : facts.cpu_ns;
        if (!is_new) {
            p->cpu_ns = facts.cpu_ns;
            p->announced[0] = 0;
            end_program(c, p);
        }
        p->start = facts.start;
        p->image = facts.program;
        p->begin_ns = begin_ns;
        identify_program(c, p, live);
    }
    p->cpu_ns = facts.cpu_ns > p->begin_ns ? facts.cpu_ns : p->begin_ns;
    p->samples++;
    check_whether_counted(c, p, live);
}

static void add_descendant(void *user, uint32_t pid)
{
    find_process(user, pid);
}

static void take_announcements(hfn_children *c, hfn_plan_channel *channel)
{
    char path[sizeof c->processes->announced];
    uint32_t pid;

    while ((pid = hfn_plan_channel_take_start(channel, path)) != 0) {
        hfn_child_process *p = pid != c->pid ? find_process(c, pid) : NULL;
        if (p) {
            memcpy(p->announced, path, sizeof path);
        }
    }
}

/* Searches become rarer where they are expensive. */
static void search_descendants(hfn_children *c)
{
    uint64_t begin_ns = hfn_os_monotonic_ns();

    if (begin_ns < c->next_search_ns) {
        return;
    }
    hfn_os_each_descendant(c->pid, add_descendant, c);
    uint64_t end_ns = hfn_os_monotonic_ns(), pause_ns = SEARCH_COST * (end_ns - begin_ns);
    c->next_search_ns = end_ns + (pause_ns < MAX_SEARCH_PAUSE_NS ? pause_ns : MAX_SEARCH_PAUSE_NS);
}

void hfn_children_begin(hfn_children *c, uint32_t pid, bool follows, const hotfn_env *env)
{
    hfn_os_process_facts facts;

    *c = (hfn_children){ .env = *env, .pid = pid, .follows = follows };
    if (hfn_os_get_process_facts(pid, &facts)) {
        c->begin_ns = facts.cpu_ns;
        c->children_begin_ns = facts.children_ns;
    }
}

void hfn_children_sample(hfn_children *c, const hfn_live *live, hfn_plan_channel *channel)
{
    search_descendants(c);
    take_announcements(c, channel);
    for (size_t i = c->process_count; i-- > 0;) {
        hfn_child_process *p = &c->processes[i];
        sample_process(c, p, live);
        if (!p->is_seen) {
            end_program(c, p);
            *p = c->processes[--c->process_count];
        }
    }
}

/* ---- The end. */

/* Divide the time that was not sampled: each program that ended has the same part, because each was
 * sampled last at a random moment before its end. */
static void divide_rest(hfn_children *c, uint64_t total_ns)
{
    uint64_t rest_ns = total_ns > c->ended_ns ? total_ns - c->ended_ns : 0;

    for (size_t i = 0; i < c->program_count && c->ended_count > 0; i++) {
        c->programs[i].cpu_ns += rest_ns / c->ended_count * c->programs[i].processes;
    }
}

static void store_programs(hfn_children *c, hfn_live *live)
{
    char text[HFN_OS_PATH_BYTES + 64];

    for (;;) {
        hfn_child_program *most = NULL;
        for (size_t i = 0; i < c->program_count; i++) {
            hfn_child_program *p = &c->programs[i];
            if (p->processes > 0 && (!most || p->cpu_ns > most->cpu_ns)) {
                most = p;
            }
        }
        if (!most) {
            return;
        }
        snprintf(text, sizeof text, "%" PRIu64 " %" PRIu32 " %s", most->cpu_ns, most->processes,
                 most->path);
        hfn_live_add_run_text(live, HFN_META_CHILD, text);
        most->processes = 0;
    }
}

void hfn_children_finish(hfn_children *c, hfn_live *live, hfn_plan_channel *channel)
{
    char text[32];
    uint64_t own_ns = 0, children_ns = 0;

    if (c->pid == 0) {
        return;
    }
    c->next_search_ns = 0;
    hfn_children_sample(c, live, channel);
    while (c->process_count > 0) { /* they still run */
        hfn_child_process *p = &c->processes[--c->process_count];
        end_program(c, p);
        c->ended_count--;
        c->ended_ns -= p->cpu_ns - p->begin_ns;
    }
    if (hfn_os_get_ended_cpu_ns(c->pid, &own_ns, &children_ns)) {
        divide_rest(c, children_ns > c->children_begin_ns ? children_ns - c->children_begin_ns : 0);
        snprintf(text, sizeof text, "%" PRIu64, own_ns > c->begin_ns ? own_ns - c->begin_ns : 0);
        hfn_live_add_run_text(live, HFN_META_CPU, text);
    }
    store_programs(c, live);
}

void hfn_children_free(hfn_children *c)
{
    for (size_t i = 0; i < c->program_count; i++) {
        hfn_free_memory(&c->env, c->programs[i].path, strlen(c->programs[i].path) + 1);
    }
    if (c->pid) {
        hfn_free_memory(&c->env, c->programs, c->program_capacity * sizeof *c->programs);
        hfn_free_memory(&c->env, c->processes, c->process_capacity * sizeof *c->processes);
    }
    *c = (hfn_children){ 0 };
}
