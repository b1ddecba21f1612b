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

#include <dlfcn.h>
#include <link.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

enum { WANTED = 1000, CALLS = 2000000, CALL_ROUNDS = 60, THREADS = 3 };

using Code = void (*)();

static uint64_t get_ns(clockid_t clock = CLOCK_MONOTONIC)
{
    timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// ---- The libraries.  replace() stores the original and returns true if the function was accepted;
// remove_all() restores the code.

#if PEER == 0
static hotfn_hooks *hooks;

static bool replace(Code *original, Code function, Code by)
{
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    options.flags = HOTFN_HOOKS_REGISTER_UNWIND;
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
#elif PEER == 2
#include <gum/gum.h>
static GumInterceptor *interceptor;
static std::vector<void *> all;

static bool replace(Code *original, Code function, Code by)
{
    if (!interceptor) {
        gum_init_embedded();
        interceptor = gum_interceptor_obtain();
    }
    if (gum_interceptor_replace(interceptor, (void *)function, (void *)by, nullptr,
                                (void **)original, nullptr) != GUM_REPLACE_OK) {
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
#endif

// ---- Forwarders, each a jump through its word.

extern "C" {
__attribute__((visibility("hidden"))) Code originals[WANTED + 8];
extern const char forwarders[];
}
__asm__(".pushsection .text\n.balign 16\nforwarders:\n.set number, 0\n.rept 1008\n"
        "jmp *originals + number(%rip)\n.balign 16\n.set number, number + 8\n.endr\n.popsection\n");

static Code get_forwarder(size_t index)
{
    return (Code)(forwarders + 16 * index);
}

// ---- Small functions of this program.

extern "C" long add_numbers(long a, long b);
extern "C" void call_thrower();
extern "C" void throw_number()
{
    throw 7;
}
// The first instruction of call_thrower is a call: it moves, and the exception passes what it
// moved to.
__asm__(
    ".pushsection .text\n.balign 16\n.globl add_numbers\n.type add_numbers,@function\nadd_numbers:\n"
    ".cfi_startproc\nlea (%rdi,%rsi),%rax\nxor $1,%rax\nnop\nret\n.cfi_endproc\n.size add_numbers, . - add_numbers\n"
    ".balign 16\n.globl call_thrower\n.type call_thrower,@function\ncall_thrower:\n.cfi_startproc\npush %rbx\n"
    ".cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbx, 0\ncall throw_number\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"
    ".cfi_endproc\n.size call_thrower, . - call_thrower\n.popsection\n");

static void measure_call()
{
    static long (*volatile call)(long, long) = add_numbers;
    uint64_t best[2] = { UINT64_MAX, UINT64_MAX };
    for (int hooked = 0; hooked < 2; hooked++) {
        if (hooked && !replace(&originals[WANTED], (Code)add_numbers, get_forwarder(WANTED))) {
            printf("call_ps -1\n");
            return;
        }
        for (int round = 0; round < CALL_ROUNDS; round++) {
            long sum = 0;
            uint64_t begin = get_ns(CLOCK_THREAD_CPUTIME_ID);
            for (long i = 0; i < CALLS; i++) {
                sum += call(i, sum);
            }
            uint64_t took = get_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
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
static void measure_removal(int rounds)
{
    std::atomic<bool> stop(false);
    std::atomic<long> wrong(0);
    std::vector<std::thread> threads;
    int done = 0;
    for (int i = 0; i < THREADS; i++) {
        threads.emplace_back([&] {
            for (long n = 0; !stop; n++) {
                wrong += add_numbers(n, 5) != ((n + 5) ^ 1);
            }
        });
    }
    for (; done < rounds; done++) {
        if (!replace(&originals[WANTED + 2], (Code)add_numbers, get_forwarder(WANTED + 2))) {
            break;
        }
        remove_all();
    }
    stop = true;
    for (std::thread &thread : threads) {
        thread.join();
    }
    printf("removal_rounds %d\nremoval_wrong %ld\n", done, wrong.load());
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
    auto open = (int (*)(const char *, void **))dlsym(library, "sqlite3_open");
    auto exec = (int (*)(void *, const char *, int (*)(void *, int, char **, char **), void *,
                         char **))dlsym(library, "sqlite3_exec");
    auto close = (int (*)(void *))dlsym(library, "sqlite3_close");
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

static uint64_t get_base(void *library)
{
    return ((link_map *)library)->l_addr;
}

static void measure_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
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
