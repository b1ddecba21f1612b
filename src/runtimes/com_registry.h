/* SPDX-License-Identifier: MIT */
/* What the registry has about COM interfaces, and the type libraries that it names. */
#ifndef HFN_RUNTIMES_COM_REGISTRY_H
#define HFN_RUNTIMES_COM_REGISTRY_H

#include "runtimes/com_names.h"

/* Store the name and methods of the interface; nothing changes if it is not registered. */
void hfn_com_find_registered(hfn_com_interface *out, const hfn_guid *iid);

#endif
