/* SPDX-License-Identifier: MIT */
/* `hotfn-collector --data DIR token add|list|remove`. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

int report_refusal(const refusal *why)
{
    fprintf(stderr, "hotfn-collector: %s\n", why->text);
    return 1;
}

static int report_usage(void)
{
    fputs(
        "hotfn-collector: token add --role write|read|admin [--app NAME] [--note TEXT], token list, "
        "or token remove HASH\n",
        stderr);
    return 2;
}

static int add_token(store *s, char **words)
{
    const char *app = "", *note = "";
    enum token_role role = ROLE_NONE;
    char text[TOKEN_TEXT_BYTES];
    refusal why;

    for (; words[0]; words += 2) {
        if (!words[1]) {
            return report_usage();
        }
        if (strcmp(words[0], "--app") == 0) {
            app = words[1];
        } else if (strcmp(words[0], "--note") == 0) {
            note = words[1];
        } else if (strcmp(words[0], "--role") == 0) {
            role = token_find_role(words[1]);
        } else {
            return report_usage();
        }
    }
    if (role == ROLE_NONE || (role != ROLE_ADMIN && !*app)) {
        fputs("hotfn-collector: token add needs --role, and --app unless the role is admin\n",
              stderr);
        return 2;
    }
    if (!token_create(s, app, role, note, get_wall_ns(), text, &why)) {
        return report_refusal(&why);
    }
    printf("%s\n", text);
    return 0;
}

static int list_tokens(store *s)
{
    sqlite3_stmt *q = store_get_statement(
        s, "SELECT substr(lower(hex(hash)), 1, 16), role, app, note FROM token ORDER BY app, role");
    int step = SQLITE_ERROR;
    refusal why;

    while (q && (step = sqlite3_step(q)) == SQLITE_ROW) {
        printf("%s  %-5s  %s  %s\n", sqlite3_column_text(q, 0), sqlite3_column_text(q, 1),
               sqlite3_column_text(q, 2), sqlite3_column_text(q, 3));
    }
    if (step != SQLITE_DONE) {
        refuse_for_database(&why, s);
        return report_refusal(&why);
    }
    return 0;
}

static int remove_token(store *s, const char *prefix)
{
    if (strlen(prefix) < 8) {
        fputs("hotfn-collector: give at least 8 digits of the hash (token list)\n", stderr);
        return 2;
    }
    int count = token_remove(s, prefix);
    fprintf(stderr, "hotfn-collector: %d token%s removed\n", count < 0 ? 0 : count,
            count == 1 ? "" : "s");
    return count > 0 ? 0 : 1;
}

int command_token(const collector_options *o, char **words)
{
    store *s;
    refusal why;
    int status;

    if (!words[0]) {
        return report_usage();
    }
    if (!store_open(&s, o->data, true, &why)) {
        return report_refusal(&why);
    }
    if (strcmp(words[0], "add") == 0) {
        status = add_token(s, words + 1);
    } else if (strcmp(words[0], "list") == 0 && !words[1]) {
        status = list_tokens(s);
    } else if (strcmp(words[0], "remove") == 0 && words[1] && !words[2]) {
        status = remove_token(s, words[1]);
    } else {
        status = report_usage();
    }
    store_close(s);
    return status;
}
