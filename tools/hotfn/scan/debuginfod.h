/* SPDX-License-Identifier: MIT */
/* Debug files from the servers that $DEBUGINFOD_URLS names. */
#ifndef HOTFN_TOOL_DEBUGINFOD_H
#define HOTFN_TOOL_DEBUGINFOD_H

#include <hotfn/env.h>
#include <stdbool.h>

/* Whether $DEBUGINFOD_URLS is set. */
bool debuginfod_is_wanted(void);
/* Set the env's debug_file_fn, if $DEBUGINFOD_URLS is set. */
void debuginfod_set_env(hotfn_env *env);

/* Find the debug file of the image at path with that build-id, in the cache of debuginfod or on a
 * server, and store its path in file (file_bytes, NUL included).  False if there is none, or after
 * a failure; a message reports the first failure. */
bool debuginfod_find(const char *path, const uint8_t *id, uint32_t id_bytes, char *file,
                     size_t file_bytes);

#endif
