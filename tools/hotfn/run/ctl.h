/* SPDX-License-Identifier: MIT */
/* What `hotfn ctl` and the keys of `hotfn top` report of functions that were switched. */
#ifndef HOTFN_TOOL_CTL_H
#define HOTFN_TOOL_CTL_H

#include <hotfn.h>
#include <stddef.h>

/* One line without its end: "12 functions are now off; threads were stopped for 0.3 ms". */
void ctl_describe(char *out, size_t bytes, uint32_t mode, const hotfn_switch_result *result);

#endif
