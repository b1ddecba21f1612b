/* SPDX-License-Identifier: MIT */
/* What can be read of another process: its modules, its command, its end. */
#include "os/remote.h"
#include "os/windows/nt.h"

#include <psapi.h>
#include <string.h>

enum { MAX_MODULES = 4096, MAX_COMMAND_UNITS = 32768 };

static HANDLE open_process(uint32_t pid)
{
    return OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, FALSE, pid);
}

/* ---- Modules. */

static void add_code(hfn_remote_module *out, const MEMORY_BASIC_INFORMATION *pages)
{
    const DWORD executable =
        PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
    uint64_t begin = (uint64_t)(uintptr_t)pages->BaseAddress;

    if (pages->State == MEM_COMMIT && (pages->Protect & executable) &&
        out->code_count < HFN_REMOTE_MODULE_CODE) {
        out->code[out->code_count++] =
            (hfn_remote_code){ .begin = begin, .end = begin + pages->RegionSize };
    }
}

static bool describe_module(HANDLE process, HMODULE module, hfn_remote_module *out)
{
    wchar_t name[HFN_UTF16_PATH];
    MEMORY_BASIC_INFORMATION pages;
    MODULEINFO info;

    *out = (hfn_remote_module){ .is_available = true };
    /* the list of a process that has just started may be incomplete */
    if (VirtualQueryEx(process, module, &pages, sizeof pages) == 0 || pages.Type != MEM_IMAGE ||
        pages.AllocationBase != (void *)module ||
        !K32GetModuleInformation(process, module, &info, sizeof info) ||
        K32GetModuleFileNameExW(process, module, name, HFN_UTF16_PATH) == 0 ||
        !hfn_from_utf16(name, out->path, sizeof out->path)) {
        return false;
    }
    for (char *c = out->path; *c; c++) {
        *c = *c == '\\' ? '/' : *c;
    }
    out->base = (uint64_t)(uintptr_t)info.lpBaseOfDll;
    out->end = out->base + info.SizeOfImage;
    for (uint64_t at = out->base;
         at < out->end && VirtualQueryEx(process, (void *)(uintptr_t)at, &pages, sizeof pages) != 0;
         at = (uint64_t)(uintptr_t)pages.BaseAddress + pages.RegionSize) {
        add_code(out, &pages);
    }
    return true;
}

static bool visit_modules(HANDLE process, HMODULE *list, hfn_remote_module_fn visit, void *user)
{
    static hfn_remote_module module; /* large; one thread at a time attaches */
    DWORD bytes = 0;
    bool more = true;

    if (!K32EnumProcessModules(process, list, MAX_MODULES * sizeof *list, &bytes)) {
        return false;
    }
    for (DWORD i = 0; more && i < MAX_MODULES && i < bytes / sizeof *list; i++) {
        if (describe_module(process, list[i], &module)) {
            module.is_main = i == 0; /* the loader's list begins with the program */
            more = visit(user, &module);
        }
    }
    return true;
}

bool hfn_os_remote_each_module(uint32_t pid, hfn_remote_module_fn visit, void *user)
{
    HANDLE process = open_process(pid);
    HMODULE *list =
        VirtualAlloc(NULL, MAX_MODULES * sizeof *list, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    bool listed = process && list && visit_modules(process, list, visit, user);

    if (list) {
        VirtualFree(list, 0, MEM_RELEASE);
    }
    if (process) {
        CloseHandle(process);
    }
    return listed;
}

/* ---- The command. */

/* Read the command line into `line`; returns its length in units. */
static size_t read_line(HANDLE process, wchar_t line[MAX_COMMAND_UNITS])
{
    PROCESS_BASIC_INFORMATION info;
    RTL_USER_PROCESS_PARAMETERS parameters;
    PEB block;
    SIZE_T done = 0, bytes;

    if (NtQueryInformationProcess(process, ProcessBasicInformation, &info, sizeof info, NULL) < 0 ||
        !ReadProcessMemory(process, info.PebBaseAddress, &block, sizeof block, &done) ||
        !ReadProcessMemory(process, block.ProcessParameters, &parameters, sizeof parameters,
                           &done)) {
        return 0;
    }
    bytes = parameters.CommandLine.Length;
    return ReadProcessMemory(process, parameters.CommandLine.Buffer, line, bytes, &done)
               ? done / sizeof *line
               : 0;
}

/* Split the line into words by the rules of the C library (Microsoft, "Parsing C command-line
 * arguments"), in place: each word is followed by a NUL.  Returns the units that they take. */
static size_t split_line(wchar_t *line, size_t units)
{
    size_t used = 0, at = 0;

    while (at < units) {
        bool is_quoted = false;

        for (; at < units && (line[at] == L' ' || line[at] == L'\t'); at++) {
        }
        if (at == units) {
            break;
        }
        for (; at < units && (is_quoted || (line[at] != L' ' && line[at] != L'\t')); at++) {
            if (line[at] == L'\\' && at + 1 < units && line[at + 1] == L'"') {
                line[used++] = line[++at];
            } else if (line[at] == L'"') {
                is_quoted = !is_quoted;
            } else {
                line[used++] = line[at];
            }
        }
        line[used++] = 0;
        at++; /* the space, so `used` never passes `at` */
    }
    return used;
}

size_t hfn_os_remote_read_command(uint32_t pid, char *out, size_t capacity)
{
    HANDLE process = open_process(pid);
    wchar_t *line = VirtualAlloc(NULL, (MAX_COMMAND_UNITS + 1) * sizeof *line,
                                 MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    size_t units = process && line ? read_line(process, line) : 0, used = 0;

    units = units > 0 ? split_line(line, units) : 0;
    for (size_t at = 0; at < units; at += wcslen(line + at) + 1) {
        if (!hfn_from_utf16(line + at, out + used, capacity - used)) {
            break;
        }
        used += strlen(out + used) + 1;
    }
    if (line) {
        VirtualFree(line, 0, MEM_RELEASE);
    }
    if (process) {
        CloseHandle(process);
    }
    return used;
}

/* ---- The end. */

bool hfn_os_remote_wait_end(uint32_t pid, uint64_t timeout_ns)
{
    HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, pid);
    bool has_ended = !process || WaitForSingleObject(process, (DWORD)(timeout_ns / 1000000 + 1)) ==
                                     WAIT_OBJECT_0;

    if (process) {
        CloseHandle(process);
    }
    return has_ended;
}
