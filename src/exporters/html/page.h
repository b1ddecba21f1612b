/* SPDX-License-Identifier: MIT */
/* The text of the page before the first part of a report's data, between it and the other parts,
 * and after them; embed.py writes the arrays.  The script in the middle shows the table at once. */
#ifndef HFN_EXPORTERS_HTML_PAGE_H
#define HFN_EXPORTERS_HTML_PAGE_H

#include <stddef.h>

extern const char hfn_html_head[], hfn_html_script[], hfn_html_tail[];
extern const size_t hfn_html_head_bytes, hfn_html_script_bytes, hfn_html_tail_bytes;

#endif
