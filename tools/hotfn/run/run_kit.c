/* SPDX-License-Identifier: MIT */
/* What the folder of a kit says for `hotfn run --kit`: where the record is sent, and the program if
 * the command line names none.  Options of the command line take precedence. */
#include "run.h"

#include "scan/kit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Read a file of text.  NULL if there is none; the caller frees it. */
static char *read_text(const char *folder, const char *name)
{
    enum { MAX_BYTES = 65536 };
    char path[RUN_PATH_BYTES], *text = calloc(1, MAX_BYTES + 1);

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = text ? fopen(path, "re") : NULL;
    if (!file) {
        free(text);
        return NULL;
    }
    text[fread(text, 1, MAX_BYTES, file)] = 0;
    fclose(file);
    return text;
}

/* The value of a key, without its line's end; NULL: there is none. */
static const char *find_setting(char *text, const char *key)
{
    size_t length = strlen(key);

    for (char *line = text; *line; line += strlen(line) + 1) {
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            return line + length + 1;
        }
    }
    return NULL;
}

/* Each line ends with a 0; an empty line ends the text. */
static void split_lines(char *text)
{
    for (char *c = text; *c; c++) {
        *c = *c == '\n' ? 0 : *c;
    }
}

static bool is_absolute(const char *path)
{
    return path[0] == '/' || path[0] == '\\' || (path[0] && path[1] == ':');
}

/* Make a path of the command line independent of the current folder. */
static bool make_absolute(const char **path, char room[RUN_PATH_BYTES])
{
    char here[RUN_PATH_BYTES];

    if (!*path || is_absolute(*path)) {
        return true;
    }
    if (!getcwd(here, sizeof here) ||
        snprintf(room, RUN_PATH_BYTES, "%s/%s", here, *path) >= RUN_PATH_BYTES) {
        return false;
    }
    *path = room;
    return true;
}

static bool find_program(run_kit *k, const char *name)
{
    static const char *const places[] = { "", "/.." };

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[RUN_PATH_BYTES];
        int length = snprintf(path, sizeof path, "%s%s/%s", k->folder, places[i], name);

        if (length < RUN_PATH_BYTES && access(path, R_OK) == 0 && realpath(path, k->program)) {
            return true;
        }
    }
    fprintf(stderr,
            "hotfn run: %s is neither in %s nor in the folder above it: move the kit's folder "
            "next to the program, or name the program's path as the last argument\n",
            name, k->folder);
    return false;
}

/* A program finds its files from its own folder, as after a double click. */
static bool enter_folder_of(const char *program)
{
    char folder[RUN_PATH_BYTES];

    snprintf(folder, sizeof folder, "%s", program);
    for (char *c = folder + strlen(folder); c > folder; *--c = 0) {
        if (c[-1] == '/' || c[-1] == '\\') {
            break;
        }
    }
    if (chdir(folder) == 0) {
        return true;
    }
    fprintf(stderr, "hotfn run: %s: cannot be entered: %s\n", folder, strerror(errno));
    return false;
}

/* A record of its own for each run: FOLDER/PROGRAM-DATE-TIME.hfr. */
static void name_record(run_kit *k, const char *name)
{
    time_t now = time(NULL);
    struct tm parts;
    char when[32] = "";

    if (localtime_r(&now, &parts)) {
        strftime(when, sizeof when, "-%Y%m%d-%H%M%S", &parts);
    }
    snprintf(k->record, sizeof k->record, "%s/%s%s.hfr", k->folder, name, when);
}

#ifdef HOTFN_HAVE_PUSH
static void use_sending(run_options *o)
{
    run_kit *k = &o->kit;
    push_choices *push = &o->push;
    const char *url = find_setting(k->settings, "push"), *token;

    if (!url || push->options.url) {
        return;
    }
    push_set_url(push, url);
    push->options.app = push->options.app ? push->options.app : find_setting(k->settings, "app");
    push->options.version =
        push->options.version ? push->options.version : find_setting(k->settings, "app-version");
    token = find_setting(k->settings, "token-file");
    if (token && !push->token_file) {
        snprintf(k->token, sizeof k->token, "%s/%s", k->folder, token);
        push->token_file = k->token;
    }
}
#else
static void use_sending(run_options *o)
{
    if (find_setting(o->kit.settings, "push")) {
        fputs("hotfn run: this build of hotfn cannot send records\n", stderr);
    }
}
#endif

static bool use_program(run_options *o)
{
    run_kit *k = &o->kit;
    const char *name = find_setting(k->settings, "program");

    if (!name) {
        return true; /* reported as a missing program */
    }
    if (!make_absolute(&o->launch.record_path, k->record) ||
        !make_absolute(&o->launch.list_path, k->list) || !find_program(k, name) ||
        !enter_folder_of(k->program)) {
        return false;
    }
    if (!o->launch.record_path) {
        name_record(k, name);
        o->launch.record_path = k->record;
    }
    k->command[0] = k->program;
    o->launch.command = k->command;
    return true;
}

int run_use_kit(run_options *o)
{
    run_kit *k = &o->kit;

    if (!realpath(o->launch.kit_path, k->folder)) {
        return -1; /* the launch reports that there is none */
    }
    k->settings = read_text(k->folder, KIT_SETTINGS);
    if (!k->settings) {
        return -1;
    }
    split_lines(k->settings);
    o->launch.kit_path = k->folder;
    use_sending(o);
    return o->launch.command || use_program(o) ? -1 : RUN_NOT_FOUND;
}
