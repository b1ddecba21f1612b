/* SPDX-License-Identifier: MIT */
/* The calls of the operating system that sending needs, apart from HTTP: files.c, and
 * files_windows.c with the same contracts.  Paths are UTF-8.  What fails sets errno. */
#ifndef HOTFN_PUSH_FILES_H
#define HOTFN_PUSH_FILES_H

#include "buffer.h"

enum { PUSH_PATH_BYTES = 4096 };

/* The folder for the state of hotfn of the current user, which may not exist; false if the
 * environment does not name it. */
bool files_find_state(char out[PUSH_PATH_BYTES]);
/* Create a folder that only the user can read, and the folders above it. */
bool files_make_folders(const char *path);
/* Write a file that is on the disk whole, or not at all. */
bool files_replace(const char *path, const void *bytes, size_t byte_count);
/* Append the bytes of a file. */
bool files_read(const char *path, byte_buffer *out);
bool files_exist(const char *path);
void files_remove(const char *path);
/* Call each with the name and the size of each file, until it returns false. */
void files_for_each(const char *folder, bool (*each)(void *user, const char *name, uint64_t bytes),
                    void *user);

bool fill_random(void *out, size_t byte_count);
void sleep_ms(uint32_t ms);

#endif
