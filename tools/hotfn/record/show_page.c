/* SPDX-License-Identifier: MIT */
/* Shows a page by xdg-open. */
#include "show_page.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool has_desktop(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x && x[0]) || (wayland && wayland[0]);
}

/* The browser is not waited for: it may outlive hotfn. */
void show_page(const char *path)
{
    if (!has_desktop()) {
        return;
    }
    fflush(stdout);
    if (fork() == 0) {
        setsid();
        execlp("xdg-open", "xdg-open", path, (char *)NULL);
        fputs("hotfn open: xdg-open is missing: open the file in a browser\n", stderr);
        _exit(0);
    }
}
