/* SPDX-License-Identifier: MIT */
/* This process and the existence of others.  Changing another process: os/remote.h. */
#ifndef HFN_OS_PROCESS_H
#define HFN_OS_PROCESS_H

#include "os/files.h"

uint32_t hfn_os_get_process_id(void);
/* True only if no process has that id. */
bool hfn_os_process_is_gone(uint32_t pid);
/* The processor time of all threads of the process, ended ones included; 0 if it is gone. */
uint64_t hfn_os_get_process_cpu_ns(uint32_t pid);

/* The program's file: a path that can be opened, also after the file was deleted; and its name,
 * false if it is unknown. */
const char *hfn_os_get_program_path(void);
bool hfn_os_get_program_name(char *out, size_t capacity);
/* The path by which exec started this program; false if it is unknown.  is_script: it is a file
 * that names this program as its interpreter. */
bool hfn_os_get_start_path(char *out, size_t capacity, bool *is_script);
/* "" if it is unknown. */
void hfn_os_get_working_folder(char *out, size_t capacity);

uint32_t hfn_os_count_processors(void);
/* Those that the calling thread may run on. */
uint32_t hfn_os_count_allowed_processors(void);
/* True if a quota limits the processor time of this process and others together. */
bool hfn_os_has_processor_quota(void);
/* Bytes of addresses that the process may use; UINT64_MAX without a limit. */
uint64_t hfn_os_get_address_limit(void);
/* False if the system has none to give now. */
bool hfn_os_get_random(void *out, size_t byte_count);

/* Register functions that are called around each fork() of this process.  The registration cannot
 * be removed. */
bool hfn_os_on_fork(void (*before)(void), void (*after_in_parent)(void),
                    void (*after_in_child)(void));

#endif
