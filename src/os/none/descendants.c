/* SPDX-License-Identifier: MIT */
/* This system cannot list processes: every function finds none. */
#include "os/descendants.h"

void hfn_os_each_descendant(uint32_t pid, hfn_os_descendant_fn visit, void *user)
{
    (void)pid;
    (void)visit;
    (void)user;
}

bool hfn_os_get_process_facts(uint32_t pid, hfn_os_process_facts *out)
{
    (void)pid;
    *out = (hfn_os_process_facts){ 0 };
    return false;
}

bool hfn_os_get_process_program(uint32_t pid, char *out, size_t capacity)
{
    (void)pid;
    (void)out;
    (void)capacity;
    return false;
}

bool hfn_os_get_ended_cpu_ns(uint32_t pid, uint64_t *own_ns, uint64_t *children_ns)
{
    (void)pid;
    (void)own_ns;
    (void)children_ns;
    return false;
}
