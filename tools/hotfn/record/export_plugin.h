/* SPDX-License-Identifier: MIT */
/* Exporters from shared objects. */
#ifndef HOTFN_TOOL_EXPORT_PLUGIN_H
#define HOTFN_TOOL_EXPORT_PLUGIN_H

#include <stdbool.h>

/* True if the argument of -F is a path: names of formats have no slash. */
bool export_plugin_is_path(const char *format);
/* Load and register a plug-in; returns the name of its format, or NULL after a message. */
const char *export_plugin_load(const char *path);

#endif
