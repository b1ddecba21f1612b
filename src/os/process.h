/* SPDX-License-Identifier: MIT */
/* Queries about this process, and about others by their process id.  os/remote.h changes other
 * processes. */
#ifndef HFN_OS_PROCESS_H
#define HFN_OS_PROCESS_H

#include "os/files.h"

uint32_t hfn_os_get_process_id(void);
/* True only if no process has that id. */
bool hfn_os_process_is_gone(uint32_t pid);
/* The processor time of all threads of the process, including ended threads; 0 if it is gone. */
uint64_t hfn_os_get_process_cpu_ns(uint32_t pid);

/* A path by which the program's file can be opened, even after it was deleted. */
const char *hfn_os_get_program_path(void);
/* The original path of that file; false if it is unknown. */
bool hfn_os_get_program_name(char *out, size_t capacity);
/* The path that was passed to exec; false if it is unknown.  is_script: the path is that of a
 * script whose interpreter is this program. */
bool hfn_os_get_start_path(char *out, size_t capacity, bool *is_script);
/* "" if it is unknown. */
void hfn_os_get_working_folder(char *out, size_t capacity);

uint32_t hfn_os_count_processors(void);
/* Only the processors that the calling thread may run on. */
uint32_t hfn_os_count_allowed_processors(void);
/* True if a quota limits the processor time of this process and others together. */
bool hfn_os_has_processor_quota(void);
/* The limit of the process's address space in bytes; UINT64_MAX if there is none. */
uint64_t hfn_os_get_address_limit(void);
/* False if the system cannot supply random bytes now. */
bool hfn_os_get_random(void *out, size_t byte_count);

/* Register functions that are called around each fork() of this process.  The registration cannot
 * be removed. */
bool hfn_os_on_fork(void (*before)(void), void (*after_in_parent)(void),
                    void (*after_in_child)(void));

#endif
