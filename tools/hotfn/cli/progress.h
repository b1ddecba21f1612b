/* SPDX-License-Identifier: MIT */
/* The status line of long operations. */
#ifndef HOTFN_TOOL_PROGRESS_H
#define HOTFN_TOOL_PROGRESS_H

#include <hotfn/env.h>
#include <stdint.h>

/* Make the library report its progress on stderr, if that is a terminal. */
void progress_set_env(hotfn_env *env);

/* Show how far an operation is, if stderr is a terminal and the operation takes long. */
void progress_report(const hotfn_progress *progress);

/* terminal.c: nanoseconds since some moment. */
int64_t progress_read_clock(void);

#endif
