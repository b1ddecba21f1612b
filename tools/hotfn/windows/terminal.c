/* SPDX-License-Identifier: MIT */
/* The console's width, the clock of its status line, and the end of `hotfn run` after its child. */
#include "cli/column_widths.h"
#include "cli/progress.h"
#include "run/run.h"

#include <windows.h>

uint32_t fit_columns(void)
{
    CONSOLE_SCREEN_BUFFER_INFO info;

    return GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &info)
               ? (uint32_t)(info.srWindow.Right - info.srWindow.Left + 1)
               : 0;
}

int64_t progress_read_clock(void)
{
    return (int64_t)GetTickCount64() * 1000000;
}

/* Windows' C library has no stream that writes to memory, so lines cannot be shortened here; the
 * console breaks long ones itself. */
void fit_begin(void)
{
}

void fit_end(uint32_t keep)
{
    (void)keep;
}

/* An exit code has 32 bits, such as 0xC0000005 after an access violation. */
int run_end_like_child(int32_t exit_code)
{
    return exit_code;
}
