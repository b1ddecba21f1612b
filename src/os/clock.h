/* SPDX-License-Identifier: MIT */
/* Clocks, all in nanoseconds. */
#ifndef HFN_OS_CLOCK_H
#define HFN_OS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

uint64_t hfn_os_wall_ns(void);       /* since 1970                                         */
uint64_t hfn_os_monotonic_ns(void);  /* never goes back                                    */
uint64_t hfn_os_raw_ns(void);        /* monotonic, and its rate is never adjusted          */
uint64_t hfn_os_thread_cpu_ns(void); /* processor time of the calling thread               */
void hfn_os_sleep(uint32_t ns);      /* less than a second; an interruption may shorten it */

/* True if the processor's counter runs at a constant rate and in step on all processors: if the
 * processor guarantees it and the system itself uses that counter. */
bool hfn_os_ticks_are_steady(void);
/* True if this thread may read the processor's counter (Linux: prctl(PR_SET_TSC)). */
bool hfn_os_may_read_ticks(void);

#endif
