/* SPDX-License-Identifier: MIT */
/* Open calls of methods whose entries and exits are events: their times. */
#ifndef HFN_RUNTIMES_ART_CALLS_H
#define HFN_RUNTIMES_ART_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Make room for the threads; false if there is no memory. */
bool hfn_art_calls_open(void);
/* The calling thread, which the machine knows as `thread`, enters the method: count and begin the
 * call in the slot. */
void hfn_art_calls_enter(uint64_t thread, uint64_t method, uint32_t slot);
/* It leaves the method, and with it the calls inside it.  Nothing happens if the method was not
 * entered. */
void hfn_art_calls_leave(uint64_t thread, uint64_t method);

#endif
