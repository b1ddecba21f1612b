/* SPDX-License-Identifier: MIT */
#ifndef HFN_OS_WINDOWS_IMPORT_LIST_H
#define HFN_OS_WINDOWS_IMPORT_LIST_H

#include "os/windows/nt.h"
#include "os/windows/order.h"

/* Make the library the first that the loader of the suspended process loads: write a new import
 * list into its memory, which names the library's ordinal 1 and then the old list.  *headers
 * receives the bytes of the image's headers that changed. */
hfn_os_error hfn_import_first(HANDLE process, const char *library, hfn_changed_headers *headers);

#endif
