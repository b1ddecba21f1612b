/* SPDX-License-Identifier: MIT */
/* The printf family of the agent's C library. */
#include "agent/libc/format.h"

#include <stdio.h>
#include <unistd.h>

int vsnprintf(char *to, size_t room, const char *format, va_list args)
{
    return hfn_agent_format(to, room, format, args);
}

int snprintf(char *to, size_t room, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(to, room, format, args);
    va_end(args);
    return length;
}

int dprintf(int fd, const char *format, ...)
{
    char line[2048];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    length = length < (int)sizeof line ? length : (int)sizeof line - 1;
    return (int)write(fd, line, (size_t)length);
}
