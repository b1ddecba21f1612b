/* SPDX-License-Identifier: MIT */
/* Programs that are started, and counted from outside (run_outside.c). */
#ifndef HFN_LAUNCH_RUN_OUTSIDE_H
#define HFN_LAUNCH_RUN_OUTSIDE_H

#include "launch/launch.h"

/* HOTFN_OK; HOTFN_E_OPTION: not with these options. */
hotfn_status hfn_outside_check_options(const hotfn_launch *launch, hotfn_error *err);
/* Attach to the child, which stands at its entry point, and let it go.  After an error the child
 * has ended. */
hotfn_status hfn_outside_enter(hotfn_launch *launch, hotfn_error *err);

#endif
