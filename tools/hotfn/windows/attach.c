/* SPDX-License-Identifier: MIT */
/* What `hotfn attach` asks of the system: the end by Ctrl-C, and the process of a program. */
#include "run/attach.h"

#include "cli/cli_options.h"

#include <hotfn/lowlevel/functions.h>
#include <windows.h>

#include <tlhelp32.h>

enum { MAX_SHOWN = 8, NAME_BYTES = 3 * MAX_PATH };

/* ---- Interrupts. */

static volatile LONG is_interrupted;

bool attach_is_interrupted(void)
{
    return is_interrupted != 0;
}

/* Also when the console is closed; the system then ends this process a few seconds later. */
static BOOL WINAPI note_event(DWORD event)
{
    (void)event;
    is_interrupted = 1;
    return TRUE;
}

void attach_catch_interrupts(void)
{
    SetConsoleCtrlHandler(note_event, TRUE);
}

/* ---- Children. */

const char *attach_check_children(void)
{
    return "not available on Windows; attach to each process by its number";
}

bool attach_run_family(const run_options *options, hotfn_launch *first, const hotfn_env *env)
{
    (void)options, (void)first, (void)env;
    return false; /* attach_check_children refuses the option */
}

/* ---- The process of a program.  Names of files have no case. */

static void lower_letters(char *text)
{
    for (; *text; text++) {
        *text = *text >= 'A' && *text <= 'Z' ? (char)(*text + 'a' - 'A') : *text;
    }
}

static bool has_name(const char *glob, const PROCESSENTRY32W *entry, char name[NAME_BYTES])
{
    char lower_glob[NAME_BYTES], lower_name[NAME_BYTES];

    if (WideCharToMultiByte(CP_UTF8, 0, entry->szExeFile, -1, name, NAME_BYTES, NULL, NULL) <= 0) {
        return false;
    }
    snprintf(lower_glob, sizeof lower_glob, "%s", glob);
    snprintf(lower_name, sizeof lower_name, "%s", name);
    lower_letters(lower_glob);
    lower_letters(lower_name);
    return hotfn_glob_match(lower_glob, lower_name) == 1;
}

bool run_find_process(const char *command, const char *glob, uint32_t *pid)
{
    HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
    PROCESSENTRY32W entry = { .dwSize = sizeof entry };
    char name[NAME_BYTES], found[MAX_SHOWN * (NAME_BYTES + 16)] = "";
    uint32_t count = 0;
    size_t used = 0;

    for (BOOL more = Process32FirstW(list, &entry); more; more = Process32NextW(list, &entry)) {
        if (entry.th32ProcessID == GetCurrentProcessId() || !has_name(glob, &entry, name)) {
            continue;
        }
        *pid = entry.th32ProcessID;
        if (count++ < MAX_SHOWN) {
            used += (size_t)snprintf(found + used, sizeof found - used, "%s%u (%s)",
                                     used ? ", " : "", *pid, name);
        }
    }
    CloseHandle(list);
    if (count == 0) {
        fprintf(stderr, "hotfn %s: no process is named '%s' (see tasklist)\n", command, glob);
    } else if (count > 1) {
        fprintf(stderr, "hotfn %s: %u processes are named '%s': %s%s; name one by its number\n",
                command, count, glob, found, count > MAX_SHOWN ? ", ..." : "");
    }
    return count == 1;
}
