/* SPDX-License-Identifier: MIT */
/* The mappings of a process, read from /proc/PID/maps by raw system calls without allocation. */
#ifndef HFN_OS_LINUX_MAPS_H
#define HFN_OS_LINUX_MAPS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_map {
    uint64_t begin, end;
    int protection; /* PROT_* */
    bool is_stack;  /* the main thread's, which grows down */
    bool is_heap;   /* brk()'s, which grows up             */
    bool is_vdso;
    bool is_file;
} hfn_map;

/* Visit the mappings by rising address until visit returns false.  Returns false if the file cannot
 * be read. */
typedef bool (*hfn_map_fn)(void *user, const hfn_map *map);
bool hfn_linux_each_map(hfn_map_fn visit, void *user);
/* The same for another process. */
bool hfn_linux_each_map_of(uint32_t pid, hfn_map_fn visit, void *user);
/* Like hfn_linux_each_map.  If the kernel supports queries by address, which are much faster in a
 * large process, the first visited mapping contains `from`, and is_stack, is_heap and
 * is_vdso are not set. */
bool hfn_linux_each_map_from(uint64_t from, hfn_map_fn visit, void *user);

#endif
