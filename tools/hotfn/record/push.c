/* SPDX-License-Identifier: MIT */
/* `hotfn push`: send records to a hotfn-collector. */
#include "cli/cli_options.h"
#include "cli/commands.h"
#include "record/push_options.h"

#include <limits.h>

enum { TO = 256, APP, BUILD_VERSION, LABEL, TOKEN_FILE, CERTIFICATES, ATTEMPTS };

static const char usage[] =
    "usage: hotfn push --to URL [options] [RECORD ...]\n"
    "      --to URL              the collector: http://127.0.0.1:8780\n"
    "      --token-file FILE     a token that may write [the variable HOTFN_TOKEN]\n"
    "      --app NAME            the app [the file name of the program]\n"
    "      --app-version TEXT    a name for the build that people know\n"
    "      --label KEY=VALUE     something about the run: level=3 (may be repeated)\n"
    "      --certificates FILE   trust the authorities in this PEM file\n"
    "      --attempts N          before a record is spooled [4]\n"
    "Without RECORD it sends what waits in the spool since the collector was away.\n";

static const struct option table[] = {
    { "to", required_argument, NULL, TO },
    { "token-file", required_argument, NULL, TOKEN_FILE },
    { "app", required_argument, NULL, APP },
    { "app-version", required_argument, NULL, BUILD_VERSION },
    { "label", required_argument, NULL, LABEL },
    { "certificates", required_argument, NULL, CERTIFICATES },
    { "attempts", required_argument, NULL, ATTEMPTS },
    CLI_OPTIONS_END,
};

static const char *read_option(void *user, int option, const char *argument)
{
    push_choices *c = user;

    switch (option) {
    case TO: return push_set_url(c, argument);
    case APP: c->options.app = argument; return NULL;
    case BUILD_VERSION: c->options.version = argument; return NULL;
    case LABEL: return push_add_label(c, argument);
    case TOKEN_FILE: c->token_file = argument; return NULL;
    case CERTIFICATES: c->options.certificates = argument; return NULL;
    default:
        return cli_parse_u32(argument, 1, 20, &c->options.attempts) ? NULL
                                                                    : "a number from 1 to 20";
    }
}

int hotfn_command_push(int argc, char **argv)
{
    static push_choices c;
    const cli_options w = { usage, "", table, read_option, &c, 0, INT_MAX };

    push_init_choices(&c);
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (!c.options.url) {
        return cli_report_misuse(argv[0], usage, "--to is missing");
    }
    status = optind < argc ? TOOL_OK : push_send(&c, "push", NULL, false);
    for (int i = optind; i < argc; i++) {
        int one = push_send(&c, "push", argv[i], false);
        status = one == TOOL_OK ? status : one;
    }
    return status;
}
