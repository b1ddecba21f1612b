/* SPDX-License-Identifier: MIT */
/* Rows and the system: mappings, the process's identity, and other threads' row pointers.  Raw system
 * calls only, since part of it runs inside fork() of a program whose libc may be hooked. */
#include "counters/rows.h"
#include "counters/thread_row.h"
#include "os/linux/raw.h"
#include "os/os.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

uint8_t *hfn_rows_map(uint64_t byte_count)
{
    uint64_t at = hfn_raw_map(0, byte_count, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

    if (at) {
        hfn_raw3(SYS_madvise, at, byte_count, MADV_DONTDUMP); /* a core is the program's */
    }
    return (uint8_t *)(uintptr_t)at;
}

void hfn_rows_unmap(void *memory, uint64_t byte_count)
{
    hfn_raw3(SYS_munmap, hfn_raw_pointer(memory), byte_count, 0);
}

void hfn_rows_empty(void *memory, uint64_t byte_count)
{
    hfn_raw3(SYS_madvise, hfn_raw_pointer(memory), byte_count, MADV_DONTNEED);
}

bool hfn_rows_wipe_on_fork(uint8_t *memory, uint64_t byte_count)
{
    return hfn_raw3(SYS_madvise, hfn_raw_pointer(memory), byte_count, MADV_WIPEONFORK) == 0;
}

/* ---- Who this process is. */

/* The inode number in "pid:[4026531836]"; 0 where there is no /proc. */
static uint32_t read_pid_namespace(void)
{
    char text[64] = "";
    uint32_t number = 0;
    long length = hfn_raw4(SYS_readlinkat, (uint64_t)AT_FDCWD, hfn_raw_pointer("/proc/self/ns/pid"),
                           hfn_raw_pointer(text), sizeof text);

    for (long i = 0; i < length; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            number = number * 10 + (uint32_t)(text[i] - '0');
        }
    }
    return number;
}

/* A number that no other process of this pid has had. */
static uint32_t make_process_number(uint32_t pid)
{
    uint64_t now[2] = { 0, 0 };
    uint64_t mixed;

    hfn_raw_clock(1, now); /* monotonic */
    mixed = now[0] * 1000000000u + now[1] + ((uint64_t)pid << 40);
    mixed *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32) | 1u;
}

/* A child that sees its parent under the parent's own number is in the same namespace; one in a new
 * namespace sees 0. */
static bool is_beside_parent(void)
{
    return hfn_rows.pid_namespace != 0 && (uint32_t)hfn_raw3(SYS_getppid, 0, 0, 0) == hfn_rows.pid;
}

void hfn_rows_identify_process(bool is_new)
{
    uint32_t pid = (uint32_t)hfn_raw3(SYS_getpid, 0, 0, 0);

    if (!is_new && hfn_rows.process != 0 && hfn_rows.pid == pid) {
        return; /* a later set of the same process: its threads find their rows again */
    }
    if (!is_new || !is_beside_parent()) {
        hfn_rows.pid_namespace = read_pid_namespace();
    }
    hfn_rows.process = make_process_number(pid);
    hfn_rows.pid = pid;
}

/* ---- Other threads' pointers.  The kernel does the access: a thread that ended has given its memory
 * back, and then the call fails instead of us.  Memory that was given to something else does not hold
 * a row's address. */

static bool peek(uint64_t address, uintptr_t *out)
{
    struct iovec here = { out, sizeof *out };
    struct iovec there = { (void *)(uintptr_t)address, sizeof *out };

    return hfn_raw6(SYS_process_vm_readv, hfn_rows.pid, hfn_raw_pointer(&here), 1,
                    hfn_raw_pointer(&there), 1, 0) == (long)sizeof *out;
}

static void poke_zero(uint64_t address)
{
    uintptr_t zero = 0;
    struct iovec here = { &zero, sizeof zero };
    struct iovec there = { (void *)(uintptr_t)address, sizeof zero };

    hfn_raw6(SYS_process_vm_writev, hfn_rows.pid, hfn_raw_pointer(&here), 1,
             hfn_raw_pointer(&there), 1, 0);
}

void hfn_rows_forget_threads(void)
{
    uint32_t used = __atomic_load_n(&hfn_rows.header->cells_used, __ATOMIC_RELAXED);

    hfn_thread_row = NULL;
    for (uint32_t i = 0; i < used && i < hfn_rows.thread_capacity; i++) {
        const hfn_thread_cell *cell = &hfn_rows.cells[i];
        uintptr_t row = (uintptr_t)(hfn_rows.rows + (uint64_t)i * hfn_rows.row_bytes), seen = 0;

        if (cell->process == hfn_rows.process && cell->pid == hfn_rows.pid &&
            peek(cell->row_variable, &seen) && seen == row) {
            poke_zero(cell->row_variable);
        }
    }
}
