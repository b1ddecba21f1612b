/* SPDX-License-Identifier: MIT */
/* `hotfn open`: the record as a page, shown in the desktop's browser where there is one; the page's
 * path is printed either way. */
#include "verbs.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int usage(FILE *out, int status)
{
    fputs("usage: hotfn open [-o FILE] [--print] RECORD\n"
          "  -o, --output FILE  keep the page there [a new file in $TMPDIR or /tmp]\n"
          "      --print        only write the page and print its path\n",
          out);
    return status;
}

/* A file of our own that nobody else could have put there. */
static bool new_page(char *path, size_t bytes)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, bytes, "%s/hotfn-XXXXXX.html", folder && folder[0] ? folder : "/tmp");
    int fd = mkstemps(path, 5);
    if (fd < 0) {
        perror(path);
        return false;
    }
    close(fd);
    return true;
}

static bool has_desktop(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x && x[0]) || (wayland && wayland[0]);
}

/* Not waited for: it stays as long as it likes. */
static void show(const char *path)
{
    fflush(stdout);
    if (fork() == 0) {
        setsid();
        execlp("xdg-open", "xdg-open", path, (char *)NULL);
        fputs("hotfn open: xdg-open is not there: open the file in a browser\n", stderr);
        _exit(0);
    }
}

static int write_page(const char *record_path, const char *page)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record;
    if (hotfn_record_open(&record, record_path, NULL, &err) != HOTFN_OK) {
        return hotfn_tool_fail("open", &err);
    }
    int status = hotfn_tool_export("open", record, "html", NULL, page);
    hotfn_record_close(record);
    return status;
}

int hotfn_verb_open(int argc, char **argv)
{
    static const struct option words[] = {
        { "output", required_argument, NULL, 'o' },
        { "print", no_argument, NULL, 'p' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    const char *output = NULL;
    char page[4096];
    bool print = false;
    int word;
    optind = 1;
    while ((word = getopt_long(argc, argv, "o:", words, NULL)) != -1) {
        switch (word) {
        case 'o': output = optarg; break;
        case 'p': print = true; break;
        case 'h': return usage(stdout, TOOL_OK);
        default: return usage(stderr, TOOL_USAGE);
        }
    }
    if (optind + 1 != argc) {
        return usage(stderr, TOOL_USAGE);
    }
    if (output) {
        snprintf(page, sizeof page, "%s", output);
    } else if (!new_page(page, sizeof page)) {
        return TOOL_FAILED;
    }
    int status = write_page(argv[optind], page);
    if (status == TOOL_OK) {
        printf("%s\n", page);
        if (!print && has_desktop()) {
            show(page);
        }
    } else if (!output) {
        unlink(page);
    }
    return status;
}
