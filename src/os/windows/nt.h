/* SPDX-License-Identifier: MIT */
/* Declarations that the files of this folder share: the system's headers, calls of ntdll that these
 * headers lack, and conversions from and to UTF-16. */
#ifndef HFN_OS_WINDOWS_NT_H
#define HFN_OS_WINDOWS_NT_H

#include "os/files.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <winternl.h>

/* Structures and numbers: Windows driver kit (wdm.h, ntddk.h) and phnt's ntmmapi.h. */
typedef struct hfn_section_info {
    void *base;
    ULONG attributes;
    LARGE_INTEGER byte_count;
} hfn_section_info;

/* THREAD_BASIC_INFORMATION */
typedef struct hfn_thread_info {
    NTSTATUS exit_status;
    void *teb;
    CLIENT_ID id;
    ULONG_PTR affinity;
    LONG priority, base_priority;
} hfn_thread_info;

NTSTATUS NTAPI NtQuerySection(HANDLE section, int information, void *out, SIZE_T bytes,
                              SIZE_T *needed);
NTSTATUS NTAPI NtUnmapViewOfSection(HANDLE process, void *address);
NTSTATUS NTAPI NtGetNextThread(HANDLE process, HANDLE thread, ACCESS_MASK access, ULONG attributes,
                               ULONG flags, HANDLE *next);
NTSTATUS NTAPI NtAllocateVirtualMemory(HANDLE process, void **address, ULONG_PTR zero_bits,
                                       SIZE_T *bytes, ULONG type, ULONG protection);
NTSTATUS NTAPI NtFreeVirtualMemory(HANDLE process, void **address, SIZE_T *bytes, ULONG type);
NTSTATUS NTAPI NtReadVirtualMemory(HANDLE process, const void *address, void *out, SIZE_T bytes,
                                   SIZE_T *done);
NTSTATUS NTAPI NtWriteVirtualMemory(HANDLE process, void *address, const void *bytes, SIZE_T count,
                                    SIZE_T *done);
NTSTATUS NTAPI NtOpenThread(HANDLE *out, ACCESS_MASK access, OBJECT_ATTRIBUTES *attributes,
                            CLIENT_ID *client);
NTSTATUS NTAPI NtOpenProcess(HANDLE *out, ACCESS_MASK access, OBJECT_ATTRIBUTES *attributes,
                             CLIENT_ID *client);
NTSTATUS NTAPI RtlWaitOnAddress(const void *address, const void *value, SIZE_T bytes,
                                const LARGE_INTEGER *timeout);
PEB *NTAPI RtlGetCurrentPeb(void);
void NTAPI RtlWakeAddressAll(const void *address);

NTSTATUS NTAPI NtSetInformationThread(HANDLE thread, int information, void *value, ULONG bytes);

#define HFN_OWN_PROCESS ((HANDLE)(intptr_t)-1)
#define HFN_OWN_THREAD ((HANDLE)(intptr_t)-2)

/* TEB.TlsSlots (winternl.h) */
#if defined(_WIN64)
enum { HFN_SLOTS_AT = 0x1480 };
#else
enum { HFN_SLOTS_AT = 0xe10 };
#endif

enum { HFN_UTF16_PATH = 4096 };
#define HFN_SECTION_PREFIX "hotfn-section:" /* of a path that names shared memory */
#define HFN_SECTION_TAG (INT64_C(1) << 30)  /* in hfn_os_file.handle: shared memory, no file */
#define HFN_VIEW_UNIT UINT64_C(65536)       /* offsets of views are multiples of it */

/* text.c: convert a string with its NUL; false if it does not fit or is malformed. */
bool hfn_to_utf16(const char *text, wchar_t *out, size_t capacity);
bool hfn_from_utf16(const wchar_t *text, char *out, size_t capacity);
/* Convert a path to the form (\\?\) that may be longer than MAX_PATH. */
bool hfn_to_utf16_path(const char *path, wchar_t *out, size_t capacity);

static inline bool hfn_is_section(hfn_os_file file)
{
    return file.handle >= 0 && (file.handle & HFN_SECTION_TAG) != 0;
}

static inline HANDLE hfn_get_handle(hfn_os_file file)
{
    return (HANDLE)(intptr_t)(file.handle & ~HFN_SECTION_TAG);
}

static inline hfn_os_error hfn_get_last_error(void)
{
    hfn_os_error error = (hfn_os_error)GetLastError();

    return error != 0 ? error : ERROR_GEN_FAILURE;
}

/* sections.c: shared memory behind the calls of files.h. */
hfn_os_error hfn_section_open(hfn_os_file *out, const char *path, bool writes);
uint64_t hfn_section_get_bytes(hfn_os_file section);
void hfn_section_get_path(hfn_os_file section, char *out, size_t capacity);
hfn_os_error hfn_section_read(hfn_os_file section, uint64_t offset, void *out, uint64_t byte_count,
                              uint64_t *done);
hfn_os_error hfn_section_write(hfn_os_file section, uint64_t offset, const void *bytes,
                               uint64_t byte_count);
uint64_t hfn_section_find_data(hfn_os_file section, uint64_t offset, uint64_t end);

#endif
