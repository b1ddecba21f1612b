/* SPDX-License-Identifier: MIT */
/* Rounds of attach and detach on a program that works meanwhile:
 *
 *     attach_rounds.exe ROUNDS AGENT CACHE PROGRAM [ARG ...]
 *
 * Between two snapshots of the record each call must be counted, if the program publishes its calls
 * (attach_target.c).  After each detach its code must equal that of its file.  Every third round
 * enters by a message hook, if the program has a window, and every second one times the calls.
 * Prints the rounds and the program's exit status.  With 0 rounds it checks what an attach refuses
 * instead. */
#include "attach_shared.h"

#include <hotfn.h>
#include <hotfn/launch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CODE = 32 << 20, MIN_CALLS = 2000, MAX_POLLS = 10000, READY_MS = 300000, END_MS = 5000 };

typedef struct target {
    PROCESS_INFORMATION process;
    const char *file;
    uint8_t *code, *seen; /* as in the file; as in the process */
    uint32_t code_rva, code_bytes;
    uint8_t *base;
    shared_counts *counts; /* NULL: not published */
} target;

static HANDLE program; /* must not outlive a failure */

static void fail(const char *what, const hotfn_error *err)
{
    if (program) {
        TerminateProcess(program, 1);
    }
    printf("failed: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    fflush(stdout);
    ExitProcess(1);
}

static bool fail_unless_ended(const target *t, const char *what, const hotfn_error *err)
{
    if (WaitForSingleObject(t->process.hProcess, END_MS) == WAIT_TIMEOUT) {
        fail(what, err);
    }
    return false;
}

/* ---- The code in the file and in the process. */

/* PE format: the section headers follow the optional header; the first section is read. */
static void read_file_code(target *t)
{
    static uint8_t image[MAX_CODE];
    FILE *file = fopen(t->file, "rb");
    size_t bytes = file ? fread(image, 1, sizeof image, file) : 0;
    const IMAGE_NT_HEADERS *headers =
        (void *)(image + ((IMAGE_DOS_HEADER *)(void *)image)->e_lfanew);
    const IMAGE_SECTION_HEADER *s = IMAGE_FIRST_SECTION(headers);

    if (!file || bytes < 1024 || !(s->Characteristics & IMAGE_SCN_MEM_EXECUTE)) {
        fail("the program's file cannot be read", NULL);
    }
    fclose(file);
    t->code = image + s->PointerToRawData;
    t->code_rva = s->VirtualAddress;
    t->code_bytes = s->SizeOfRawData < s->Misc.VirtualSize ? s->SizeOfRawData : s->Misc.VirtualSize;
    t->seen = malloc(t->code_bytes);
    t->base = (uint8_t *)(uintptr_t)headers->OptionalHeader.ImageBase;
}

static uint32_t count_different_bytes(const target *t)
{
    SIZE_T done = 0;
    uint32_t count = 0;

    if (t->code_bytes > 0 && !ReadProcessMemory(t->process.hProcess, t->base + t->code_rva, t->seen,
                                                t->code_bytes, &done)) {
        fail_unless_ended(t, "the program's code cannot be read", NULL);
        return UINT32_MAX;
    }
    for (uint32_t i = 0; i < t->code_bytes; i++) {
        count += t->seen[i] != t->code[i];
    }
    return count;
}

static void print_first_difference(const target *t, int number)
{
    uint32_t at = 0;

    while (at < t->code_bytes && t->seen[at] == t->code[at]) {
        at++;
    }
    printf("round %d: %u bytes differ, first at RVA 0x%x: %02x for %02x\n", number,
           count_different_bytes(t), t->code_rva + at, t->seen[at], t->code[at]);
}

/* ---- The program. */

static void start_program(target *t, int argc, char **argv)
{
    static char line[8192];
    STARTUPINFOA start = { .cb = sizeof start };

    t->file = argv[0];
    for (int i = 0; i < argc; i++) {
        strcat(strcat(line, i ? " " : ""), argv[i]);
    }
    if (!CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &t->process)) {
        fail("the program cannot be started", NULL);
    }
    program = t->process.hProcess;
    read_file_code(t);
    if (count_different_bytes(t) != 0) {
        fail("the program was relocated, so its code cannot be compared", NULL);
    }
}

static void map_counts(target *t, HANDLE ready)
{
    HANDLE section;

    if (strstr(t->file, "attach_target")) {
        if (WaitForSingleObject(ready, READY_MS) != WAIT_OBJECT_0) {
            fail("the program does not begin", NULL);
        }
        section = OpenFileMappingW(FILE_MAP_READ, FALSE, COUNTS_NAME);
        t->counts = MapViewOfFile(section, FILE_MAP_READ, 0, 0, sizeof *t->counts);
    }
}

/* ---- Counts. */

static uint64_t read_own(const target *t)
{
    return (uint64_t)t->counts->steps;
}

static uint64_t read_counted(const hotfn_launch *launch)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record;
    uint32_t index;

    if (hotfn_launch_open_record(&record, launch, &err) != HOTFN_OK ||
        hotfn_record_find_function(record, "target_step", &index, &err) != HOTFN_OK) {
        fail("the record", &err);
    }
    hotfn_record_get_function(record, index, &f);
    hotfn_record_close(record);
    return f.calls;
}

/* Each thread publishes a call before it makes it, so the sums may differ by one for each
 * thread. */
static void compare_counts(const target *t, const hotfn_launch *launch)
{
    enum { THREADS = WORKERS + 1 };
    uint64_t before[2], after[2], counted[2];

    for (int i = 0; i < 2; i++) {
        before[i] = read_own(t);
        for (int n = 0; n < MAX_POLLS && read_own(t) < before[i] + MIN_CALLS; n++) {
            Sleep(1);
        }
        before[i] = read_own(t);
        counted[i] = read_counted(launch);
        after[i] = read_own(t);
    }
    if (counted[1] - counted[0] + THREADS < before[1] - after[0] ||
        counted[1] - counted[0] > after[1] - before[0] + THREADS || counted[1] <= counted[0]) {
        printf(
            "counted %llu, published %llu to %llu\n", (unsigned long long)(counted[1] - counted[0]),
            (unsigned long long)(before[1] - after[0]), (unsigned long long)(after[1] - before[0]));
        fail("calls were lost between two snapshots", NULL);
    }
}

/* Returns false if the program has ended, which decides nothing about this round. */
static bool run_round(const target *t, const char *agent, const char *cache, int number)
{
    hotfn_launch_options options = HOTFN_LAUNCH_OPTIONS_INIT;
    hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch *launch;

    options.agent_path = agent;
    options.cache_folder = cache;
    options.mode = number % 2 == 1 ? HOTFN_LAUNCH_TIME : HOTFN_LAUNCH_COUNT;
    options.flags = t->counts && number % 3 == 2 ? HOTFN_LAUNCH_BY_HOOK : 0;
    if (hotfn_launch_attach(&launch, t->process.dwProcessId, &options, NULL, &err) != HOTFN_OK) {
        printf("round %d\n", number);
        return fail_unless_ended(t, "attach", &err);
    }
    hotfn_launch_get_info(launch, &info);
    if (info.hooked_count < 10 || count_different_bytes(t) < info.hooked_count) {
        return fail_unless_ended(t, "too few functions are hooked", NULL);
    }
    if (t->counts) {
        compare_counts(t, launch);
    }
    if (hotfn_launch_detach(launch, &err) != HOTFN_OK) {
        fail("detach", &err);
    }
    hotfn_launch_destroy(launch);
    if (count_different_bytes(t) != 0) {
        print_first_difference(t, number);
        return fail_unless_ended(t, "the code is not that of the file", NULL);
    }
    return true;
}

/* ---- Refusals: one status and one sentence each, and nothing changes. */

static void expect(const target *t, const char *agent, uint32_t pid, hotfn_status status,
                   const char *words)
{
    hotfn_launch_options options = HOTFN_LAUNCH_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch *launch;
    hotfn_status found;

    options.agent_path = agent;
    options.flags = HOTFN_LAUNCH_NO_CACHE;
    found = hotfn_launch_attach(&launch, pid, &options, NULL, &err);
    if (found != status || !strstr(err.text, words) || count_different_bytes(t) != 0) {
        printf("status %d, wanted %d and '%s'\n", (int)found, (int)status, words);
        fail("refusal", &err);
    }
}

/* As an agent of an earlier version left it. */
static void check_other_version(const target *t, const char *agent, uint32_t pid)
{
    wchar_t name[40];
    HANDLE section;
    uint64_t *magic;

    swprintf(name, 40, L"Local\\hotfn-order-%08x", pid);
    section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, 1024, name);
    magic = MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, sizeof *magic);
    *magic = UINT64_C(0x314452304e464824);
    expect(t, agent, pid, HOTFN_E_MISMATCH, "another version of hotfn");
    UnmapViewOfFile(magic);
    CloseHandle(section);
}

static void check_second(const target *t, const char *agent, uint32_t pid)
{
    hotfn_launch_options options = HOTFN_LAUNCH_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch *first, *second;

    options.agent_path = agent;
    if (hotfn_launch_attach(&first, pid, &options, NULL, &err) != HOTFN_OK) {
        fail("first attach", &err);
    }
    if (hotfn_launch_attach(&second, pid, &options, NULL, &err) != HOTFN_E_STATE ||
        !strstr(err.text, "end it first")) {
        fail("second attach", &err);
    }
    hotfn_launch_destroy(first); /* detaches */
    if (count_different_bytes(t) != 0) {
        fail("the code is not restored", NULL);
    }
}

static DWORD WINAPI end_program(void *delay_ms)
{
    Sleep((DWORD)(uintptr_t)delay_ms);
    TerminateProcess(program, 1);
    return 0;
}

/* Either the attach fails with a reason, or the launch ends. */
static void check_end(const target *t, const char *agent, uint32_t pid)
{
    hotfn_launch_options options = HOTFN_LAUNCH_OPTIONS_INIT;
    hotfn_launch_info info = HOTFN_LAUNCH_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch *launch;
    HANDLE ender = CreateThread(NULL, 0, end_program, (void *)(uintptr_t)20, 0, NULL);

    (void)t;
    options.agent_path = agent;
    if (hotfn_launch_attach(&launch, pid, &options, NULL, &err) == HOTFN_OK) {
        hotfn_launch_wait(launch, UINT64_MAX, &err);
        hotfn_launch_get_info(launch, &info);
        hotfn_launch_destroy(launch);
    }
    WaitForSingleObject(ender, INFINITE);
    if (info.state != HOTFN_LAUNCH_ENDED && !strstr(err.text, "process")) {
        fail("the end of the process", &err);
    }
    expect(&(target){ .code_bytes = 0 }, agent, pid, HOTFN_E_NOT_FOUND, "has ended");
}

static void check_refusals(target *t, const char *agent)
{
    uint32_t pid = t->process.dwProcessId;

    expect(t, agent, GetCurrentProcessId(), HOTFN_E_DENIED, "is hotfn itself");
    expect(t, agent, 0x7ffffff0, HOTFN_E_NOT_FOUND, "there is no process");
    expect(t, "Z:/missing/hotfn-agent.dll", pid, HOTFN_E_IO, "cannot be read");
    check_other_version(t, agent, pid);
    check_second(t, agent, pid);
    check_end(t, agent, pid);
    printf("refused\n");
}

int main(int argc, char **argv)
{
    HANDLE ready = CreateEventW(NULL, TRUE, FALSE, READY_EVENT);
    target t = { .file = NULL };
    int rounds = argc > 4 ? atoi(argv[1]) : 0, done;
    DWORD code = 0;

    if (argc <= 4) {
        fail("attach_rounds.exe ROUNDS AGENT CACHE PROGRAM [ARG ...]", NULL);
    }
    start_program(&t, argc - 4, argv + 4);
    map_counts(&t, ready);
    if (rounds == 0) {
        check_refusals(&t, argv[2]);
        return 0;
    }
    for (done = 0; done < rounds && run_round(&t, argv[2], argv[3], done); done++) {
    }
    if (t.counts) {
        SetEvent(OpenEventW(EVENT_MODIFY_STATE, FALSE, END_EVENT));
    }
    WaitForSingleObject(t.process.hProcess, INFINITE);
    GetExitCodeProcess(t.process.hProcess, &code);
    printf("%d rounds, exit status %lu\n", done, (unsigned long)code);
    return 0;
}
