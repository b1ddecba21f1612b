/* SPDX-License-Identifier: MIT */
/*
 * `hotfn kit -o DIR FILE`: collects on a build machine all that a test machine needs to count one
 * build of a program: this tool and its agent, the plan, the list of functions to hook, the refused
 * functions with their reasons, and a start script.  The test machine analyses no code.  The kit of
 * a Windows program is made on Linux, too.
 */
#include "kit.h"

#include "cli/commands.h"
#include "cli/file_options.h"
#include "list_write.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PUSH = 256, APP, APP_VERSION, TOKEN_FILE, WINDOWS };

static const struct option table[] = {
    { "output", required_argument, NULL, 'o' },
    { "push", required_argument, NULL, PUSH },
    { "app", required_argument, NULL, APP },
    { "app-version", required_argument, NULL, APP_VERSION },
    { "token-file", required_argument, NULL, TOKEN_FILE },
    { "windows", required_argument, NULL, WINDOWS },
    FILE_OPTIONS,
};

typedef struct choices {
    file_options common;
    const char *folder, *windows_folder; /* windows_folder: NULL, as given, then as found */
    char windows_room[KIT_FOLDER_BYTES];
    kit_sending sending;
} choices;

static const char usage[] =
    "usage: hotfn kit [options] -o DIR FILE\n"
    "  -o, --output DIR      the folder of the kit, created if it does not exist\n"
    "  -f, --match GLOB      count only functions that match (may be repeated)\n"
    "  -x, --exclude GLOB    exclude functions that match\n"
    "      --push URL        the start script sends each record to this hotfn-collector, with\n"
    "      --app NAME, --app-version TEXT, --token-file FILE (copied into the kit)\n"
    "      --windows DIR     for a Windows program: the folder of hotfn.exe and hotfn-agent.dll\n"
    "                        [the folder windows next to the agent]\n" SYMBOL_SOURCE_USAGE
    "On the test machine: DIR/" KIT_START " [options of hotfn run] ./game, or count.cmd\n";

static bool is_windows(const hotfn_image *image)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    hotfn_image_get_info(image, &info);
    return info.format == HOTFN_FORMAT_PE;
}

static bool copy_tools(const choices *c, const hotfn_image *image)
{
    const char *folder = c->folder;
    char agent[PATH_MAX];
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;

    if (is_windows(image)) {
        return kit_copy_windows(c->windows_folder, folder);
    }
    hotfn_image_get_info(image, &info);
    if (hotfn_launch_find_agent(agent, sizeof agent, info.machine, &err) != HOTFN_OK) {
        hotfn_tool_fail("kit", &err);
        return false;
    }
    return kit_copy("/proc/self/exe", folder, KIT_TOOL) &&
           kit_copy(agent, folder, strrchr(agent, '/') + 1) && kit_copy_libraries(folder);
}

static bool write_plan(const choices *c, const listing *l, hotfn_error *err)
{
    const symbol_sources *sources = &c->common.sources;
    hotfn_symbols_options symbols = symbol_sources_options(sources, is_windows(l->image));
    hotfn_scan_options options = HOTFN_SCAN_OPTIONS_INIT;
    hotfn_scan *scan = NULL;
    char path[PATH_MAX];
    hotfn_status status;

    options.flags = symbols.flags | HOTFN_SCAN_TIMING | HOTFN_SCAN_FOREIGN;
    options.symbol_dirs = symbols.symbol_dirs;
    options.symbol_dir_count = symbols.symbol_dir_count;
    options.map_path = sources->pdb ? sources->pdb : sources->map;
    snprintf(path, sizeof path, "%s/" KIT_PLAN, c->folder);
    status = hotfn_scan_open(&scan, c->common.file, &options, &l->env, err);
    if (status == HOTFN_OK) {
        status = hotfn_scan_save(scan, path, err);
    }
    hotfn_scan_close(scan);
    return status == HOTFN_OK;
}

static bool write_facts(const choices *c, const listing *l)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof path, "%s/" KIT_FACTS, c->folder);
    file = fopen(path, "we");
    if (!file) {
        return false;
    }
    hotfn_json_writer *out = json_open(file);
    hotfn_json_begin_object(out, NULL);
    listing_write_head(out, l, "hotfn.kit/1");
    json_write_text(out, "plan", KIT_PLAN);
    json_write_text(out, "list", KIT_LIST);
    json_write_text(out, "refused", KIT_REFUSED);
    json_write_text(out, "start", is_windows(l->image) ? KIT_START ".cmd" : KIT_START);
    hotfn_json_end(out);
    bool good = json_close(out) && !ferror(file);
    return fclose(file) == 0 && good;
}

static int write_lists(const choices *c, const listing *l, hotfn_error *err)
{
    char list[PATH_MAX], refused[PATH_MAX];
    list_outputs outputs = { list, refused };
    hotfn_functions *functions = NULL;
    const char *unmatched = NULL;
    uint8_t *selected = NULL;
    int status = TOOL_FAILED;

    snprintf(list, sizeof list, "%s/" KIT_LIST, c->folder);
    snprintf(refused, sizeof refused, "%s/" KIT_REFUSED, c->folder);
    if (hotfn_functions_build(&functions, l->image, l->symbols, &l->env, err) == HOTFN_OK) {
        selected = calloc(hotfn_functions_get_count(functions) + 1u, 1);
    }
    if (selected && hotfn_functions_select(functions, &c->common.selection, selected, &unmatched,
                                           err) == HOTFN_OK) {
        if (file_options_check_matches("kit", &c->common, unmatched, selected,
                                       hotfn_functions_get_count(functions))) {
            status = list_write("kit", l, functions, selected, &outputs);
        }
    } else {
        hotfn_tool_fail("kit", err);
    }
    free(selected);
    hotfn_functions_destroy(functions);
    return status;
}

/* The tool and the agent in the kit must run on the CPU of the program. */
static bool is_of_this_cpu(const listing *l, const char *file)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    char agent[PATH_MAX];

    hotfn_image_get_info(l->image, &info);
    if (info.format == HOTFN_FORMAT_PE) {
        if (info.machine != HOTFN_MACHINE_X86_64) {
            fprintf(stderr, "hotfn kit: %s: only x86-64 programs are counted on Windows\n", file);
        }
        return info.machine == HOTFN_MACHINE_X86_64;
    }
    if (hotfn_launch_find_agent(agent, sizeof agent, info.machine, NULL) != HOTFN_E_UNSUPPORTED) {
        return true;
    }
    fprintf(stderr,
            "hotfn kit: %s: a program of another CPU; make its kit with the hotfn of that CPU\n",
            file);
    return false;
}

/* What is checked before anything is written. */
static bool has_parts(choices *c, const listing *l)
{
    if (!is_of_this_cpu(l, c->common.file)) {
        return false;
    }
    if (!is_windows(l->image)) {
        return true;
    }
    bool is_found = kit_find_windows(c->windows_folder, c->windows_room);
    c->windows_folder = c->windows_room;
    return is_found;
}

static int make_kit(choices *c)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    const char *slash = strrchr(c->common.file, '/');
    listing l;
    int status = TOOL_FAILED;

    if (!listing_open(&l, c->common.file, &c->common.sources, &err)) {
        return hotfn_tool_fail("kit", &err);
    }
    if (!has_parts(c, &l)) {
        status = TOOL_FAILED;
    } else if (!kit_make_folder(c->folder)) {
        status = TOOL_FAILED; /* kit_make_folder has printed a message */
    } else if (!write_plan(c, &l, &err)) {
        status = hotfn_tool_fail("kit", &err);
    } else if (copy_tools(c, l.image) && kit_write_start(c->folder, is_windows(l.image)) &&
               kit_write_settings(c->folder, slash ? slash + 1 : c->common.file, &c->sending)) {
        status = write_lists(c, &l, &err);
    }
    if (status != TOOL_OK) {
        rmdir(c->folder); /* fails if the folder is not empty */
    }
    if (status == TOOL_OK && !write_facts(c, &l)) {
        fprintf(stderr, "hotfn kit: %s/" KIT_FACTS ": cannot be written\n", c->folder);
        status = TOOL_FAILED;
    }
    listing_close(&l);
    return status;
}

static const char *read_option(void *user, int option, const char *argument)
{
    choices *c = user;

    switch (option) {
    case PUSH:
        c->sending.url = argument;
        return strncmp(argument, "http://", 7) == 0 || strncmp(argument, "https://", 8) == 0
                   ? NULL
                   : "an address that begins with http:// or https://";
    case APP: c->sending.app = argument; return NULL;
    case APP_VERSION: c->sending.version = argument; return NULL;
    case TOKEN_FILE: c->sending.token_file = argument; return NULL;
    case WINDOWS: c->windows_folder = argument; return NULL;
    default: c->folder = argument; return NULL;
    }
}

int hotfn_command_kit(int argc, char **argv)
{
    choices c = { .folder = NULL };
    const cli_options own = { usage, "o:f:x:", table, read_option, &c, 1, 1 };
    int status = file_options_read(&c.common, &own, argc, argv);

    if (status < 0 && !c.folder) {
        status = cli_report_misuse(argv[0], usage, "-o is missing");
    }
    if (status < 0 && !c.sending.url &&
        (c.sending.app || c.sending.version || c.sending.token_file)) {
        status =
            cli_report_misuse(argv[0], usage, "--app, --app-version and --token-file need --push");
    }
    if (status < 0) {
        status = make_kit(&c);
    }
    file_options_free(&c.common);
    return status;
}
