/* SPDX-License-Identifier: MIT */
/*
 * Where a thread of the target keeps the address of its row: a word of glibc's thread descriptor
 * that nothing uses (glibc, sysdeps/x86_64/nptl/tls.h, tcbhead_t.unused_vgetcpu_cache; before 2.26
 * vgetcpu_cache, which no code has used since 2.7).  These conditions are checked in each target:
 *
 * - the thread pointer of each thread leads to a descriptor of glibc: words 0 and 2 are its own
 *   address;
 * - the word is 0 in each thread;
 * - no instruction of the target accesses it: no code has the segment prefix with its offset.
 *
 * A new thread's descriptor is zeroed, or is that of an ended thread (thread_row.c).
 */
#include "launch/attach/attachment.h"

#include "base/status.h"

#include <string.h>

enum { TRIES = 8, OVERLAP = 16, FS_PREFIX = 0x64, SIB_DISP32 = 0x25, SELF_WORD = 16 };

static const int64_t candidates[HFN_WORD_CANDIDATES] = { 56, 64 };

/* ---- Instructions that access the word: 64 [prefixes] opcode [modrm] 25 disp32. */

static bool names_word(const uint8_t *bytes, uint64_t count, const uint8_t field[5])
{
    const uint8_t *at = bytes;

    while ((at = hfn_find_bytes(at, (size_t)(bytes + count - at), field, 5)) != NULL) {
        for (int back = 1; back <= 8 && at - back >= bytes; back++) {
            if (at[-back] == FS_PREFIX) {
                return true;
            }
        }
        at++;
    }
    return false;
}

typedef struct word_search {
    hfn_attachment *attachment;
    uint8_t field[5];
    bool is_named, failed;
} word_search;

/* The program may unload a module meanwhile. */
static bool is_unloaded(const word_search *s, const hfn_remote_code *code)
{
    hfn_os_gap gap;

    return hfn_os_remote_find_gaps(&s->attachment->remote, code->begin, code->end, &gap, 1) != 0;
}

static bool search_module(void *user, const hfn_remote_module *module)
{
    word_search *s = user;
    uint8_t *bytes = s->attachment->buffer;

    for (uint32_t i = 0; i < module->code_count && !s->is_named; i++) {
        uint64_t end = module->code[i].end;
        for (uint64_t at = module->code[i].begin; at < end;
             at += HFN_ATTACH_BUFFER_BYTES - OVERLAP) {
            uint64_t count =
                end - at < HFN_ATTACH_BUFFER_BYTES ? end - at : HFN_ATTACH_BUFFER_BYTES;
            if (!hfn_os_remote_read(&s->attachment->remote, at, bytes, (uint32_t)count)) {
                s->failed = !is_unloaded(s, &module->code[i]);
                return !s->failed;
            }
            s->is_named = s->is_named || names_word(bytes, count, s->field);
        }
    }
    return !s->is_named;
}

static bool is_named(hfn_attachment *a, int64_t word_at)
{
    word_search s = { a, { SIB_DISP32, (uint8_t)word_at, 0, 0, 0 }, false, true };

    for (int i = 0; i < TRIES && s.failed && !s.is_named; i++) {
        s.failed = false;
        s.failed = !hfn_os_remote_each_module(a->remote.pid, search_module, &s) || s.failed;
    }
    return s.failed || s.is_named;
}

void hfn_thread_words_search(hfn_attachment *a)
{
    for (size_t i = 0; i < HFN_WORD_CANDIDATES; i++) {
        a->is_word_named[i] = is_named(a, candidates[i]);
    }
}

/* ---- The threads. */

typedef enum thread_check { WORD_FREE, WORD_USED, NOT_GLIBC } thread_check;

static thread_check check_thread(const hfn_attachment *a, uint64_t pointer, int64_t word_at)
{
    uint64_t self[3], word;

    if (!hfn_os_remote_read(&a->remote, pointer, self, sizeof self) || self[0] != pointer ||
        self[SELF_WORD / 8] != pointer ||
        !hfn_os_remote_read(&a->remote, pointer + (uint64_t)word_at, &word, sizeof word)) {
        return NOT_GLIBC;
    }
    return word == 0 ? WORD_FREE : WORD_USED;
}

static thread_check check_threads(const hfn_attachment *a, int64_t word_at)
{
    thread_check result = WORD_FREE;
    uint64_t pointer, fourth;

    for (uint32_t i = 0; i < a->remote.thread_count && result == WORD_FREE; i++) {
        if (!hfn_os_remote_get_thread_pointer(&a->remote, i, &pointer)) {
            continue;
        }
        result = check_thread(a, pointer, word_at);
        /* With musl, self, prev and next of a single thread are all its descriptor's address. */
        if (result == WORD_FREE &&
            (!hfn_os_remote_read(&a->remote, pointer + 24, &fourth, 8) || fourth == pointer)) {
            result = NOT_GLIBC;
        }
    }
    return result;
}

static hotfn_status refuse_words(const hfn_attachment *a, hotfn_error *err)
{
    return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                            "process %u uses the words of glibc's thread descriptors that hotfn "
                            "needs",
                            a->remote.pid);
}

bool hfn_thread_word_choose(hfn_attachment *a, hotfn_error *err)
{
    for (size_t i = 0; i < HFN_WORD_CANDIDATES; i++) {
        if (!a->is_word_named[i]) {
            a->word_at = candidates[i];
            return true;
        }
    }
    refuse_words(a, err);
    return false;
}

hotfn_status hfn_thread_word_check(hfn_attachment *a, hotfn_error *err)
{
    switch (check_threads(a, a->word_at)) {
    case WORD_FREE: return HOTFN_OK;
    case WORD_USED:
        for (size_t i = 0; i < HFN_WORD_CANDIDATES; i++) {
            a->is_word_named[i] = a->is_word_named[i] || candidates[i] == a->word_at;
        }
        refuse_words(a, err);
        return HOTFN_E_STATE;
    default: break;
    }
    return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                            "the C library of process %u is not glibc (musl, Go and others have no "
                            "place for a thread's counts yet): count a build with glibc",
                            a->remote.pid);
}
