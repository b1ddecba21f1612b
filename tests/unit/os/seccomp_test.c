/* SPDX-License-Identifier: MIT */
/* Which system calls a filter forbids, compared with the kernel: a child installs the filter and
 * makes the calls of a group.  It must survive if the group is allowed, and be killed if not. */
#include "check.h"
#include "os/hot_path.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILTERS = 600, MAX_STEPS = 24, GROUPS = 5 };

typedef struct filter_text {
    struct sock_filter steps[MAX_STEPS];
    uint16_t count;
} filter_text;

static void add_step(filter_text *f, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
    f->steps[f->count++] = (struct sock_filter){ code, jt, jf, k };
}

static void call_claim(void)
{
    char name[16];
    uint32_t pid = hfn_os_hot_process_id();

    hfn_os_hot_thread_is_gone(pid, hfn_os_hot_thread_id());
    hfn_os_hot_wall_ns();
    hfn_os_hot_thread_name(name);
}

static uint32_t parent;

static void call_others(void)
{
    uintptr_t word = 0, seen;

    hfn_os_hot_process_is_gone(parent);
    hfn_os_hot_read_word((uint64_t)(uintptr_t)&word, &seen);
}

static void call_time(void)
{
    hfn_thread_facts facts;

    hfn_os_hot_cpu_ns();
    hfn_os_hot_read_thread(parent, parent, &facts);
}

static void call_fork(void)
{
    void *pages;

    hfn_os_hot_process_id();
    hfn_os_hot_parent_id();
    hfn_os_hot_process_namespace();
    hfn_os_hot_monotonic_ns();
    pages = hfn_os_hot_map_pages(4096);
    hfn_os_hot_clear_on_fork(pages, 4096);
    hfn_os_hot_unmap_pages(pages, 4096);
}

static void call_check(void)
{
    char byte = 0, seen;
    void *pages = hfn_os_hot_map_pages(4096);

    hfn_os_hot_process_id();
    hfn_os_hot_wall_ns();
    hfn_os_hot_read_bytes((uint64_t)(uintptr_t)&byte, &seen, 1);
    hfn_os_hot_unmap_pages(pages, 4096);
}

/* In the order of the bits. */
static void (*const groups[GROUPS])(void) = { call_claim, call_others, call_time, call_fork,
                                              call_check };

static uint32_t random_state = 20261128;

static uint32_t choose(uint32_t count)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 16) % count;
}

/* Kill for one or two calls, found by each of the ways that a filter has to compare. */
static void write_filter(filter_text *f)
{
    static const uint32_t numbers[] = { SYS_gettid,  SYS_getpid,       SYS_tgkill,
                                        SYS_kill,    SYS_prctl,        SYS_process_vm_readv,
                                        SYS_openat,  SYS_read,         SYS_close,
                                        SYS_getppid, SYS_readlinkat,   SYS_munmap,
                                        SYS_madvise, SYS_clock_gettime };
    const uint32_t kill_step = BPF_RET | BPF_K, number_at = offsetof(struct seccomp_data, nr);

    f->count = 0;
    add_step(f, BPF_LD | BPF_W | BPF_ABS, number_at, 0, 0);
    for (uint32_t i = choose(2); i < 2; i++) {
        uint32_t number = numbers[choose(sizeof numbers / sizeof *numbers)];
        switch (choose(4)) {
        case 0: add_step(f, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1); break;
        case 1: /* more than the number before it, and no more than it */
            add_step(f, BPF_JMP | BPF_JGT | BPF_K, number - 1, 0, 2);
            add_step(f, BPF_JMP | BPF_JGE | BPF_K, number + 1, 1, 0);
            break;
        case 2: /* A ^ number ^ scratch word, which is 0 */
            add_step(f, BPF_MISC | BPF_TAX, 0, 0, 0);
            add_step(f, BPF_ALU | BPF_XOR | BPF_K, number, 0, 0);
            add_step(f, BPF_ST, 3, 0, 0);
            add_step(f, BPF_LD | BPF_MEM, 3, 0, 0);
            add_step(f, BPF_JMP | BPF_JSET | BPF_K, UINT32_MAX, 1, 0);
            break;
        default: /* (A + X - X) == X */
            add_step(f, BPF_LDX | BPF_IMM, number, 0, 0);
            add_step(f, BPF_ALU | BPF_ADD | BPF_X, 0, 0, 0);
            add_step(f, BPF_ALU | BPF_SUB | BPF_X, 0, 0, 0);
            add_step(f, BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1);
        }
        add_step(f, (uint16_t)kill_step, SECCOMP_RET_KILL_PROCESS, 0, 0);
        add_step(f, BPF_LD | BPF_W | BPF_ABS, number_at, 0, 0);
    }
    if (choose(3) == 0) { /* what only fails is allowed */
        add_step(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1);
        add_step(f, (uint16_t)kill_step, SECCOMP_RET_ERRNO | 1, 0, 0);
    }
    add_step(f, BPF_JMP | BPF_JA, 0, 0, 0);
    add_step(f, (uint16_t)kill_step, SECCOMP_RET_ALLOW, 0, 0);
}

static int run_group(const struct sock_fprog *program, uint32_t group)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) != 0) {
            _exit(2);
        }
        groups[group]();
        _exit(0);
    }
    CHECK_EQ_I64(waitpid(child, &status, 0), child);
    return status;
}

static void forbidden_groups_are_those_that_the_kernel_kills(void)
{
    uint32_t found = 0;

    parent = (uint32_t)getpid();
    for (int i = 0; i < FILTERS && !check_failures; i++) {
        filter_text text;
        write_filter(&text);
        struct sock_fprog program = { text.count, text.steps };
        const unsigned long words[3] = { PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                                         (unsigned long)&program };
        uint32_t forbidden = hfn_os_hot_find_forbidden(SYS_prctl, words, 0);

        for (uint32_t g = 0; g < GROUPS; g++) {
            int status = run_group(&program, g);
            bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
            CHECK(is_killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
            CHECK_EQ_U64((forbidden >> g) & 1, is_killed);
        }
        found |= forbidden;
    }
    CHECK_EQ_U64(found, HFN_CALLS_ALL);
}

static uint32_t find_for(const struct sock_fprog *program)
{
    const unsigned long words[3] = { SECCOMP_SET_MODE_FILTER, 0, (unsigned long)program };

    return hfn_os_hot_find_forbidden(SYS_seccomp, words, 0);
}

/* The kernel refuses these, and no filter is installed: what matters is that this returns. */
static void what_the_kernel_refuses_does_no_harm(void)
{
    struct sock_filter steps[] = {
        { BPF_JMP | BPF_JA, 0, 0, UINT32_MAX },
        { BPF_JMP | BPF_JEQ | BPF_K, 255, 255, 0 },
        { BPF_LD | BPF_W | BPF_ABS, 0, 0, UINT32_MAX - 3 },
        { BPF_ALU | BPF_DIV | BPF_K, 0, 0, 0 },
        { BPF_ALU | BPF_LSH | BPF_K, 0, 0, 99 },
        { BPF_STX, 0, 0, UINT32_MAX },
    };

    for (uint16_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        CHECK_EQ_U64(find_for(&(struct sock_fprog){ 1, &steps[i] }), HFN_CALLS_ALL);
    }
    CHECK_EQ_U64(find_for(&(struct sock_fprog){ 6, steps }), HFN_CALLS_ALL);
    CHECK_EQ_U64(find_for(&(struct sock_fprog){ 0, steps }), 0);
    CHECK_EQ_U64(find_for(&(struct sock_fprog){ 6, (struct sock_filter *)8 }), 0);
    CHECK_EQ_U64(find_for((struct sock_fprog *)8), 0);
    CHECK_EQ_U64(find_for(NULL), 0);
}

static void other_calls_change_nothing(void)
{
    const unsigned long strict[3] = { SECCOMP_SET_MODE_STRICT, 0, 0 };
    const unsigned long name[3] = { PR_SET_NAME, 0, 0 };

    CHECK_EQ_U64(hfn_os_hot_find_forbidden(SYS_seccomp, strict, 0), HFN_CALLS_ALL);
    CHECK_EQ_U64(hfn_os_hot_find_forbidden(SYS_prctl, name, 0), 0);
    CHECK_EQ_U64(hfn_os_hot_find_forbidden(SYS_prctl, name, HFN_CALLS_TIME), HFN_CALLS_TIME);
    CHECK_EQ_U64(hfn_os_hot_find_forbidden(SYS_getpid, strict, 0), 0);
}

static const check_test tests[] = {
    CHECK_TEST(forbidden_groups_are_those_that_the_kernel_kills),
    CHECK_TEST(what_the_kernel_refuses_does_no_harm),
    CHECK_TEST(other_calls_change_nothing),
};
CHECK_MAIN(tests)
