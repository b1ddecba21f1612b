/* SPDX-License-Identifier: MIT */
/*
 * Files by kernel32.  Paths are UTF-8 here and UTF-16 at the system.  Shared memory has paths too
 * (sections.c).  A link is a small file that names shared memory, because symbolic links need a
 * right that most users lack.
 */
#include "os/files.h"

#include "os/windows/nt.h"

#include <string.h>

enum { MAX_TEMPORARIES = 256, NS_PER_UNIT = 100, MAX_LINK = 256 };
#define LINK_TEXT "hotfn link to " HFN_SECTION_PREFIX
#define UNITS_PER_S UINT64_C(10000000)
#define UNITS_TO_1970 UINT64_C(116444736000000000) /* FILETIME counts from 1601 */

/* ---- Links. */

/* Store the path to which the open file leads; false if it is no link.  Reading moves the file's
 * position, also with an offset. */
static bool read_link(HANDLE file, char out[MAX_LINK])
{
    const LARGE_INTEGER begin = { .QuadPart = 0 };
    char text[MAX_LINK + 16];
    LARGE_INTEGER size;
    DWORD got = 0;
    bool is_read;

    if (GetFileType(file) != FILE_TYPE_DISK || !GetFileSizeEx(file, &size) ||
        size.QuadPart >= MAX_LINK) {
        return false;
    }
    is_read = ReadFile(file, text, MAX_LINK, &got, NULL);
    if (!SetFilePointerEx(file, begin, NULL, FILE_BEGIN) || !is_read || got < sizeof LINK_TEXT ||
        memcmp(text, LINK_TEXT, sizeof LINK_TEXT - 1) != 0) {
        return false;
    }
    text[got] = 0;
    memcpy(out, text + sizeof "hotfn link to " - 1, got - (sizeof "hotfn link to " - 1) + 1);
    return true;
}

hfn_os_error hfn_os_create_link(const char *target, const char *path)
{
    char text[MAX_LINK] = "hotfn link to ";
    hfn_os_file file;
    hfn_os_error error;

    if (strlen(target) + sizeof LINK_TEXT >= sizeof text ||
        strncmp(target, HFN_SECTION_PREFIX, sizeof HFN_SECTION_PREFIX - 1) != 0) {
        return ERROR_NOT_SUPPORTED;
    }
    memcpy(text + strlen(text), target, strlen(target) + 1);
    error = hfn_os_open_file(&file, path, HFN_OS_WRITE | HFN_OS_CREATE_NEW);
    if (error == 0) {
        error = hfn_os_write_next(file, text, strlen(text));
        hfn_os_close_file(file);
    }
    return error;
}

/* ---- Open. */

static DWORD get_access(uint32_t flags)
{
    DWORD access = flags & HFN_OS_READ || !(flags & HFN_OS_WRITE) ? GENERIC_READ : 0;

    if (flags & HFN_OS_APPEND) {
        return access | FILE_APPEND_DATA | SYNCHRONIZE;
    }
    return access | (flags & HFN_OS_WRITE ? GENERIC_WRITE : 0);
}

static DWORD get_disposition(uint32_t flags)
{
    return flags & HFN_OS_CREATE_NEW ? CREATE_NEW
           : flags & HFN_OS_EMPTY    ? CREATE_ALWAYS
           : flags & HFN_OS_APPEND   ? OPEN_ALWAYS
                                     : OPEN_EXISTING;
}

static hfn_os_error open_plain(hfn_os_file *out, const char *path, uint32_t flags)
{
    wchar_t name[HFN_UTF16_PATH];
    HANDLE file;

    if (!hfn_to_utf16_path(path, name, HFN_UTF16_PATH)) {
        return ERROR_INVALID_NAME;
    }
    file = CreateFileW(
        name, get_access(flags), FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
        get_disposition(flags), FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) {
        return hfn_get_last_error();
    }
    out->handle = (int64_t)(intptr_t)file;
    return 0;
}

hfn_os_error hfn_os_open_file(hfn_os_file *out, const char *path, uint32_t flags)
{
    const uint32_t creates = HFN_OS_CREATE_NEW | HFN_OS_EMPTY | HFN_OS_APPEND;
    char target[MAX_LINK];
    hfn_os_file file;
    hfn_os_error error;

    if (strncmp(path, HFN_SECTION_PREFIX, sizeof HFN_SECTION_PREFIX - 1) == 0) {
        return hfn_section_open(out, path, (flags & HFN_OS_WRITE) != 0);
    }
    error = open_plain(&file, path, flags);
    if (error != 0) {
        return error;
    }
    if (!(flags & creates) && read_link(hfn_get_handle(file), target)) {
        hfn_os_close_file(file);
        return hfn_section_open(out, target, (flags & HFN_OS_WRITE) != 0);
    }
    *out = file;
    return 0;
}

hfn_os_error hfn_os_close_file(hfn_os_file file)
{
    return CloseHandle(hfn_get_handle(file)) ? 0 : hfn_get_last_error();
}

/* ---- Identity. */

static void split_time(FILETIME time, uint64_t *s, uint64_t *ns)
{
    uint64_t units = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;

    units = units > UNITS_TO_1970 ? units - UNITS_TO_1970 : 0;
    *s = units / UNITS_PER_S;
    *ns = units % UNITS_PER_S * NS_PER_UNIT;
}

static hfn_os_file_kind get_kind(HANDLE file, DWORD attributes)
{
    if (GetFileType(file) == FILE_TYPE_CHAR) {
        return HFN_OS_NULL_DEVICE; /* NUL, or a console */
    }
    if (GetFileType(file) != FILE_TYPE_DISK) {
        return HFN_OS_OTHER_FILE;
    }
    return attributes & FILE_ATTRIBUTE_DIRECTORY ? HFN_OS_FOLDER : HFN_OS_REGULAR_FILE;
}

/* The time of the last change of contents or attributes, which no program sets by mistake. */
static FILETIME get_change_time(HANDLE file, FILETIME written)
{
    FILE_BASIC_INFO basic;

    if (!GetFileInformationByHandleEx(file, FileBasicInfo, &basic, sizeof basic) ||
        basic.ChangeTime.QuadPart == 0) {
        return written;
    }
    return (FILETIME){ (DWORD)basic.ChangeTime.LowPart, (DWORD)basic.ChangeTime.HighPart };
}

hfn_os_error hfn_os_get_file_info(hfn_os_file file, hfn_os_file_info *out)
{
    BY_HANDLE_FILE_INFORMATION found;
    HANDLE handle = hfn_get_handle(file);

    if (hfn_is_section(file)) {
        /* fewer stored bytes than byte_count: parts have no memory */
        *out = (hfn_os_file_info){ .kind = HFN_OS_REGULAR_FILE,
                                   .is_own = true,
                                   .byte_count = hfn_section_get_bytes(file) };
        return 0;
    }
    if (!GetFileInformationByHandle(handle, &found)) {
        if (GetFileType(handle) == FILE_TYPE_UNKNOWN) {
            return hfn_get_last_error();
        }
        *out = (hfn_os_file_info){ .kind = get_kind(handle, 0), .is_own = true };
        return 0;
    }
    *out = (hfn_os_file_info){
        .kind = get_kind(handle, found.dwFileAttributes),
        .is_own = true,
        .device = found.dwVolumeSerialNumber,
        .inode = (uint64_t)found.nFileIndexHigh << 32 | found.nFileIndexLow,
        .byte_count = (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow,
        .stored_bytes = (uint64_t)found.nFileSizeHigh << 32 | found.nFileSizeLow,
    };
    split_time(found.ftLastWriteTime, &out->modified_s, &out->modified_ns);
    split_time(get_change_time(handle, found.ftLastWriteTime), &out->changed_s, &out->changed_ns);
    return 0;
}

static hfn_os_error get_info(const char *path, bool follows, hfn_os_file_info *out)
{
    char target[MAX_LINK];
    hfn_os_file file;
    hfn_os_error error =
        follows ? hfn_os_open_file(&file, path, 0) : open_plain(&file, path, HFN_OS_READ);

    if (error != 0) {
        return error;
    }
    error = hfn_os_get_file_info(file, out);
    if (!follows && error == 0 && read_link(hfn_get_handle(file), target)) {
        out->kind = HFN_OS_LINK;
    }
    hfn_os_close_file(file);
    return error;
}

hfn_os_error hfn_os_get_path_info(const char *path, hfn_os_file_info *out)
{
    return get_info(path, true, out);
}

hfn_os_error hfn_os_get_link_info(const char *path, hfn_os_file_info *out)
{
    return get_info(path, false, out);
}

bool hfn_os_resolve_path(const char *path, char *out, size_t capacity)
{
    wchar_t name[HFN_UTF16_PATH], full[HFN_UTF16_PATH];
    DWORD length;

    if (!hfn_to_utf16_path(path, name, HFN_UTF16_PATH) ||
        GetFileAttributesW(name) == INVALID_FILE_ATTRIBUTES) {
        return false;
    }
    length = GetFullPathNameW(name, HFN_UTF16_PATH, full, NULL);
    if (length == 0 || length >= HFN_UTF16_PATH || !hfn_from_utf16(full, out, capacity)) {
        return false;
    }
    for (char *c = out; *c; c++) {
        *c = *c == '\\' ? '/' : *c; /* the system takes both, the rest of hotfn only this one */
    }
    return true;
}

void hfn_os_get_file_path(hfn_os_file file, char *out, size_t capacity)
{
    wchar_t name[HFN_UTF16_PATH];
    DWORD length;

    if (hfn_is_section(file)) {
        hfn_section_get_path(file, out, capacity);
        return;
    }
    length = GetFinalPathNameByHandleW(hfn_get_handle(file), name, HFN_UTF16_PATH, 0);
    if (length == 0 || length >= HFN_UTF16_PATH || !hfn_from_utf16(name, out, capacity)) {
        out[0] = 0;
    }
}

/* ---- Contents. */

static DWORD get_step(uint64_t byte_count)
{
    return byte_count < (UINT64_C(1) << 30) ? (DWORD)byte_count : (DWORD)1 << 30;
}

hfn_os_error hfn_os_read_at(hfn_os_file file, uint64_t offset, void *out, uint64_t byte_count,
                            uint64_t *done)
{
    *done = 0;
    if (hfn_is_section(file)) {
        return hfn_section_read(file, offset, out, byte_count, done);
    }
    while (*done < byte_count) {
        OVERLAPPED at = { .Offset = (DWORD)(offset + *done),
                          .OffsetHigh = (DWORD)((offset + *done) >> 32) };
        DWORD got = 0;

        if (!ReadFile(hfn_get_handle(file), (uint8_t *)out + *done, get_step(byte_count - *done),
                      &got, &at)) {
            return GetLastError() == ERROR_HANDLE_EOF ? 0 : hfn_get_last_error();
        }
        if (got == 0) {
            break;
        }
        *done += got;
    }
    return 0;
}

hfn_os_error hfn_os_read_next(hfn_os_file file, void *out, uint64_t byte_count, uint64_t *done)
{
    *done = 0;
    while (*done < byte_count) {
        DWORD got = 0;

        if (!ReadFile(hfn_get_handle(file), (uint8_t *)out + *done, get_step(byte_count - *done),
                      &got, NULL)) {
            return GetLastError() == ERROR_BROKEN_PIPE ? 0 : hfn_get_last_error();
        }
        if (got == 0) {
            break;
        }
        *done += got;
    }
    return 0;
}

hfn_os_error hfn_os_write_at(hfn_os_file file, uint64_t offset, const void *bytes,
                             uint64_t byte_count)
{
    if (hfn_is_section(file)) {
        return hfn_section_write(file, offset, bytes, byte_count);
    }
    for (uint64_t done = 0; done < byte_count;) {
        OVERLAPPED at = { .Offset = (DWORD)(offset + done),
                          .OffsetHigh = (DWORD)((offset + done) >> 32) };
        DWORD put = 0;

        if (!WriteFile(hfn_get_handle(file), (const uint8_t *)bytes + done,
                       get_step(byte_count - done), &put, &at)) {
            return hfn_get_last_error();
        }
        done += put;
    }
    return 0;
}

hfn_os_error hfn_os_write_next(hfn_os_file file, const void *bytes, uint64_t byte_count)
{
    for (uint64_t done = 0; done < byte_count;) {
        DWORD put = 0;

        if (!WriteFile(hfn_get_handle(file), (const uint8_t *)bytes + done,
                       get_step(byte_count - done), &put, NULL)) {
            return hfn_get_last_error();
        }
        done += put;
    }
    return 0;
}

uint64_t hfn_os_find_data(hfn_os_file file, uint64_t offset, uint64_t end)
{
    return hfn_is_section(file) ? hfn_section_find_data(file, offset, end) : offset;
}

hfn_os_error hfn_os_set_file_size(hfn_os_file file, uint64_t byte_count)
{
    FILE_END_OF_FILE_INFO end = { .EndOfFile.QuadPart = (LONGLONG)byte_count };

    return SetFileInformationByHandle(hfn_get_handle(file), FileEndOfFileInfo, &end, sizeof end)
               ? 0
               : hfn_get_last_error();
}

/* A file has its space from the time that its size is set. */
hfn_os_error hfn_os_allocate_space(hfn_os_file file, uint64_t offset, uint64_t byte_count)
{
    (void)file;
    (void)offset;
    (void)byte_count;
    return 0;
}

hfn_os_error hfn_os_sync_file(hfn_os_file file)
{
    return FlushFileBuffers(hfn_get_handle(file)) ? 0 : hfn_get_last_error();
}

void hfn_os_hold_size_limit(hfn_os_size_limit *held)
{
    held->state[0] = 0; /* no limit on file sizes ends a process here */
}

void hfn_os_release_size_limit(const hfn_os_size_limit *held)
{
    (void)held;
}

/* ---- Locks.  A lock covers one byte far behind the contents, since locked bytes cannot be
 * read. */

static OVERLAPPED get_lock_place(void)
{
    return (OVERLAPPED){ .Offset = 0, .OffsetHigh = 0x7fffffff };
}

bool hfn_os_try_lock_file(hfn_os_file file, hfn_os_lock lock)
{
    OVERLAPPED at = get_lock_place();

    return LockFileEx(hfn_get_handle(file),
                      LOCKFILE_FAIL_IMMEDIATELY |
                          (lock == HFN_OS_EXCLUSIVE_LOCK ? LOCKFILE_EXCLUSIVE_LOCK : 0),
                      0, 1, 0, &at) != 0;
}

void hfn_os_unlock_file(hfn_os_file file)
{
    OVERLAPPED at = get_lock_place();

    UnlockFileEx(hfn_get_handle(file), 0, 1, 0, &at);
}

/* ---- Names. */

hfn_os_error hfn_os_remove_file(const char *path)
{
    wchar_t name[HFN_UTF16_PATH];

    if (!hfn_to_utf16_path(path, name, HFN_UTF16_PATH)) {
        return ERROR_INVALID_NAME;
    }
    return DeleteFileW(name) ? 0 : hfn_get_last_error();
}

hfn_os_error hfn_os_replace_file(const char *from, const char *to)
{
    wchar_t old_name[HFN_UTF16_PATH], new_name[HFN_UTF16_PATH];

    if (!hfn_to_utf16_path(from, old_name, HFN_UTF16_PATH) ||
        !hfn_to_utf16_path(to, new_name, HFN_UTF16_PATH)) {
        return ERROR_INVALID_NAME;
    }
    return MoveFileExW(old_name, new_name, MOVEFILE_REPLACE_EXISTING) ? 0 : hfn_get_last_error();
}

static size_t put_number(char *out, uint32_t number)
{
    size_t count = 0;

    for (int shift = 28; shift >= 0; shift -= 4) {
        out[count++] = "0123456789abcdef"[number >> shift & 15];
    }
    return count;
}

hfn_os_error hfn_os_create_temporary(hfn_os_file *out, const char *path, uint32_t flags, char *name,
                                     size_t capacity)
{
    size_t length = strlen(path);
    hfn_os_error error = ERROR_FILE_EXISTS;

    if (length + 32 > capacity) {
        return ERROR_FILENAME_EXCED_RANGE;
    }
    memcpy(name, path, length);
    for (uint32_t n = 0; error == ERROR_FILE_EXISTS && n < MAX_TEMPORARIES; n++) {
        char *at = name + length;

        *at++ = '.';
        at += put_number(at, GetCurrentProcessId());
        *at++ = '.';
        at += put_number(at, n);
        memcpy(at, ".tmp", 5);
        error = hfn_os_open_file(out, name, flags | HFN_OS_WRITE | HFN_OS_CREATE_NEW);
    }
    return error;
}

void hfn_os_make_folders(const char *path)
{
    wchar_t name[HFN_UTF16_PATH];

    if (!hfn_to_utf16_path(path, name, HFN_UTF16_PATH) || name[0] == 0) {
        return;
    }
    for (wchar_t *c = name + 1; *c; c++) {
        if (*c == L'/' || *c == L'\\') {
            wchar_t separator = *c;

            *c = 0;
            CreateDirectoryW(name, NULL);
            *c = separator;
        }
    }
    CreateDirectoryW(name, NULL);
}
