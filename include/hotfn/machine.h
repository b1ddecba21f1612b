/* SPDX-License-Identifier: MIT */
/* The numbers of CPUs that images, plans and records carry.  Stable. */
#ifndef HOTFN_MACHINE_H
#define HOTFN_MACHINE_H

#include <stdint.h>

#define HOTFN_MACHINE_OTHER 0
#define HOTFN_MACHINE_X86 1
#define HOTFN_MACHINE_X86_64 2
#define HOTFN_MACHINE_ARM 3
#define HOTFN_MACHINE_ARM64 4

#endif
