/* SPDX-License-Identifier: MIT */
#ifndef HOTFN_TOOL_SHOW_PAGE_H
#define HOTFN_TOOL_SHOW_PAGE_H

/* Show the page in the browser of the desktop, if there is one. */
void show_page(const char *path);

#endif
