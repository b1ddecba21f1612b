/* SPDX-License-Identifier: MIT */
/* The source lines that DWARF knows of one ELF file; built where libdw is there. */
#ifndef HOTFN_TOOL_DWARF_LINES_H
#define HOTFN_TOOL_DWARF_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dwarf_lines dwarf_lines;

/* folders: absolute, with ':' between them, in which a separate file is looked for by build-id.
 * NULL if there is no memory; a file without DWARF knows no lines. */
dwarf_lines *dwarf_lines_open(const char *path, const char *folders);
void dwarf_lines_close(dwarf_lines *lines); /* NULL is fine */

/* Where the code at a link address was written.  The line is one of the function itself: where the
 * code was inlined from another function, the line that called it counts. */
bool dwarf_lines_find(dwarf_lines *lines, uint64_t address, char *file, size_t file_bytes,
                      uint32_t *line);

/* What was inlined at a link address: depth 0 is the innermost piece of source.  "" and 0 for what
 * is not known; false if there is no such depth. */
bool dwarf_lines_frame(dwarf_lines *lines, uint64_t address, uint32_t depth, char *function,
                       size_t function_bytes, char *file, size_t file_bytes, uint32_t *line);

#endif
