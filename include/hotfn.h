/* SPDX-License-Identifier: MIT */
/* libhotfn: count every call of every function of a program that nobody rebuilt.
 * This header pulls in the stations in the order data walks through them. */
#ifndef HOTFN_H
#define HOTFN_H

#include <hotfn/status.h>
#include <hotfn/env.h>
#include <hotfn/image.h>
#include <hotfn/symbols.h>
#include <hotfn/functions.h>
#include <hotfn/lists.h>
#include <hotfn/verdicts.h>
#include <hotfn/hooks.h>
#include <hotfn/counters.h>
#include <hotfn/timing.h>
#include <hotfn/records.h>
#include <hotfn/budget.h>
#include <hotfn/exporters.h>
#include <hotfn/scan.h>
#include <hotfn/session.h>
#include <hotfn/window.h>

#endif
