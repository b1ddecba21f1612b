// SPDX-License-Identifier: MIT
// One library for inline hooks, measured on functions of sqlite3.  Built by replace_peers.py with
// -DPEER=N; prints "name value" lines.
//
//   replace_peers LIBRARY library    1000 random functions, replaced by forwarders
//   replace_peers LIBRARY call       what a hook adds to a call
//   replace_peers LIBRARY throw      an exception from a call that the hook has moved
//   replace_peers LIBRARY removal N  set and removed N times while threads call the function

#include <hotfn.h>
#include <hotfn/lowlevel.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <time.h>
#endif

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

enum { WANTED = 1000, CALLS = 2000000, CALL_ROUNDS = 60, THREADS = 3 };

using Code = void (*)();

#ifdef _WIN32
static uint64_t get_ns()
{
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (uint64_t)(now.QuadPart * (1000000000.0 / (double)frequency.QuadPart));
}

static uint64_t get_thread_ns()
{
    return get_ns();
}

static void *open_library(const char *path)
{
    return (void *)LoadLibraryA(path);
}

static void *find_symbol(void *library, const char *name)
{
    return (void *)GetProcAddress((HMODULE)library, name);
}

static uint64_t get_base(void *library)
{
    return (uint64_t)(uintptr_t)library;
}
#else
static uint64_t read_clock(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t get_ns()
{
    return read_clock(CLOCK_MONOTONIC);
}

static uint64_t get_thread_ns()
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static void *open_library(const char *path)
{
    return dlopen(path, RTLD_NOW);
}

static void *find_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

static uint64_t get_base(void *library)
{
    return ((link_map *)library)->l_addr;
}
#endif

// ---- The libraries.  replace() stores the original and returns true if the function was accepted;
// remove_all() restores the code.

#if PEER == 0
static hotfn_hooks *hooks;

static bool replace(Code *original, Code function, Code by)
{
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    options.flags = HOTFN_HOOKS_REGISTER_UNWIND;
    options.quiesce_ns = UINT64_C(2000000000); // threads of a busy machine stop late
    if (!hooks) {
        hotfn_hooks_create(&hooks, &options, nullptr, nullptr, nullptr);
    }
    hotfn_error err = HOTFN_ERROR_INIT;
    bool done = hotfn_hooks_replace(original, hooks, function, by, nullptr, &err) == HOTFN_OK;
    if (!done && getenv("PEERS_VERBOSE")) {
        fprintf(stderr, "refused: %s\n", err.text);
    }
    return done;
}

static void remove_all()
{
    hotfn_hooks_destroy(hooks);
    hooks = nullptr;
}
#elif PEER == 1
#include <funchook.h>
static std::vector<funchook_t *> all;

static bool replace(Code *original, Code function, Code by)
{
    funchook_t *one = funchook_create();
    void *entry = (void *)function;
    if (funchook_prepare(one, &entry, (void *)by) != 0) {
        funchook_destroy(one);
        return false;
    }
    *original = (Code)entry;
    if (funchook_install(one, 0) != 0) {
        return false;
    }
    all.push_back(one);
    return true;
}

static void remove_all()
{
    for (funchook_t *one : all) {
        funchook_uninstall(one, 0);
        funchook_destroy(one);
    }
    all.clear();
}
#elif PEER == 2 || PEER == 3
#include <gum/gum.h>
static GumInterceptor *interceptor;
static std::vector<void *> all;

static bool replace(Code *original, Code function, Code by)
{
    if (!interceptor) {
        gum_init_embedded();
        interceptor = gum_interceptor_obtain();
    }
#if PEER == 2
    GumReplaceReturn done = gum_interceptor_replace(interceptor, (void *)function, (void *)by,
                                                    (void **)original, nullptr);
#else
    GumReplaceReturn done = gum_interceptor_replace_fast(interceptor, (void *)function, (void *)by,
                                                         (void **)original, nullptr);
#endif
    if (done != GUM_REPLACE_OK) {
        return false;
    }
    all.push_back((void *)function);
    return true;
}

static void remove_all()
{
    for (void *one : all) {
        gum_interceptor_revert(interceptor, one);
    }
    gum_interceptor_flush(interceptor);
    all.clear();
}
#elif PEER == 4
#include <MinHook.h>

static bool replace(Code *original, Code function, Code by)
{
    MH_Initialize();
    return MH_CreateHook((void *)function, (void *)by, (void **)original) == MH_OK &&
           MH_EnableHook((void *)function) == MH_OK;
}

static void remove_all()
{
    MH_Uninitialize();
}
#elif PEER == 5
#include <detours.h>
static std::vector<std::pair<Code *, Code>> all;

static bool replace(Code *original, Code function, Code by)
{
    *original = function;
    DetourTransactionBegin();
    DetourUpdateThread(GetCurrentThread());
    if (DetourAttach((void **)original, (void *)by) != NO_ERROR) {
        DetourTransactionAbort();
        return false;
    }
    all.push_back({ original, by });
    return DetourTransactionCommit() == NO_ERROR;
}

static void remove_all()
{
    DetourTransactionBegin();
    DetourUpdateThread(GetCurrentThread());
    for (auto &one : all) {
        DetourDetach((void **)one.first, (void *)one.second);
    }
    DetourTransactionCommit();
    all.clear();
}
#endif

// ---- Forwarders, each a jump through its word.

extern "C" {
#ifndef _WIN32
__attribute__((visibility("hidden")))
#endif
Code originals[WANTED + 8];
extern const char forwarders[];
}
__asm__(".text\n.balign 16\nforwarders:\n.set number, 0\n.rept 1008\n"
        "jmp *originals + number(%rip)\n.balign 16\n.set number, number + 8\n.endr\n");

static Code get_forwarder(size_t index)
{
    return (Code)(forwarders + 16 * index);
}

// ---- Small functions of this program.

extern "C" int64_t add_numbers(int64_t a, int64_t b);
extern "C" void call_thrower();
extern "C" void throw_number()
{
    throw 7;
}
// Hooks move the call of call_thrower, and the exception passes what it moved to.
#ifdef _WIN32
#define FIRST_ARGUMENTS "%rcx,%rdx"
#define BEGIN_FUNCTION(name)                                                                       \
    ".globl " name "\n.def " name "; .scl 2; .type 32; .endef\n.seh_proc " name "\n" name ":\n"
#define OPEN_FRAME "sub $40,%rsp\n.seh_stackalloc 40\n.seh_endprologue\n"
#define CLOSE_FRAME "add $40,%rsp\n"
#define END_PROLOGUE ".seh_endprologue\n"
#define END_FUNCTION(name) ".seh_endproc\n"
#else
#define FIRST_ARGUMENTS "%rdi,%rsi"
#define BEGIN_FUNCTION(name)                                                                       \
    ".globl " name "\n.type " name ",@function\n" name ":\n.cfi_startproc\n"
#define OPEN_FRAME "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbx, 0\n"
#define CLOSE_FRAME "pop %rbx\n.cfi_adjust_cfa_offset -8\n"
#define END_PROLOGUE
#define END_FUNCTION(name) ".cfi_endproc\n.size " name ", . - " name "\n"
#endif
__asm__(".text\n.balign 16\n" BEGIN_FUNCTION("add_numbers") END_PROLOGUE
        "lea (" FIRST_ARGUMENTS
        "),%rax\nxor $1,%rax\nnopw 0(%rax,%rax,1)\nnopl 0(%rax)\nnop\nret\n" END_FUNCTION(
            "add_numbers") ".balign 16\n" BEGIN_FUNCTION("call_thrower") OPEN_FRAME
        "call throw_number\n" CLOSE_FRAME "ret\n" END_FUNCTION("call_thrower"));

static void measure_call()
{
    static int64_t (*volatile call)(int64_t, int64_t) = add_numbers;
    uint64_t best[2] = { UINT64_MAX, UINT64_MAX };
    for (int hooked = 0; hooked < 2; hooked++) {
        if (hooked && !replace(&originals[WANTED], (Code)add_numbers, get_forwarder(WANTED))) {
            printf("call_ps -1\n");
            return;
        }
        for (int round = 0; round < CALL_ROUNDS; round++) {
            int64_t sum = 0;
            uint64_t begin = get_thread_ns();
            for (int64_t i = 0; i < CALLS; i++) {
                sum += call(i, sum);
            }
            uint64_t took = get_thread_ns() - begin;
            best[hooked] = took < best[hooked] ? took : best[hooked];
        }
    }
    printf("call_ps %lld\n", (long long)(best[1] - best[0]) * 1000 / CALLS);
    remove_all();
}

static void measure_throw()
{
    if (!replace(&originals[WANTED + 1], (Code)call_thrower, get_forwarder(WANTED + 1))) {
        printf("throw refused\n");
        return;
    }
    try {
        call_thrower();
    } catch (int number) {
        printf("throw %s\n", number == 7 ? "caught" : "wrong");
    }
    remove_all();
}

// Threads call the function while its hook is set and removed.
static std::atomic<bool> stop;
static std::atomic<int64_t> wrong;

static void call_until_stop()
{
    for (int64_t n = 0; !stop; n++) {
        wrong += add_numbers(n, 5) != ((n + 5) ^ 1);
    }
}

#ifdef _WIN32
using Thread = HANDLE;

static DWORD WINAPI run_thread(void *)
{
    call_until_stop();
    return 0;
}

static Thread start_thread()
{
    return CreateThread(nullptr, 0, run_thread, nullptr, 0, nullptr);
}

static void join_thread(Thread thread)
{
    WaitForSingleObject(thread, INFINITE);
}
#else
using Thread = pthread_t;

static void *run_thread(void *)
{
    call_until_stop();
    return nullptr;
}

static Thread start_thread()
{
    Thread thread;
    pthread_create(&thread, nullptr, run_thread, nullptr);
    return thread;
}

static void join_thread(Thread thread)
{
    pthread_join(thread, nullptr);
}
#endif

static void measure_removal(int rounds)
{
    std::vector<Thread> threads;
    int done = 0;
    for (int i = 0; i < THREADS; i++) {
        threads.push_back(start_thread());
    }
    for (; done < rounds; done++) {
        if (!replace(&originals[WANTED + 2], (Code)add_numbers, get_forwarder(WANTED + 2))) {
            break;
        }
        remove_all();
    }
    stop = true;
    for (Thread thread : threads) {
        join_thread(thread);
    }
    printf("removal_rounds %d\nremoval_wrong %lld\n", done, (long long)wrong);
}

// ---- Functions of sqlite3.

static std::string result;

static int add_row(void *, int count, char **values, char **)
{
    for (int i = 0; i < count; i++) {
        result += values[i] ? values[i] : "-";
    }
    return 0;
}

static std::string run_statements(void *library)
{
    auto open = (int (*)(const char *, void **))find_symbol(library, "sqlite3_open");
    auto exec = (int (*)(void *, const char *, int (*)(void *, int, char **, char **), void *,
                         char **))find_symbol(library, "sqlite3_exec");
    auto close = (int (*)(void *))find_symbol(library, "sqlite3_close");
    void *base = nullptr;
    result.clear();
    open(":memory:", &base);
    exec(
        base,
        "create table t(a integer primary key, b text, c real);"
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)"
        " insert into t select i, printf('%05d', i * 7919 % 2003), i / 3.0 from n;"
        "create index u on t(b); update t set c = c * 2 where a % 3 = 0; delete from t where b like '%9';"
        "select count(*), sum(c), min(b), max(b), group_concat(b, '') from (select * from t order by b limit 50);"
        "select json_group_array(a) from t where c > 1000 group by a % 7; select date('2026-01-01', '+40 days');"
        "begin; update t set b = upper(hex(b)); rollback; select avg(length(b)) from t; vacuum;",
        add_row, nullptr, nullptr);
    close(base);
    return result;
}

static void measure_library(const char *path)
{
    void *library = open_library(path);
    hotfn_scan *scan = nullptr;
    hotfn_scan_info info = HOTFN_SCAN_INFO_INIT;
    std::string before = run_statements(library);
    uint64_t state = 20260101;
    size_t replaced = 0, tried = 0;
    hotfn_scan_open(&scan, path, nullptr, nullptr, nullptr);
    hotfn_scan_get_info(scan, &info);
    std::vector<uint8_t> used(info.function_count);
    std::vector<uint64_t> entries;
    while (entries.size() < WANTED) {
        hotfn_record_function function = HOTFN_RECORD_FUNCTION_INIT;
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t index = (uint32_t)((state >> 33) % info.function_count);
        hotfn_scan_get_function(scan, index, &function);
        if (!used[index]++) {
            entries.push_back(get_base(library) + function.rva);
        }
    }
    uint64_t begin = get_ns();
    for (uint64_t entry : entries) {
        tried++;
        replaced += replace(&originals[replaced], (Code)entry, get_forwarder(replaced));
    }
    printf("replaced %zu\ninstall_us %llu\n", replaced,
           (unsigned long long)(get_ns() - begin) / 1000);
    fflush(stdout);
    bool same = run_statements(library) == before;
    remove_all();
    printf("same_result %d\n", same && run_statements(library) == before);
}

int main(int argc, char **argv)
{
    std::string what = argc > 2 ? argv[2] : "";
    if (what == "call") {
        measure_call();
    } else if (what == "throw") {
        measure_throw();
    } else if (what == "removal") {
        measure_removal(atoi(argv[3]));
    } else {
        measure_library(argv[1]);
    }
    return 0;
}
