/* SPDX-License-Identifier: MIT */
/* Files, random bytes and waiting by kernel32 and advapi32.  The folder of a user's application
 * data can only be read by that user. */
#include "push/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

/* After windows.h.  RtlGenRandom (ntsecapi.h); this is its exported name. */
BOOLEAN NTAPI SystemFunction036(PVOID out, ULONG byte_count);

enum { PATH_UNITS = PUSH_PATH_BYTES + 512 };

static const wchar_t *make_wide(const char *path, wchar_t out[PATH_UNITS])
{
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, out, PATH_UNITS) <= 0) {
        errno = EINVAL;
        return NULL;
    }
    return out;
}

static bool fail_system(void)
{
    DWORD code = GetLastError();

    errno = code == ERROR_DISK_FULL || code == ERROR_HANDLE_DISK_FULL        ? ENOSPC
            : code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND   ? ENOENT
            : code == ERROR_ACCESS_DENIED || code == ERROR_SHARING_VIOLATION ? EACCES
                                                                             : EIO;
    return false;
}

bool files_find_state(char out[PUSH_PATH_BYTES])
{
    static const char end[] = "\\hotfn";
    wchar_t wide[PATH_UNITS];
    DWORD units = GetEnvironmentVariableW(L"LOCALAPPDATA", wide, PATH_UNITS);

    if (units == 0 || units >= PATH_UNITS ||
        WideCharToMultiByte(CP_UTF8, 0, wide, -1, out, PUSH_PATH_BYTES - (int)sizeof end, NULL,
                            NULL) <= 0) {
        return false;
    }
    strcat(out, end);
    return true;
}

bool files_make_folders(const char *path)
{
    wchar_t wide[PATH_UNITS];

    if (!make_wide(path, wide)) {
        return false;
    }
    for (wchar_t *at = wide; *at; at++) {
        wchar_t c = *at;
        if (at > wide && (c == L'/' || c == L'\\')) {
            *at = 0;
            CreateDirectoryW(wide, NULL);
            *at = c;
        }
    }
    return CreateDirectoryW(wide, NULL) || GetLastError() == ERROR_ALREADY_EXISTS || fail_system();
}

static bool write_all(HANDLE file, const char *bytes, size_t byte_count)
{
    for (size_t at = 0; at < byte_count;) {
        size_t rest = byte_count - at;
        DWORD n = 0;
        if (!WriteFile(file, bytes + at, rest < 1u << 30 ? (DWORD)rest : 1u << 30, &n, NULL)) {
            return fail_system();
        }
        at += n;
    }
    return FlushFileBuffers(file) || fail_system();
}

bool files_replace(const char *path, const void *bytes, size_t byte_count)
{
    char temporary[PATH_UNITS];
    wchar_t wide[PATH_UNITS], wide_temporary[PATH_UNITS];

    snprintf(temporary, sizeof temporary, "%s.%lu.new", path, GetCurrentProcessId());
    if (!make_wide(path, wide) || !make_wide(temporary, wide_temporary)) {
        return false;
    }
    HANDLE file = CreateFileW(wide_temporary, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS,
                              FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) {
        return fail_system();
    }
    bool ok = write_all(file, bytes, byte_count);
    CloseHandle(file);
    ok = ok &&
         (MoveFileExW(wide_temporary, wide, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) ||
          fail_system());
    if (!ok) {
        DeleteFileW(wide_temporary);
    }
    return ok;
}

bool files_read(const char *path, byte_buffer *out)
{
    wchar_t wide[PATH_UNITS];
    char bytes[16384];
    DWORD n = 0;

    if (!make_wide(path, wide)) {
        return false;
    }
    HANDLE file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                              OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) {
        return fail_system();
    }
    bool ok;
    while ((ok = ReadFile(file, bytes, sizeof bytes, &n, NULL)) && n > 0) {
        buffer_append(out, bytes, n);
    }
    CloseHandle(file);
    return ok && !out->failed;
}

bool files_exist(const char *path)
{
    wchar_t wide[PATH_UNITS];

    return make_wide(path, wide) && GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES;
}

void files_remove(const char *path)
{
    wchar_t wide[PATH_UNITS];

    if (make_wide(path, wide)) {
        DeleteFileW(wide);
    }
}

void files_for_each(const char *folder, bool (*each)(void *user, const char *name, uint64_t bytes),
                    void *user)
{
    char pattern[PATH_UNITS], name[PUSH_PATH_BYTES];
    wchar_t wide[PATH_UNITS];
    WIN32_FIND_DATAW found;

    snprintf(pattern, sizeof pattern, "%s\\*", folder);
    HANDLE search = make_wide(pattern, wide) ? FindFirstFileW(wide, &found) : INVALID_HANDLE_VALUE;
    if (search == INVALID_HANDLE_VALUE) {
        return;
    }
    bool more = true;
    do {
        uint64_t bytes = (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow;
        if (!(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) &&
            WideCharToMultiByte(CP_UTF8, 0, found.cFileName, -1, name, sizeof name, NULL, NULL) >
                0) {
            more = each(user, name, bytes);
        }
    } while (more && FindNextFileW(search, &found));
    FindClose(search);
}

bool fill_random(void *out, size_t byte_count)
{
    return SystemFunction036(out, (ULONG)byte_count);
}

void sleep_ms(uint32_t ms)
{
    Sleep(ms);
}
