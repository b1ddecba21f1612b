/* SPDX-License-Identifier: MIT */
/* Pages for generated code near an image, and windows through which text is written while it stays
 * executable.  If the system allows writable code, the protection is changed; otherwise bytes are
 * written through /proc/self/mem, which ignores the protection of private pages. */
#include "os/os.h"
#include "os/remote.h"

#include "os/linux/flush.h"
#include "os/linux/guard.h"
#include "os/linux/maps.h"
#include "os/linux/raw.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { BY_PROTECTION = 1, BY_PROC_MEM = 2 }; /* hfn_os_writable_text.method */

#define LOWEST_ADDRESS UINT64_C(0x10000) /* vm.mmap_min_addr                        */
#if defined(__aarch64__)
#define HIGHEST_ADDRESS UINT64_C(0xfffffffff000) /* 48 bits                                 */
#elif defined(__i386__)
#define HIGHEST_ADDRESS UINT64_C(0xffffe000) /* under a 64-bit kernel                   */
#else
#define HIGHEST_ADDRESS UINT64_C(0x7ffffffff000) /* x86-64, 47 bits                         */
#endif
#define STACK_ROOM_BYTES (UINT64_C(256) << 20) /* the main stack may still grow into it   */
#define MAP_ATTEMPTS 8                         /* others may take the gap that was found  */

uint64_t hfn_os_page_bytes(void)
{
    static uint64_t page_bytes; /* every writer writes the same value */

    if (page_bytes == 0) {
        page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    }
    return page_bytes;
}

static uint64_t round_down(uint64_t address)
{
    return address & ~(hfn_os_page_bytes() - 1);
}

static uint64_t round_up(uint64_t address)
{
    return round_down(address + hfn_os_page_bytes() - 1);
}

/* ---- Near pages. */

typedef struct gap_search {
    uint64_t near_begin, near_end, byte_count;
    uint64_t lowest, highest; /* the pages may start in [lowest, highest] */
    uint64_t previous_end;
    uint64_t below, beneath_heap, above; /* the best starts so far; 0: none */
} gap_search;

/* Prefer gaps near the image: a jump over more than 16 MiB is slower (docs/design/hooks-stubs.md).
 * Pages are placed at the high end of a gap, because the heap may grow into the low end of a gap
 * above the image.  The gap beneath the heap is used at its low end, which is nearer to the image:
 * the heap grows away from it. */
static void consider_gap(gap_search *search, uint64_t begin, uint64_t end, bool beneath_heap)
{
    uint64_t first = begin > search->lowest ? begin : search->lowest;
    uint64_t last;

    if (end < search->byte_count) {
        return;
    }
    last = end - search->byte_count;
    if (last > search->highest) {
        last = search->highest;
    }
    if (last < first) {
        return;
    }
    if (last + search->byte_count <= search->near_begin) {
        search->below = last;
    } else if (first >= search->near_end && beneath_heap) {
        search->beneath_heap = round_up(first);
    } else if (first >= search->near_end) {
        search->above = last;
    }
}

static bool consider_map(void *user, const hfn_map *map)
{
    gap_search *search = user;
    uint64_t begin = map->begin;

    if (map->is_stack) {
        begin = begin > STACK_ROOM_BYTES ? begin - STACK_ROOM_BYTES : 0;
    }
    if (begin > search->previous_end) {
        consider_gap(search, search->previous_end, begin, map->is_heap);
    }
    if (map->end > search->previous_end) {
        search->previous_end = map->end;
    }
    return search->previous_end <= search->highest;
}

static uint64_t find_gap(uint64_t near_begin, uint64_t near_end, uint64_t byte_count,
                         uint64_t range_bytes)
{
    gap_search search = { .near_begin = near_begin,
                          .near_end = near_end,
                          .byte_count = byte_count,
                          .lowest = LOWEST_ADDRESS,
                          .previous_end = LOWEST_ADDRESS };

    if (near_end > range_bytes && near_end - range_bytes > search.lowest) {
        search.lowest = round_up(near_end - range_bytes);
    }
    search.highest = round_down(near_begin + range_bytes - byte_count);
    if (search.highest > HIGHEST_ADDRESS - byte_count) {
        search.highest = HIGHEST_ADDRESS - byte_count;
    }
    if (!hfn_linux_each_map(consider_map, &search)) {
        return 0;
    }
    if (search.previous_end <= search.highest) {
        consider_gap(&search, search.previous_end, HIGHEST_ADDRESS, false);
    }
    if (search.below) {
        return search.below;
    }
    return search.beneath_heap ? search.beneath_heap : search.above;
}

typedef struct gap_list {
    uint64_t begin, end, previous_end;
    hfn_os_gap *out;
    uint32_t count, capacity;
} gap_list;

static void list_gap(gap_list *list, uint64_t begin, uint64_t end)
{
    begin = begin < list->begin ? list->begin : begin;
    end = end > list->end ? list->end : end;
    if (begin < end && list->count < list->capacity) {
        list->out[list->count++] = (hfn_os_gap){ begin, end };
    }
}

static bool list_map(void *user, const hfn_map *map)
{
    gap_list *list = user;
    uint64_t begin = map->begin;

    if (map->is_stack) {
        begin = begin > STACK_ROOM_BYTES ? begin - STACK_ROOM_BYTES : 0;
    }
    if (begin > list->previous_end) {
        list_gap(list, list->previous_end, begin);
    }
    list->previous_end = map->end > list->previous_end ? map->end : list->previous_end;
    return list->previous_end < list->end && list->count < list->capacity;
}

static gap_list begin_list(uint64_t begin, uint64_t end, hfn_os_gap *out, uint32_t capacity)
{
    return (gap_list){ begin < LOWEST_ADDRESS ? LOWEST_ADDRESS : begin,
                       end > HIGHEST_ADDRESS ? HIGHEST_ADDRESS : end,
                       LOWEST_ADDRESS,
                       out,
                       0,
                       capacity };
}

static uint32_t finish_list(gap_list *list, bool was_read)
{
    if (was_read && list->previous_end < list->end) {
        list_gap(list, list->previous_end, list->end);
    }
    return list->count;
}

uint32_t hfn_os_find_gaps(uint64_t begin, uint64_t end, hfn_os_gap *out, uint32_t capacity)
{
    gap_list list = begin_list(begin, end, out, capacity);
    bool was_read = hfn_linux_each_map(list_map, &list);

    return finish_list(&list, was_read);
}

uint32_t hfn_os_remote_find_gaps(const hfn_remote *remote, uint64_t begin, uint64_t end,
                                 hfn_os_gap *out, uint32_t capacity)
{
    gap_list list = begin_list(begin, end, out, capacity);
    bool was_read = hfn_linux_each_map_of(remote->pid, list_map, &list);

    return finish_list(&list, was_read);
}

bool hfn_os_map_at(uint64_t address, uint64_t byte_count)
{
    uint64_t got;

    if (address < LOWEST_ADDRESS || address > HIGHEST_ADDRESS ||
        byte_count > HIGHEST_ADDRESS - address) {
        return false;
    }
    got = hfn_raw_map(address, byte_count, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1);
    if (got == 0 || got == address) {
        return got != 0;
    }
    /* before Linux 4.17 the flag is ignored, and the address is only a hint */
    hfn_os_unmap(got, byte_count);
    return false;
}

/* Try two likely places, which saves reading the list of mappings: directly below the image, and
 * where the kernel maps libraries. */
static uint64_t map_without_search(uint64_t near_begin, uint64_t near_end, uint64_t bytes,
                                   uint64_t range_bytes)
{
    uint64_t below = near_begin > bytes ? round_down(near_begin - bytes) : 0;
    uint64_t got;

    if (near_end - below <= range_bytes && hfn_os_map_at(below, bytes)) {
        return below;
    }
    got = hfn_raw_map(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (got == 0) {
        return 0;
    }
    if (got < near_begin ? near_end - got <= range_bytes
                         : got + bytes - near_begin <= range_bytes) {
        return got;
    }
    hfn_os_unmap(got, bytes);
    return 0;
}

uint64_t hfn_os_map_near(uint64_t near_begin, uint64_t near_end, uint64_t byte_count,
                         uint64_t range_bytes)
{
    uint64_t bytes = round_up(byte_count), address;

    if (bytes == 0 || near_end < near_begin || range_bytes < bytes ||
        near_end - near_begin > range_bytes - bytes) {
        return 0;
    }
    address = map_without_search(near_begin, near_end, bytes, range_bytes);
    if (address != 0) {
        return address;
    }
    for (int attempt = 0; attempt < MAP_ATTEMPTS; attempt++) {
        address = find_gap(near_begin, near_end, bytes, range_bytes);
        if (address == 0) {
            return 0;
        }
        if (hfn_os_map_at(address, bytes)) {
            return address;
        }
    }
    return 0;
}

static bool protect_pages(uint64_t begin, uint64_t byte_count, int protection)
{
    return hfn_raw_syscall3(SYS_mprotect, begin, byte_count, (uint64_t)protection) == 0;
}

/* If a page that was writable cannot become executable (prctl PR_SET_MDWE, SELinux execmem),
 * replace it by an executable mapping of a file with the same bytes, which is still allowed. */
static bool replace_by_file(uint64_t address, uint64_t byte_count)
{
    long fd = hfn_raw_syscall3(SYS_memfd_create, hfn_raw_pointer("hotfn-stubs"), MFD_CLOEXEC, 0);
    uint64_t done = 0;
    long got = 1;
    bool replaced;

    if (fd < 0) {
        return false;
    }
    while (got > 0 && done < byte_count) {
        got = hfn_raw_syscall3(SYS_write, (uint64_t)fd, address + done, byte_count - done);
        done += got > 0 ? (uint64_t)got : 0;
    }
    replaced = done == byte_count && hfn_raw_map(address, byte_count, PROT_READ | PROT_EXEC,
                                                 MAP_PRIVATE | MAP_FIXED, (int)fd) == address;
    hfn_raw_syscall3(SYS_close, (uint64_t)fd, 0, 0);
    return replaced;
}

bool hfn_os_make_executable(uint64_t address, uint64_t byte_count)
{
    hfn_linux_flush_code(address, byte_count);
    return protect_pages(address, round_up(byte_count), PROT_READ | PROT_EXEC) ||
           replace_by_file(address, round_up(byte_count));
}

void hfn_os_unmap(uint64_t address, uint64_t byte_count)
{
    hfn_raw_syscall3(SYS_munmap, address, round_up(byte_count), 0);
}

/* ---- Text windows. */

typedef struct window_search {
    uint64_t begin, end;
    uint64_t covered_end; /* mapped without a hole up to here */
    int protection;       /* of all of it; -1: mixed, -2: nothing seen */
} window_search;

static bool check_map(void *user, const hfn_map *map)
{
    window_search *search = user;

    if (map->end <= search->begin) {
        return true;
    }
    if (map->begin > search->covered_end) {
        return false; /* a hole, or behind the window */
    }
    search->covered_end = map->end;
    if (search->protection == -2) {
        search->protection = map->protection;
    } else if (search->protection != map->protection) {
        search->protection = -1;
    }
    return map->end < search->end;
}

static int open_own_memory(void)
{
    long fd = hfn_raw_syscall3(SYS_openat, (uint64_t)AT_FDCWD, hfn_raw_pointer("/proc/self/mem"),
                               O_RDWR | O_CLOEXEC);
    return fd < 0 ? -1 : (int)fd;
}

bool hfn_os_open_text(hfn_os_writable_text *window, uint64_t begin, uint64_t end)
{
    window_search search = { round_down(begin), round_up(end), round_down(begin), -2 };

    if (!hfn_linux_each_map_from(search.begin, check_map, &search) ||
        search.covered_end < search.end) {
        return false;
    }
    window->begin = search.begin;
    window->end = search.end;
    window->protection = search.protection;
    window->handle = -1;
    window->method = BY_PROTECTION;
    if (search.protection >= 0 && (search.protection & PROT_WRITE)) {
        return true; /* writable code: no protection to change or restore */
    }
    if (search.protection >= 0 && protect_pages(window->begin, window->end - window->begin,
                                                search.protection | PROT_READ | PROT_WRITE)) {
        window->protection |= hfn_linux_guard_of(window->begin, window->end);
        return true;
    }
    window->method = BY_PROC_MEM;
    window->handle = open_own_memory();
    return window->handle >= 0;
}

void hfn_os_populate_text(const hfn_os_writable_text *window, uint64_t begin, uint64_t end)
{
    if (window->method == BY_PROTECTION) {
        hfn_raw_syscall3(
            SYS_madvise, round_down(begin), round_up(end) - round_down(begin),
            MADV_POPULATE_WRITE); /* from Linux 5.14; older kernels fault each page in */
    }
}

typedef struct unaligned_u32 {
    uint32_t value;
} __attribute__((packed, may_alias)) unaligned_u32;

/* HOT PATH: no libc call, because the text being written may be that of memcpy itself. */
void hfn_os_write_text(hfn_os_writable_text *window, uint64_t address, const uint8_t *bytes,
                       uint32_t byte_count)
{
    volatile uint8_t *to = (volatile uint8_t *)(uintptr_t)address;

    if (window->method == BY_PROC_MEM) {
        hfn_raw_syscall6(SYS_pwrite64, (uint64_t)window->handle, hfn_raw_pointer(bytes), byte_count,
                         address, 0, 0); /* first 0: high word of the offset on a 32-bit system */
    } else if (byte_count == sizeof(uint32_t)) { /* fast path for call sites, which are many */
        ((volatile unaligned_u32 *)(volatile void *)to)->value =
            ((const unaligned_u32 *)(const void *)bytes)->value;
    } else {
        for (uint32_t i = 0; i < byte_count; i++) {
            to[i] = bytes[i];
        }
    }
    hfn_linux_flush_code(address, byte_count);
}

void hfn_os_close_text(hfn_os_writable_text *window)
{
    if (window->method == BY_PROC_MEM) {
        hfn_raw_syscall3(SYS_close, (uint64_t)window->handle, 0, 0);
    } else if (!(window->protection & PROT_WRITE)) {
        protect_pages(window->begin, window->end - window->begin, window->protection);
    }
}
