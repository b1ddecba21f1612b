/* SPDX-License-Identifier: MIT */
/* Replies in JSON. */
#ifndef HOTFN_COLLECTOR_REPLY_H
#define HOTFN_COLLECTOR_REPLY_H

#include "request.h"

#include <hotfn/lowlevel/json.h>

/* Open the object of the reply; NULL without memory. */
hotfn_json_writer *begin_reply(request *r);
/* Close it.  step is the last result of sqlite3_step: anything but SQLITE_DONE refuses the
 * request. */
void end_reply(request *r, hotfn_json_writer *out, const store *s, int step);
void write_column_text(hotfn_json_writer *out, const char *key, sqlite3_stmt *q, int column);
void write_column_number(hotfn_json_writer *out, const char *key, sqlite3_stmt *q, int column);
void write_number(hotfn_json_writer *out, const char *key, uint64_t value);
void write_text(hotfn_json_writer *out, const char *key, const char *value);
/* A value with at most three digits behind the point; null if it is not a number. */
void write_decimal(hotfn_json_writer *out, const char *key, double value);

#endif
