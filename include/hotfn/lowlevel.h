/* SPDX-License-Identifier: MIT */
/* The parts of the library, usable alone.  Unstable: these may change in any version. */
#ifndef HOTFN_LOWLEVEL_H
#define HOTFN_LOWLEVEL_H

#include <hotfn/lowlevel/budget.h>
#include <hotfn/lowlevel/counters.h>
#include <hotfn/lowlevel/events.h>
#include <hotfn/lowlevel/functions.h>
#include <hotfn/lowlevel/hooks.h>
#include <hotfn/lowlevel/image.h>
#include <hotfn/lowlevel/json.h>
#include <hotfn/lowlevel/lists.h>
#include <hotfn/lowlevel/plan.h>
#include <hotfn/lowlevel/ranks.h>
#include <hotfn/lowlevel/scan.h>
#include <hotfn/lowlevel/session.h>
#include <hotfn/lowlevel/symbols.h>
#include <hotfn/lowlevel/timing.h>
#include <hotfn/lowlevel/verdicts.h>

#endif
