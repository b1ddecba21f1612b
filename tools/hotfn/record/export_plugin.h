/* SPDX-License-Identifier: MIT */
/* Exporters from shared objects. */
#ifndef HOTFN_TOOL_EXPORT_PLUGIN_H
#define HOTFN_TOOL_EXPORT_PLUGIN_H

#include <stdbool.h>

/* True if -F names a file: names of formats have no slash. */
bool export_plugin_is_path(const char *format);
/* Load and register; returns the name of the format, or NULL after a message. */
const char *export_plugin_load(const char *path);

#endif
