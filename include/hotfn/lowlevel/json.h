/* SPDX-License-Identifier: MIT */
/* Unstable.  Writing JSON (RFC 8259) as a stream: a small value is built, written and freed before
 * the next one, so that memory does not grow with the output.  Numbers of 64 bits keep all digits.
 * Values and writers take their memory from malloc. */
#ifndef HOTFN_LOWLEVEL_JSON_H
#define HOTFN_LOWLEVEL_JSON_H

#include <hotfn/env.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Values. */

typedef struct hotfn_json hotfn_json;

/*
 * Create a value; the caller owns it until it is given to hotfn_json_add or hotfn_json_write.
 * NULL if there is no memory; the calls below accept NULL and remember the failure.
 *
 * text     copied; bytes that are not UTF-8 become U+FFFD; NULL gives null.
 * raw      copied; must be a JSON value already.
 * digits   behind the decimal point, 0 to 9.
 *
 * Any thread.  Since 0.1.
 */
HOTFN_API hotfn_json *hotfn_json_create_object(void);
HOTFN_API hotfn_json *hotfn_json_create_array(void);
HOTFN_API hotfn_json *hotfn_json_create_text(const char *text);
HOTFN_API hotfn_json *hotfn_json_create_number(uint64_t value);
HOTFN_API hotfn_json *hotfn_json_create_signed(int64_t value);
HOTFN_API hotfn_json *hotfn_json_create_decimal(double value, uint32_t digits);
HOTFN_API hotfn_json *hotfn_json_create_bool(int32_t value);
HOTFN_API hotfn_json *hotfn_json_create_raw(const char *raw);

/* Append value to an array (key NULL) or an object, which then owns it.  key is kept and must stay
 * valid, so pass a string literal.  Different threads may build different values.  Since 0.1. */
HOTFN_API void hotfn_json_add(hotfn_json *parent, const char *key, hotfn_json *value);

/* Free a value that was not given away, with all that it owns.  NULL is fine.  Any thread.
 * Since 0.1. */
HOTFN_API void hotfn_json_destroy(hotfn_json *value);

/* ---- The stream. */

#define HOTFN_JSON_PAGE 1u /* no "<" in the output: it is put into a page's script element */

typedef struct hotfn_json_writer hotfn_json_writer;

/* Create a writer to write(user, ...); flags is a set of HOTFN_JSON_*.  HOTFN_OK, HOTFN_E_OPTION,
 * HOTFN_E_NO_MEMORY.  Any thread; one writer is used by one thread at a time.  Since 0.1. */
HOTFN_API hotfn_status hotfn_json_writer_create(hotfn_json_writer **out, uint32_t flags,
                                                hotfn_write_fn write, void *user);

/* Free the writer.  HOTFN_OK if all was written; HOTFN_E_IO if write reported an error;
 * HOTFN_E_NO_MEMORY; HOTFN_E_STATE if an object or array is still open, or more than 16 were open
 * at a time; HOTFN_E_OPTION if writer is NULL.  Since 0.1. */
HOTFN_API hotfn_status hotfn_json_writer_destroy(hotfn_json_writer *writer);

/* Open an object or an array in the output, as an item (key NULL) or under key; hotfn_json_end
 * closes the innermost one.  At most 16 are open at a time.  Since 0.1. */
HOTFN_API void hotfn_json_begin_object(hotfn_json_writer *writer, const char *key);
HOTFN_API void hotfn_json_begin_array(hotfn_json_writer *writer, const char *key);
HOTFN_API void hotfn_json_end(hotfn_json_writer *writer);

/* Write value and free it.  After the first failure nothing more is written.  Since 0.1. */
HOTFN_API void hotfn_json_write(hotfn_json_writer *writer, const char *key, hotfn_json *value);

#ifdef __cplusplus
}
#endif

#endif
