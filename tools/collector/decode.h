/* SPDX-License-Identifier: MIT */
/* From the bytes of a body to a submission: a record file, the compact form of a run, or names. */
#ifndef HOTFN_COLLECTOR_DECODE_H
#define HOTFN_COLLECTOR_DECODE_H

#include "ingest.h"

/* The decoded body; the names in a submission are views into its bytes. */
typedef struct decoded_body {
    uint8_t *mapped;
    size_t mapped_bytes;
    byte_buffer run, names; /* a record file, encoded */
} decoded_body;

bool decode_run_body(decoded_body *body, int fd, submission *out, refusal *why);
bool decode_names_body(decoded_body *body, int fd, submission *out, refusal *why);
/* symbols_body.c: the names of a build from its image, PDB or map; file: the name of a file that is
 * sent alone. */
bool decode_symbols_body(decoded_body *body, int fd, const char *file, submission *out,
                         refusal *why);
/* Map the body into memory, without looking at it. */
bool decode_map_body(decoded_body *body, int fd, refusal *why);
/* Read the record at path, as if it had been sent. */
bool decode_record_file(decoded_body *body, const char *path, submission *out, refusal *why);
void decode_free(decoded_body *body, submission *sub);

/* 36 characters in the form 8-4-4-4-12, or 32 hexadecimal digits. */
bool parse_uuid(const char *text, uint8_t out[16]);

#endif
