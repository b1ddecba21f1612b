/* SPDX-License-Identifier: MIT */
/* The contract for child processes: start a program, pass signals on to it, wait until it ends.  It
 * also has the queries about programs and processes that a launcher needs. */
#ifndef HFN_OS_CHILD_H
#define HFN_OS_CHILD_H

#include "os/error.h"

#include <hotfn/env.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFN_OS_PATH_BYTES 4096u

/* ---- Programs. */

/* Find the file that a start of name would run, by PATH if name has no slash.  0, or an error that
 * hfn_os_is_missing or hfn_os_is_denied recognises. */
hfn_os_error hfn_os_find_program(const char *name, char path[HFN_OS_PATH_BYTES]);
/* Visit the libraries that the program loads at its start, by their paths, as its dynamic loader
 * lists them; no code of the program runs.  False if they cannot be listed. */
typedef void (*hfn_os_library_fn)(void *user, const char *path);
bool hfn_os_each_library(const char *loader, const char *program, hfn_os_library_fn visit,
                         void *user);
bool hfn_os_is_folder(const char *path);
/* The folder for temporary files, without a slash at its end. */
void hfn_os_get_temporary_folder(char path[HFN_OS_PATH_BYTES]);
bool hfn_os_is_readable(const char *path);
/* Does the loader ignore LD_PRELOAD for the program, because it gains rights (setuid, setgid,
 * capabilities)? */
bool hfn_os_gains_rights(const char *path);
/* Identify the file; false if there is none. */
bool hfn_os_identify_file(const char *path, uint64_t *device, uint64_t *inode);
/* Store the path of the program or library that contains this code; false if it is not known. */
bool hfn_os_own_path(char path[HFN_OS_PATH_BYTES]);
/* Can other processes open the files of this process by path (/proc)? */
bool hfn_os_can_share_files(void);
/* The path by which other processes open the file that this process has open as fd. */
void hfn_os_shared_path(int fd, char *path, size_t path_bytes);
/* The string that the loader substitutes for $PLATFORM in paths; "" if it is not known. */
const char *hfn_os_platform(void);

/* Windows: store the name by which an import list can name the library at path; false if the
 * system's code page lacks a letter. */
bool hfn_os_get_import_name(const char *path, char *out, size_t capacity);

/* ---- A child. */

enum { HFN_OS_PARKED_BYTES = 2 };

typedef struct hfn_os_child {
    uint32_t pid;      /* 0: not started */
    int32_t exit_code; /* 0..255, and -signal if it was killed by one; Windows: all 32 bits */
    bool passes_signals;
    int64_t process, order; /* the system's; 0: none */
    uint64_t entry;         /* parked: of its program, and the code there */
    uint8_t entry_code[HFN_OS_PARKED_BYTES];
} hfn_os_child;

typedef struct hfn_os_child_options {
    const char *file;
    const char *const *command;
    const char *const *settings; /* "NAME=VALUE": the only changes to the child's environment */
    uint32_t setting_count;
    bool passes_signals; /* as HOTFN_LAUNCH_PASS_SIGNALS of hotfn/launch.h */
    bool is_parked;      /* Linux: the program stands at its entry point, in a loop that replaces
                          * the code there, until the code is restored */
    /* Where no setting makes the loader load a library: the agent's file, and its order. */
    const char *agent;
    const void *order;
    uint32_t order_bytes;
} hfn_os_child_options;

/* Start the child with the signals and the environment of this process.  hfn_os_is_busy: another
 * child gets the signals of this process. */
hfn_os_error hfn_os_child_start(hfn_os_child *child, const hfn_os_child_options *options,
                                const hotfn_env *env);
/* Wait until the child has ended, at most timeout_ns (UINT64_MAX: without limit).  It is not
 * reaped. */
bool hfn_os_child_wait(const hfn_os_child *child, uint64_t timeout_ns);
/* Reap the child, which has ended, and store its exit code. */
void hfn_os_child_reap(hfn_os_child *child);
/* End the child at once, and reap it. */
void hfn_os_child_kill(hfn_os_child *child);
/* Restore the signal actions that this process had before the child was started. */
void hfn_os_child_release_signals(hfn_os_child *child);

/* Is the file open as fd mapped into the process?  A process that has ended maps nothing. */
bool hfn_os_process_maps_file(uint32_t pid, int fd);

#endif
