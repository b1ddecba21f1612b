/* SPDX-License-Identifier: MIT */
/* Programs and libraries as files. */
#include "os/child.h"
#include "os/windows/nt.h"

#include <string.h>

/* Not supported: the loader has no way to list the libraries of a program without starting it. */
bool hfn_os_each_library(const char *loader, const char *program, hfn_os_library_fn visit,
                         void *user)
{
    (void)loader;
    (void)program;
    (void)visit;
    (void)user;
    return false;
}

bool hfn_os_is_folder(const char *path)
{
    wchar_t name[HFN_UTF16_PATH];
    DWORD attributes;

    if (!hfn_to_utf16_path(path, name, HFN_UTF16_PATH)) {
        return false;
    }
    attributes = GetFileAttributesW(name);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY);
}

void hfn_os_get_temporary_folder(char path[HFN_OS_PATH_BYTES])
{
    wchar_t found[HFN_UTF16_PATH];
    DWORD length = GetTempPathW(HFN_UTF16_PATH, found);

    if (length == 0 || length >= HFN_UTF16_PATH ||
        !hfn_from_utf16(found, path, HFN_OS_PATH_BYTES)) {
        memcpy(path, ".", sizeof ".");
    }
    for (char *c = path; *c; c++) {
        *c = *c == '\\' ? '/' : *c;
    }
    for (size_t end = strlen(path); end > 1 && path[end - 1] == '/'; end--) {
        path[end - 1] = 0;
    }
}

bool hfn_os_is_readable(const char *path)
{
    hfn_os_file file;

    if (hfn_os_is_folder(path) || hfn_os_open_file(&file, path, HFN_OS_READ) != 0) {
        return false;
    }
    hfn_os_close_file(file);
    return true;
}

/* CreateProcess never starts a program with more rights; a service of the system does. */
bool hfn_os_gains_rights(const char *path)
{
    (void)path;
    return false;
}

hfn_os_error hfn_os_find_program(const char *name, char path[HFN_OS_PATH_BYTES])
{
    wchar_t wide[HFN_UTF16_PATH], found[HFN_UTF16_PATH];
    DWORD length;

    if (hfn_os_is_folder(name)) {
        return ERROR_ACCESS_DENIED;
    }
    if (!hfn_to_utf16(name, wide, HFN_UTF16_PATH)) {
        return ERROR_INVALID_NAME;
    }
    length = SearchPathW(NULL, wide, L".exe", HFN_UTF16_PATH, found, NULL);
    if (length == 0 || length >= HFN_UTF16_PATH) {
        return ERROR_FILE_NOT_FOUND;
    }
    return hfn_from_utf16(found, path, HFN_OS_PATH_BYTES) ? 0 : ERROR_FILENAME_EXCED_RANGE;
}

bool hfn_os_identify_file(const char *path, uint64_t *device, uint64_t *inode)
{
    hfn_os_file_info info;

    if (hfn_os_get_path_info(path, &info) != 0) {
        return false;
    }
    *device = info.device;
    *inode = info.inode;
    return true;
}

bool hfn_os_own_path(char path[HFN_OS_PATH_BYTES])
{
    static const char here;
    wchar_t name[HFN_UTF16_PATH];
    HMODULE module;
    DWORD length;

    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT |
                                GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                            (const wchar_t *)(const void *)&here, &module)) {
        return false;
    }
    length = GetModuleFileNameW(module, name, HFN_UTF16_PATH);
    if (length == 0 || length >= HFN_UTF16_PATH || !hfn_from_utf16(name, path, HFN_OS_PATH_BYTES)) {
        return false;
    }
    for (char *c = path; *c; c++) {
        *c = *c == '\\' ? '/' : *c;
    }
    return true;
}

bool hfn_os_can_share_files(void)
{
    return true; /* shared memory has names */
}

void hfn_os_shared_path(int handle, char *path, size_t path_bytes)
{
    hfn_os_get_file_path((hfn_os_file){ handle }, path, path_bytes);
}

const char *hfn_os_platform(void)
{
    return "";
}

static bool is_ascii(const wchar_t *text)
{
    while (*text && *text < 0x80) {
        text++;
    }
    return !*text;
}

/* An import list has names in the code page of the system.  A file's short name is ASCII, and is
 * right for a program that has chosen another code page, too; not every volume has short names. */
bool hfn_os_get_import_name(const char *path, char *out, size_t capacity)
{
    wchar_t name[HFN_UTF16_PATH], short_name[HFN_UTF16_PATH];
    bool is_utf8 = GetACP() == CP_UTF8;
    BOOL is_lossy = FALSE;
    DWORD length;

    if (!hfn_to_utf16(path, name, HFN_UTF16_PATH)) {
        return false;
    }
    if (!is_ascii(name)) {
        length = GetShortPathNameW(name, short_name, HFN_UTF16_PATH);
        if (length > 0 && length < HFN_UTF16_PATH && is_ascii(short_name)) {
            return hfn_from_utf16(short_name, out, capacity);
        }
    }
    return WideCharToMultiByte(CP_ACP, is_utf8 ? 0 : WC_NO_BEST_FIT_CHARS, name, -1, out,
                               (int)capacity, NULL, is_utf8 ? NULL : &is_lossy) > 0 &&
           !is_lossy;
}
