/* SPDX-License-Identifier: MIT */
/* The formats by name: those of the library, then those that programs registered. */
#ifndef HFN_EXPORTERS_REGISTRY_H
#define HFN_EXPORTERS_REGISTRY_H

#include "exporters/exporter.h"

/* One of built_in and registered is NULL. */
typedef struct hfn_format {
    hotfn_exporter_info info;
    const hfn_exporter *built_in;
    const hotfn_exporter *registered;
} hfn_format;

/* False if index is past the end. */
bool hfn_format_get(uint32_t index, hfn_format *out);
/* HOTFN_E_NOT_FOUND, with a message that lists all formats, if name is not a format. */
hotfn_status hfn_format_find(const char *name, hfn_format *out, hotfn_error *err);

#endif
