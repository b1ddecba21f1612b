/* SPDX-License-Identifier: MIT */
/*
 * Shared memory: page-file sections with names, so that other processes open them by path
 * ("hotfn-section:" and the name).  A section is reserved when it is created; hfn_os_commit_shared
 * and writes give memory to parts of it.  Reads find zeros where no memory was given.
 */
#include "os/memory.h"

#include "os/windows/nt.h"

#include <string.h>

enum { MAX_NAME = 128, SECTION_BASIC = 0 };
#define OBJECT_NAME ((OBJECT_INFORMATION_CLASS)1) /* ObjectNameInformation */

typedef struct view {
    uint8_t *base, *at; /* of the mapping; of the wanted offset */
} view;

static hfn_os_error map_view(view *out, hfn_os_file section, uint64_t offset, uint64_t byte_count,
                             DWORD access, uint64_t wanted)
{
    uint64_t begin = offset & ~(HFN_VIEW_UNIT - 1), skipped = offset - begin;
    void *hint = wanted ? (void *)(uintptr_t)((wanted - skipped) & ~(HFN_VIEW_UNIT - 1)) : NULL;
    uint8_t *base;

    if (byte_count + skipped > SIZE_MAX) {
        return ERROR_NOT_ENOUGH_MEMORY;
    }
    base = MapViewOfFileEx(hfn_get_handle(section), access, (DWORD)(begin >> 32), (DWORD)begin,
                           (SIZE_T)(byte_count + skipped), hint);
    if (!base && hint) {
        base = MapViewOfFileEx(hfn_get_handle(section), access, (DWORD)(begin >> 32), (DWORD)begin,
                               (SIZE_T)(byte_count + skipped), NULL);
    }
    if (!base) {
        return hfn_get_last_error();
    }
    *out = (view){ base, base + skipped };
    return 0;
}

/* ---- Names. */

static void make_name(wchar_t out[MAX_NAME], const char *kind)
{
    static volatile LONG count;
    LARGE_INTEGER now;
    ULONG parts[3];
    size_t used = 0;

    QueryPerformanceCounter(&now);
    parts[0] = GetCurrentProcessId();
    parts[1] = (ULONG)InterlockedIncrement(&count);
    parts[2] = (ULONG)now.LowPart;
    for (const char *c = "Local\\"; *c; c++) {
        out[used++] = (wchar_t)*c;
    }
    for (const char *c = kind; *c && used < 20; c++) {
        out[used++] = (wchar_t)*c;
    }
    for (int i = 0; i < 3; i++) {
        out[used++] = L'-';
        for (int shift = 28; shift >= 0; shift -= 4) {
            out[used++] = L"0123456789abcdef"[parts[i] >> shift & 15];
        }
    }
    out[used] = 0;
}

hfn_os_error hfn_os_create_shared(hfn_os_file *out, const char *name, uint64_t byte_count)
{
    wchar_t own[MAX_NAME];
    HANDLE section;

    make_name(own, name);
    section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE | SEC_RESERVE,
                                 (DWORD)(byte_count >> 32), (DWORD)byte_count, own);
    if (!section) {
        return hfn_get_last_error();
    }
    if (GetLastError() == ERROR_ALREADY_EXISTS) {
        CloseHandle(section);
        return ERROR_ALREADY_EXISTS;
    }
    out->handle = (int64_t)(intptr_t)section | HFN_SECTION_TAG;
    return 0;
}

hfn_os_error hfn_section_open(hfn_os_file *out, const char *path, bool writes)
{
    wchar_t name[MAX_NAME];
    HANDLE section;

    if (!hfn_to_utf16(path + sizeof HFN_SECTION_PREFIX - 1, name, MAX_NAME)) {
        return ERROR_INVALID_NAME;
    }
    section = OpenFileMappingW(FILE_MAP_READ | SECTION_QUERY | (writes ? FILE_MAP_WRITE : 0), FALSE,
                               name);
    if (!section) {
        return hfn_get_last_error();
    }
    out->handle = (int64_t)(intptr_t)section | HFN_SECTION_TAG;
    return 0;
}

void hfn_section_get_path(hfn_os_file section, char *out, size_t capacity)
{
    union {
        UNICODE_STRING name;
        wchar_t room[512];
    } found;
    char name[MAX_NAME] = "";
    ULONG needed;

    out[0] = 0;
    if (NtQueryObject(hfn_get_handle(section), OBJECT_NAME, &found, sizeof found - sizeof(wchar_t),
                      &needed) < 0 ||
        !found.name.Buffer) {
        return;
    }
    found.name.Buffer[found.name.Length / sizeof(wchar_t)] = 0;
    const wchar_t *last = wcsrchr(found.name.Buffer, L'\\');
    if (last && hfn_from_utf16(last + 1, name, sizeof name) &&
        sizeof HFN_SECTION_PREFIX + 6 + strlen(name) <= capacity) {
        memcpy(out, HFN_SECTION_PREFIX, sizeof HFN_SECTION_PREFIX - 1);
        memcpy(out + sizeof HFN_SECTION_PREFIX - 1, "Local\\", 6);
        memcpy(out + sizeof HFN_SECTION_PREFIX + 5, name, strlen(name) + 1);
    }
}

uint64_t hfn_section_get_bytes(hfn_os_file section)
{
    hfn_section_info info;

    return NtQuerySection(hfn_get_handle(section), SECTION_BASIC, &info, sizeof info, NULL) >= 0
               ? (uint64_t)info.byte_count.QuadPart
               : 0;
}

/* ---- Contents. */

/* The size of the run of pages at `at` that have memory, or have none; at most byte_count.  Wine
 * reports no memory where another process gave it, but the pages can be read. */
static uint64_t measure_run(const uint8_t *at, uint64_t byte_count, bool *has_memory)
{
    MEMORY_BASIC_INFORMATION info;
    uint64_t run;
    SIZE_T done = 0;
    uint8_t byte;

    *has_memory = false;
    if (VirtualQuery(at, &info, sizeof info) == 0) {
        return byte_count;
    }
    *has_memory = info.State == MEM_COMMIT ||
                  (NtReadVirtualMemory(HFN_OWN_PROCESS, at, &byte, 1, &done) >= 0 && done == 1);
    run = (uint64_t)((uint8_t *)info.BaseAddress + info.RegionSize - at);
    return run < byte_count ? run : byte_count;
}

hfn_os_error hfn_section_read(hfn_os_file section, uint64_t offset, void *out, uint64_t byte_count,
                              uint64_t *done)
{
    uint64_t size = hfn_section_get_bytes(section);
    view v;
    hfn_os_error error;

    *done = 0;
    if (offset >= size || byte_count == 0) {
        return 0;
    }
    byte_count = byte_count < size - offset ? byte_count : size - offset;
    error = map_view(&v, section, offset, byte_count, FILE_MAP_READ, 0);
    if (error != 0) {
        return error;
    }
    while (*done < byte_count) {
        bool has_memory;
        uint64_t run = measure_run(v.at + *done, byte_count - *done, &has_memory);

        if (has_memory) {
            memcpy((uint8_t *)out + *done, v.at + *done, (size_t)run);
        } else {
            memset((uint8_t *)out + *done, 0, (size_t)run);
        }
        *done += run;
    }
    UnmapViewOfFile(v.base);
    return 0;
}

uint64_t hfn_section_find_data(hfn_os_file section, uint64_t offset, uint64_t end)
{
    view v;
    uint64_t at = offset;
    bool has_memory = false;

    if (end <= offset || map_view(&v, section, offset, end - offset, FILE_MAP_READ, 0) != 0) {
        return offset;
    }
    while (at < end) {
        uint64_t run = measure_run(v.at + (at - offset), end - at, &has_memory);

        if (has_memory) {
            break;
        }
        at += run;
    }
    UnmapViewOfFile(v.base);
    return at;
}

hfn_os_error hfn_section_write(hfn_os_file section, uint64_t offset, const void *bytes,
                               uint64_t byte_count)
{
    view v;
    hfn_os_error error = map_view(&v, section, offset, byte_count, FILE_MAP_WRITE, 0);

    if (error != 0) {
        return error;
    }
    if (VirtualAlloc(v.at, (SIZE_T)byte_count, MEM_COMMIT, PAGE_READWRITE)) {
        memcpy(v.at, bytes, (size_t)byte_count);
    } else {
        error = hfn_get_last_error();
    }
    UnmapViewOfFile(v.base);
    return error;
}

hfn_os_error hfn_os_commit_shared(hfn_os_file file, uint64_t offset, uint64_t byte_count)
{
    view v;
    hfn_os_error error = map_view(&v, file, offset, byte_count, FILE_MAP_WRITE, 0);

    if (error != 0) {
        return error;
    }
    error = VirtualAlloc(v.at, (SIZE_T)byte_count, MEM_COMMIT, PAGE_READWRITE)
                ? 0
                : hfn_get_last_error();
    UnmapViewOfFile(v.base);
    return error;
}

static hfn_os_error map_section(void **out, hfn_os_file file, uint64_t offset, uint64_t byte_count,
                                uint32_t flags, uint64_t wanted)
{
    view v;
    hfn_os_error error =
        map_view(&v, file, offset, byte_count,
                 flags & HFN_OS_MAP_WRITE ? FILE_MAP_READ | FILE_MAP_WRITE : FILE_MAP_READ, wanted);

    if (error == 0) {
        *out = v.at;
    }
    return error;
}

hfn_os_error hfn_os_map_file(void **out, hfn_os_file file, uint64_t offset, uint64_t byte_count,
                             uint32_t flags, uint64_t wanted)
{
    bool writes = (flags & HFN_OS_MAP_WRITE) != 0;
    hfn_os_error error;
    HANDLE section;

    if (hfn_is_section(file)) {
        return map_section(out, file, offset, byte_count, flags, wanted);
    }
    section = CreateFileMappingW(hfn_get_handle(file), NULL,
                                 writes ? PAGE_READWRITE : PAGE_READONLY, 0, 0, NULL);
    if (!section) {
        return hfn_get_last_error();
    }
    error = map_section(out, (hfn_os_file){ (int64_t)(intptr_t)section }, offset, byte_count, flags,
                        wanted);
    CloseHandle(section); /* the view keeps it */
    return error;
}

/* ---- Properties: a section cannot shrink, and its name is not found by a mapping. */

hfn_os_error hfn_os_seal_shared(hfn_os_file file)
{
    return hfn_is_section(file) ? 0 : ERROR_NOT_SUPPORTED;
}

bool hfn_os_is_sealed(hfn_os_file file)
{
    return hfn_is_section(file);
}

bool hfn_os_maps_shared(const char *name)
{
    (void)name;
    return false;
}
