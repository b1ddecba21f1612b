/* SPDX-License-Identifier: MIT */
/* The program's entry on Windows: arguments in UTF-8, output without translation of lines. */
#include <fcntl.h>
#include <windows.h>

int wmain(int argc, wchar_t **wide);

static char *make_utf8(const wchar_t *wide)
{
    int bytes = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char *text = malloc(bytes > 0 ? (size_t)bytes : 1);

    if (text && WideCharToMultiByte(CP_UTF8, 0, wide, -1, text, bytes, NULL, NULL) <= 0) {
        text[0] = 0;
    }
    return text;
}

int wmain(int argc, wchar_t **wide)
{
    char **argv = calloc((size_t)argc + 1, sizeof *argv);

    for (int i = 0; argv && i < argc; i++) {
        argv[i] = make_utf8(wide[i]);
        if (!argv[i]) {
            argv = NULL;
        }
    }
    if (!argv) {
        fputs("hotfn: not enough memory\n", stderr);
        return 125;
    }
    _setmode(_fileno(stdout), _O_BINARY);
    _setmode(_fileno(stderr), _O_BINARY);
    SetConsoleOutputCP(CP_UTF8);
    return hotfn_main(argc, argv); /* argv stays allocated until the process ends */
}
