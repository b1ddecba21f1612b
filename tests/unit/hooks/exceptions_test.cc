// SPDX-License-Identifier: MIT
// Exceptions, destructors, longjmp and backtraces pass through hooked functions unchanged:
// functions of this program are analysed, planned and hooked by the library itself.
#include <hotfn/lowlevel/hooks.h>

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <stdexcept>
#include <string>
#include <unwind.h>
#include <vector>

static int failures;

static bool check(bool holds, int line, const char *text)
{
    if (!holds && ++failures) {
        std::printf("# exceptions_test.cc:%d: failed: %s\n", line, text);
    }
    return holds;
}
#define CHECK(condition) check((condition), __LINE__, #condition)

// ---- The hooked functions: their names begin with hooked_.

static int destroyed;
static std::jmp_buf escape;

struct counted {
    std::string text;
    explicit counted(int depth) : text(static_cast<std::size_t>(depth) + 20, 'x')
    {
    }
    ~counted()
    {
        destroyed++;
    }
};

// clang's -fsanitize=function puts data at entries, which can look like a jump elsewhere.
#if defined(__clang__)
#define HOOKED __attribute__((noinline, no_sanitize("function")))
#else
#define HOOKED __attribute__((noinline))
#endif

extern "C" {
// volatile depths keep the compiler from seeing through the recursion
HOOKED int hooked_throw(volatile int depth)
{
    counted here(depth);
    if (depth == 0) {
        throw std::runtime_error("from the bottom");
    }
    return hooked_throw(depth - 1) + static_cast<int>(here.text.size());
}

HOOKED int hooked_rethrow(volatile int depth)
{
    try {
        return hooked_throw(depth);
    } catch (const std::runtime_error &) {
        counted here(1);
        throw;
    }
}

HOOKED int hooked_catch(volatile int depth)
{
    try {
        return hooked_rethrow(depth);
    } catch (const std::exception &e) {
        return static_cast<int>(std::strlen(e.what()));
    }
}

HOOKED int hooked_jump(volatile int depth)
{
    if (depth == 0) {
        std::longjmp(escape, 7);
    }
    if (depth > 100) {
        return 0;
    }
    int below = hooked_jump(depth - 1);
    __asm__ volatile("" : "+r"(below)); /* otherwise clang turns the recursion into a loop */
    return below + 1;
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *, void *user)
{
    ++*static_cast<int *>(user);
    return _URC_NO_REASON;
}

HOOKED int hooked_backtrace(volatile int depth)
{
    int frames = 0;
    if (depth > 0) {
        return hooked_backtrace(depth - 1) + 0 * depth;
    }
    _Unwind_Backtrace(count_frame, &frames);
    return frames;
}
}

struct outcome {
    int caught, destroyed, jumped, frames;
    bool operator==(const outcome &o) const
    {
        return caught == o.caught && destroyed == o.destroyed && jumped == o.jumped &&
               frames == o.frames;
    }
};

static outcome run_all()
{
    outcome o = { 0, 0, 0, 0 };

    destroyed = 0;
    o.caught = hooked_catch(10);
    o.destroyed = destroyed;
    o.jumped = setjmp(escape);
    if (o.jumped == 0) {
        hooked_jump(10);
    }
    o.frames = hooked_backtrace(10);
    return o;
}

// ---- Hooking.

static thread_local std::uint64_t *row __attribute__((tls_model("initial-exec")));

static void no_slow_path()
{
    std::abort(); // the row is set before anything is hooked
}

static int find_base(struct dl_phdr_info *info, std::size_t, void *base)
{
    std::uint64_t lowest = UINT64_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_vaddr < lowest) {
            lowest = info->dlpi_phdr[i].p_vaddr;
        }
    }
    *static_cast<std::uint64_t *>(base) = info->dlpi_addr + (lowest & ~UINT64_C(4095));
    return 1; // the first one is the program
}

struct scan_parts {
    hotfn_image *image = nullptr;
    hotfn_symbols *symbols = nullptr;
    hotfn_functions *functions = nullptr;
    hotfn_verdicts *verdicts = nullptr;
    hotfn_plan *plan = nullptr;
    hotfn_hooks *hooks = nullptr;
    std::uint64_t base = 0;
    std::vector<std::uint64_t> slots;

    ~scan_parts()
    {
        hotfn_hooks_destroy(hooks);
        hotfn_plan_destroy(plan);
        hotfn_verdicts_destroy(verdicts);
        hotfn_functions_destroy(functions);
        hotfn_symbols_destroy(symbols);
        hotfn_image_close(image);
    }

    bool scan()
    {
        dl_iterate_phdr(find_base, &base);
        return CHECK(hotfn_image_open(&image, "/proc/self/exe", nullptr, nullptr) == HOTFN_OK) &&
               CHECK(hotfn_symbols_load(&symbols, image, nullptr, nullptr, nullptr) == HOTFN_OK) &&
               CHECK(hotfn_functions_build(&functions, image, symbols, nullptr, nullptr) ==
                     HOTFN_OK) &&
               CHECK(hotfn_verdicts_create(&verdicts, image, functions, nullptr, nullptr,
                                           nullptr) == HOTFN_OK) &&
               CHECK(hotfn_plan_build(&plan, image, functions, verdicts, nullptr, nullptr) ==
                     HOTFN_OK);
    }

    std::uint64_t count_of(const char *name) const
    {
        for (std::uint32_t i = 0; i < hotfn_functions_get_count(functions); i++) {
            if (std::strcmp(hotfn_functions_get_name(functions, i, 0), name) == 0) {
                return slots[i];
            }
        }
        return UINT64_MAX;
    }

    bool hook()
    {
        hotfn_row_access access = HOTFN_ROW_ACCESS_INIT;
        hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
        hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
        std::vector<std::uint32_t> wanted(hotfn_functions_get_count(functions), UINT32_MAX);
        std::uintptr_t thread;
        std::uint32_t module;

#if defined(__x86_64__)
        __asm__("movq %%fs:0, %0" : "=r"(thread));
#else
        __asm__("movl %%gs:0, %0" : "=r"(thread));
#endif
        access.displacement =
            static_cast<std::int32_t>(reinterpret_cast<std::uintptr_t>(&row) - thread);
        access.slow_path = no_slow_path;
        options.flags = HOTFN_HOOKS_REGISTER_UNWIND;
        slots.assign(wanted.size(), 0);
        row = slots.data();
        for (std::uint32_t i = 0; i < wanted.size(); i++) {
            if (std::strncmp(hotfn_functions_get_name(functions, i, 0), "hooked_", 7) == 0) {
                wanted[i] = i;
            }
        }
        return CHECK(hotfn_hooks_create(&hooks, &options, &access, nullptr, nullptr) == HOTFN_OK) &&
               CHECK(hotfn_hooks_add_module(hooks, plan, base, wanted.data(), &module, nullptr) ==
                     HOTFN_OK) &&
               CHECK(hotfn_hooks_commit(hooks, &stats, nullptr) == HOTFN_OK) &&
               CHECK(stats.hooked == 5);
    }
};

int main()
{
    scan_parts s;
    outcome bare = run_all();

    std::printf("1..1\n");
    CHECK(bare.caught == 15 && bare.destroyed == 12 && bare.jumped == 7 && bare.frames >= 3);
    if (s.scan() && s.hook()) {
        for (int i = 0; i < 100; i++) {
            CHECK(run_all() == bare);
        }
        CHECK(s.count_of("hooked_throw") == 1100);
        CHECK(s.count_of("hooked_rethrow") == 100);
        CHECK(s.count_of("hooked_catch") == 100);
        CHECK(s.count_of("hooked_jump") == 1100);
        CHECK(hotfn_hooks_remove(s.hooks, nullptr) == HOTFN_OK);
        CHECK(run_all() == bare);
    }
    std::printf("%sok 1 exceptions_go_through_hooked_functions\n", failures ? "not " : "");
    return failures ? 1 : 0;
}
