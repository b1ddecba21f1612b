/* SPDX-License-Identifier: MIT */
/* Source lines of one ELF file, from its DWARF.  Built only if libdw is present. */
#ifndef HOTFN_TOOL_DWARF_LINES_H
#define HOTFN_TOOL_DWARF_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dwarf_lines dwarf_lines;

/* folders: absolute paths with ':' between them, searched by build-id for a separate debug file.
 * NULL if memory runs out.  For a file without DWARF, no line is found later. */
dwarf_lines *dwarf_lines_open(const char *path, const char *folders);
void dwarf_lines_close(dwarf_lines *lines); /* NULL is fine */

/* Find the source line of the code at a link address.  The line is always in the function that
 * contains the code: for code inlined from another function it is the line of that call. */
bool dwarf_lines_find(dwarf_lines *lines, uint64_t address, char *file, size_t file_bytes,
                      uint32_t *line);

/* Find one function of the chain of inlined calls at a link address; depth 0 is the innermost
 * function.  Unknown names and lines are "" and 0; false if the chain is not that deep. */
bool dwarf_lines_find_frame(dwarf_lines *lines, uint64_t address, uint32_t depth, char *function,
                            size_t function_bytes, char *file, size_t file_bytes, uint32_t *line);

#endif
