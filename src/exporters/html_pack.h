/* SPDX-License-Identifier: MIT */
/* Packing of a part of the page as text.  A large part begins with its size in decimal digits and a
 * line feed.  All other bytes are the text itself, except the mark 0x7f, which begins
 *
 *   mark, code, extension ..., distance    a copy of earlier text
 *   mark, space                            a single 0x7f
 *
 * A digit has 93 values; its characters are those from "!" to "~" without "<".  code is
 * 3 * n + d - 2, where d (2 to 4) is the number of distance digits, most significant first, and the
 * copy has 5 + n bytes.  If n is 30, extension digits follow, which are added to n, up to and
 * including the first that is not 92.  A copy never begins or ends within a character of UTF-8. */
#ifndef HFN_EXPORTERS_HTML_PACK_H
#define HFN_EXPORTERS_HTML_PACK_H

#include "exporters/exporter.h"

typedef struct hfn_page_part {
    const hotfn_env *env;
    char *text;
    size_t size, capacity;
} hfn_page_part;

/* A hotfn_write_fn that appends to the hfn_page_part that user points to. */
int32_t hfn_page_part_append(void *user, const void *bytes, size_t byte_count);
/* Write the part, packed if that is worth the time; false if there is no memory. */
bool hfn_page_part_write(const hfn_page_part *part, hfn_sink *sink);
void hfn_page_part_finish(hfn_page_part *part);

#endif
