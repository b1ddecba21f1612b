/* SPDX-License-Identifier: MIT */
#ifndef HFN_AGENT_LIBC_FORMAT_H
#define HFN_AGENT_LIBC_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* vsnprintf for the conversions that format.c lists. */
int hfn_agent_format(char *to, size_t room, const char *format, va_list given);

#endif
