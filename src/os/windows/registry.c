/* SPDX-License-Identifier: MIT */
/* HKEY_CLASSES_ROOT by calls of ntdll: the classes of the user first, then those of the machine. */
#include "os/registry.h"

#include "os/windows/nt.h"

#include <stdio.h>
#include <string.h>

/* ntddk.h */
typedef struct value_information { /* KEY_VALUE_PARTIAL_INFORMATION */
    ULONG title, type, byte_count;
    wchar_t text[600];
} value_information;

enum { PARTIAL_INFORMATION = 2 };

NTSTATUS NTAPI NtOpenKey(HANDLE *out, ACCESS_MASK access, const OBJECT_ATTRIBUTES *attributes);
NTSTATUS NTAPI NtQueryValueKey(HANDLE key, const UNICODE_STRING *name, int information, void *out,
                               ULONG bytes, ULONG *needed);
NTSTATUS NTAPI RtlFormatCurrentUserKeyPath(UNICODE_STRING *out);
void NTAPI RtlFreeUnicodeString(UNICODE_STRING *text);
NTSTATUS NTAPI RtlQueryEnvironmentVariable_U(void *environment, UNICODE_STRING *name,
                                             UNICODE_STRING *out);

static UNICODE_STRING make_string(wchar_t *text)
{
    USHORT bytes = (USHORT)(wcslen(text) * sizeof *text);

    return (UNICODE_STRING){ bytes, (USHORT)(bytes + sizeof *text), text };
}

static bool read_value(HANDLE key, const char *value, char *out, size_t capacity)
{
    wchar_t name[64];
    value_information found;
    ULONG needed;
    UNICODE_STRING string;

    if (!hfn_to_utf16(value, name, sizeof name / sizeof *name)) {
        return false;
    }
    string = make_string(name);
    memset(&found, 0, sizeof found);
    if (NtQueryValueKey(key, &string, PARTIAL_INFORMATION, &found,
                        sizeof found - sizeof *found.text, &needed) < 0 ||
        (found.type != REG_SZ && found.type != REG_EXPAND_SZ) || found.text[0] == 0) {
        return false;
    }
    return hfn_from_utf16(found.text, out, capacity);
}

static bool read_text(const char *root, const char *path, const char *value, char *out,
                      size_t capacity)
{
    char full[500];
    wchar_t name[500];
    UNICODE_STRING string;
    OBJECT_ATTRIBUTES attributes;
    HANDLE key;
    bool is_read;

    if (snprintf(full, sizeof full, "%s\\Software\\Classes\\%s", root, path) >= (int)sizeof full ||
        !hfn_to_utf16(full, name, sizeof name / sizeof *name)) {
        return false;
    }
    string = make_string(name);
    InitializeObjectAttributes(&attributes, &string, OBJ_CASE_INSENSITIVE, NULL, NULL);
    if (NtOpenKey(&key, KEY_QUERY_VALUE, &attributes) < 0) {
        return false;
    }
    is_read = read_value(key, value, out, capacity);
    NtClose(key);
    return is_read;
}

bool hfn_os_read_class_text(const char *key, const char *value, char *out, size_t capacity)
{
    UNICODE_STRING user;
    char root[200];
    bool is_read = false;

    if (RtlFormatCurrentUserKeyPath(&user) >= 0) {
        is_read = hfn_from_utf16(user.Buffer, root, sizeof root) &&
                  read_text(root, key, value, out, capacity);
        RtlFreeUnicodeString(&user);
    }
    return is_read || read_text("\\Registry\\Machine", key, value, out, capacity);
}

bool hfn_os_read_variable(const char *name, char *out, size_t capacity)
{
    wchar_t wide[64], found[600] = { 0 };
    UNICODE_STRING text = { 0, sizeof found - sizeof *found, found }, string;

    if (!hfn_to_utf16(name, wide, sizeof wide / sizeof *wide)) {
        return false;
    }
    string = make_string(wide);
    if (RtlQueryEnvironmentVariable_U(NULL, &string, &text) < 0 || text.Length == 0) {
        return false;
    }
    found[text.Length / sizeof *found] = 0;
    return hfn_from_utf16(found, out, capacity);
}
