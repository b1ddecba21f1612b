/* SPDX-License-Identifier: MIT */
/* Shows a page by the program that opens such files. */
#include "record/show_page.h"

#include <windows.h>

#include <shellapi.h>

void show_page(const char *path)
{
    wchar_t wide[4096];

    if (MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 4096) > 0) {
        ShellExecuteW(NULL, L"open", wide, NULL, NULL, SW_SHOWNORMAL);
    }
}
