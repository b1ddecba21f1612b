/* SPDX-License-Identifier: MIT */
/* Options of sending a record, and the report of what happened to it. */
#include "record/push_options.h"

#include "cli/cli_options.h"
#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void push_init_choices(push_choices *c)
{
    *c = (push_choices){ .options = HOTFN_PUSH_OPTIONS_INIT };
}

const char *push_set_url(push_choices *c, const char *argument)
{
    c->options.url = argument;
    return strncmp(argument, "http://", 7) == 0 || strncmp(argument, "https://", 8) == 0
               ? NULL
               : "an address that begins with http:// or https://";
}

const char *push_add_label(push_choices *c, const char *argument)
{
    if (!strchr(argument, '=') || c->options.label_count == MAX_PUSH_LABELS) {
        return "KEY=VALUE, at most 16 times";
    }
    c->labels[c->options.label_count++] = argument;
    return NULL;
}

const char *push_set_interval(push_choices *c, const char *argument)
{
    uint64_t ns;
    const char *expected = cli_parse_time(argument, &ns);

    if (!expected && ns >= 1000000000 && ns <= UINT64_C(300000000000)) {
        c->every_seconds = (uint32_t)(ns / 1000000000);
        return NULL;
    }
    return expected ? expected : "a time from 1s to 300s";
}

/* A token is not an argument, because every user of the machine can list those. */
bool push_complete_options(push_choices *c, const char *of)
{
    const char *variable = getenv("HOTFN_TOKEN");

    if (c->token_file) {
        FILE *file = fopen(c->token_file, "re");
        bool ok = file && fgets(c->token, sizeof c->token, file);
        if (!ok) {
            fprintf(stderr, "hotfn %s: %s: %s\n", of, c->token_file,
                    file ? "the file is empty" : strerror(errno));
        }
        if (file) {
            fclose(file);
        }
        c->token[strcspn(c->token, "\r\n")] = 0;
        if (!ok) {
            return false;
        }
    } else if (variable) {
        snprintf(c->token, sizeof c->token, "%s", variable);
    }
    c->options.token = c->token[0] ? c->token : NULL;
    c->options.labels = c->labels;
    return true;
}

void push_report_result(const char *of, const char *path, const hotfn_push_result *r,
                        const char *reason)
{
    static const char *const states[] = { "", "stored", "was stored before" };

    if (path && r->state == HOTFN_PUSH_SPOOLED) {
        fprintf(stderr, "hotfn %s: %s cannot be sent now (%s): it waits in the spool\n", of, path,
                reason);
    } else if (path && r->state) {
        fprintf(stderr, "hotfn %s: %s %s%s\n", of, path, states[r->state & 3],
                r->sent_names ? ", with the names of its build" : "");
    }
    if (r->spooled_sent) {
        fprintf(stderr, "hotfn %s: %u record%s of the spool %s sent\n", of, r->spooled_sent,
                cli_plural(r->spooled_sent), r->spooled_sent == 1 ? "was" : "were");
    }
    if (r->spooled_remain) {
        fprintf(stderr, "hotfn %s: %u record%s in the spool; hotfn push sends them\n", of,
                r->spooled_remain, r->spooled_remain == 1 ? " waits" : "s wait");
    }
}

int push_send(push_choices *c, const char *of, const char *path, bool quiet)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_push_result result = HOTFN_PUSH_RESULT_INIT;
    hotfn_env env = hotfn_tool_env();

    if (!push_complete_options(c, of)) {
        return TOOL_FAILED;
    }
    hotfn_status status = hotfn_push_record(path, &c->options, &env, &result, &err);
    if (!quiet || result.state == HOTFN_PUSH_SPOOLED) {
        push_report_result(of, path, &result, err.text);
    }
    return status == HOTFN_OK ? TOOL_OK : hotfn_tool_fail(of, &err);
}
