/* SPDX-License-Identifier: MIT */
/* Create, find and delete tokens. */
#include "tokens.h"

#include <string.h>
#include <sys/random.h>

static const char *const role_names[] = { "none", "write", "read", "admin" };

const char *token_role_name(enum token_role role)
{
    return role_names[role];
}

enum token_role token_find_role(const char *name)
{
    for (int i = ROLE_WRITE; i <= ROLE_ADMIN; i++) {
        if (strcmp(name, role_names[i]) == 0) {
            return (enum token_role)i;
        }
    }
    return ROLE_NONE;
}

bool fill_random(void *bytes, size_t byte_count)
{
    return getrandom(bytes, byte_count, 0) == (ssize_t)byte_count;
}

static void hash_token(const char *text, uint8_t out[SHA256_BYTES])
{
    sha256 s;

    sha256_begin(&s);
    sha256_add(&s, text, strlen(text));
    sha256_finish(&s, out);
}

bool token_create(store *s, const char *app, enum token_role role, const char *note, int64_t now_ns,
                  char text[TOKEN_TEXT_BYTES], refusal *why)
{
    uint8_t secret[24], hash[SHA256_BYTES];

    if (!fill_random(secret, sizeof secret)) {
        return refuse_request(why, 500, "the system has no random bytes");
    }
    memcpy(text, "hfc_", 4);
    format_hex(text + 4, secret, sizeof secret);
    hash_token(text, hash);
    sqlite3_stmt *q = store_get_statement(s, "INSERT INTO token VALUES(?1, ?2, ?3, ?4, ?5)");
    return (store_bind(q, "bttit", hash, sizeof hash, app, role_names[role], now_ns, note) &&
            store_run(q)) ||
           refuse_for_database(why, s);
}

int token_remove(store *s, const char *prefix)
{
    sqlite3_stmt *q = store_get_statement(
        s, "DELETE FROM token WHERE substr(lower(hex(hash)), 1, length(?1)) = ?1");
    return store_bind(q, "t", prefix) && store_run(q) ? sqlite3_changes(s->db) : -1;
}

bool token_find(store *s, const char *text, token_access *out, refusal *why)
{
    sqlite3_stmt *q = store_get_statement(s, "SELECT hash, app, role FROM token");
    int step = SQLITE_ERROR;

    memset(out, 0, sizeof *out);
    hash_token(text, out->hash);
    while (q && (step = sqlite3_step(q)) == SQLITE_ROW) {
        if (sqlite3_column_bytes(q, 0) == SHA256_BYTES &&
            equal_in_constant_time(out->hash, sqlite3_column_blob(q, 0), SHA256_BYTES)) {
            out->role = token_find_role((const char *)sqlite3_column_text(q, 2));
            copy_bounded(out->app, sizeof out->app, (const char *)sqlite3_column_text(q, 1));
        }
    }
    if (q) {
        sqlite3_reset(q);
    }
    return step == SQLITE_DONE || refuse_for_database(why, s);
}
