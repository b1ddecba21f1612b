/* SPDX-License-Identifier: MIT */
/* The plugin of dlopen_host: a constructor, a destructor, a static and an exported function. */
#include "totals.h"

static long started;
long plugin_work(long value);

__attribute__((constructor)) static void start(void)
{
    started = 100;
}

__attribute__((destructor)) static void stop(void)
{
    started = 0;
}

COUNTED static long plugin_helper(long value)
{
    KEEP();
    return value * 3 + started;
}

COUNTED long plugin_work(long value)
{
    return plugin_helper(value) + plugin_helper(value + 1);
}
