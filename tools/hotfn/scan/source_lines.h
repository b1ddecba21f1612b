/* SPDX-License-Identifier: MIT */
/* Source lines for reports. */
#ifndef HOTFN_TOOL_SOURCE_LINES_H
#define HOTFN_TOOL_SOURCE_LINES_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>
#include <stdbool.h>

/* A hotfn_line_fn for hotfn_env.line_fn.  Not thread-safe. */
int32_t hotfn_tool_source_line(void *user, const char *path, const uint8_t *id, uint32_t id_bytes,
                               uint64_t rva, char *file, size_t file_bytes, uint32_t *line);

/* A hotfn_inlined_fn for hotfn_env.inlined_fn.  Not thread-safe. */
int32_t hotfn_tool_source_frame(void *user, const char *path, const uint8_t *id, uint32_t id_bytes,
                                uint64_t rva, uint32_t depth, char *function, size_t function_bytes,
                                char *file, size_t file_bytes, uint32_t *line);

/* Also search this folder for separate debug files and PDBs.  The string must stay valid.  False if
 * memory runs out. */
bool hotfn_tool_add_source_dir(const char *folder);

#endif
