/* SPDX-License-Identifier: MIT */
/* Store runs and names in the database.  Exactly once: the UUID and checksum of a run are stored in
 * the transaction of its counts, which is on the disk before the run is acknowledged. */
#ifndef HOTFN_COLLECTOR_INGEST_H
#define HOTFN_COLLECTOR_INGEST_H

#include "sha256.h"
#include "store.h"
#include "wire.h"

enum { MAX_LABELS = 16, MAX_LABEL_KEY = 64, MAX_TEXT = 256, MAX_EVERY_SECONDS = 300 };

typedef struct run_label {
    char key[MAX_LABEL_KEY + 1], value[MAX_TEXT + 1];
} run_label;

/* What arrived with a request.  Names may come with a run, or alone. */
typedef struct submission {
    char app[MAX_TEXT + 1], version[MAX_TEXT + 1];
    uint8_t client[16];
    bool has_client, known_builds_only, registers_build;
    run_label labels[MAX_LABELS];
    uint32_t label_count;
    int64_t sequence;      /* of an increment, from 1; 0: a whole record */
    int64_t every_seconds; /* when the next increment is to come, or 0   */
    int64_t received_ns;
    uint8_t checksum[SHA256_BYTES];
    wire_run run;       /* no modules: there are only names */
    wire_run names;     /* no modules: there are none       */
    const uint8_t *kit; /* view; the archive of a kit for a build; NULL: none was sent */
    size_t kit_bytes;
    /* The result: an HTTP status, 201 stored, 200 known already, or the refusal. */
    refusal result;
    bool need_names;
    char image[80];
} submission;

/* Store one submission inside a transaction; fills result.  False if the transaction must be rolled
 * back, because the database failed. */
bool ingest_submission(store *s, submission *sub);

/* Commit many submissions in one transaction.  If it fails, none is stored, and each result is the
 * refusal. */
void ingest_batch(store *s, submission **list, uint32_t count);

/* The id of an app, 0 if there is none; -1 on failure. */
int64_t ingest_find_app(store *s, const char *name);

#endif
