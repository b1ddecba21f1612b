/* SPDX-License-Identifier: MIT */
/* The terminal's width, the clock of its status line, and output that is held back until it is
 * fitted to it. */
#include "column_widths.h"
#include "progress.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

uint32_t fit_columns(void)
{
    struct winsize size;
    return isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int64_t progress_read_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct {
    FILE *terminal; /* NULL: stdout is not being fitted */
    char *text;
    size_t bytes;
} held;

void fit_begin(void)
{
    FILE *memory = fit_columns() > 0 ? open_memstream(&held.text, &held.bytes) : NULL;
    if (memory) {
        held.terminal = stdout;
        stdout = memory; /* "you can set" it: GNU C Library manual, 12.2 */
    }
}

void fit_end(uint32_t keep)
{
    uint32_t columns = fit_columns();
    if (!held.terminal) {
        return;
    }
    fclose(stdout);
    stdout = held.terminal;
    held.terminal = NULL;
    fit_lines(held.text, columns, keep);
    free(held.text);
    held.text = NULL;
}
