/* SPDX-License-Identifier: MIT */
/* HOT PATH: no row can be mapped, so no thread is ever counted. */
#include "os/hot_path.h"

#include "os/row_word.h"

__thread uint8_t *hfn_thread_row __attribute__((tls_model("initial-exec")));

uint32_t hfn_os_hot_thread_id(void)
{
    return 0;
}

uint32_t hfn_os_hot_process_id(void)
{
    return 0;
}

uint32_t hfn_os_hot_parent_id(void)
{
    return 0;
}

bool hfn_os_hot_thread_is_gone(uint32_t pid, uint32_t tid)
{
    (void)pid;
    (void)tid;
    return false;
}

bool hfn_os_hot_process_is_gone(uint32_t pid)
{
    (void)pid;
    return false;
}

uint32_t hfn_os_hot_process_namespace(void)
{
    return 0;
}

void hfn_os_hot_thread_name(char *out)
{
    out[0] = 0;
}

bool hfn_os_hot_read_thread(uint32_t pid, uint32_t tid, hfn_thread_facts *out)
{
    (void)pid;
    (void)tid;
    (void)out;
    return false;
}

uint64_t hfn_os_hot_cpu_ns(void)
{
    return 0;
}

uint64_t hfn_os_hot_wall_ns(void)
{
    return 0;
}

uint64_t hfn_os_hot_monotonic_ns(void)
{
    return 0;
}

void *hfn_os_hot_map_pages(uint64_t byte_count)
{
    (void)byte_count;
    return NULL;
}

void hfn_os_hot_unmap_pages(void *at, uint64_t byte_count)
{
    (void)at;
    (void)byte_count;
}

void hfn_os_hot_clear_pages(void *at, uint64_t byte_count)
{
    (void)at;
    (void)byte_count;
}

bool hfn_os_hot_clear_on_fork(void *at, uint64_t byte_count)
{
    (void)at;
    (void)byte_count;
    return false;
}

bool hfn_os_hot_disables_tsc(long number, unsigned long option, unsigned long mode)
{
    (void)number, (void)option, (void)mode;
    return false;
}

uint32_t hfn_os_hot_find_forbidden(long number, const unsigned long words[3], uint32_t forbidden)
{
    (void)number;
    (void)words;
    return forbidden;
}

size_t hfn_os_hot_read_bytes(uint64_t address, void *out, size_t byte_count)
{
    (void)address, (void)out, (void)byte_count;
    return 0;
}

bool hfn_os_hot_read_word(uint64_t address, uintptr_t *out)
{
    (void)address;
    (void)out;
    return false;
}

bool hfn_os_hot_write_word(uint64_t address, uintptr_t value)
{
    (void)address;
    (void)value;
    return false;
}

void *hfn_os_hot_reserve_pages(uint64_t byte_count)
{
    (void)byte_count;
    return NULL;
}

bool hfn_os_hot_commit_pages(void *at, uint64_t byte_count)
{
    (void)at;
    (void)byte_count;
    return false;
}

bool hfn_os_hot_clear_row_words(void)
{
    return false;
}
