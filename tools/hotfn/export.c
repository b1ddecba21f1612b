/* SPDX-License-Identifier: MIT */
/* `hotfn export`: a record in a format that other programs open. */
#include "verbs.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct export_options {
    const char *format, *output, *match;
    uint32_t flags, process, by;
    bool raw, list;
} export_options;

enum { LIST = 256, RAW, MANGLED, PROCESS, BY, HELP };

static const struct option words[] = {
    { "format", required_argument, NULL, 'F' },
    { "output", required_argument, NULL, 'o' },
    { "match", required_argument, NULL, 'f' },
    { "list", no_argument, NULL, LIST },
    { "raw", no_argument, NULL, RAW },
    { "mangled", no_argument, NULL, MANGLED },
    { "process", required_argument, NULL, PROCESS },
    { "by", required_argument, NULL, BY },
    { "help", no_argument, NULL, HELP },
    { NULL, 0, NULL, 0 },
};

static int usage(FILE *out, int status)
{
    fputs(
        "usage: hotfn export [options] RECORD\n"
        "  -F, --format NAME  one of those that --list names [by the ending of -o]\n"
        "  -o, --output FILE  instead of stdout\n"
        "  -f, --match GLOB   only functions with a name that matches, where the format is flat\n"
        "      --process PID  only what this process called\n"
        "      --by ORDER     what comes first, and what stacks weigh: calls, self, total, max or\n"
        "                     alloc (bytes allocated) [self if the run was timed, else calls]\n"
        "      --raw          leave the hooks' own cost in the times\n"
        "      --mangled      show the linker's names\n"
        "      --list         the formats, and what each needs\n",
        out);
    return status;
}

static int list(void)
{
    hotfn_exporter_info e = HOTFN_EXPORTER_INFO_INIT;
    for (uint32_t i = 0; i < hotfn_exporter_count(); i++) {
        hotfn_exporter_get(i, &e);
        printf("%-11s %-17s %-15s %s\n", e.name, e.extension,
               e.needs & HOTFN_NEEDS_EVENTS  ? "entries, exits"
               : e.needs & HOTFN_NEEDS_TREE  ? "call tree"
               : e.needs & HOTFN_NEEDS_TIMES ? "times"
                                             : "counts",
               e.about);
    }
    return fflush(stdout) == 0 ? TOOL_OK : TOOL_FAILED;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

/* The format whose ending is the longest that the file's name has. */
static const char *format_of(const char *file)
{
    hotfn_exporter_info e = HOTFN_EXPORTER_INFO_INIT;
    const char *found = NULL;
    size_t longest = 0;
    for (uint32_t i = 0; file && i < hotfn_exporter_count(); i++) {
        hotfn_exporter_get(i, &e);
        if (ends_with(file, e.extension) && strlen(e.extension) > longest) {
            found = e.name;
            longest = strlen(e.extension);
        }
    }
    return found;
}

/* Not half a file; a device or a pipe is somebody else's and stays. */
static void remove_half(const char *path)
{
    struct stat file;
    if (lstat(path, &file) == 0 && S_ISREG(file.st_mode)) {
        unlink(path);
    }
}

static int32_t write_out(void *user, const void *bytes, size_t count)
{
    return fwrite(bytes, 1, count, user) == count ? 0 : -1;
}

int hotfn_tool_export(const char *of, const hotfn_record *record, const char *format,
                      const hotfn_export_options *options, const char *output)
{
    hotfn_env env = hotfn_tool_env();
    hotfn_error err = HOTFN_ERROR_INIT;
    bool to_stdout = !output || strcmp(output, "-") == 0;
    FILE *out = to_stdout ? stdout : fopen(output, "we");
    if (!out) {
        fprintf(stderr, "hotfn %s: %s: %s\n", of, output, strerror(errno));
        return TOOL_FAILED;
    }
    hotfn_status s = hotfn_export(record, format, options, write_out, out, &env, &err);
    bool written = to_stdout ? fflush(out) == 0 : fclose(out) == 0;
    if (s != HOTFN_OK) {
        hotfn_tool_fail(of, &err);
        if (!to_stdout) {
            remove_half(output);
        }
        return s == HOTFN_E_NOT_FOUND || s == HOTFN_E_OPTION ? TOOL_USAGE : TOOL_FAILED;
    }
    if (!written) {
        fprintf(stderr, "hotfn %s: %s: could not be written whole: %s\n", of,
                to_stdout ? "stdout" : output, strerror(errno));
    }
    return written ? TOOL_OK : TOOL_FAILED;
}

static bool take(export_options *o, int word, const char *argument)
{
    char *end;
    switch (word) {
    case 'F': o->format = argument; return true;
    case 'o': o->output = argument; return true;
    case 'f': o->match = argument; return true;
    case LIST: return o->list = true;
    case RAW: return o->raw = true;
    case MANGLED: o->flags |= HOTFN_EXPORT_MANGLED; return true;
    case PROCESS:
        o->process = (uint32_t)strtoul(argument, &end, 10);
        return o->process != 0 && *end == 0;
    case BY: return hotfn_tool_order(argument, &o->by);
    default: return false;
    }
}

static int export(const char *path, const export_options *o)
{
    hotfn_export_options options = HOTFN_EXPORT_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record;
    int status = TOOL_FAILED;
    if (hotfn_record_open(&record, path, NULL, &err) != HOTFN_OK) {
        return hotfn_tool_fail("export", &err);
    }
    options.flags = o->flags;
    options.match = o->match;
    options.by = o->by;
    hotfn_record_choose_raw(record, o->raw);
    if (o->process && hotfn_record_choose_process(record, o->process) != HOTFN_OK) {
        fprintf(stderr, "hotfn export: no process %u in this record (hotfn info lists them)\n",
                o->process);
    } else {
        status = hotfn_tool_export("export", record, o->format, &options, o->output);
    }
    hotfn_record_close(record);
    return status;
}

int hotfn_verb_export(int argc, char **argv)
{
    export_options o = { 0 };
    int word;
    optind = 1;
    while ((word = getopt_long(argc, argv, "F:o:f:", words, NULL)) != -1) {
        if (word == HELP) {
            return usage(stdout, TOOL_OK);
        }
        if (!take(&o, word, optarg)) {
            if (word != '?') {
                fprintf(stderr, "hotfn export: '%s' does not fit this option\n", optarg);
            }
            return usage(stderr, TOOL_USAGE);
        }
    }
    if (o.list) {
        return list();
    }
    if (optind + 1 != argc) {
        return usage(stderr, TOOL_USAGE);
    }
    o.format = o.format ? o.format : format_of(o.output);
    if (!o.format) {
        fputs("hotfn export: which format? name it with -F (hotfn export --list)\n", stderr);
        return TOOL_USAGE;
    }
    return export(argv[optind], &o);
}
