/* SPDX-License-Identifier: MIT */
/* Results of methods of COM objects: failures are counted as functions of their own, and interfaces
 * that a method returns are reported. */
#ifndef HFN_RUNTIMES_COM_RESULTS_H
#define HFN_RUNTIMES_COM_RESULTS_H

#include "runtimes/com_names.h"
#include "runtimes/methods.h"

/* A method of the object, whose table bears the class, has returned the interface.  The object may
 * have been freed by the call. */
typedef void hfn_com_output_fn(const void *object, const hfn_guid *class, void *interface,
                               const hfn_guid *iid);

/* Let the pool at base report the results of its methods. */
void hfn_com_open_results(const hfn_methods *methods, hfn_find_symbol_fn *find_symbol,
                          uint64_t base, hfn_com_output_fn *output);
/* What the method of the pool's function returns. */
void hfn_com_set_result(const hfn_methods *methods, hotfn_code function,
                        const hfn_com_method *method, const hfn_guid *class);
/* Count a call of the function of this name; does nothing without a function. */
void hfn_com_count_event(const hfn_methods *methods, const char *name);

#endif
