/* SPDX-License-Identifier: MIT */
/* The calls of posix.h by kernel32 and the C library of Windows. */
#include "posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <windows.h>

#undef fopen
#undef stat
#undef access
#undef unlink
#undef rename
#undef mkdir
#undef chdir
#undef getcwd

enum { PATH_UNITS = 4096 };

static wchar_t *make_utf16(const char *path, wchar_t out[PATH_UNITS])
{
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, out, PATH_UNITS) <= 0) {
        errno = ENOENT;
        return NULL;
    }
    return out;
}

/* Modes of glibc have an e; files here always have binary contents. */
FILE *tool_fopen(const char *path, const char *mode)
{
    wchar_t wide[PATH_UNITS], wide_mode[8];
    size_t used = 0;

    for (const char *c = mode; *c && used + 2 < 8; c++) {
        if (*c != 'e' && *c != 'b') {
            wide_mode[used++] = (wchar_t)*c;
        }
    }
    wide_mode[used++] = L'b';
    wide_mode[used] = 0;
    return make_utf16(path, wide) ? _wfopen(wide, wide_mode) : NULL;
}

int tool_stat(const char *path, struct stat *out)
{
    wchar_t wide[PATH_UNITS];
    WIN32_FILE_ATTRIBUTE_DATA found;
    BY_HANDLE_FILE_INFORMATION id;
    HANDLE file;

    if (!make_utf16(path, wide)) {
        return -1;
    }
    if (!GetFileAttributesExW(wide, GetFileExInfoStandard, &found)) {
        errno = GetLastError() == ERROR_ACCESS_DENIED ? EACCES : ENOENT;
        return -1;
    }
    memset(out, 0, sizeof *out);
    out->st_mode =
        found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? S_IFDIR | 0777 : S_IFREG | 0666;
    out->st_size = (off_t)((uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow);
    file = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                       OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file != INVALID_HANDLE_VALUE) {
        if (GetFileInformationByHandle(file, &id)) {
            /* 16 and 32 bits, in which the numbers of two files hardly ever agree */
            out->st_dev = id.dwVolumeSerialNumber ^ id.nFileIndexHigh;
            out->st_ino = (unsigned short)(id.nFileIndexLow ^ id.nFileIndexLow >> 16);
        }
        CloseHandle(file);
    }
    return 0;
}

int tool_access(const char *path, int mode)
{
    wchar_t wide[PATH_UNITS];

    return make_utf16(path, wide) ? _waccess(wide, mode & ~X_OK) : -1;
}

int tool_unlink(const char *path)
{
    wchar_t wide[PATH_UNITS];

    return make_utf16(path, wide) ? _wunlink(wide) : -1;
}

int tool_rename(const char *from, const char *to)
{
    wchar_t wide_from[PATH_UNITS], wide_to[PATH_UNITS];

    if (!make_utf16(from, wide_from) || !make_utf16(to, wide_to)) {
        return -1;
    }
    if (!MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING)) {
        errno = EACCES;
        return -1;
    }
    return 0;
}

/* Rights of files come from their folder. */
mode_t tool_umask(mode_t mask)
{
    return mask;
}

int tool_mkdir(const char *path)
{
    wchar_t wide[PATH_UNITS];

    return make_utf16(path, wide) ? _wmkdir(wide) : -1;
}

int tool_chdir(const char *path)
{
    wchar_t wide[PATH_UNITS];

    return make_utf16(path, wide) ? _wchdir(wide) : -1;
}

char *tool_getcwd(char *out, size_t capacity)
{
    wchar_t wide[PATH_UNITS];

    return _wgetcwd(wide, PATH_UNITS) &&
                   WideCharToMultiByte(CP_UTF8, 0, wide, -1, out, (int)capacity, NULL, NULL) > 0
               ? out
               : NULL;
}

int tool_mkstemps(char *path, int suffix_bytes)
{
    enum { MAX_TRIES = 100 };
    char *digits = path + strlen(path) - suffix_bytes - 6;
    wchar_t wide[PATH_UNITS];
    int file = -1;

    for (uint32_t n = 0; file < 0 && n < MAX_TRIES; n++) {
        uint32_t mixed = (GetTickCount() ^ GetCurrentProcessId() << 8) * 2654435761u + n;

        for (int i = 0; i < 6; i++, mixed /= 36) {
            digits[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[mixed % 36];
        }
        if (!make_utf16(path, wide)) {
            return -1;
        }
        file = _wopen(wide, _O_CREAT | _O_EXCL | _O_RDWR | _O_BINARY, _S_IREAD | _S_IWRITE);
    }
    return file;
}

char *tool_realpath(const char *path, char *out)
{
    wchar_t wide[PATH_UNITS], full[PATH_UNITS];
    char *made = out ? out : malloc(PATH_UNITS);

    if (!made || !make_utf16(path, wide) || GetFileAttributesW(wide) == INVALID_FILE_ATTRIBUTES ||
        GetFullPathNameW(wide, PATH_UNITS, full, NULL) - 1 >= PATH_UNITS - 1 ||
        WideCharToMultiByte(CP_UTF8, 0, full, -1, made, PATH_UNITS, NULL, NULL) <= 0) {
        if (made != out) {
            free(made);
        }
        errno = ENOENT;
        return NULL;
    }
    return made;
}

char *tool_strcasestr(const char *text, const char *part)
{
    size_t length = strlen(part);

    for (; strlen(text) >= length; text++) {
        if (_strnicmp(text, part, length) == 0) {
            return (char *)(uintptr_t)text;
        }
    }
    return NULL;
}

struct tm *tool_localtime_r(const time_t *time, struct tm *out)
{
    return localtime_s(out, time) == 0 ? out : NULL;
}
