/* SPDX-License-Identifier: MIT */
/* The files in a folder that `hotfn kit` makes. */
#ifndef HOTFN_TOOL_KIT_H
#define HOTFN_TOOL_KIT_H

#include <stdbool.h>

#define KIT_PLAN HOTFN_KIT_PLAN /* plan, functions, names, the id of the image */
#define KIT_LIST HOTFN_KIT_LIST /* the functions to hook */
#define KIT_REFUSED "refused.json"
#define KIT_FACTS "kit.json"
#define KIT_START "count" /* the start script; for Windows with .cmd */
#define KIT_TOOL "hotfn"
#define KIT_LIBRARIES "lib"
#define KIT_TOKEN "token"
/* Settings of `hotfn run --kit`, one on a line, as a key, a space and a value. */
#define KIT_SETTINGS "settings.txt"

enum { KIT_FOLDER_BYTES = 4096 };

/* Where `hotfn run --kit` sends the record of each run; url NULL: nowhere. */
typedef struct kit_sending {
    const char *url, *app, *version, *token_file; /* token_file is copied into the kit */
} kit_sending;

/* kit_files.c.  Each returns false after a message. */
bool kit_make_folder(const char *path);
bool kit_copy(const char *from, const char *folder, const char *name);
/* Copy the libraries that this process has loaded, except those of the C library, which every
 * system has. */
bool kit_copy_libraries(const char *folder);
/* Find the folder with hotfn.exe, its agent and their notices: the given one, or if that is NULL,
 * `windows` next to the agent of this system.  Copy them from there to the kit. */
bool kit_find_windows(const char *given, char out[KIT_FOLDER_BYTES]);
bool kit_copy_windows(const char *from, const char *folder);
/* kit_start.c: write the start script and the settings, and copy the token. */
bool kit_write_start(const char *folder, bool is_windows);
bool kit_write_settings(const char *folder, const char *program, const kit_sending *sending);

#endif
