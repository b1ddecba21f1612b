/* SPDX-License-Identifier: MIT */
/* UTF-16, which the system's calls take, and UTF-8, which everything else of hotfn uses. */
#include "os/windows/nt.h"

#include <string.h>

bool hfn_to_utf16(const char *text, wchar_t *out, size_t capacity)
{
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, out, (int)capacity) > 0;
}

bool hfn_from_utf16(const wchar_t *text, char *out, size_t capacity)
{
    return WideCharToMultiByte(CP_UTF8, 0, text, -1, out, (int)capacity, NULL, NULL) > 0;
}

/* "\\?\" disables the limit of MAX_PATH for absolute paths, and the system's own changes of the
 * path, which GetFullPathNameW has made already. */
bool hfn_to_utf16_path(const char *path, wchar_t *out, size_t capacity)
{
    wchar_t given[HFN_UTF16_PATH];
    DWORD length;

    if (!hfn_to_utf16(path, given, HFN_UTF16_PATH)) {
        return false;
    }
    if (capacity < MAX_PATH || (length = GetFullPathNameW(given, 0, NULL, NULL)) < MAX_PATH - 12 ||
        given[0] == L'\\') {
        size_t units = wcslen(given) + 1;

        memcpy(out, given, (units < capacity ? units : 0) * sizeof *out);
        return units < capacity;
    }
    memcpy(out, L"\\\\?\\", 4 * sizeof *out);
    length = GetFullPathNameW(given, (DWORD)capacity - 4, out + 4, NULL);
    return length > 0 && length < capacity - 4;
}
