/* SPDX-License-Identifier: MIT */
/* Increments of a running program.  One increment at a time is on its way: its bytes stay the same
 * until the collector has acknowledged it, because the collector recognises a repetition by them.
 * What happens meanwhile is part of the next one. */
#include "push/push_inside.h"
#include "wire_difference.h"

#include <stdlib.h>
#include <string.h>

struct hotfn_push_series {
    hotfn_push_options options;
    char folder[4096], client[33];
    uint32_t every_seconds, count; /* of increments that were made */
    wire_run sent;                 /* what all increments together have */
    pushed_run waiting;            /* the increment that is not acknowledged */
    bool is_waiting;
};

hotfn_status hotfn_push_series_open(hotfn_push_series **out, const hotfn_push_options *options,
                                    uint32_t every_seconds, hotfn_error *err)
{
    pushing p = { .options = options, .err = err };
    hotfn_status status = push_check_options(options, err);

    if (status == HOTFN_OK && (!out || every_seconds < 1 || every_seconds > 300)) {
        status = push_fail(err, HOTFN_E_OPTION, "increments are sent every 1 to 300 seconds");
    }
    status = status ? status : push_find_state(&p);
    hotfn_push_series *s = status == HOTFN_OK ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        return status ? status : push_fail(err, HOTFN_E_NO_MEMORY, "not enough memory");
    }
    s->options = *options;
    s->every_seconds = every_seconds;
    memcpy(s->folder, p.folder, sizeof s->folder);
    memcpy(s->client, p.client, sizeof s->client);
    *out = s;
    return HOTFN_OK;
}

/* Make the next increment.  Nothing of s changes on failure. */
static hotfn_status make_increment(hotfn_push_series *s, pushing *p, const hotfn_record *record)
{
    pushed_run run = { .sequence = s->count + 1, .every_seconds = s->every_seconds };
    wire_run now = { 0 };
    byte_buffer whole = { 0 };
    hotfn_status status = push_describe_run(p, &run, record);

    status = status ? status : wire_encode_run(&whole, record, true, p->err);
    status = status ? status : wire_encode_names(&run.names, record, true, p->err);
    if (status == HOTFN_OK && (wire_decode_run(&now, whole.data, whole.used) ||
                               !wire_encode_difference(&run.body, &now, &s->sent))) {
        status = push_fail(p->err, HOTFN_E_NO_MEMORY, "not enough memory");
    }
    buffer_free(&whole);
    if (status != HOTFN_OK) {
        push_free_run(&run);
        wire_free(&now);
        return status;
    }
    wire_free(&s->sent);
    s->sent = now;
    s->waiting = run;
    s->is_waiting = true;
    s->count++;
    return HOTFN_OK;
}

/* Send the increment that waits.  *unavailable: the collector cannot store it now; the increment
 * still waits, or, after the end of the program, is in the spool. */
static hotfn_status send_waiting(hotfn_push_series *s, pushing *p, bool is_last, bool *unavailable)
{
    hotfn_status status = push_send_run(p, &s->waiting, unavailable, &p->result->state);

    if (status == HOTFN_OK && *unavailable && is_last) {
        status = push_spool_run(p, &s->waiting);
        s->is_waiting = false;
    } else if (!*unavailable) {
        s->is_waiting = false;
    }
    if (!s->is_waiting) {
        push_free_run(&s->waiting);
        s->waiting = (pushed_run){ 0 };
    }
    return status;
}

hotfn_status hotfn_push_series_add(hotfn_push_series *s, const hotfn_record *record,
                                   hotfn_push_result *result, hotfn_error *err)
{
    hotfn_push_result own = HOTFN_PUSH_RESULT_INIT;
    hotfn_push_options options = s->options;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    pushing p = { .options = &options, .result = &own, .err = err };
    bool unavailable = false;

    memcpy(p.folder, s->folder, sizeof p.folder);
    memcpy(p.client, s->client, sizeof p.client);
    hotfn_record_get_info(record, &info);
    bool is_last = info.state != HOTFN_RECORD_LIVE;
    if (!is_last) { /* the next call repeats it */
        options.attempts = 1;
        options.timeout_ms = s->every_seconds * 1000;
    }
    hotfn_status status = s->is_waiting ? send_waiting(s, &p, is_last, &unavailable) : HOTFN_OK;
    if (status == HOTFN_OK && !s->is_waiting) {
        status = make_increment(s, &p, record);
        status = status ? status : send_waiting(s, &p, is_last, &unavailable);
    }
    if (status == HOTFN_OK && is_last && own.state != HOTFN_PUSH_SPOOLED) {
        push_send_spool(&p);
    }
    if (result && result->size >= sizeof own) {
        *result = own;
    }
    return status;
}

void hotfn_push_series_close(hotfn_push_series *s)
{
    if (s) {
        wire_free(&s->sent);
        push_free_run(&s->waiting);
        free(s);
    }
}
