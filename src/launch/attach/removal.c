/* SPDX-License-Identifier: MIT */
/*
 * Removing an attachment, by its journal:
 *
 *   stopped   restore the code, clear the threads' words, move threads out of islands;
 *             once no thread stands in a stub or in the core, unmap everything
 *   running   between two tries
 *
 * A thread leaves stubs and core within a few instructions, unless it waits for a page or for its
 * child in fork(); then the pages stay, unused, with the journal, and the next attach removes them.
 *
 * A timed call has a frame of its stub on a stack, and returns through it.  Such calls are waited
 * for; until then unwinders need the two late patches (timing.h).  Calls that have not returned
 * after DRAIN_NS may wait for ever, and frames that longjmp has left are counted for good: then all
 * pages stay, with the late patches, and a later removal (hotfn detach) finishes if it finds no
 * frame.  A removal that forces, before another attach, keeps only stubs and core; they use no row
 * from then on, since the threads' words are clear, so that it is not known any more when the calls
 * have returned.  How many frames a forked child has inherited is unknown, so a removal always
 * forces there.
 */
#include "launch/attach/removal.h"

#include "base/memory.h"
#include "base/status.h"
#include "live/live.h"
#include "os/os.h"

#include <string.h>

enum {
    FIRST_STOP_NS = 100000000, /* doubled when it was too short, up to MAX_STOP_NS */
    MAX_STOP_NS = 1600000000,
    MIN_PAUSE_NS = 1000000, /* doubled from try to try: a thread may wait long for a processor */
    MAX_PAUSE_NS = 100000000,
    PAUSE_NS = 2000000,
    DRAIN_NS = 1000000000,
    MAX_EMPTY_NS = 2000000000, /* the time of all tries */
    REMOTE_TRIES = 4,
    MAX_ROWS = 1 << 20,
    PAGE_BYTES = 4096
};
#define MAX_RESTORE_NS UINT64_C(10000000000)

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

/* ---- Code. */

/* Replace what is as hotfn left it; bytes that others have changed are counted.  Returns whether
 * bytes were replaced. */
static bool merge_patch(hfn_removal *r, uint8_t *now, const uint8_t *original, uint32_t count)
{
    const uint8_t *patched = original + count;
    bool is_changed = false;

    for (uint32_t i = 0; i < count; i++) {
        if (now[i] == patched[i]) {
            is_changed |= now[i] != original[i];
            now[i] = original[i];
        } else if (now[i] != original[i]) {
            r->foreign++;
        }
    }
    return is_changed;
}

/* A part of the run may be unmapped by now (dlclose), and other memory mapped there. */
static bool is_own_code(const hfn_removal *r, uint64_t begin, uint64_t end)
{
    for (size_t i = 0; i < r->code_count; i++) {
        const hfn_remote_code *code = &r->codes[i];
        if (begin >= code->begin && end <= code->end) {
            return hfn_code_files_have(&r->files, code, begin, end);
        }
    }
    return false;
}

static bool is_wanted(const hfn_journal_entry *entry, bool with_late)
{
    return entry->kind == HFN_JOURNAL_PATCH || (with_late && entry->kind == HFN_JOURNAL_LATE_PATCH);
}

static bool restore_range(hfn_removal *r, const hfn_journal_run *run, uint64_t begin, uint64_t end,
                          bool with_late)
{
    uint64_t cursor = run->first;
    hfn_journal_entry entry;
    const uint8_t *bytes;
    bool is_changed = false;

    if (!hfn_os_remote_read(r->remote, begin, r->buffer, (uint32_t)(end - begin))) {
        return false;
    }
    while (cursor < run->behind && hfn_journal_next(r->journal, &cursor, &entry, &bytes)) {
        if (is_wanted(&entry, with_late) && entry.address >= begin &&
            entry.address + entry.byte_count <= end) {
            is_changed |=
                merge_patch(r, r->buffer + (entry.address - begin), bytes, entry.byte_count);
        }
    }
    return !is_changed || hfn_os_remote_write(r->remote, begin, r->buffer, (uint32_t)(end - begin));
}

/* Pages that are gone need nothing.  A run that is partly gone is restored page by page; a patch
 * that crosses into a page that is gone is gone as well. */
static bool restore_run(hfn_removal *r, const hfn_journal_run *run, bool with_late)
{
    bool ok = true;

    if (is_own_code(r, run->begin, run->end)) {
        return restore_range(r, run, run->begin, run->end, with_late);
    }
    for (uint64_t at = run->begin; at < run->end; at += PAGE_BYTES) {
        ok = (!is_own_code(r, at, at + PAGE_BYTES) ||
              restore_range(r, run, at, at + PAGE_BYTES, with_late)) &&
             ok;
    }
    return ok;
}

static bool restore_code(hfn_removal *r, bool with_late)
{
    hfn_journal_run run;
    uint64_t cursor = 0;
    bool ok = true;

    r->foreign = 0;
    while (hfn_journal_next_run(r->journal, &cursor, HFN_REMOVAL_BUFFER_BYTES, &run)) {
        for (int i = 0; i < REMOTE_TRIES && !(ok = restore_run(r, &run, with_late)); i++) {
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* ---- The threads. */

typedef struct pc_search {
    const hfn_removal *removal;
    bool in_use;
} pc_search;

static uint64_t move_pc(void *user, uint64_t pc)
{
    pc_search *s = user;

    for (size_t i = 0; i < s->removal->mark_count; i++) {
        const hfn_journal_entry *mark = &s->removal->marks[i];
        if (mark->kind == HFN_JOURNAL_ISLAND && mark->address == pc) {
            return mark->end;
        }
        if (mark->kind == HFN_JOURNAL_CODE && pc >= mark->address && pc < mark->end) {
            s->in_use = true;
        }
    }
    return pc;
}

/* Zero a thread's word if it leads to a row. */
static bool clear_word(const hfn_removal *r, uint64_t address)
{
    static const uint64_t zero;
    const hfn_journal_header *h = r->journal->header;
    uint64_t word;

    for (int i = 0; i < REMOTE_TRIES; i++) {
        if (!hfn_os_remote_read(r->remote, address, &word, sizeof word)) {
            continue;
        }
        if (word == 0 || ((word < h->rows || word >= h->rows_end) && word != h->spare_row)) {
            return true;
        }
        if (hfn_os_remote_write(r->remote, address, &zero, sizeof zero)) {
            return true;
        }
    }
    return false;
}

/* Set a thread's gs base to 0 if it leads to a row. */
static bool clear_base(const hfn_removal *r, uint32_t thread)
{
    const hfn_journal_header *h = r->journal->header;
    uint64_t base;

    for (int i = 0; i < REMOTE_TRIES; i++) {
        if (hfn_os_remote_get_gs_base(r->remote, thread, &base)) {
            if (base < h->gs_begin || base >= h->gs_end ||
                hfn_os_remote_set_gs_base(r->remote, thread, 0)) {
                return true;
            }
        }
    }
    return hfn_os_remote_has_ended(r->remote, thread);
}

static bool clear_bases(const hfn_removal *r)
{
    bool ok = true;

    for (uint32_t i = 0; i < r->remote->thread_count; i++) {
        ok = clear_base(r, i) && ok;
    }
    return ok;
}

static bool clear_threads(const hfn_removal *r)
{
    uint64_t pointer;
    bool ok = true;

    for (uint32_t i = 0; i < r->remote->thread_count; i++) {
        for (int n = 0; n < REMOTE_TRIES; n++) {
            if (hfn_os_remote_get_thread_pointer(r->remote, i, &pointer)) {
                ok = clear_word(r, pointer + (uint64_t)r->journal->header->word_at) && ok;
                break;
            }
        }
    }
    return ok;
}

/* Each word that leads to a row is named in the row's cell, also that of an ended thread, whose
 * memory may have been unmapped since. */
static void clear_cells(const hfn_removal *r)
{
    const hfn_journal_header *h = r->journal->header;
    hfn_cell_header head = { 0 };
    hfn_thread_cell cell;
    uint64_t at = h->cells + sizeof head;

    if (h->cells == 0 || !hfn_os_remote_read(r->remote, h->cells, &head, sizeof head)) {
        return;
    }
    for (uint32_t i = 0; i < head.cells_used && i < MAX_ROWS; i++, at += sizeof cell) {
        if (hfn_os_remote_read(r->remote, at, &cell, sizeof cell) && cell.row_variable != 0) {
            clear_word(r, cell.row_variable);
        }
    }
}

/* ---- Open calls. */

static bool is_own_process(const hfn_removal *r)
{
    uint32_t own_id, own_namespace;

    hfn_os_remote_get_identity(r->remote->pid, &own_id, &own_namespace);
    return own_id == r->journal->header->target_id;
}

/* The frames of stubs on the stacks of the process.  Rows of its children are not its own.  False:
 * unknown. */
static bool count_frames(const hfn_removal *r, uint64_t *out)
{
    const hfn_journal_header *h = r->journal->header;
    hfn_cell_header head;
    hfn_thread_cell cell;
    uint64_t sum = 0, count;

    *out = 0;
    if (h->frames == 0) {
        return true;
    }
    if (!is_own_process(r) || !hfn_os_remote_read(r->remote, h->frames, &sum, sizeof sum) ||
        !hfn_os_remote_read(r->remote, h->cells, &head, sizeof head)) {
        return false;
    }
    for (uint32_t i = 0; i < head.cells_used && i < MAX_ROWS; i++) {
        uint64_t row = h->rows + (uint64_t)i * h->row_bytes;
        if (!hfn_os_remote_read(r->remote, h->cells + sizeof head + i * sizeof cell, &cell,
                                sizeof cell) ||
            (cell.process == h->process &&
             !hfn_os_remote_read(r->remote, row + h->frames_at, &count, sizeof count))) {
            return false;
        }
        sum += cell.process == h->process ? count : 0;
    }
    *out = sum;
    return true;
}

/* While the process runs.  Sets gives_up when the time is over. */
static void wait_for_frames(hfn_removal *r, uint64_t end_ns)
{
    uint64_t frames = 0;
    bool is_known = true;

    if (hfn_os_remote_open(r->remote) != 0) {
        return;
    }
    while ((is_known = count_frames(r, &frames)) && frames != 0 && hfn_os_monotonic_ns() < end_ns &&
           !hfn_os_remote_wait_end(r->remote->pid, PAUSE_NS)) {
    }
    r->gives_up = !is_known || hfn_os_monotonic_ns() >= end_ns;
    hfn_os_remote_close(r->remote);
}

/* ---- Unmapping.  The threads stand and make calls. */

static bool unmap_range(const hfn_removal *r, uint64_t address, uint64_t end)
{
    for (int i = 0; i < REMOTE_TRIES; i++) {
        if (hfn_os_remote_unmap(r->remote, address, page_up(end) - address) == 0) {
            return true;
        }
    }
    return false;
}

/* From now on the range may belong to others. */
static void forget_range(const hfn_removal *r, hfn_journal_entry *mark)
{
    const uint32_t kind = HFN_JOURNAL_WITHDRAWN;

    mark->kind = kind;
    for (int i = 0; i < REMOTE_TRIES; i++) {
        if (hfn_os_remote_write(r->remote, r->journal->at + mark->byte_count, &kind, sizeof kind)) {
            return;
        }
    }
}

/* Shared memory is found by its name: the launcher may have been killed behind the call that mapped
 * it.  The record is several mappings, since a part of it is read-only. */
static bool unmap_shared(const hfn_removal *r, const char *name, uint64_t address)
{
    hfn_remote_range held;

    while (hfn_os_remote_find_shared(r->remote->pid, name, &held) && held.begin >= address) {
        if (!unmap_range(r, held.begin, held.end)) {
            return false;
        }
    }
    return true;
}

/* The journal is the last to go.  with_code false: stubs and core stay. */
static bool unmap_all(hfn_removal *r, bool with_code)
{
    bool ok = true;

    for (size_t i = 0; i < r->mark_count; i++) {
        hfn_journal_entry *mark = &r->marks[i];
        if (mark->kind != HFN_JOURNAL_PAGES && (!with_code || mark->kind != HFN_JOURNAL_CODE)) {
            continue;
        }
        if (unmap_range(r, mark->address, mark->end)) {
            forget_range(r, mark);
        } else {
            ok = false;
        }
    }
    return ok && unmap_shared(r, HFN_RECORD_MEMORY_NAME, r->journal->header->record) &&
           unmap_shared(r, HFN_JOURNAL_MEMORY_NAME, r->journal->at);
}

/* ---- All of it. */

/* The state is in memory that launcher and target share, and of a target only its own. */
static void publish_state(const hfn_removal *r, uint32_t state)
{
    if (is_own_process(r) && r->journal->header->state < state) {
        r->journal->header->state = state;
        for (int i = 0;
             i < REMOTE_TRIES &&
             !hfn_os_remote_write(r->remote, r->journal->at + offsetof(hfn_journal_header, state),
                                  &state, sizeof state);
             i++) {
        }
    }
}

/* Of a timed run the words stay until no call is open: an exit probe counts in its thread's row. */
static bool clear_words(const hfn_removal *r)
{
    if (r->journal->header->gs_end != 0) {
        return clear_bases(r);
    }
    if (!clear_threads(r)) {
        return false;
    }
    clear_cells(r);
    return true;
}

static void copy_counts(hfn_removal *r)
{
    if (r->before_unmap) {
        r->before_unmap(r->user, r->remote);
        r->before_unmap = NULL;
    }
}

/* The original code is in place, but for the late patches; no thread stands in a stub or in the
 * core. */
static void empty_stopped(hfn_removal *r)
{
    uint64_t frames;
    bool is_free = count_frames(r, &frames) && frames == 0;

    if (!is_free && !r->gives_up) {
        return;
    }
    if (!is_free && !r->forces && is_own_process(r)) {
        copy_counts(r);
        publish_state(r, HFN_JOURNAL_LEFT);
        r->is_left = true;
        return;
    }
    if (r->journal->header->frames != 0 &&
        ((is_free && !restore_code(r, true)) || !clear_words(r))) {
        return;
    }
    copy_counts(r);
    r->error = hfn_os_remote_begin_calls(r->remote);
    if (r->error == 0 && unmap_all(r, is_free)) {
        r->is_empty = is_free;
        r->is_left = !is_free;
    }
    r->is_filtered = r->remote->limits_calls;
    hfn_os_remote_end_calls(r->remote);
}

static bool is_done(const hfn_removal *r)
{
    return r->is_empty || r->is_left || r->is_filtered || r->is_gone;
}

static void work_on_stopped(hfn_removal *r)
{
    pc_search search = { r, false };
    bool is_timed = r->journal->header->frames != 0;

    hfn_journal_place place = hfn_journal_locate(r->journal, r->remote);

    if (place != HFN_JOURNAL_HELD) {
        r->is_gone = place == HFN_JOURNAL_GONE;
        return;
    }
    if (!hfn_code_files_list(&r->files, r->remote) || !restore_code(r, !is_timed) ||
        (!is_timed && !clear_words(r)) || !hfn_os_remote_adjust(r->remote, move_pc, &search)) {
        return;
    }
    r->is_restored = true;
    publish_state(r, HFN_JOURNAL_RESTORED);
    if (!search.in_use) {
        empty_stopped(r);
    }
}

static void try_once(hfn_removal *r, uint64_t stop_ns)
{
    hfn_os_error error = hfn_os_remote_open(r->remote);

    if (error == 0) {
        error = hfn_os_remote_stop(r->remote, stop_ns);
        if (error == 0) {
            work_on_stopped(r);
        }
        r->stopped_ns += hfn_os_remote_get_stopped_ns(r->remote);
        while (!hfn_os_remote_resume(r->remote)) {
            hfn_os_remote_wait_end(r->remote->pid, 1000000);
        }
        hfn_os_remote_close(r->remote);
    }
    r->error = error != 0 ? error : r->error;
}

static bool collect_code(hfn_removal *r, const uint8_t *bytes)
{
    if (!hfn_grow_array(&r->remote->env, (void **)&r->codes, &r->code_capacity, r->code_count + 1,
                        sizeof *r->codes)) {
        return false;
    }
    memcpy(&r->codes[r->code_count++], bytes, sizeof *r->codes);
    return true;
}

static bool collect_marks(hfn_removal *r)
{
    hfn_journal_entry entry;
    uint64_t cursor = 0, next = 0;
    const uint8_t *bytes;

    for (; hfn_journal_next(r->journal, &next, &entry, &bytes); cursor = next) {
        if (hfn_journal_is_patch(&entry)) {
            continue;
        }
        if (entry.kind == HFN_JOURNAL_FILE) {
            if (!collect_code(r, bytes)) {
                return false;
            }
            continue;
        }
        if (!hfn_grow_array(&r->remote->env, (void **)&r->marks, &r->mark_capacity,
                            r->mark_count + 1, sizeof *r->marks)) {
            return false;
        }
        entry.byte_count = (uint32_t)(cursor ? cursor : sizeof(hfn_journal_header));
        r->marks[r->mark_count++] = entry;
    }
    return true;
}

static void try_until_empty(hfn_removal *r)
{
    uint64_t begin_ns = hfn_os_monotonic_ns(), pause_ns = MIN_PAUSE_NS, stop_ns = FIRST_STOP_NS;

    do {
        r->error = 0;
        try_once(r, stop_ns);
        if (is_done(r)) {
            return;
        }
        r->is_gone = hfn_os_remote_wait_end(r->remote->pid, pause_ns);
        if (r->is_restored) {
            wait_for_frames(r, begin_ns + DRAIN_NS);
        }
        stop_ns = hfn_os_is_timeout(r->error) && stop_ns < MAX_STOP_NS ? 2 * stop_ns : stop_ns;
        pause_ns = pause_ns < MAX_PAUSE_NS ? 2 * pause_ns : MAX_PAUSE_NS;
    } while (!r->is_gone &&
             hfn_os_monotonic_ns() - begin_ns < (r->is_restored ? MAX_EMPTY_NS : MAX_RESTORE_NS));
}

void hfn_removal_run(hfn_removal *r)
{
    if (collect_marks(r)) {
        try_until_empty(r);
    } else {
        r->error = hfn_os_get_out_of_memory();
    }
    hfn_free_memory(&r->remote->env, r->marks, r->mark_capacity * sizeof *r->marks);
    hfn_free_memory(&r->remote->env, r->codes, r->code_capacity * sizeof *r->codes);
    hfn_code_files_free(&r->files, &r->remote->env);
    r->marks = NULL;
    r->codes = NULL;
    r->mark_count = r->mark_capacity = r->code_count = r->code_capacity = 0;
}

static uint64_t count_code_bytes(const hfn_journal *journal)
{
    hfn_journal_entry entry;
    uint64_t cursor = 0, bytes = 0;

    while (hfn_journal_next(journal, &cursor, &entry, NULL)) {
        bytes += entry.kind == HFN_JOURNAL_CODE ? entry.end - entry.address : 0;
    }
    return bytes;
}

void hfn_removal_report_left(const hfn_removal *r, const hotfn_env *env)
{
    if (r->is_filtered) {
        hfn_log_message(env, HOTFN_LOG_WARNING,
                        "process %u filters its system calls (seccomp) since it was attached to: "
                        "its code is restored, but the memory of the hooks stays mapped, unused",
                        r->remote->pid);
        return;
    }
    hfn_log_message(env, HOTFN_LOG_WARNING,
                    "timed calls of process %u have not returned: %llu KiB of code through which "
                    "they return stay mapped%s",
                    r->remote->pid, (unsigned long long)count_code_bytes(r->journal) / 1024,
                    r->forces
                        ? ", and its calls can only be counted from now on"
                        : "; hotfn detach removes it when they have, and until then its calls "
                          "can only be counted");
}
