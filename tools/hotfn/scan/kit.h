/* SPDX-License-Identifier: MIT */
/* What is in a folder that `hotfn kit` makes. */
#ifndef HOTFN_TOOL_KIT_H
#define HOTFN_TOOL_KIT_H

#include <stdbool.h>

#define KIT_PLAN HOTFN_KIT_PLAN /* plan, functions, names, the id of the image */
#define KIT_LIST HOTFN_KIT_LIST
#define KIT_REFUSED "refused.json"
#define KIT_FACTS "kit.json"
#define KIT_START "count"
#define KIT_TOOL "hotfn"
#define KIT_LIBRARIES "lib"

/* kit_files.c: each false after a message. */
bool kit_make_folder(const char *path);
bool kit_copy(const char *from, const char *folder, const char *name);
/* Our own libraries, but for those of the C library, which every system has. */
bool kit_copy_libraries(const char *folder);
bool kit_write_start(const char *folder, const char *program);

#endif
