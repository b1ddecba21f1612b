/* SPDX-License-Identifier: MIT */
/*
 * Copies stubs and patched code from the mirrors to the target.
 *
 * The target may unload a module, or map another file in its place, until its threads are stopped
 * for the last time.  So the code of each mirror is compared then.  A module whose code has changed
 * is dropped: its patches are withdrawn from the journal, and those of the others are written.
 */
#include "launch/attach/attachment.h"

#include "hooks/quiesce.h"
#include "launch/attach/call_sites.h"

#include <string.h>

enum { PAGE_BYTES = 4096, READ_TRIES = 4 };

static uint8_t *get_local_bytes(const hfn_mirror *m, uint64_t address)
{
    return (uint8_t *)(uintptr_t)(address + m->distance);
}

/* ---- While the threads run, or stand. */

bool hfn_mirror_write_stubs(hfn_attachment *a)
{
    bool ok = true;

    for (size_t i = 0; i < a->stub_count; i++) {
        hfn_stub_pages *s = &a->stubs[i];
        if (!s->is_written) {
            s->is_written = hfn_os_remote_write(&a->remote, s->begin,
                                                get_local_bytes(&a->mirrors[s->mirror], s->begin),
                                                (uint32_t)(s->end - s->begin));
        }
        ok = ok && s->is_written;
    }
    return ok;
}

/* Only modules that the attach needs are never unloaded.  The pages of others may become data
 * between the reading and the writing. */
static bool stays_loaded(const hfn_attachment *a, uint64_t address)
{
    const hfn_mirror *m = hfn_mirror_of(a, address);

    return m && m->is_needed;
}

/* Writing an unchanged byte gives the process its own copy of the page.  That takes most of the
 * time of a change, so it is done before the threads are stopped. */
void hfn_mirrors_touch_code(hfn_attachment *a)
{
    uint64_t cursor = 0, page = 0;
    hfn_journal_entry entry;
    const uint8_t *original;
    uint8_t now;

    while (hfn_journal_next(&a->journal, &cursor, &entry, &original)) {
        if (hfn_journal_is_patch(&entry) && entry.address / PAGE_BYTES != page &&
            stays_loaded(a, entry.address) &&
            hfn_os_remote_read(&a->remote, entry.address, &now, 1) && now == *original) {
            hfn_os_remote_write(&a->remote, entry.address, &now, 1);
            page = entry.address / PAGE_BYTES;
        }
    }
}

/* ---- While the threads stand. */

/* A part of a run that lies in one code range of a mirror. */
typedef struct code_part {
    hfn_mirror *mirror;
    const hfn_remote_code *code;
    uint64_t address;
    uint32_t byte_count;
    const uint8_t *shown, *wanted;
} code_part;

/* The part of the run that begins at an address; false if no mirror has that address. */
static bool find_part(const hfn_attachment *a, uint64_t address, uint64_t end, code_part *out)
{
    hfn_mirror *m = hfn_mirror_of(a, address);

    for (uint32_t c = 0; m && c < m->code_count; c++) {
        const hfn_remote_code *code = &m->code[c];
        if (address >= code->begin && address < code->end) {
            *out = (code_part){ m,
                                code,
                                address,
                                (uint32_t)((end < code->end ? end : code->end) - address),
                                m->shown[c] + (address - code->begin),
                                get_local_bytes(m, address) };
            return true;
        }
    }
    return false;
}

typedef bool (*part_fn)(hfn_attachment *a, const code_part *part);

/* Visit the pages that have patches. */
static bool each_part(hfn_attachment *a, part_fn visit)
{
    hfn_journal_run run;
    uint64_t cursor = 0;
    code_part part;

    while (hfn_journal_next_run(&a->journal, &cursor, HFN_ATTACH_BUFFER_BYTES, &run)) {
        for (uint64_t at = run.begin; at < run.end; at += part.byte_count) {
            if (!find_part(a, at, run.end, &part) || !visit(a, &part)) {
                return false;
            }
        }
    }
    return true;
}

/* Whether the process still maps the file that was copied, and its code is as it was. */
static bool compare_part(hfn_attachment *a, const code_part *part)
{
    hfn_mirror *m = part->mirror;

    m->is_dropped = m->is_dropped || !hfn_code_files_have(&a->files, part->code, part->address,
                                                          part->address + part->byte_count);
    for (int i = 0; i < READ_TRIES && !m->is_dropped; i++) {
        if (hfn_os_remote_read(&a->remote, part->address, a->buffer, part->byte_count)) {
            m->is_dropped = memcmp(a->buffer, part->shown, part->byte_count) != 0;
            return true;
        }
    }
    m->is_dropped = true;
    return true;
}

static bool write_part(hfn_attachment *a, const code_part *part)
{
    return hfn_os_remote_write(&a->remote, part->address, part->wanted, part->byte_count);
}

bool hfn_mirrors_drop_changed(hfn_attachment *a)
{
    if (!hfn_code_files_list(&a->files, &a->remote) || !each_part(a, compare_part)) {
        return false;
    }
    for (size_t i = 0; i < a->mirror_count; i++) {
        const hfn_mirror *m = &a->mirrors[i];
        if (m->is_dropped && m->is_needed) {
            return false;
        }
        for (uint32_t c = 0; m->is_dropped && c < m->code_count; c++) {
            hfn_journal_withdraw(&a->journal, m->code[c].begin, m->code[c].end);
        }
    }
    return true;
}

bool hfn_mirrors_write_code(hfn_attachment *a)
{
    return each_part(a, write_part);
}

static uint64_t move_pc(void *user, uint64_t pc)
{
    const hfn_attachment *a = user;
    uint64_t moved = hfn_call_sites_move_pc(a, pc);
    const hfn_mirror *m = moved == pc ? hfn_mirror_of(a, pc) : NULL;

    if (moved != pc) {
        return moved;
    }
    if (!m || m->is_dropped) {
        return pc;
    }
    return hfn_hooks_move_pc(a->hooks, pc + m->distance) - m->distance;
}

bool hfn_mirrors_adjust_threads(hfn_attachment *a)
{
    return hfn_call_sites_move_restarts(a) && hfn_os_remote_adjust(&a->remote, move_pc, a);
}
