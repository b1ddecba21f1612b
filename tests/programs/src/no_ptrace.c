/* SPDX-License-Identifier: MIT */
/* Runs a command in which ptrace() fails with EPERM, as in many containers, so that no process
 * can stop another. */
#include "../../forbid_call.h"

#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2 || !forbid_call(SYS_ptrace))
        return 77;
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
