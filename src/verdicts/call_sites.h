/* SPDX-License-Identifier: MIT */
/* The call sites of a function: ranges of instructions whose exceptions continue at a landing pad
 * or pass the function.  Private to this folder. */
#ifndef HFN_VERDICTS_CALL_SITES_H
#define HFN_VERDICTS_CALL_SITES_H

#include "functions/eh_frame_read.h"
#include "verdicts/analysis.h"

/* A position in the table of one function. */
typedef struct hfn_call_sites {
    hfn_eh_bytes eh;
    uint64_t at, end;
    uint64_t function, pads; /* RVAs that call sites and landing pads are relative to */
    uint8_t encoding;
} hfn_call_sites;

typedef struct hfn_call_site {
    uint64_t begin, end, pad; /* RVAs; pad 0: none */
} hfn_call_site;

/* False if the function has no table, or an unknown kind of table. */
bool hfn_call_sites_open(const hfn_analysis *a, const hfn_function *f, hfn_call_sites *out);
/* Read the site at t->at, which is before t->end.  False if it is damaged. */
bool hfn_call_sites_next(hfn_call_sites *t, hfn_call_site *out);

/* Whether an exception raised by an instruction of [from, to) may continue at a landing pad of the
 * function with this index, and the first such address.  A copy of the instruction elsewhere would
 * not reach the landing pad (-fnon-call-exceptions: loads, stores and divisions raise exceptions
 * too).  True if the table cannot be read. */
bool hfn_call_sites_catch(const hfn_analysis *a, uint32_t index, uint64_t from, uint64_t to,
                          uint64_t *at);

#endif
