/* SPDX-License-Identifier: MIT */
/* Type libraries: names of interfaces and methods, in a file of their own or in a module. */
#ifndef HFN_RUNTIMES_COM_TYPELIB_H
#define HFN_RUNTIMES_COM_TYPELIB_H

#include "base/span.h"
#include "runtimes/com_names.h"

/* The type library in a module's resources; number: of the resource, 0: the first one.  An empty
 * span: there is none.  is_loaded: RVAs are offsets in the span, else it is a file. */
hfn_span hfn_typelib_in_module(hfn_span module, bool is_loaded, uint32_t number);
/* Store what the library has about the interface; false, and nothing changed: it is not there, or
 * the library is malformed, or of the old format ("SLTG"). */
bool hfn_typelib_find(hfn_com_interface *out, hfn_span library, const hfn_guid *iid);

#endif
