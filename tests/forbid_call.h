/* SPDX-License-Identifier: MIT */
/* Filters as containers have: from now on the filter returns `action` for one system call, in this
 * process and its children. */
#ifndef TESTS_FORBID_CALL_H
#define TESTS_FORBID_CALL_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

typedef int (*prctl_fn)(int option, ...);

static inline bool forbid_call_by(uint32_t number, uint32_t action, prctl_fn install)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           install(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* It fails with EPERM. */
static inline bool forbid_call(uint32_t number)
{
    return forbid_call_by(number, SECCOMP_RET_ERRNO | EPERM, prctl);
}

#endif
