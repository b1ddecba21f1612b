/* SPDX-License-Identifier: MIT */
/* The parts of `hotfn attach`. */
#ifndef HOTFN_TOOL_ATTACH_H
#define HOTFN_TOOL_ATTACH_H

#include "run.h"

/* attach_system.c, windows/attach.c: from now on, Ctrl-C and similar signals only set a flag, which
 * attach_is_interrupted returns. */
void attach_catch_interrupts(void);
bool attach_is_interrupted(void);
/* NULL, or the reason why there is no --children on this system. */
const char *attach_check_children(void);

/* Write the record of a launch that has ended, and print its summary. */
bool attach_finish_record(const run_options *options, hotfn_launch *launch);

/* attach_children.c: the same for a process with all processes that it has started and will start.
 * The first launch is that of the process; this call destroys it.  Returns false if a record could
 * not be written, or a process could not be detached from. */
bool attach_run_family(const run_options *options, hotfn_launch *first, const hotfn_env *env);

#endif
