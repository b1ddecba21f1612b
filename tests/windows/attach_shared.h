/* SPDX-License-Identifier: MIT */
/* What attach_target.c and attach_rounds.c share. */
#ifndef ATTACH_SHARED_H
#define ATTACH_SHARED_H

#include <stdint.h>
#include <windows.h>

#define COUNTS_NAME L"Local\\hotfn-attach-target-counts"
#define END_EVENT L"Local\\hotfn-attach-target-end"
#define READY_EVENT L"Local\\hotfn-attach-target-ready"

enum { CHAIN = 20000, WORKERS = 3 };

typedef struct shared_counts {
    volatile LONG64 steps; /* calls of target_step; each is counted here just before it is made */
} shared_counts;

#endif
