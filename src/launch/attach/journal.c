/* SPDX-License-Identifier: MIT */
/* The journal of an attachment: writing this launcher's journal, reading that of another launcher,
 * and iterating over entries.  Data of another process is checked against the size of its copy. */
#include "launch/attach/journal.h"

#include "base/status.h"
#include "os/descendants.h"
#include "os/os.h"

#include <hotfn/env.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_BYTES = 4096, MAX_JOURNAL_BYTES = 1 << 30 };

static uint64_t pad_bytes(uint64_t bytes)
{
    return (bytes + 7) & ~UINT64_C(7);
}

static uint64_t page_of(uint64_t address)
{
    return address & ~(uint64_t)(PAGE_BYTES - 1);
}

/* ---- Writing this launcher's journal. */

bool hfn_journal_create(hfn_journal *j, uint32_t target_pid, uint64_t byte_count)
{
    hfn_os_process_facts facts = { 0 };
    uint32_t namespace_of_target;
    void *at = NULL;

    *j = (hfn_journal){ .file = HFN_OS_NO_FILE };
    if (hfn_os_create_shared(&j->file, HFN_JOURNAL_MEMORY_NAME, byte_count) != 0 ||
        hfn_os_map_file(&at, j->file, 0, byte_count, HFN_OS_MAP_WRITE, 0) != 0) {
        hfn_journal_close(j);
        return false;
    }
    j->header = at;
    j->byte_count = byte_count;
    *j->header = (hfn_journal_header){ .magic = HFN_JOURNAL_MAGIC,
                                       .version = HFN_JOURNAL_VERSION,
                                       .state = HFN_JOURNAL_PREPARED,
                                       .used_bytes = sizeof(hfn_journal_header) };
    snprintf(j->header->tool, sizeof j->header->tool, "hotfn %s", hotfn_get_version());
    hfn_os_get_random(j->header->nonce, sizeof j->header->nonce);
    hfn_os_remote_get_identity(target_pid, &j->header->target_id, &namespace_of_target);
    hfn_os_remote_get_identity(hfn_os_get_process_id(), &j->header->launcher_pid,
                               &j->header->launcher_namespace);
    hfn_os_get_process_facts(hfn_os_get_process_id(), &facts);
    j->header->launcher_start = facts.start;
    return true;
}

void hfn_journal_close(hfn_journal *j)
{
    if (j->header) {
        hfn_os_unmap((uint64_t)(uintptr_t)j->header, j->byte_count);
        if (hfn_os_is_open(j->file)) {
            hfn_os_close_file(j->file);
        }
    }
    *j = (hfn_journal){ .file = HFN_OS_NO_FILE };
}

void hfn_journal_clear(hfn_journal *j)
{
    j->header->used_bytes = sizeof *j->header;
}

static uint8_t *append_entry(hfn_journal *j, const hfn_journal_entry *entry, uint64_t more)
{
    uint64_t used = j->header->used_bytes, bytes = sizeof *entry + pad_bytes(more);
    uint8_t *at = (uint8_t *)j->header + used;

    if (bytes > j->byte_count - used) {
        return NULL;
    }
    memcpy(at, entry, sizeof *entry);
    return at + sizeof *entry;
}

/* The size is stored last: if this launcher is killed, a reader finds only complete entries. */
static void publish_entry(hfn_journal *j, uint64_t more)
{
    uint64_t used = j->header->used_bytes + sizeof(hfn_journal_entry) + pad_bytes(more);

    __atomic_store_n(&j->header->used_bytes, used, __ATOMIC_RELEASE);
}

bool hfn_journal_add(hfn_journal *j, const hfn_journal_entry *entry)
{
    if (!append_entry(j, entry, 0)) {
        return false;
    }
    publish_entry(j, 0);
    return true;
}

bool hfn_journal_add_patch(hfn_journal *j, uint32_t kind, uint64_t address, const uint8_t *original,
                           const uint8_t *patched, uint32_t byte_count)
{
    hfn_journal_entry entry = { kind, byte_count, address, address + byte_count };
    uint8_t *at = append_entry(j, &entry, 2ull * byte_count);

    if (!at) {
        return false;
    }
    memcpy(at, original, byte_count);
    memcpy(at + byte_count, patched, byte_count);
    publish_entry(j, 2ull * byte_count);
    return true;
}

bool hfn_journal_add_file(hfn_journal *j, const hfn_remote_code *code)
{
    hfn_journal_entry entry = { HFN_JOURNAL_FILE, 0, code->begin, code->end };
    uint8_t *at = append_entry(j, &entry, sizeof *code);

    if (!at) {
        return false;
    }
    memcpy(at, code, sizeof *code);
    publish_entry(j, sizeof *code);
    return true;
}

void hfn_journal_withdraw(hfn_journal *j, uint64_t begin, uint64_t end)
{
    const uint32_t withdrawn = HFN_JOURNAL_WITHDRAWN;
    hfn_journal_entry entry;
    uint64_t next = 0, at = sizeof *j->header;

    for (; hfn_journal_next(j, &next, &entry, NULL); at = next) {
        if (hfn_journal_is_patch(&entry) && entry.address >= begin && entry.address < end) {
            memcpy((uint8_t *)j->header + at + offsetof(hfn_journal_entry, kind), &withdrawn,
                   sizeof withdrawn);
        }
    }
}

/* ---- Reading the journal of another launcher. */

static hotfn_status refuse_version(const hfn_journal_header *header, uint32_t pid, hotfn_error *err)
{
    char tool[sizeof header->tool + 1] = "";

    memcpy(tool, header->tool, sizeof header->tool);
    for (char *c = tool; *c; c++) {
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    }
    return hfn_report_error(err, HOTFN_E_MISMATCH, NULL, HOTFN_NO_OFFSET,
                            "another version (%s) has hooks in process %u, and this is hotfn %s: "
                            "remove them with that version (hotfn detach %u)",
                            header->magic == HFN_JOURNAL_MAGIC && tool[0] ? tool : "an unknown one",
                            pid, hotfn_get_version(), pid);
}

static bool copy_bytes(const hfn_remote *remote, uint64_t from, uint8_t *to, uint64_t bytes)
{
    enum { CHUNK_BYTES = 1 << 24 };

    for (uint64_t done = 0; done < bytes;) {
        uint32_t count = (uint32_t)(bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES);
        if (!hfn_os_remote_read(remote, from + done, to + done, count)) {
            return false;
        }
        done += count;
    }
    return true;
}

hotfn_status hfn_journal_read(hfn_journal *out, const hfn_remote *remote, hotfn_error *err)
{
    hfn_journal_header header;
    hfn_remote_range range;
    uint8_t *copy;

    *out = (hfn_journal){ .file = HFN_OS_NO_FILE };
    if (!hfn_os_remote_find_shared(remote->pid, HFN_JOURNAL_MEMORY_NAME, &range)) {
        return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                "no hotfn is attached to process %u", remote->pid);
    }
    if (!hfn_os_remote_read(remote, range.begin, &header, sizeof header)) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "the memory of process %u cannot be read: try again", remote->pid);
    }
    if (header.magic != HFN_JOURNAL_MAGIC || header.version != HFN_JOURNAL_VERSION ||
        header.used_bytes < sizeof header || header.used_bytes > range.end - range.begin ||
        header.used_bytes > MAX_JOURNAL_BYTES) {
        return refuse_version(&header, remote->pid, err);
    }
    copy = hfn_os_map_pages(header.used_bytes);
    if (!copy) {
        return hfn_report_no_memory(err, NULL);
    }
    *out = (hfn_journal){ (void *)copy, header.used_bytes, range.begin, HFN_OS_NO_FILE };
    if (!copy_bytes(remote, range.begin, copy, header.used_bytes)) {
        hfn_journal_close(out);
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "the memory of process %u cannot be read: try again", remote->pid);
    }
    out->header->used_bytes = header.used_bytes;
    return HOTFN_OK;
}

hfn_journal_place hfn_journal_locate(const hfn_journal *j, const hfn_remote *remote)
{
    hfn_journal_header found;
    hfn_remote_range range;

    if (j->at == 0 || !hfn_os_remote_find_shared(remote->pid, HFN_JOURNAL_MEMORY_NAME, &range) ||
        range.begin != j->at) {
        return HFN_JOURNAL_GONE;
    }
    if (!hfn_os_remote_read(remote, j->at, &found, sizeof found)) {
        return HFN_JOURNAL_UNKNOWN;
    }
    return memcmp(found.nonce, j->header->nonce, sizeof found.nonce) == 0 ? HFN_JOURNAL_HELD
                                                                          : HFN_JOURNAL_GONE;
}

bool hfn_journal_is_in_use(const hfn_journal *j)
{
    const hfn_journal_header *h = j->header;
    uint32_t own_id, own_namespace;
    hfn_os_process_facts facts;

    if (h->state == HFN_JOURNAL_RESTORED || h->state == HFN_JOURNAL_LEFT) {
        return false;
    }
    hfn_os_remote_get_identity(hfn_os_get_process_id(), &own_id, &own_namespace);
    if (h->launcher_namespace != own_namespace) {
        return true; /* here, its process id belongs to another process */
    }
    return hfn_os_get_process_facts(h->launcher_pid, &facts) && facts.start == h->launcher_start;
}

/* ---- Iterating. */

bool hfn_journal_next(const hfn_journal *j, uint64_t *cursor, hfn_journal_entry *out,
                      const uint8_t **bytes)
{
    const uint8_t *base = (const uint8_t *)j->header;
    uint64_t at = *cursor ? *cursor : sizeof *j->header, used = j->header->used_bytes, more;

    if (at > used || used - at < sizeof *out) {
        return false;
    }
    memcpy(out, base + at, sizeof *out);
    more =
        out->kind == HFN_JOURNAL_FILE ? sizeof(hfn_remote_code) : pad_bytes(2ull * out->byte_count);
    at += sizeof *out;
    if (more > used - at || (out->kind != HFN_JOURNAL_ISLAND && out->end < out->address)) {
        return false;
    }
    if (bytes) {
        *bytes = base + at;
    }
    *cursor = at + more;
    return true;
}

bool hfn_journal_next_run(const hfn_journal *j, uint64_t *cursor, uint64_t max_bytes,
                          hfn_journal_run *out)
{
    uint64_t next = *cursor, before = next;
    hfn_journal_entry entry;
    hfn_journal_run run = { 0 };

    for (; hfn_journal_next(j, &next, &entry, NULL); before = next) {
        uint64_t end = page_of(entry.address + entry.byte_count + PAGE_BYTES - 1);
        if (!hfn_journal_is_patch(&entry)) {
            continue;
        }
        if (run.end == 0) {
            run = (hfn_journal_run){ page_of(entry.address), end, before, next };
        } else if (page_of(entry.address) > run.end || entry.address < run.begin ||
                   end - run.begin > max_bytes) {
            break;
        }
        run.end = end > run.end ? end : run.end;
        run.behind = next;
    }
    *cursor = run.behind;
    *out = run;
    return run.end != 0 && run.end - run.begin <= max_bytes;
}
