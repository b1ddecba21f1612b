/* SPDX-License-Identifier: MIT */
/* The user's list of interfaces: a file with lines "{IID} Name Method Method ...". */
#ifndef HFN_RUNTIMES_COM_LIST_H
#define HFN_RUNTIMES_COM_LIST_H

#include "runtimes/com_names.h"

#include <stddef.h>

/* Fill in name and methods of the interface, as the text of a list has them; false: it is not
 * there.  Methods follow those of IUnknown; without any, only the name is known. */
bool hfn_com_find_in_list(hfn_com_interface *out, const hfn_guid *iid, const char *text,
                          size_t bytes);
/* The number of the first line of the text that is malformed; 0: none is. */
uint32_t hfn_com_check_list(const char *text, size_t bytes);

/* Read the file that the environment variable HOTFN_COM_INTERFACES names.  False, with the reason,
 * if it cannot be used; true also if there is no such variable. */
bool hfn_com_open_list(char *reason, size_t reason_bytes);
/* As hfn_com_find_in_list, in this file. */
bool hfn_com_find_listed(hfn_com_interface *out, const hfn_guid *iid);

#endif
