/* SPDX-License-Identifier: MIT */
/* Rows that are found by the gs base, and the system calls that begin threads (call_sites.c). */
#ifndef HFN_LAUNCH_CALL_SITES_H
#define HFN_LAUNCH_CALL_SITES_H

#include "launch/attach/attachment.h"

/* Is this a program whose threads have no word for the address of a row (a->uses_gs)? */
bool hfn_call_sites_are_needed(hfn_attachment *a);
/* Search the running process: HOTFN_OK, HOTFN_E_UNSUPPORTED with the reason. */
hotfn_status hfn_call_sites_search(hfn_attachment *a, hotfn_error *err);
/* Ensure that the modules with sites have mirrors. */
bool hfn_call_sites_add_mirrors(hfn_attachment *a);
/* Patch the mirrors, before hooks are committed: a function whose entry overlaps a patch is then
 * refused. */
bool hfn_call_sites_patch(hfn_attachment *a);
bool hfn_call_sites_write_journal(hfn_attachment *a);

/* The next three are called while the target is stopped. */
/* The address at which a thread at pc continues, in the stub of a patched call or unchanged. */
uint64_t hfn_call_sites_move_pc(const hfn_attachment *a, uint64_t pc);
/* Before any hfn_call_sites_move_pc: move the threads whose clone the kernel would restart to the
 * stub of that call. */
bool hfn_call_sites_move_restarts(hfn_attachment *a);
/* HOTFN_E_UNSUPPORTED if a thread uses a gs base of its own. */
hotfn_status hfn_call_sites_check_threads(const hfn_attachment *a, hotfn_error *err);

#endif
