/* SPDX-License-Identifier: MIT */
/* The text of the page before and after a report's data; embed.py writes both arrays. */
#ifndef HFN_EXPORTERS_HTML_PAGE_H
#define HFN_EXPORTERS_HTML_PAGE_H

#include <stddef.h>

extern const char hfn_html_head[], hfn_html_tail[];
extern const size_t hfn_html_head_bytes, hfn_html_tail_bytes;

#endif
