/* SPDX-License-Identifier: MIT */
/*
 * HKEY_CLASSES_ROOT:
 *   Interface\{IID}              its name
 *   Interface\{IID}\NumMethods   their number
 *   Interface\{IID}\TypeLib      {LIBID}; value Version
 *   TypeLib\{LIBID}\1.0\0\win64  path of the library (win32 without one), which may end with the
 *                                number of a resource: "C:\\a.dll\\2"
 */
#include "runtimes/com_registry.h"

#include "os/os.h"
#include "os/registry.h"
#include "runtimes/com_typelib.h"

#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = 200, PATH_BYTES = 600, MAX_FILE_BYTES = 64 << 20 };

static uint32_t read_number(const char *text)
{
    uint32_t number = 0;

    for (; *text >= '0' && *text <= '9' && number < 10000; text++) {
        number = number * 10 + (uint32_t)(*text - '0');
    }
    return number;
}

/* Remove the number of a resource from the end of a path; 0: it has none. */
static uint32_t cut_number(char *path)
{
    char *slash = strrchr(path, '\\');
    uint32_t number = slash ? read_number(slash + 1) : 0;

    if (number > 0 && !strchr(slash, '.')) {
        *slash = 0;
        return number;
    }
    return 0;
}

static hfn_span read_file(const char *path, uint64_t *mapped_bytes)
{
    hfn_os_file file = HFN_OS_NO_FILE;
    hfn_os_file_info info;
    uint8_t *bytes = NULL;
    uint64_t done = 0;

    if (hfn_os_open_file(&file, path, HFN_OS_READ) != 0) {
        return (hfn_span){ NULL, 0, false };
    }
    if (hfn_os_get_file_info(file, &info) == 0 && info.kind == HFN_OS_REGULAR_FILE &&
        info.byte_count > 0 && info.byte_count <= MAX_FILE_BYTES &&
        (bytes = hfn_os_map_pages(info.byte_count)) != NULL) {
        hfn_os_read_at(file, 0, bytes, info.byte_count, &done);
        *mapped_bytes = info.byte_count;
    }
    hfn_os_close_file(file);
    return (hfn_span){ bytes, done, false };
}

static void read_library(hfn_com_interface *out, char *path, const hfn_guid *iid)
{
    uint32_t number = cut_number(path);
    uint64_t mapped_bytes = 0;
    hfn_span file = read_file(path, &mapped_bytes);

    if (!file.data) {
        return;
    }
    if (file.size > 2 && file.data[0] == 'M' && file.data[1] == 'Z') {
        hfn_typelib_find(out, hfn_typelib_in_module(file, false, number), iid);
    } else {
        hfn_typelib_find(out, file, iid);
    }
    hfn_os_unmap((uint64_t)(uintptr_t)file.data, mapped_bytes);
}

static void find_library(hfn_com_interface *out, const char *interface_key, const hfn_guid *iid)
{
    static const char *const systems[] = { "win64", "win32" };
    char key[KEY_BYTES], library[HFN_GUID_BYTES], version[16], path[PATH_BYTES];
    bool is_found = false;

    snprintf(key, sizeof key, "%.100s\\TypeLib", interface_key);
    if (!hfn_os_read_class_text(key, "", library, sizeof library) ||
        !hfn_os_read_class_text(key, "Version", version, sizeof version)) {
        return;
    }
    for (uint32_t i = 0; i < 2 && !is_found; i++) {
        snprintf(key, sizeof key, "TypeLib\\%s\\%s\\0\\%s", library, version, systems[i]);
        is_found = hfn_os_read_class_text(key, "", path, sizeof path);
    }
    if (is_found) {
        read_library(out, path, iid);
    }
}

void hfn_com_find_registered(hfn_com_interface *out, const hfn_guid *iid)
{
    char guid[HFN_GUID_BYTES], key[KEY_BYTES], methods_key[KEY_BYTES], count[8];

    hfn_guid_write(guid, iid);
    snprintf(key, sizeof key, "Interface\\%s", guid);
    snprintf(methods_key, sizeof methods_key, "%.100s\\NumMethods", key);
    find_library(out, key, iid);
    if (!out->name[0]) {
        hfn_os_read_class_text(key, "", out->name, sizeof out->name);
    }
    if (out->count == 0 && hfn_os_read_class_text(methods_key, "", count, sizeof count)) {
        uint32_t number = read_number(count);

        out->count =
            number >= HFN_COM_UNKNOWN_METHODS && number <= HFN_COM_MAX_METHODS ? number : 0;
    }
}
