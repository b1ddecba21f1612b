/* SPDX-License-Identifier: MIT */
/* Modules whose functions are the methods of a runtime (HOTFN_MODULE_METHODS). */
#ifndef HFN_RECORDS_METHODS_H
#define HFN_RECORDS_METHODS_H

#include "records/reader.h"

/* Drop the functions of such modules that are no methods, with the room for their names.  An RVA
 * becomes a hash of the method's name: where a method is differs from run to run.  The record has
 * been checked.  HOTFN_OK, HOTFN_E_NO_MEMORY. */
hotfn_status hfn_record_drop_unused_methods(hotfn_record *record, hotfn_error *err);

/* The RVA of a method with this name in a finished record. */
uint64_t hfn_method_get_rva(const char *name);

#endif
