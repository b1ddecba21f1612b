/* SPDX-License-Identifier: MIT */
/* JSON on stdout or in a file, for the commands with --json. */
#ifndef HOTFN_TOOL_JSON_OUTPUT_H
#define HOTFN_TOOL_JSON_OUTPUT_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <stdbool.h>
#include <stdio.h>

/* Create a writer to the file out; exits with a message if memory runs out. */
hotfn_json_writer *json_open(FILE *out);
/* Destroy the writer; false after a message if memory ran out and the output is incomplete.  Check
 * for a failed write with ferror. */
bool json_close(hotfn_json_writer *writer);

/* Add a member to an object, or with key NULL an item to an array.  A NULL text is null. */
void json_add_text(hotfn_json *object, const char *key, const char *text);
void json_add_number(hotfn_json *object, const char *key, uint64_t value);
void json_add_decimal(hotfn_json *object, const char *key, double value, uint32_t digits);
void json_add_bool(hotfn_json *object, const char *key, bool value);

/* Write a member of the innermost open object. */
void json_write_text(hotfn_json_writer *writer, const char *key, const char *text);
void json_write_number(hotfn_json_writer *writer, const char *key, uint64_t value);
void json_write_bool(hotfn_json_writer *writer, const char *key, bool value);

#endif
