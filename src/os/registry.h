/* SPDX-License-Identifier: MIT */
/* The registry of classes, which only Windows has, and the environment as ntdll has it. */
#ifndef HFN_OS_REGISTRY_H
#define HFN_OS_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

/* Read a text of a key below HKEY_CLASSES_ROOT; value "": the key's default.  False, and out
 * unchanged: it is not there or does not fit, or the system has no registry.  Loads no module. */
bool hfn_os_read_class_text(const char *key, const char *value, char *out, size_t capacity);

/* Read a variable of this process's environment.  False, and out unchanged: there is none, it is
 * empty or does not fit; on other systems always.  Loads no module. */
bool hfn_os_read_variable(const char *name, char *out, size_t capacity);

#endif
