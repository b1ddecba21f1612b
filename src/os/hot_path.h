/* SPDX-License-Identifier: MIT */
/* HOT PATH: the system calls that are allowed in a thread of the program at any instruction, also
 * in a signal handler and around fork().  No function uses libc, a lock, errno or a vector
 * register. */
#ifndef HFN_OS_HOT_PATH_H
#define HFN_OS_HOT_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t hfn_os_hot_thread_id(void);
uint32_t hfn_os_hot_process_id(void);
uint32_t hfn_os_hot_parent_id(void);
/* True only if the process has no such thread, or no such process exists. */
bool hfn_os_hot_thread_is_gone(uint32_t pid, uint32_t tid);
bool hfn_os_hot_process_is_gone(uint32_t pid);
/* Identifies the PID namespace: process ids are comparable between processes for which this is
 * equal.  0 if it is unknown. */
uint32_t hfn_os_hot_process_namespace(void);
/* The calling thread's name, into 16 bytes. */
void hfn_os_hot_thread_name(char *out);
/* What the system reports of a thread of any process of this user. */
typedef struct hfn_thread_facts {
    char name[16];
    uint64_t cpu_ns; /* processor time; 0: unknown */
} hfn_thread_facts;
/* False if there is no such thread. */
bool hfn_os_hot_read_thread(uint32_t pid, uint32_t tid, hfn_thread_facts *out);

/* Processor time of the calling thread, by a system call; 0: unknown. */
uint64_t hfn_os_hot_cpu_ns(void);
uint64_t hfn_os_hot_wall_ns(void);
uint64_t hfn_os_hot_monotonic_ns(void);

/* Addresses for pages of zeros; hfn_os_hot_commit_pages must precede their use. */
void *hfn_os_hot_reserve_pages(uint64_t byte_count);
/* Pages of zeros without a reservation of memory, excluded from dumps; NULL without address
 * space. */
void *hfn_os_hot_map_pages(uint64_t byte_count);
void hfn_os_hot_unmap_pages(void *at, uint64_t byte_count);
/* Discard the contents of the pages, so that they read as zeros. */
void hfn_os_hot_clear_pages(void *at, uint64_t byte_count);
/* Give memory to pages of a live record's row, as hfn_os_commit_shared does; false without
 * memory. */
bool hfn_os_hot_commit_pages(void *at, uint64_t byte_count);
/* Make the pages read as zeros in children of fork(); false if the system does not support it. */
bool hfn_os_hot_clear_on_fork(void *at, uint64_t byte_count);

/* Whether a system call disables the processor's counter (TSC) for its thread. */
bool hfn_os_hot_disables_tsc(long number, unsigned long option, unsigned long mode);

/* The groups of system calls that this file's functions make. */
#define HFN_CALLS_CLAIM 1u  /* thread_id, process_id, thread_is_gone, wall_ns, thread_name  */
#define HFN_CALLS_OTHERS 2u /* process_is_gone, read_word                                   */
#define HFN_CALLS_TIME 4u   /* cpu_ns, read_thread                                          */
#define HFN_CALLS_FORK 8u   /* process_id, parent_id, process_namespace, monotonic_ns, pages */
#define HFN_CALLS_CHECK 16u /* process_id, wall_ns, read_bytes, pages                       */
#define HFN_CALLS_ALL 31u
/* The groups that would end the program, or trap, once it has made a system call with these
 * arguments, because the call limits those that a thread may make (seccomp: strict mode, or a
 * filter, which is run here).  forbidden: those of earlier calls. */
uint32_t hfn_os_hot_find_forbidden(long number, const unsigned long words[3], uint32_t forbidden);

/* Read bytes of this process; returns how many of the first ones are readable. */
size_t hfn_os_hot_read_bytes(uint64_t address, void *out, size_t byte_count);
/* Read or write a word of this process; false if its address is not mapped. */
bool hfn_os_hot_read_word(uint64_t address, uintptr_t *out);
bool hfn_os_hot_write_word(uint64_t address, uintptr_t value);
/* Set the row's word (os/row_word.h) of all threads to 0; false where no call of the system does
 * it. */
bool hfn_os_hot_clear_row_words(void);

#endif
