/* SPDX-License-Identifier: MIT */
/* The files of a kit that are copies: the tool, its agent and its libraries. */
#include "kit.h"

#include "cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIT_PATH_BYTES 4096

static bool report_failure(const char *path, const char *what)
{
    fprintf(stderr, "hotfn kit: %s: cannot be %s: %s\n", path, what, strerror(errno));
    return false;
}

bool kit_make_folder(const char *path)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST || report_failure(path, "made");
}

static bool copy_bytes(FILE *from, FILE *to)
{
    char buffer[65536];
    size_t bytes;

    while ((bytes = fread(buffer, 1, sizeof buffer, from)) > 0) {
        if (fwrite(buffer, 1, bytes, to) != bytes) {
            return false;
        }
    }
    return !ferror(from);
}

bool kit_copy(const char *from_path, const char *folder, const char *name)
{
    char path[KIT_PATH_BYTES];
    FILE *from = fopen(from_path, "rbe"), *to;
    bool good;

    if (!from) {
        return report_failure(from_path, "read");
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path); /* it may run right now */
    to = fopen(path, "wbe");
    good = to && copy_bytes(from, to) && fchmod(fileno(to), 0755) == 0;
    fclose(from);
    if (to && fclose(to) != 0) {
        good = false;
    }
    return good || report_failure(path, "written");
}

static bool is_of_libc(const char *file)
{
    static const char *const begins[] = { "libc.so",  "libm.so",  "libpthread.so",
                                          "libdl.so", "librt.so", "ld-linux" };

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        if (strncmp(file, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    return false;
}

static int copy_library(struct dl_phdr_info *info, size_t size, void *folder)
{
    const char *slash = strrchr(info->dlpi_name, '/');

    (void)size;
    if (!slash || is_of_libc(slash + 1)) { /* the program itself has no name, the vDSO no folder */
        return 0;
    }
    return kit_copy(info->dlpi_name, folder, slash + 1) ? 0 : 1;
}

bool kit_copy_libraries(const char *folder)
{
    char path[KIT_PATH_BYTES];

    snprintf(path, sizeof path, "%s/" KIT_LIBRARIES, folder);
    return kit_make_folder(path) && dl_iterate_phdr(copy_library, path) == 0;
}

/* ---- The parts for Windows. */

static bool find_next_to_agent(char out[KIT_FOLDER_BYTES])
{
    hotfn_error err = HOTFN_ERROR_INIT;

    if (hotfn_launch_find_agent(out, KIT_FOLDER_BYTES - sizeof "/windows", HOTFN_MACHINE_OTHER,
                                &err) != HOTFN_OK) {
        hotfn_tool_fail("kit", &err);
        return false;
    }
    strcpy(strrchr(out, '/'), "/windows");
    return true;
}

bool kit_find_windows(const char *given, char out[KIT_FOLDER_BYTES])
{
    if (given) {
        snprintf(out, KIT_FOLDER_BYTES, "%s", given);
    } else if (!find_next_to_agent(out)) {
        return false;
    }
    if (access(out, R_OK) != 0) {
        fprintf(stderr,
                "hotfn kit: %s: not found; the kit of a Windows program needs the folder with "
                "hotfn.exe and hotfn-agent.dll, which scripts/cross/parts makes: name it by "
                "--windows DIR\n",
                out);
        return false;
    }
    return true;
}

bool kit_copy_windows(const char *from, const char *folder)
{
    static const char *const names[] = { "hotfn.exe", "hotfn-agent.dll", "hotfn-methods.dll",
                                         "LICENSE", "THIRD-PARTY.md" };
    char path[2 * KIT_FOLDER_BYTES];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", from, names[i]);
        if (!kit_copy(path, folder, names[i])) {
            return false;
        }
    }
    return true;
}
