/* SPDX-License-Identifier: MIT */
/* `hotfn push`: send records to a hotfn-collector. */
#include "cli/cli_options.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "record/push_options.h"
#include "scan/symbol_sources.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { TO = 256, APP, BUILD_VERSION, LABEL, TOKEN_FILE, CERTIFICATES, ATTEMPTS, BUILD, KIT };

typedef struct push_command {
    push_choices push;
    symbol_sources sources;
    const char *build, *kit;
} push_command;

static const char usage[] =
    "usage: hotfn push --to URL [options] [RECORD ...]\n"
    "      --to URL              the collector: http://127.0.0.1:8780\n"
    "      --token-file FILE     a token that may write [the variable HOTFN_TOKEN]\n"
    "      --app NAME            the app [the file name of the program]\n"
    "      --app-version TEXT    a name for the build that people know\n"
    "      --label KEY=VALUE     something about the run: level=3 (may be repeated)\n"
    "      --certificates FILE   trust the authorities in this PEM file\n"
    "      --attempts N          before a record is spooled [4]\n"
    "      --build FILE          register a build of the app: send the names of its functions\n"
    "      --kit DIR             with --build: store the kit that hotfn kit made of it, for testers\n" SYMBOL_SOURCE_USAGE
    "Without RECORD it sends what waits in the spool since the collector was away.\n";

static const struct option table[] = {
    { "to", required_argument, NULL, TO },
    { "token-file", required_argument, NULL, TOKEN_FILE },
    { "app", required_argument, NULL, APP },
    { "app-version", required_argument, NULL, BUILD_VERSION },
    { "label", required_argument, NULL, LABEL },
    { "certificates", required_argument, NULL, CERTIFICATES },
    { "attempts", required_argument, NULL, ATTEMPTS },
    { "build", required_argument, NULL, BUILD },
    { "kit", required_argument, NULL, KIT },
    SYMBOL_SOURCE_OPTIONS,
    CLI_OPTIONS_END,
};

static const char *read_option(void *user, int option, const char *argument)
{
    push_command *command = user;
    push_choices *c = &command->push;

    if (symbol_sources_read_option(&command->sources, option, argument)) {
        return NULL;
    }
    switch (option) {
    case TO: return push_set_url(c, argument);
    case APP: c->options.app = argument; return NULL;
    case BUILD_VERSION: c->options.version = argument; return NULL;
    case LABEL: return push_add_label(c, argument);
    case TOKEN_FILE: c->token_file = argument; return NULL;
    case BUILD: command->build = argument; return NULL;
    case KIT: command->kit = argument; return NULL;
    case CERTIFICATES: c->options.certificates = argument; return NULL;
    default:
        return cli_parse_u32(argument, 1, 20, &c->options.attempts) ? NULL
                                                                    : "a number from 1 to 20";
    }
}

/* The name of a file without its folders, which do not leave the machine.  Like the collector it
 * takes the separators of all systems. */
static const char *get_file_name(const char *path)
{
    const char *name = path;

    for (const char *c = path; *c; c++) {
        name = *c == '/' || *c == '\\' ? c + 1 : name;
    }
    return name;
}

static int send_build(push_command *c)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_functions *functions = NULL;
    const char *file = get_file_name(c->build);
    listing l;

    if (!push_complete_options(&c->push, "push")) {
        return TOOL_FAILED;
    }
    symbol_sources_add_environment(&c->sources);
    if (!listing_open(&l, c->build, &c->sources, &err)) {
        return hotfn_tool_fail("push", &err);
    }
    hotfn_status status = hotfn_functions_build(&functions, l.image, l.symbols, &l.env, &err);
    if (status == HOTFN_OK) {
        status = hotfn_push_build(l.image, file, functions, &c->push.options, &l.env, &err);
    }
    uint32_t count = status == HOTFN_OK ? hotfn_functions_get_count(functions) : 0;
    bool sent_kit =
        status != HOTFN_OK || !c->kit || push_kit_folder(c->kit, l.image, file, &c->push.options);
    hotfn_functions_destroy(functions);
    listing_close(&l);
    if (status != HOTFN_OK) {
        return hotfn_tool_fail("push", &err);
    }
    fprintf(stderr, "hotfn push: %s registered with %u names%s\n", c->build, count,
            c->kit && sent_kit ? ", and its kit" : "");
    return sent_kit ? TOOL_OK : TOOL_FAILED;
}

static int send_records(push_command *c, char **records, int count)
{
    int status = count > 0 || c->build ? TOOL_OK : push_send(&c->push, "push", NULL, false);

    for (int i = 0; i < count; i++) {
        int one = push_send(&c->push, "push", records[i], false);
        status = one == TOOL_OK ? status : one;
    }
    return status;
}

int hotfn_command_push(int argc, char **argv)
{
    static push_command c;
    const cli_options w = { usage, "", table, read_option, &c, 0, INT_MAX };

    push_init_choices(&c.push);
    if (!symbol_sources_init(&c.sources, argc)) {
        fputs("hotfn push: not enough memory\n", stderr);
        return TOOL_FAILED;
    }
    int status = cli_read_options(&w, argc, argv);
    if (status < 0 && c.kit && !c.build) {
        status = cli_report_misuse(argv[0], usage, "--kit needs --build");
    }
    if (status < 0 && !c.push.options.url) {
        status = cli_report_misuse(argv[0], usage, "--to is missing");
    }
    if (status < 0) {
        status = c.build ? send_build(&c) : TOOL_OK;
        status = status == TOOL_OK ? send_records(&c, argv + optind, argc - optind) : status;
    }
    symbol_sources_free(&c.sources);
    return status;
}
