/* SPDX-License-Identifier: MIT */
/*
 * Pages for generated code near an image, and windows through which text is written while it stays
 * executable.  The system reserves addresses in units of 64 KiB, but stubs of punned jumps need
 * single pages, so the units that were reserved here are remembered and filled page by page.
 */
#include "os/os.h"

#include "os/windows/nt.h"

#include <string.h>

enum { MAX_UNITS = 8192, MAP_ATTEMPTS = 8 };
#define PAGE UINT64_C(4096)
#define LOWEST_ADDRESS UINT64_C(0x10000)
#if defined(_WIN64)
#define HIGHEST_ADDRESS UINT64_C(0x7ffffffe0000)
#else
#define HIGHEST_ADDRESS UINT64_C(0x7ffe0000)
#endif

static uint64_t round_down(uint64_t address, uint64_t unit)
{
    return address & ~(unit - 1);
}

static uint64_t round_up(uint64_t address, uint64_t unit)
{
    return round_down(address + unit - 1, unit);
}

/* Describe the run of pages at address; false behind the last one. */
static bool query_pages(uint64_t address, MEMORY_BASIC_INFORMATION *out)
{
    return VirtualQuery((void *)(uintptr_t)address, out, sizeof *out) != 0;
}

static uint64_t get_end(const MEMORY_BASIC_INFORMATION *info)
{
    return (uint64_t)(uintptr_t)info->BaseAddress + info->RegionSize;
}

/* ---- Near pages. */

/* The nearest start for byte_count bytes below the image, else above it. */
static uint64_t find_gap(uint64_t near_begin, uint64_t near_end, uint64_t byte_count,
                         uint64_t range_bytes)
{
    uint64_t lowest = near_end > range_bytes ? near_end - range_bytes : 0;
    uint64_t highest = near_begin + range_bytes - byte_count, below = 0;
    MEMORY_BASIC_INFORMATION info;

    lowest = lowest > LOWEST_ADDRESS ? round_up(lowest, HFN_VIEW_UNIT) : LOWEST_ADDRESS;
    highest = highest < HIGHEST_ADDRESS - byte_count ? highest : HIGHEST_ADDRESS - byte_count;
    for (uint64_t at = lowest; at <= highest && query_pages(at, &info); at = get_end(&info)) {
        uint64_t first = round_up(at, HFN_VIEW_UNIT), end = get_end(&info), last;

        if (info.State != MEM_FREE || end < byte_count) {
            continue;
        }
        last = round_down(end - byte_count, HFN_VIEW_UNIT);
        last = last < highest ? last : round_down(highest, HFN_VIEW_UNIT);
        if (last < first) {
            continue;
        }
        if (first >= near_end) {
            return below ? below : first;
        }
        below = last + byte_count <= near_begin ? last : below;
    }
    return below;
}

uint64_t hfn_os_map_near(uint64_t near_begin, uint64_t near_end, uint64_t byte_count,
                         uint64_t range_bytes)
{
    for (int i = 0; i < MAP_ATTEMPTS && byte_count <= range_bytes; i++) {
        uint64_t at = find_gap(near_begin, near_end, byte_count, range_bytes);

        if (at == 0) {
            return 0;
        }
        /* another thread may have taken the gap meanwhile */
        if (VirtualAlloc((void *)(uintptr_t)at, (SIZE_T)byte_count, MEM_RESERVE | MEM_COMMIT,
                         PAGE_READWRITE)) {
            return at;
        }
    }
    return 0;
}

/* ---- Single pages.  One thread at a time changes hooks. */

static uint64_t units[MAX_UNITS]; /* addresses of the units reserved here */
static uint32_t unit_count;

static bool is_own_unit(uint64_t unit)
{
    for (uint32_t i = 0; i < unit_count; i++) {
        if (units[i] == unit) {
            return true;
        }
    }
    return false;
}

static bool reserve_unit(uint64_t unit)
{
    if (is_own_unit(unit)) {
        return true;
    }
    if (unit_count == MAX_UNITS || !VirtualAlloc((void *)(uintptr_t)unit, (SIZE_T)HFN_VIEW_UNIT,
                                                 MEM_RESERVE, PAGE_READWRITE)) {
        return false;
    }
    units[unit_count++] = unit;
    return true;
}

static bool is_unused(uint64_t page)
{
    MEMORY_BASIC_INFORMATION info;

    return query_pages(page, &info) && info.State == MEM_RESERVE;
}

bool hfn_os_map_at(uint64_t address, uint64_t byte_count)
{
    uint64_t end = round_up(address + byte_count, PAGE);

    for (uint64_t unit = round_down(address, HFN_VIEW_UNIT); unit < end; unit += HFN_VIEW_UNIT) {
        if (!reserve_unit(unit)) {
            return false;
        }
    }
    for (uint64_t page = round_down(address, PAGE); page < end; page += PAGE) {
        if (!is_unused(page)) {
            return false;
        }
    }
    for (uint64_t page = round_down(address, PAGE); page < end; page += PAGE) {
        if (!VirtualAlloc((void *)(uintptr_t)page, (SIZE_T)PAGE, MEM_COMMIT, PAGE_READWRITE)) {
            return false;
        }
    }
    return true;
}

uint32_t hfn_os_find_gaps(uint64_t begin, uint64_t end, hfn_os_gap *out, uint32_t capacity)
{
    MEMORY_BASIC_INFORMATION info;
    uint32_t count = 0;

    begin = begin > LOWEST_ADDRESS ? begin : LOWEST_ADDRESS;
    end = end < HIGHEST_ADDRESS ? end : HIGHEST_ADDRESS;
    for (uint64_t at = begin; at < end && count < capacity && query_pages(at, &info);
         at = get_end(&info)) {
        uint64_t first = round_up(at, info.State == MEM_FREE ? HFN_VIEW_UNIT : PAGE);
        uint64_t last = get_end(&info) < end ? get_end(&info) : end;
        bool is_own =
            info.State == MEM_RESERVE && is_own_unit((uint64_t)(uintptr_t)info.AllocationBase);

        if (info.State == MEM_FREE) {
            last = round_down(last, HFN_VIEW_UNIT); /* its unit may belong to what follows */
        }
        if ((info.State == MEM_FREE || is_own) && first < last) {
            out[count++] = (hfn_os_gap){ first, last };
        }
    }
    return count;
}

bool hfn_os_make_executable(uint64_t address, uint64_t byte_count)
{
    uint64_t begin = round_down(address, PAGE), end = round_up(address + byte_count, PAGE);

    /* one call cannot cross units that were reserved one by one */
    while (begin < end) {
        MEMORY_BASIC_INFORMATION info;
        uint64_t part;
        DWORD before;

        if (!query_pages(begin, &info)) {
            return false;
        }
        part = get_end(&info) < end ? get_end(&info) : end;
        if (!VirtualProtect((void *)(uintptr_t)begin, (SIZE_T)(part - begin), PAGE_EXECUTE_READ,
                            &before)) {
            return false;
        }
        begin = part;
    }
    return FlushInstructionCache(GetCurrentProcess(), (void *)(uintptr_t)address,
                                 (SIZE_T)byte_count) != 0;
}

/* ---- Windows of text. */

bool hfn_os_open_text(hfn_os_writable_text *window, uint64_t begin, uint64_t end)
{
    MEMORY_BASIC_INFORMATION info;
    DWORD before;

    begin = round_down(begin, PAGE);
    end = round_up(end, PAGE);
    if (!query_pages(begin, &info) || info.State != MEM_COMMIT || get_end(&info) < end ||
        !VirtualProtect((void *)(uintptr_t)begin, (SIZE_T)(end - begin), PAGE_EXECUTE_READWRITE,
                        &before)) {
        return false;
    }
    *window = (hfn_os_writable_text){
        .begin = begin, .end = end, .handle = -1, .protection = (int32_t)before, .method = 1
    };
    return true;
}

void hfn_os_populate_text(const hfn_os_writable_text *window, uint64_t begin, uint64_t end)
{
    (void)window;
    (void)begin;
    (void)end;
}

void hfn_os_write_text(hfn_os_writable_text *window, uint64_t address, const uint8_t *bytes,
                       uint32_t byte_count)
{
    (void)window;
    memcpy((void *)(uintptr_t)address, bytes, byte_count);
}

void hfn_os_close_text(hfn_os_writable_text *window)
{
    DWORD before;

    VirtualProtect((void *)(uintptr_t)window->begin, (SIZE_T)(window->end - window->begin),
                   (DWORD)window->protection, &before);
    FlushInstructionCache(GetCurrentProcess(), (void *)(uintptr_t)window->begin,
                          (SIZE_T)(window->end - window->begin));
    window->method = 0;
}
