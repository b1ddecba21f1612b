/* SPDX-License-Identifier: MIT */
/* The checks of `hotfn doctor` on Windows: what the agent needs in a program is tried in this
 * one. */
#include "doctor/doctor.h"

#include "cli/commands.h"

#include <stdio.h>
#include <windows.h>

enum { PATH_UNITS = 4096, DIRECT_TLS_SLOTS = 64, PAGE_BYTES = 4096, PROOF_MS = 60000 };
#define RECORD_BYTES (UINT64_C(1) << 30) /* reserved by a live record; more is common */
#define MIN_COMMIT_BYTES (UINT64_C(256) << 20)

static void add_system_error(doctor_finding *f, const char *what)
{
    doctor_add_text(f, "%s (error %lu)", what, GetLastError());
}

/* ---- The system. */

typedef LONG(WINAPI *get_version_fn)(OSVERSIONINFOW *);
typedef const char *(*get_wine_fn)(void);

static FARPROC find_in_ntdll(const char *name)
{
    return GetProcAddress(GetModuleHandleW(L"ntdll.dll"), name);
}

/* Windows 10 is the first version whose console understands the escape sequences of a terminal, and
 * the first that is known to report a loaded module before it calls the module's DllMain. */
static void check_system(doctor_finding *f)
{
    get_version_fn get_version = (get_version_fn)(void (*)(void))find_in_ntdll("RtlGetVersion");
    get_wine_fn get_wine = (get_wine_fn)(void (*)(void))find_in_ntdll("wine_get_version");
    OSVERSIONINFOW version = { .dwOSVersionInfoSize = sizeof version };
    USHORT machine = 0, own = IMAGE_FILE_MACHINE_AMD64;
    SYSTEM_INFO info;

    get_version(&version);
    GetSystemInfo(&info);
    doctor_add_text(f, "Windows %lu.%lu.%lu%s%s, %lu processors", version.dwMajorVersion,
                    version.dwMinorVersion, version.dwBuildNumber, get_wine ? ", wine " : "",
                    get_wine ? get_wine() : "", info.dwNumberOfProcessors);
    if (version.dwMajorVersion < 10) {
        doctor_raise_level(f, DOCTOR_WARNING, "this version was made for Windows 10 and later");
    }
    if (IsWow64Process2(GetCurrentProcess(), &machine, &own) && own != IMAGE_FILE_MACHINE_AMD64) {
        doctor_add_text(f, ", on a processor of another kind (machine 0x%x)", own);
        doctor_raise_level(f, DOCTOR_PROBLEM, "this version counts on x86-64 processors only");
    }
}

static void check_rights(doctor_finding *f)
{
    TOKEN_ELEVATION elevation = { 0 };
    HANDLE token;
    DWORD bytes;

    if (OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) {
        GetTokenInformation(token, TokenElevation, &elevation, sizeof elevation, &bytes);
        CloseHandle(token);
    }
    doctor_add_text(f, elevation.TokenIsElevated
                           ? "this process is elevated"
                           : "not elevated: processes of administrators cannot be attached to");
}

/* ---- Code. */

static void check_text(doctor_finding *f)
{
    uint8_t *at = (uint8_t *)(uintptr_t)&check_system;
    DWORD before, ignored;

    if (!VirtualProtect(at, 1, PAGE_EXECUTE_READWRITE, &before)) {
        add_system_error(f, "the code of a program cannot be made writable");
        doctor_raise_level(
            f, DOCTOR_PROBLEM,
            "allow dynamic code (exploit protection, ACG) for hotfn and the program");
        return;
    }
    *(volatile uint8_t *)at = *(volatile uint8_t *)at;
    VirtualProtect(at, 1, before, &ignored);
    FlushInstructionCache(GetCurrentProcess(), at, 1);
    doctor_add_text(f, "the code of a program can be written");
}

static void check_new_code(doctor_finding *f)
{
    void *page = VirtualAlloc(NULL, PAGE_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    DWORD before;
    bool good = page && VirtualProtect(page, PAGE_BYTES, PAGE_EXECUTE_READ, &before);

    doctor_add_text(f, "memory that was written %s be made executable", good ? "can" : "cannot");
    if (!good) {
        doctor_raise_level(
            f, DOCTOR_PROBLEM,
            "allow dynamic code (exploit protection, ACG) for hotfn and the program");
    }
    if (page) {
        VirtualFree(page, 0, MEM_RELEASE);
    }
}

/* Stubs use a slot in the thread's block itself (TEB.TlsSlots). */
static void check_slots(doctor_finding *f)
{
    DWORD slot = TlsAlloc();

    if (slot < DIRECT_TLS_SLOTS) {
        doctor_add_text(f, "slot %lu of %d is free here", slot, DIRECT_TLS_SLOTS);
    } else {
        doctor_add_text(f, "no slot below %d is free here", DIRECT_TLS_SLOTS);
        doctor_raise_level(f, DOCTOR_WARNING,
                           "a program that uses as many slots as this one cannot be counted");
    }
    if (slot != TLS_OUT_OF_INDEXES) {
        TlsFree(slot);
    }
}

/* ---- Memory. */

static void check_memory(doctor_finding *f)
{
    MEMORYSTATUSEX memory = { .dwLength = sizeof memory };

    GlobalMemoryStatusEx(&memory);
    doctor_add_text(f, "%llu MiB may be committed", memory.ullAvailPageFile >> 20);
    if (memory.ullAvailPageFile < MIN_COMMIT_BYTES) {
        doctor_raise_level(f, DOCTOR_WARNING,
                           "enlarge the page file: threads without memory are not counted");
    }
}

static void check_shared_memory(doctor_finding *f)
{
    HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE | SEC_RESERVE,
                                        (DWORD)(RECORD_BYTES >> 32), (DWORD)RECORD_BYTES, NULL);
    void *view = section ? MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, 0) : NULL;
    bool good = view && VirtualAlloc(view, PAGE_BYTES, MEM_COMMIT, PAGE_READWRITE);

    if (good) {
        doctor_add_text(f, "a section of 1 GiB can be reserved, and committed in parts");
    } else {
        add_system_error(f, "no section of 1 GiB can be reserved");
        doctor_raise_level(f, DOCTOR_PROBLEM, "enlarge the page file");
    }
    if (view) {
        UnmapViewOfFile(view);
    }
    if (section) {
        CloseHandle(section);
    }
}

/* ---- The installation. */

static void check_agent(doctor_finding *f)
{
    char path[PATH_UNITS];
    hotfn_error err = HOTFN_ERROR_INIT;

    if (hotfn_launch_find_agent(path, sizeof path, HOTFN_MACHINE_OTHER, &err) != HOTFN_OK) {
        doctor_add_text(f, "%s", err.text);
        doctor_raise_level(f, DOCTOR_PROBLEM, "keep hotfn.exe and hotfn-agent.dll in one folder");
        return;
    }
    doctor_add_text(f, "%s", path);
}

/* ---- The proof that counting works: `hotfn run` of `hotfn --version`. */

static bool name_record(wchar_t wide[PATH_UNITS], char path[3 * PATH_UNITS])
{
    wchar_t folder[MAX_PATH + 1];

    return GetTempPathW(MAX_PATH + 1, folder) > 0 &&
           _snwprintf(wide, PATH_UNITS, L"%lshotfn-doctor-%lu.hfr", folder, GetCurrentProcessId()) >
               0 &&
           WideCharToMultiByte(CP_UTF8, 0, wide, -1, path, 3 * PATH_UNITS, NULL, NULL) > 0;
}

/* Run this program on itself, without output; returns the exit status. */
static DWORD run_itself(const wchar_t *record)
{
    static wchar_t self[PATH_UNITS], line[4 * PATH_UNITS];
    SECURITY_ATTRIBUTES inherited = { sizeof inherited, NULL, TRUE };
    HANDLE nothing =
        CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
                    &inherited, OPEN_EXISTING, 0, NULL);
    STARTUPINFOW start = { .cb = sizeof start,
                           .dwFlags = STARTF_USESTDHANDLES,
                           .hStdInput = nothing,
                           .hStdOutput = nothing,
                           .hStdError = nothing };
    PROCESS_INFORMATION made;
    DWORD status = STILL_ACTIVE;

    GetModuleFileNameW(NULL, self, PATH_UNITS);
    _snwprintf(line, sizeof line / sizeof *line,
               L"hotfn run -q --no-cache -o \"%ls\" -- \"%ls\" --version", record, self);
    if (!CreateProcessW(self, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &made)) {
        status = GetLastError();
        CloseHandle(nothing);
        return status;
    }
    if (WaitForSingleObject(made.hProcess, PROOF_MS) != WAIT_OBJECT_0) {
        TerminateProcess(made.hProcess, 1);
    }
    GetExitCodeProcess(made.hProcess, &status);
    CloseHandle(made.hThread);
    CloseHandle(made.hProcess);
    CloseHandle(nothing);
    return status;
}

void doctor_try_proof(doctor_finding *f)
{
    static wchar_t wide[PATH_UNITS];
    static char path[3 * PATH_UNITS];

    if (!name_record(wide, path)) {
        add_system_error(f, "no file can be made in %TEMP%");
        return;
    }
    DWORD status = run_itself(wide);
    uint64_t calls = status == 0 ? doctor_count_proof_calls(path) : 0;

    DeleteFileW(wide);
    if (calls > 0) {
        doctor_add_text(f, "`hotfn run` of hotfn itself counted calls");
        return;
    }
    if (status == 0) {
        doctor_add_text(f, "`hotfn run` of hotfn itself counted no calls");
    } else {
        doctor_add_text(f, "`hotfn run` of hotfn itself failed with status %lu", status);
    }
    doctor_raise_level(
        f, DOCTOR_PROBLEM,
        "solve the problems above, and allow hotfn.exe in the virus scanner; if there "
        "are none, please report this as a bug");
}

const doctor_check doctor_checks[] = {
    { "system", check_system },
    { "rights", check_rights },
    { "text", check_text },
    { "new-code", check_new_code },
    { "slots", check_slots },
    { "memory", check_memory },
    { "shared-memory", check_shared_memory },
    { "clock", doctor_check_clock },
    { "agent", check_agent },
    { "proof", doctor_try_proof },
    { NULL, NULL },
};
