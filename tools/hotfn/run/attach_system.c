/* SPDX-License-Identifier: MIT */
/* Records the signals by which the user ends `hotfn attach`. */
#include "attach.h"

#include <signal.h>

static volatile sig_atomic_t is_interrupted;

bool attach_is_interrupted(void)
{
    return is_interrupted;
}

static void note_signal(int number)
{
    (void)number;
    is_interrupted = 1;
}

void attach_catch_interrupts(void)
{
    struct sigaction action = { .sa_handler = note_signal };

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

const char *attach_check_children(void)
{
    return NULL;
}
