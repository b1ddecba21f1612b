/* SPDX-License-Identifier: MIT */
/* Elements of a record as arrays: one call fills the structs that the calls for a single element
 * fill one by one. */
#include "profile/profile.h"

#include <string.h>

static hotfn_status get_element(const hotfn_record *r, uint32_t kind, uint32_t index, void *out)
{
    switch (kind) {
    case HOTFN_ARRAY_FUNCTIONS: return hotfn_record_get_function(r, index, out);
    case HOTFN_ARRAY_TIMINGS: return hotfn_record_get_timing(r, index, out);
    case HOTFN_ARRAY_EDGES: return hotfn_record_get_edge(r, index, out);
    default: return hotfn_record_get_node(r, index, out);
    }
}

static uint32_t count_elements(const hotfn_record *r, uint32_t kind)
{
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;

    if (kind == HOTFN_ARRAY_FUNCTIONS || kind == HOTFN_ARRAY_TIMINGS) {
        return r->function_count;
    }
    hotfn_record_get_time_info(r, &info);
    return kind == HOTFN_ARRAY_EDGES ? info.edge_count : info.node_count;
}

/* The size of the kind's struct; 0: no such kind. */
static uint32_t get_known_bytes(uint32_t kind)
{
    switch (kind) {
    case HOTFN_ARRAY_FUNCTIONS: return (uint32_t)sizeof(hotfn_record_function);
    case HOTFN_ARRAY_TIMINGS: return (uint32_t)sizeof(hotfn_record_timing);
    case HOTFN_ARRAY_EDGES: return (uint32_t)sizeof(hotfn_record_edge);
    case HOTFN_ARRAY_NODES: return (uint32_t)sizeof(hotfn_record_node);
    default: return 0;
    }
}

bool hfn_profile_is_element_size(uint32_t struct_bytes, uint32_t known_bytes)
{
    return struct_bytes > 0 && struct_bytes <= known_bytes && struct_bytes % sizeof(uint64_t) == 0;
}

hotfn_status hotfn_record_get_array(const hotfn_record *r, uint32_t kind, uint32_t first,
                                    uint32_t count, void *out, uint32_t struct_bytes)
{
    if (!r || !hfn_profile_is_element_size(struct_bytes, get_known_bytes(kind)) ||
        (!out && count > 0)) {
        return HOTFN_E_OPTION;
    }

    uint32_t known = count_elements(r, kind);

    if (first > known || count > known - first) {
        return HOTFN_E_NOT_FOUND;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *at = (uint8_t *)out + (size_t)i * struct_bytes;

        memcpy(at, &struct_bytes, sizeof struct_bytes); /* the size field */
        get_element(r, kind, first + i, at);
    }
    return HOTFN_OK;
}
