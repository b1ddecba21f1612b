/* SPDX-License-Identifier: MIT */
/* No key exists.  Linux uses this file too. */
#include "os/registry.h"

bool hfn_os_read_class_text(const char *key, const char *value, char *out, size_t capacity)
{
    (void)key, (void)value, (void)out, (void)capacity;
    return false;
}

bool hfn_os_read_variable(const char *name, char *out, size_t capacity)
{
    (void)name, (void)out, (void)capacity;
    return false;
}
