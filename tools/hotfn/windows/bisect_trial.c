/* SPDX-License-Identifier: MIT */
/* One trial of `hotfn bisect`: runs the command without hooks, or under `hotfn run` of this same
 * executable.  stdout and stderr go to files, stdin is the same in every trial, and the time is
 * limited.  A trial is a job, so that nothing that it starts outlives it. */
#include "run/bisect.h"

#include <windows.h>

#include <tlhelp32.h>

enum { LINE_UNITS = 32768, GRACE_MS = 2000, POLL_MS = 100, STATUS_HANG = 124 };
enum { RUN_FAILED_FROM = 125, CRASH_BITS = 0xC0 };

static volatile LONG is_interrupted;

static bool report_failure(const char *what, const char *path)
{
    fprintf(stderr, "hotfn bisect: %s: %s (error %lu of Windows)\n", path, what, GetLastError());
    return false;
}

static bool make_utf16(const char *text, wchar_t *out, int units)
{
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, out, units) > 0;
}

static BOOL WINAPI note_event(DWORD event)
{
    is_interrupted = 1;
    return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
}

/* ---- Files. */

/* Open for a child; INVALID_HANDLE_VALUE on failure. */
static HANDLE open_inherited(const char *path, DWORD access, DWORD disposition)
{
    SECURITY_ATTRIBUTES inherited = { sizeof inherited, NULL, TRUE };
    wchar_t wide[PATH_MAX];

    return make_utf16(path, wide, PATH_MAX)
               ? CreateFileW(wide, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                             &inherited, disposition, FILE_ATTRIBUTE_NORMAL, NULL)
               : INVALID_HANDLE_VALUE;
}

/* Copy stdin to a file, so that every trial reads the same input; a console is not read. */
static bool keep_input(const bisect_setup *s)
{
    HANDLE in = GetStdHandle(STD_INPUT_HANDLE), out;
    char path[PATH_MAX], bytes[65536];
    DWORD count, written, mode;
    bool ok = true;

    bisect_make_path(s, "input", path);
    out = open_inherited(path, GENERIC_WRITE, CREATE_ALWAYS);
    if (out == INVALID_HANDLE_VALUE) {
        return report_failure("cannot be written", path);
    }
    while (ok && !GetConsoleMode(in, &mode) && ReadFile(in, bytes, sizeof bytes, &count, NULL) &&
           count > 0) {
        ok = WriteFile(out, bytes, count, &written, NULL) && written == count;
    }
    CloseHandle(out);
    return ok || report_failure("cannot be written", path);
}

static bool make_folder(bisect_setup *s)
{
    wchar_t wide[PATH_MAX];
    DWORD length = GetTempPathW(PATH_MAX, wide);
    char base[PATH_MAX];

    if (length == 0 || length >= PATH_MAX ||
        WideCharToMultiByte(CP_UTF8, 0, wide, -1, base, PATH_MAX, NULL, NULL) <= 0) {
        return report_failure("the folder for temporary files is not known", "TMP");
    }
    snprintf(s->folder, sizeof s->folder, "%shotfn-bisect-%lx-%lx", base, GetCurrentProcessId(),
             GetTickCount());
    for (char *c = s->folder; *c; c++) {
        *c = *c == '\\' ? '/' : *c;
    }
    return tool_mkdir(s->folder) == 0 || report_failure("cannot create this folder", s->folder);
}

bool bisect_begin(bisect_setup *s)
{
    wchar_t self[PATH_MAX];
    DWORD length = GetModuleFileNameW(NULL, self, PATH_MAX);

    if (length == 0 || length >= PATH_MAX ||
        WideCharToMultiByte(CP_UTF8, 0, self, -1, s->self, sizeof s->self, NULL, NULL) <= 0) {
        return report_failure("the path of this program is not known", "hotfn.exe");
    }
    SetConsoleCtrlHandler(note_event, TRUE);
    return make_folder(s) && keep_input(s);
}

void bisect_end(bisect_setup *s)
{
    static const char *const files[] = { "input", "errors",   "list",   "record.hfr",
                                         "bare",  "bare-too", "hooked", "trial" };
    wchar_t folder[PATH_MAX];
    char path[PATH_MAX];

    for (size_t i = 0; s->folder[0] && i < sizeof files / sizeof files[0]; i++) {
        bisect_make_path(s, files[i], path);
        unlink(path);
    }
    if (s->folder[0] && make_utf16(s->folder, folder, PATH_MAX)) {
        RemoveDirectoryW(folder);
    }
    SetConsoleCtrlHandler(note_event, FALSE);
}

/* ---- The command line: the rules by which the C library splits it (Microsoft, "Parsing C
 * command-line arguments"). */

typedef struct line {
    wchar_t *text, *argument; /* LINE_UNITS each */
    size_t length;
    bool ok;
} line;

static void put_unit(line *l, wchar_t unit)
{
    if (l->length + 1 < LINE_UNITS) {
        l->text[l->length++] = unit;
        l->text[l->length] = 0;
    } else {
        l->ok = false;
    }
}

/* In quotes; a backslash is doubled only before a quote. */
static void put_argument(line *l, const char *argument)
{
    size_t slashes = 0;

    l->ok &= make_utf16(argument, l->argument, LINE_UNITS);
    if (!l->ok) {
        return;
    }
    if (l->length > 0) {
        put_unit(l, L' ');
    }
    put_unit(l, L'"');
    for (const wchar_t *c = l->argument; *c; c++) {
        for (size_t more = *c == L'"' ? slashes + 1 : 0; more > 0; more--) {
            put_unit(l, L'\\');
        }
        slashes = *c == L'\\' ? slashes + 1 : 0;
        put_unit(l, *c);
    }
    for (; slashes > 0; slashes--) {
        put_unit(l, L'\\');
    }
    put_unit(l, L'"');
}

/* The options that come last override those of the user. */
static void put_run(line *l, const bisect_setup *s, const char *list)
{
    char record[PATH_MAX];

    bisect_make_path(s, "record.hfr", record);
    put_argument(l, s->self);
    put_argument(l, "run");
    for (int i = 0; i < s->run_argument_count; i++) {
        put_argument(l, s->run_arguments[i]);
    }
    put_argument(l, "-qo");
    put_argument(l, record);
    if (*list) {
        put_argument(l, "--only-list");
        put_argument(l, list);
    }
    put_argument(l, "--");
}

static bool make_line(line *l, const bisect_setup *s, const char *list)
{
    *l = (line){ .text = calloc(2 * LINE_UNITS, sizeof *l->text), .ok = true };
    if (!l->text) {
        return false;
    }
    l->argument = l->text + LINE_UNITS;
    if (list) {
        put_run(l, s, list);
    }
    for (char **word = s->command; *word; word++) {
        put_argument(l, *word);
    }
    return l->ok;
}

/* ---- A process. */

typedef struct trial {
    PROCESS_INFORMATION process;
    HANDLE job;
} trial;

/* Start it with these files, which are closed. */
static bool start_process(trial *t, wchar_t *text, HANDLE in, HANDLE out, HANDLE errors)
{
    STARTUPINFOW start = { .cb = sizeof start,
                           .dwFlags = STARTF_USESTDHANDLES,
                           .hStdInput = in,
                           .hStdOutput = out,
                           .hStdError = errors };
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limit = { .BasicLimitInformation.LimitFlags =
                                                       JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE };
    bool ok = in != INVALID_HANDLE_VALUE && out != INVALID_HANDLE_VALUE &&
              errors != INVALID_HANDLE_VALUE &&
              CreateProcessW(NULL, text, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &start,
                             &t->process);
    DWORD error = GetLastError();

    CloseHandle(in);
    CloseHandle(out);
    CloseHandle(errors);
    SetLastError(error);
    if (!ok) {
        return false;
    }
    t->job = CreateJobObjectW(NULL, NULL);
    SetInformationJobObject(t->job, JobObjectExtendedLimitInformation, &limit, sizeof limit);
    AssignProcessToJobObject(t->job, t->process.hProcess);
    ResumeThread(t->process.hThread);
    return true;
}

static int finish_process(trial *t)
{
    DWORD code = 0;

    GetExitCodeProcess(t->process.hProcess, &code);
    CloseHandle(t->process.hThread);
    CloseHandle(t->process.hProcess);
    CloseHandle(t->job); /* ends what is left of it */
    return (int)code;
}

/* False if the process still runs at the deadline, or if the user interrupts. */
static bool wait_for_process(const trial *t, uint64_t until_ms)
{
    while (WaitForSingleObject(t->process.hProcess, POLL_MS) == WAIT_TIMEOUT) {
        if (GetTickCount64() >= until_ms || is_interrupted) {
            return false;
        }
    }
    return true;
}

/* End the program, but not the hotfn that runs it, which must still write its record. */
static void end_program(const trial *t)
{
    HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
    PROCESSENTRY32W entry = { .dwSize = sizeof entry };

    for (BOOL more = Process32FirstW(list, &entry); more; more = Process32NextW(list, &entry)) {
        HANDLE child = entry.th32ParentProcessID == t->process.dwProcessId
                           ? OpenProcess(PROCESS_TERMINATE, FALSE, entry.th32ProcessID)
                           : NULL;
        if (child) {
            TerminateProcess(child, 1);
            CloseHandle(child);
        }
    }
    CloseHandle(list);
}

static void end_trial(const trial *t, bool is_hooked)
{
    if (is_hooked && !is_interrupted) {
        end_program(t);
        if (wait_for_process(t, GetTickCount64() + GRACE_MS)) {
            return;
        }
    }
    TerminateJobObject(t->job, 1);
    WaitForSingleObject(t->process.hProcess, INFINITE);
}

/* ---- A trial. */

static bool start_trial(trial *t, const bisect_setup *s, const char *list, const char *output)
{
    char input[PATH_MAX], errors[PATH_MAX];
    line l;
    bool ok = make_line(&l, s, list);

    bisect_make_path(s, "input", input);
    bisect_make_path(s, "errors", errors);
    ok = ok && start_process(t, l.text, open_inherited(input, GENERIC_READ, OPEN_EXISTING),
                             open_inherited(output, GENERIC_WRITE, CREATE_ALWAYS),
                             open_inherited(errors, GENERIC_WRITE, CREATE_ALWAYS));
    free(l.text);
    return ok || report_failure("cannot be started", s->command[0]);
}

bool bisect_trial(bisect_setup *s, const char *list, const char *label, bisect_outcome *out)
{
    uint64_t begin_ms = GetTickCount64();
    char record[PATH_MAX];
    trial t;

    bisect_make_path(s, label, out->output);
    bisect_make_path(s, "record.hfr", record);
    unlink(record);
    if (!start_trial(&t, s, list, out->output)) {
        return false;
    }
    out->hung =
        !wait_for_process(&t, s->timeout_ns ? begin_ms + s->timeout_ns / 1000000 : UINT64_MAX);
    if (out->hung) {
        end_trial(&t, list != NULL);
    }
    out->status = finish_process(&t);
    out->time_ns = (GetTickCount64() - begin_ms) * 1000000u;
    s->interrupted = is_interrupted != 0;
    if (s->interrupted) {
        return false;
    }
    bool run_failed = list && out->status >= RUN_FAILED_FROM;
    return run_failed && access(record, F_OK) != 0 ? bisect_print_errors(s) : true;
}

/* ---- The check. */

/* Run the --check command: its stdin is the trial's stdout, and %STATUS% is the trial's status. */
bool bisect_check_fails(const bisect_setup *s, const bisect_outcome *o)
{
    wchar_t *text = calloc(LINE_UNITS, sizeof *text), status[16];
    trial t;
    int result = -1;

    swprintf(status, 16, L"%d", o->hung ? STATUS_HANG : o->status);
    SetEnvironmentVariableW(L"STATUS", status);
    if (text && swprintf(text, LINE_UNITS, L"cmd.exe /d /s /c \"%hs\"", s->check) > 0 &&
        start_process(&t, text, open_inherited(o->output, GENERIC_READ, OPEN_EXISTING),
                      open_inherited("NUL", GENERIC_WRITE, OPEN_EXISTING),
                      open_inherited("NUL", GENERIC_WRITE, OPEN_EXISTING))) {
        WaitForSingleObject(t.process.hProcess, INFINITE);
        result = finish_process(&t);
    }
    free(text);
    return result != 0;
}

void bisect_format_outcome(const bisect_outcome *o, char *text, size_t text_bytes)
{
    bool is_crash = (uint32_t)o->status >> 24 == CRASH_BITS;

    if (o->hung) {
        snprintf(text, text_bytes, "no end within %.1f s", (double)o->time_ns / 1e9);
    } else {
        snprintf(text, text_bytes, is_crash ? "exception 0x%08x" : "exit status %u",
                 (unsigned)o->status);
    }
}
