/* SPDX-License-Identifier: MIT */
/* While one thread alone counts, stubs may count in its row at a fixed address (hotfn_row_access.sole_row).
 * Before a second thread can count, that code is exchanged for what suits all threads. */
#ifndef HFN_COUNTERS_SOLE_H
#define HFN_COUNTERS_SOLE_H

#include <hotfn/counters.h>

/* The calling thread, alone in the process, is the one: gives it its row.  Once a process. */
void hfn_sole_begin(void);
/* Its row; NULL once there may be others. */
void *hfn_sole_row(void);
/* Keep code that counts so; kept for good.  Exchanged at once where there may be others by now. */
void hfn_sole_keep(hotfn_turn *code);
/* There may be others from now on.  HOT PATH: any thread, any number at once, also in a signal handler. */
void hfn_sole_end(void);

#endif
