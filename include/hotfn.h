/* SPDX-License-Identifier: MIT */
/* libhotfn counts every call of every function of a released program, without a rebuild.  This
 * header includes the stable calls; <hotfn/lowlevel.h> has the parts that they are made of. */
#ifndef HOTFN_H
#define HOTFN_H

#include <hotfn/env.h>
#include <hotfn/export.h>
#include <hotfn/frame.h>
#include <hotfn/function.h>
#include <hotfn/hooks.h>
#include <hotfn/launch.h>
#include <hotfn/record.h>
#include <hotfn/session.h>
#include <hotfn/status.h>
#include <hotfn/switch.h>
#include <hotfn/zone.h>

#endif
