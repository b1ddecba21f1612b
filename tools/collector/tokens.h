/* SPDX-License-Identifier: MIT */
/* Tokens: each gives its owner a role for an app.  The database has only their hashes. */
#ifndef HOTFN_COLLECTOR_TOKENS_H
#define HOTFN_COLLECTOR_TOKENS_H

#include "ingest.h"

enum token_role { ROLE_NONE, ROLE_WRITE, ROLE_READ, ROLE_ADMIN };
enum { TOKEN_TEXT_BYTES = 64 };

typedef struct token_access {
    enum token_role role;
    char app[MAX_TEXT + 1]; /* "" for an admin: every app */
    uint8_t hash[SHA256_BYTES];
} token_access;

/* Random bytes of the system. */
bool fill_random(void *bytes, size_t byte_count);

/* Create a token and write its text, which cannot be read again later. */
bool token_create(store *s, const char *app, enum token_role role, const char *note, int64_t now_ns,
                  char text[TOKEN_TEXT_BYTES], refusal *why);
/* Delete the tokens whose hash begins with the digits of prefix; returns how many, -1 on
 * failure. */
int token_remove(store *s, const char *prefix);
/* Find the access of a token; ROLE_NONE if it is unknown.  Every stored hash is compared in
 * whole. */
bool token_find(store *s, const char *text, token_access *out, refusal *why);

const char *token_role_name(enum token_role role);
enum token_role token_find_role(const char *name); /* ROLE_NONE: no such role */

#endif
