/* SPDX-License-Identifier: MIT */
/* What one state of a run has more than an earlier one: an increment. */
#ifndef HOTFN_COLLECTOR_WIRE_DIFFERENCE_H
#define HOTFN_COLLECTOR_WIRE_DIFFERENCE_H

#include "wire.h"

/* Append the difference now - sent to out, in the compact form of a run.  Values that became
 * smaller (the time of an open call, which is an estimate) count as unchanged, and now gets the
 * larger one: the sum of all increments is then what now has.  A maximum is sent as it is.  False
 * if memory runs out.
 *
 * sent: an earlier state of the same run, or one without modules. */
bool wire_encode_difference(byte_buffer *out, wire_run *now, const wire_run *sent);

#endif
