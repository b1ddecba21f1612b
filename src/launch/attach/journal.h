/* SPDX-License-Identifier: MIT */
/*
 * The journal of an attachment: shared memory in launcher and target that describes everything that
 * the launcher changes there, before it does.  Any hotfn can restore the target from it, also after
 * the launcher was killed.
 *
 *   header   identity, launcher, and where the counts are
 *   entries  pages that were mapped, code that was replaced, islands; only appended
 *
 * The layout changes only with HFN_JOURNAL_VERSION; magic, version and tool stay where they are.
 */
#ifndef HFN_LAUNCH_JOURNAL_H
#define HFN_LAUNCH_JOURNAL_H

#include "os/remote.h"

#include <hotfn/status.h>

#define HFN_JOURNAL_MEMORY_NAME "hotfn-attach"
#define HFN_JOURNAL_MAGIC UINT64_C(0x6c616e72756f6a68) /* "hjournal" */
#define HFN_JOURNAL_VERSION 5u

/* States of the target that header.target_id names.  Its forked children share the word. */
enum {
    HFN_JOURNAL_PREPARED = 1, /* its code is its own */
    HFN_JOURNAL_ATTACHED,     /* from before the first changed byte on */
    HFN_JOURNAL_RESTORED,     /* its code is its own again; pages may still be mapped */
    HFN_JOURNAL_LEFT          /* and the counts are saved: only open timed calls need the pages */
};

typedef struct hfn_journal_header {
    uint64_t magic;
    uint32_t version;
    uint32_t state;
    char tool[32]; /* the hotfn that attached, with its version */
    uint64_t nonce[2];
    uint64_t used_bytes; /* header and entries */
    uint32_t target_id;  /* by which the target knows itself */
    uint32_t launcher_pid, launcher_namespace, reserved;
    uint64_t launcher_start; /* hfn_os_process_facts.start */
    int64_t word_at;         /* of the threads' word, from the thread pointer */
    uint64_t record;         /* address of the live record */
    uint64_t cells;          /* of its cell header */
    uint64_t rows, rows_end; /* of its rows */
    uint64_t spare_row;      /* whose counts are not read */
    /* Timed: where the frames of stubs are counted that are on stacks (counters/timing/engine.h).
     * Their code stays mapped while there are any. */
    uint64_t frames;    /* those of no row; 0: nothing is timed */
    uint32_t frames_at; /* in a row */
    uint32_t row_bytes;
    uint32_t process; /* hfn_thread_cell.process of the target */
    uint32_t more_reserved;
    /* The gs bases of threads that have rows; gs_end 0: rows are found by words. */
    uint64_t gs_begin, gs_end;
} hfn_journal_header;

typedef enum hfn_journal_kind {
    HFN_JOURNAL_PAGES = 1,  /* [address, end) was mapped */
    HFN_JOURNAL_CODE,       /* the same, and threads execute it */
    HFN_JOURNAL_PATCH,      /* byte_count original bytes follow, then those that replace them */
    HFN_JOURNAL_ISLAND,     /* a thread at `address` continues at `end` when the code is restored */
    HFN_JOURNAL_WITHDRAWN,  /* was another kind, and is none any more */
    HFN_JOURNAL_LATE_PATCH, /* a PATCH that unwinders need while stubs have frames on stacks */
    HFN_JOURNAL_FILE        /* an hfn_remote_code follows, of which patches change pages */
} hfn_journal_kind;

typedef struct hfn_journal_entry {
    uint32_t kind, byte_count;
    uint64_t address, end;
} hfn_journal_entry;

typedef struct hfn_journal {
    hfn_journal_header *header; /* NULL: none */
    uint64_t byte_count;        /* that are mapped here */
    uint64_t at;                /* address in the target; 0: not mapped there */
    hfn_os_file file;           /* HFN_OS_NO_FILE: a copy of another launcher's */
} hfn_journal;

/* The launcher's own. */
bool hfn_journal_create(hfn_journal *journal, uint32_t target_pid, uint64_t byte_count);
void hfn_journal_close(hfn_journal *journal);
/* Remove all entries. */
void hfn_journal_clear(hfn_journal *journal);
bool hfn_journal_add(hfn_journal *journal, const hfn_journal_entry *entry);
bool hfn_journal_add_patch(hfn_journal *journal, uint32_t kind, uint64_t address,
                           const uint8_t *original, const uint8_t *patched, uint32_t byte_count);
bool hfn_journal_add_file(hfn_journal *journal, const hfn_remote_code *code);
/* Withdraw the patches in [begin, end), before they are written. */
void hfn_journal_withdraw(hfn_journal *journal, uint64_t begin, uint64_t end);
static inline bool hfn_journal_is_patch(const hfn_journal_entry *entry)
{
    return entry->kind == HFN_JOURNAL_PATCH || entry->kind == HFN_JOURNAL_LATE_PATCH;
}

/* Copy the journal that a process holds.  HOTFN_OK, HOTFN_E_NOT_FOUND: it holds none,
 * HOTFN_E_MISMATCH: of another version; err says what to do.  The memory of `remote` is open. */
hotfn_status hfn_journal_read(hfn_journal *out, const hfn_remote *remote, hotfn_error *err);
typedef enum hfn_journal_place {
    HFN_JOURNAL_HELD,   /* by the process */
    HFN_JOURNAL_GONE,   /* the process has ended, or runs another program */
    HFN_JOURNAL_UNKNOWN /* its memory cannot be read */
} hfn_journal_place;
hfn_journal_place hfn_journal_locate(const hfn_journal *journal, const hfn_remote *remote);
/* Does the launcher still run and count this process? */
bool hfn_journal_is_in_use(const hfn_journal *journal);

/* Get the entry at *cursor (0: the first) and advance it; `bytes` (NULL: not needed) receives what
 * follows it.  False at the end. */
bool hfn_journal_next(const hfn_journal *journal, uint64_t *cursor, hfn_journal_entry *out,
                      const uint8_t **bytes);

/* A run of consecutive pages with patches, and the part of the journal that has them. */
typedef struct hfn_journal_run {
    uint64_t begin, end;
    uint64_t first, behind; /* cursors */
} hfn_journal_run;
/* Get the first run at or behind *cursor, of at most max_bytes; false if there is none. */
bool hfn_journal_next_run(const hfn_journal *journal, uint64_t *cursor, uint64_t max_bytes,
                          hfn_journal_run *out);

#endif
