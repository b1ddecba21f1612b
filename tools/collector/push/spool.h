/* SPDX-License-Identifier: MIT */
/* What this installation keeps: its random id, and records that could not be sent yet.  A record
 * in the spool is one file, UUID-SEQUENCE.run: the address, the image and the query in three
 * lines, then the body.  The names of its build are in IMAGE.names. */
#ifndef HOTFN_PUSH_SPOOL_H
#define HOTFN_PUSH_SPOOL_H

#include "buffer.h"

#include <hotfn/push.h>

/* Find and create the folder. */
hotfn_status state_find_folder(char out[4096], const hotfn_push_options *options, hotfn_error *err);
/* The id of this installation: 32 hexadecimal digits, made on first use. */
hotfn_status state_get_client(char out[33], const char *folder, hotfn_error *err);

/* Write a file of the spool, whole or not at all.  HOTFN_E_LIMIT if the spool would become
 * larger than max_bytes. */
hotfn_status spool_write(const char *folder, const char *name, const byte_buffer *bytes,
                         uint64_t max_bytes, hotfn_error *err);
/* Read a file of the spool; false if it cannot be read. */
bool spool_read(const char *folder, const char *name, byte_buffer *out);
void spool_remove(const char *folder, const char *name);

/* Call each with the name of every record in the spool, until it returns false. */
void spool_for_each(const char *folder, bool (*each)(void *user, const char *name), void *user);

#endif
