/* SPDX-License-Identifier: MIT */
/* Finding system calls that may begin threads, and their stubs, which are also executed. */
#include "arch/call_site.h"

#include "check.h"

#include <string.h>

enum { NOPS = 96, MAX_FOUND = 8 };

typedef struct search {
    uint8_t code[512];
    uint64_t size;
    hfn_child_call found[MAX_FOUND];
    uint32_t count;
} search;

static bool note_site(void *user, const hfn_child_call *site)
{
    search *s = user;

    if (s->count < MAX_FOUND) {
        s->found[s->count] = *site;
    }
    s->count++;
    return true;
}

/* Search code between nops. */
static void find_sites(search *s, const char *bytes, size_t count)
{
    static uint8_t room[HFN_CALL_ROOM_BYTES];

    memset(s, 0, sizeof *s);
    memset(s->code, 0x90, sizeof s->code);
    memcpy(s->code + NOPS, bytes, count);
    s->size = NOPS + count + NOPS;
    CHECK(hfn_find_call_sites(s->code, s->size, room, note_site, s));
}

#define FIND(s, bytes) find_sites(s, bytes, sizeof bytes - 1)

static void check_span(const search *s, int begin, int end)
{
    CHECK_EQ_U64(s->count, 1);
    CHECK_EQ_U64(s->found[0].begin - s->found[0].call, (uint64_t)(int64_t)begin);
    CHECK_EQ_U64(s->found[0].end - s->found[0].call, (uint64_t)(int64_t)end);
}

static void calls_of_clone_are_found(void)
{
    search s;

    FIND(&s, "\xb8\x38\0\0\0\x0f\x05\xc3"); /* mov $56, %eax; syscall; ret */
    check_span(&s, -5, 2);
    FIND(&s, "\xb8\xb3\x01\0\0\x0f\x05\xc3"); /* mov $435, %eax */
    check_span(&s, -5, 2);
    /* mov %rcx, (%rsi); syscall; test %eax, %eax; as in musl's clone */
    FIND(&s, "\x48\x89\x0e\x0f\x05\x85\xc0");
    check_span(&s, -3, 2);
    /* ret; mov (%rdi), %eax; syscall; cmp $-4095, %rax */
    FIND(&s, "\xc3\x8b\x07\x0f\x05\x48\x3d\x01\xf0\xff\xff");
    check_span(&s, -2, 8);
}

static void other_calls_are_not_found(void)
{
    search s;

    FIND(&s, "\xb8\x27\0\0\0\x0f\x05\xc3"); /* mov $39, %eax; syscall */
    CHECK_EQ_U64(s.count, 0);
    FIND(&s, "\xb8\x3a\0\0\0\x0f\x05\xc3"); /* vfork */
    CHECK_EQ_U64(s.count, 0);
    /* mov $39, %eax; mov %rbx, %rdi; xor %esi, %esi; syscall */
    FIND(&s, "\xb8\x27\0\0\0\x48\x89\xdf\x31\xf6\x0f\x05\xc3");
    CHECK_EQ_U64(s.count, 0);
    FIND(&s, "\xbf\x0f\x05\x0f\x05\xc3"); /* mov $0x50f050f, %edi */
    CHECK_EQ_U64(s.count, 0);
}

static void a_branch_to_a_call_hides_its_number(void)
{
    search s;

    /* jmp to the syscall; mov $39, %eax; syscall; nop of 3 bytes */
    FIND(&s, "\xeb\x05\xb8\x27\0\0\0\x0f\x05\x0f\x1f\0\xc3");
    check_span(&s, 0, 5);
}

static void a_branch_into_the_patch_prevents_it(void)
{
    search s;

    /* jmp behind the syscall; jmp to it; mov %rdi, %rax; syscall; ret */
    FIND(&s, "\xeb\x07\xeb\x03\x48\x89\xf8\x0f\x05\xc3\x90\x90\x90");
    CHECK_EQ_U64(s.count, 1);
    CHECK_EQ_U64(s.found[0].begin, s.found[0].end);
}

static void uses_of_gs_are_found(void)
{
    static const uint8_t none[] = { 0x48, 0x8b, 0x65, 0x08, 0xb8, 0x65, 0x48, 0x8b, 0x04, 0xc3 };
    static const uint8_t load[] = { 0x90, 0x65, 0x48, 0x8b, 0x04, 0x25, 8, 0, 0, 0 };
    static const uint8_t base[] = { 0xf3, 0x48, 0x0f, 0xae, 0xd8 }; /* wrgsbase %rax */
    static const uint8_t wrfs[] = { 0xf3, 0x48, 0x0f, 0xae, 0xd0 };

    CHECK_EQ_U64(hfn_find_gs_use(none, sizeof none), UINT64_MAX);
    CHECK_EQ_U64(hfn_find_gs_use(load, sizeof load), 1);
    CHECK_EQ_U64(hfn_find_gs_use(base, sizeof base), 0);
    CHECK_EQ_U64(hfn_find_gs_use(wrfs, sizeof wrfs), UINT64_MAX);
}

/* Each step of a stub leads to an instruction of the original code, and the calls are where the
 * kernel finds them when it makes them again. */
static void steps_lead_to_the_original(void)
{
    /* mov (%rdi), %eax; syscall; jmp +0x10; nop */
    static const uint8_t code[] = { 0x8b, 0x07, 0x0f, 0x05, 0xeb, 0x10, 0x90 };
    const hfn_child_call site = { 2, 0, 7 };
    static hfn_call_stub stub;

    hfn_make_call_stub(&stub, &site, code, 0x1000, 0x2000, true);
    CHECK(stub.length <= HFN_CALL_STUB_MAX && stub.step_count <= HFN_CALL_STEPS_MAX);
    CHECK(memcmp(stub.bytes + stub.behind_at - 2, "\x0f\x05", 2) == 0);
    CHECK(memcmp(stub.bytes + stub.forking_at - 2, "\x0f\x05", 2) == 0);
    CHECK_EQ_U64(stub.bytes[stub.behind_at], 0xe9); /* the moved jmp */
    for (uint32_t i = 0; i < stub.step_count; i++) {
        int16_t at = stub.steps[i].original_at;
        CHECK(at == 0 || at == 2 || at == 4 || at == 6 || at == 7);
    }
}

#if defined(__x86_64__) && defined(__linux__)
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SET_GS = 0x1001, GET_GS = 0x1004, BASE = 0x12345000, STUB_AT = 1024, HAS_WRGSBASE = 2 };

typedef long (*call_fn)(long number, long flags);

static uint64_t get_gs(void)
{
    uint64_t base = 1;

    syscall(SYS_arch_prctl, GET_GS, &base);
    return base;
}

/* mov %rdi, %rax; mov %rsi, %rdi; xor %esi, %esi; xor %edx, %edx; syscall; ret */
static call_fn make_caller(bool has_wrgsbase)
{
    static const uint8_t code[] = { 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x31,
                                    0xf6, 0x31, 0xd2, 0x0f, 0x05, 0xc3 };
    const hfn_child_call site = { 10, 6, 12 };
    static hfn_call_stub stub;
    uint8_t *at =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t begin = (uint64_t)(uintptr_t)at + site.begin;

    CHECK(at != MAP_FAILED);
    memcpy(at, code, sizeof code);
    hfn_make_call_stub(&stub, &(hfn_child_call){ 4, 0, 6 }, code + site.begin, begin,
                       (uint64_t)(uintptr_t)at + STUB_AT, has_wrgsbase);
    memcpy(at + STUB_AT, stub.bytes, stub.length);
    hfn_emit_call_patch(at + site.begin, &site, begin, (uint64_t)(uintptr_t)at + STUB_AT);
    return (call_fn)(uintptr_t)at;
}

/* The gs base of the child, by its exit status. */
static void check_child(call_fn call, long number, long flags, bool keeps_base)
{
    int status = -1;
    long pid = call(number, flags);

    if (pid == 0) {
        _exit(get_gs() == (keeps_base ? BASE : 0) ? 0 : 1);
    }
    CHECK(pid > 0);
    CHECK_EQ_U64(get_gs(), BASE);
    CHECK(waitpid((pid_t)pid, &status, 0) == pid && status == 0);
}

static void children_begin_without_a_base(void)
{
    for (int i = 0; i < 2; i++) {
        call_fn call = make_caller(i == 1);

        if (i == 1 && !(getauxval(AT_HWCAP2) & HAS_WRGSBASE)) {
            continue;
        }
        syscall(SYS_arch_prctl, SET_GS, (long)BASE);
        CHECK_EQ_U64((uint64_t)call(SYS_getpid, 0), (uint64_t)getpid());
        CHECK_EQ_U64((uint64_t)call(SYS_getuid, 0), (uint64_t)getuid());
        check_child(call, SYS_fork, 0, false);
        check_child(call, SYS_clone, SIGCHLD, false);
        check_child(call, SYS_clone, SIGCHLD | CLONE_VFORK, true);
        CHECK(call(SYS_clone3, 0) < 0); /* its argument is not read */
        CHECK_EQ_U64(get_gs(), BASE);
        syscall(SYS_arch_prctl, SET_GS, 0L);
    }
}
#else
static void children_begin_without_a_base(void)
{
}
#endif

static const check_test tests[] = {
    CHECK_TEST(calls_of_clone_are_found),
    CHECK_TEST(other_calls_are_not_found),
    CHECK_TEST(a_branch_to_a_call_hides_its_number),
    CHECK_TEST(a_branch_into_the_patch_prevents_it),
    CHECK_TEST(uses_of_gs_are_found),
    CHECK_TEST(steps_lead_to_the_original),
    CHECK_TEST(children_begin_without_a_base),
};
CHECK_MAIN(tests)
