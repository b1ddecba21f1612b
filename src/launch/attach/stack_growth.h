/* SPDX-License-Identifier: MIT */
/* Functions that begin again after their stack has grown (stack_growth.c). */
#ifndef HFN_LAUNCH_STACK_GROWTH_H
#define HFN_LAUNCH_STACK_GROWTH_H

#include "launch/attach/attachment.h"

/* Patch the mirrors of a Go program, after hooks were committed. */
bool hfn_stack_growth_patch(hfn_attachment *a);

#endif
