/* SPDX-License-Identifier: MIT */
/* The processes that a process started, as they are now. */
#ifndef HFN_OS_DESCENDANTS_H
#define HFN_OS_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hfn_os_process_facts {
    uint64_t start;       /* differs for each process that had this id  */
    uint64_t program;     /* differs for each program that it ran (exec) */
    uint64_t cpu_ns;      /* processor time of its own threads          */
    uint64_t children_ns; /* of the processes that it waited for */
} hfn_os_process_facts;

/* Visit the children of a process, their children, and so on. */
typedef void (*hfn_os_descendant_fn)(void *user, uint32_t pid);
void hfn_os_each_descendant(uint32_t pid, hfn_os_descendant_fn visit, void *user);
/* False if the process is gone. */
bool hfn_os_get_process_facts(uint32_t pid, hfn_os_process_facts *out);
/* The path of the file that the process runs; false if it is gone or unreadable. */
bool hfn_os_get_process_program(uint32_t pid, char *out, size_t capacity);
/* Processor time of a child of this process that has ended and is not reaped: its own, and that of
 * the processes that it waited for. */
bool hfn_os_get_ended_cpu_ns(uint32_t pid, uint64_t *own_ns, uint64_t *children_ns);

#endif
