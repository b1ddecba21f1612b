/* SPDX-License-Identifier: MIT */
/* `hotfn open`: write the record as a page, print its path, and show it in the browser of the
 * desktop if there is one. */
#include "cli/cli_options.h"
#include "cli/commands.h"
#include "scan/source_lines.h"
#include "show_page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: hotfn open [options] [RECORD]\n"
    "  -o, --output FILE  keep the page there [a new file in $TMPDIR or /tmp]\n"
    "      --print        only write the page and print its path\n"
    "      --symbol-dir DIR  also search DIR for debug files (may be repeated)\n"
    "Without RECORD: hotfn.hfr in this folder, which hotfn run writes by default.\n";

typedef struct choices {
    const char *output;
    bool print;
} choices;

static const char *read_option(void *user, int option, const char *argument)
{
    choices *c = user;
    switch (option) {
    case 'o': c->output = argument; return NULL;
    case 's': return hotfn_tool_add_source_dir(argument) ? NULL : "stored: not enough memory";
    default: c->print = true; return NULL;
    }
}

/* Create a file with a name that no other user can have prepared. */
static bool create_page(char *path, size_t bytes)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, bytes, "%s/hotfn-XXXXXX.html", folder && folder[0] ? folder : "/tmp");
    int fd = mkstemps(path, 5);
    if (fd < 0) {
        fprintf(stderr, "hotfn open: %s: the page cannot be created: %s; choose a file with -o\n",
                path, strerror(errno));
        return false;
    }
    close(fd);
    return true;
}

static int write_page(const char *record_path, const char *page)
{
    hotfn_record *record = hotfn_tool_open_record("open", record_path, 0, 0);
    if (!record) {
        return TOOL_FAILED;
    }
    int status = hotfn_tool_export("open", record, "html", NULL, page);
    hotfn_record_close(record);
    return status;
}

int hotfn_command_open(int argc, char **argv)
{
    static const struct option table[] = {
        { "output", required_argument, NULL, 'o' },
        { "print", no_argument, NULL, 'p' },
        { "symbol-dir", required_argument, NULL, 's' },
        CLI_OPTIONS_END,
    };
    choices c = { 0 };
    const cli_options w = { usage, "o:", table, read_option, &c, 0, 1 };
    char page[4096];
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    const char *path = cli_choose_record(argv[0], usage, argc, argv);
    if (!path) {
        return TOOL_USAGE;
    }
    if (c.output) {
        snprintf(page, sizeof page, "%s", c.output);
    } else if (!create_page(page, sizeof page)) {
        return TOOL_FAILED;
    }
    status = write_page(path, page);
    if (status == TOOL_OK) {
        printf("%s\n", page);
        if (!c.print) {
            show_page(page);
        }
    } else if (!c.output) {
        unlink(page);
    }
    return status;
}
