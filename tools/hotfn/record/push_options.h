/* SPDX-License-Identifier: MIT */
/* The options of sending a record, which `hotfn push` and `hotfn run` have in common. */
#ifndef HOTFN_TOOL_PUSH_OPTIONS_H
#define HOTFN_TOOL_PUSH_OPTIONS_H

#include <hotfn/push.h>
#include <stdbool.h>

enum { MAX_PUSH_LABELS = 16, PUSH_TOKEN_BYTES = 420 };

typedef struct push_choices {
    hotfn_push_options options;
    const char *labels[MAX_PUSH_LABELS], *token_file;
    char token[PUSH_TOKEN_BYTES]; /* from the file, or from HOTFN_TOKEN */
    uint32_t every_seconds;       /* run: send increments, 0: only the whole record */
    hotfn_push_series *series;
} push_choices;

void push_init_choices(push_choices *c);
/* Each returns NULL, or a description of a valid argument. */
const char *push_set_url(push_choices *c, const char *argument);
const char *push_add_label(push_choices *c, const char *argument);
const char *push_set_interval(push_choices *c, const char *argument);
/* Read the token, and complete the options; false after a message, which begins with the command
 * `of`. */
bool push_complete_options(push_choices *c, const char *of);
/* Print on stderr what happened to a record of the command `of`; reason: why it is in the spool. */
void push_report_result(const char *of, const char *path, const hotfn_push_result *result,
                        const char *reason);
/* Send a record (NULL: what waits in the spool) and report the result.  Returns an exit status.
 * quiet: only report failures. */
int push_send(push_choices *c, const char *of, const char *path, bool quiet);

/* push_kit.c: send a folder of hotfn kit as an archive.  False after a message. */
bool push_kit_folder(const char *folder, const hotfn_image *image, const char *file,
                     const hotfn_push_options *options);

#endif
