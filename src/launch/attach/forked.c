/* SPDX-License-Identifier: MIT */
/* A forked child may fork itself until its own hooks are removed, so the search is repeated until
 * it finds no further process. */
#include "launch/attach/forked.h"

#include "launch/attach/removal.h"

#include "base/status.h"

#include <string.h>

enum { MAX_PIDS = 1024, MAX_SEARCHES = 8 };

typedef struct search {
    hfn_forked *forked;
    uint32_t pids[MAX_PIDS]; /* those that were released, or could not be */
    uint32_t count;
    bool found_more;
    uint8_t *buffer;
} search;

void hfn_forked_begin(hfn_forked *f, const hotfn_env *env, uint32_t target_pid,
                      const hfn_journal *journal)
{
    uint64_t bytes = journal->header ? journal->header->used_bytes : 0;
    void *copy = bytes > 0 && journal->at != 0 ? hfn_os_map_pages(bytes) : NULL;

    *f = (hfn_forked){ .env = *env, .target_pid = target_pid };
    f->journal.file = HFN_OS_NO_FILE;
    if (copy) {
        memcpy(copy, journal->header, bytes);
        f->journal = (hfn_journal){ copy, bytes, journal->at, HFN_OS_NO_FILE };
        f->journal.header->used_bytes = bytes;
    }
}

void hfn_forked_finish(hfn_forked *f)
{
    hfn_journal_close(&f->journal);
}

static void release_process(search *s, uint32_t pid)
{
    hfn_remote remote = { .env = s->forked->env, .pid = pid, .memory = HFN_OS_NO_FILE };
    hfn_removal removal = { .remote = &remote,
                            .journal = &s->forked->journal,
                            .buffer = s->buffer };

    hfn_removal_run(&removal);
    hfn_os_remote_finish(&remote);
    if (!removal.is_restored && !removal.is_gone) {
        hfn_log_message(&s->forked->env, HOTFN_LOG_WARNING,
                        "process %u, which process %u has forked, could not be stopped and is "
                        "still hooked: hotfn detach %u",
                        pid, s->forked->target_pid, pid);
    }
}

static bool is_holder(const search *s, uint32_t pid)
{
    hfn_remote remote = { .env = s->forked->env, .pid = pid, .memory = HFN_OS_NO_FILE };
    bool holds = hfn_os_remote_open(&remote) == 0 &&
                 hfn_journal_locate(&s->forked->journal, &remote) == HFN_JOURNAL_HELD;

    hfn_os_remote_close(&remote);
    hfn_os_remote_finish(&remote);
    return holds;
}

static void visit_sharer(void *user, uint32_t pid)
{
    search *s = user;

    for (uint32_t i = 0; i < s->count; i++) {
        if (s->pids[i] == pid) {
            return;
        }
    }
    if (pid == s->forked->target_pid || s->count == MAX_PIDS || !is_holder(s, pid)) {
        return;
    }
    s->pids[s->count++] = pid;
    s->found_more = true;
    release_process(s, pid);
}

void hfn_forked_release(hfn_forked *f, uint8_t *buffer)
{
    search s = { .forked = f, .found_more = true, .buffer = buffer };

    for (int i = 0; f->journal.header && s.found_more && i < MAX_SEARCHES; i++) {
        s.found_more = false;
        hfn_os_remote_each_sharer(HFN_JOURNAL_MEMORY_NAME, visit_sharer, &s);
    }
}
