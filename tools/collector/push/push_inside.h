/* SPDX-License-Identifier: MIT */
/* What sending a record and sending increments have in common (push.c). */
#ifndef HOTFN_PUSH_INSIDE_H
#define HOTFN_PUSH_INSIDE_H

#include "push/http.h"
#include "wire.h"
#include "wire_encode.h"

enum { UUID_BYTES = 37 }; /* as text, NUL included */

typedef struct pushing {
    const hotfn_push_options *options;
    hotfn_push_result *result;
    hotfn_error *err;
    char folder[4096], client[33];
    hotfn_status spool_status; /* of the records in the spool */
} pushing;

/* One record or increment, from a file, a running program or the spool. */
typedef struct pushed_run {
    char uuid[UUID_BYTES], image[80]; /* image: names the file of names in the spool */
    uint32_t sequence;                /* of an increment, from 1; 0: a whole record  */
    uint32_t every_seconds;           /* when the next increment may be expected     */
    byte_buffer query, body, names;
} pushed_run;

hotfn_status push_check_options(const hotfn_push_options *options, hotfn_error *err);
/* Find the folder of the spool and the id of the installation. */
hotfn_status push_find_state(pushing *p);
/* Fill in all but body and names. */
hotfn_status push_describe_run(pushing *p, pushed_run *run, const hotfn_record *record);
/* HOTFN_OK with *unavailable set if the collector does not answer, or cannot store the run now. */
hotfn_status push_send_run(pushing *p, const pushed_run *run, bool *unavailable, uint32_t *state);
hotfn_status push_spool_run(pushing *p, const pushed_run *run);
/* Send the records in the spool. */
void push_send_spool(pushing *p);
void push_free_run(pushed_run *run);

void push_append_parameter(byte_buffer *out, const char *key, const char *value);
/* Send a body with PUT, again after a temporary failure.  HOTFN_OK with the last answer. */
hotfn_status push_put_body(pushing *p, http_answer *answer, const char *path, const char *query,
                           const byte_buffer *body);
/* Does the status say that the same request may succeed later? */
bool push_is_temporary(long status);
/* The failure for an answer that is temporary: the collector's own sentence, if there is one. */
hotfn_status push_describe_delay(pushing *p, const http_answer *answer);
/* The failure for an answer that is final. */
hotfn_status push_refuse_answer(pushing *p, const http_answer *answer);

#endif
