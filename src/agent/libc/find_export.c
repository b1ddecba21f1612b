/* SPDX-License-Identifier: MIT */
/* Exported names of a loaded Windows module (PE format, Export Directory Table).  GetProcAddress
 * takes the loader's lock and may load the module that an export is forwarded to. */
#include "agent/libc/find_export.h"

#include <stddef.h>
#include <string.h>

static uint32_t read_u32(uint64_t address)
{
    uint32_t value;

    memcpy(&value, (const void *)(uintptr_t)address, sizeof value);
    return value;
}

void *agent_find_export(uint64_t base, const char *name)
{
    enum { PE32_PLUS_EXPORTS = 24 + 112 };
    uint64_t directory = base + read_u32(base + 0x3C) + PE32_PLUS_EXPORTS;
    uint32_t begin = read_u32(directory), bytes = read_u32(directory + 4);
    uint64_t table = base + begin;
    uint32_t count = begin ? read_u32(table + 24) : 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t names = base + read_u32(table + 32), ordinals = base + read_u32(table + 36);
        uint16_t ordinal;
        uint32_t found;

        if (strcmp((const char *)(uintptr_t)(base + read_u32(names + 4 * (uint64_t)i)), name) !=
            0) {
            continue;
        }
        memcpy(&ordinal, (const void *)(uintptr_t)(ordinals + 2 * (uint64_t)i), sizeof ordinal);
        found = read_u32(base + read_u32(table + 28) + 4 * (uint64_t)ordinal);
        return found - begin < bytes ? NULL : (void *)(uintptr_t)(base + found);
    }
    return NULL;
}
