/* SPDX-License-Identifier: MIT */
/* `hotfn export`: converts a record to a format that other programs read. */
#include "cli/cli_options.h"
#include "cli/commands.h"
#include "export_file.h"
#include "export_plugin.h"
#include "scan/source_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct export_options {
    const char *format, *output;
    hotfn_export_options export;
    uint32_t process, thread;
    bool list;
} export_options;

enum { LIST = 256, MANGLED, PROCESS, THREAD, BY, SYMBOL_DIR };

static const struct option table[] = {
    { "format", required_argument, NULL, 'F' },
    { "output", required_argument, NULL, 'o' },
    { "match", required_argument, NULL, 'f' },
    { "list", no_argument, NULL, LIST },
    { "mangled", no_argument, NULL, MANGLED },
    { "process", required_argument, NULL, PROCESS },
    { "thread", required_argument, NULL, THREAD },
    { "by", required_argument, NULL, BY },
    { "symbol-dir", required_argument, NULL, SYMBOL_DIR },
    CLI_OPTIONS_END,
};

static const char usage[] =
    "usage: hotfn export [options] [RECORD]\n"
    "  -F, --format NAME  a format of --list, or ./FILE.so, a plug-in [by the extension of -o]\n"
    "  -o, --output FILE  instead of stdout\n"
    "  -f, --match GLOB   only functions with a name that matches; for formats without stacks\n"
    "      --process PID  only calls of this process; --thread TID: only of this thread\n"
    "      --by ORDER     the order, and the weight of stacks: calls, self, total, max or\n"
    "                     alloc (bytes allocated) [self if the run was timed, else calls]\n"
    "      --mangled      show the linker's names\n"
    "      --symbol-dir DIR  also search DIR for debug files (may be repeated)\n"
    "      --list         list the formats and what each needs\n"
    "Without RECORD: hotfn.hfr in this folder, which hotfn run writes by default.\n";

static void list_formats(void)
{
    hotfn_exporter_info e = HOTFN_EXPORTER_INFO_INIT;
    for (uint32_t i = 0; i < hotfn_exporter_get_count(); i++) {
        hotfn_exporter_get(i, &e);
        printf("%-11s %-17s %-15s %s\n", e.name, e.extension,
               e.needs & HOTFN_NEEDS_EVENTS  ? "entries, exits"
               : e.needs & HOTFN_NEEDS_TREE  ? "call tree"
               : e.needs & HOTFN_NEEDS_TIMES ? "times"
                                             : "counts",
               e.about);
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

/* Find the format with the longest extension that the name of the file ends with. */
static const char *find_format(const char *file)
{
    hotfn_exporter_info e = HOTFN_EXPORTER_INFO_INIT;
    const char *found = NULL;
    size_t longest = 0;
    for (uint32_t i = 0; file && i < hotfn_exporter_get_count(); i++) {
        hotfn_exporter_get(i, &e);
        if (ends_with(file, e.extension) && strlen(e.extension) > longest) {
            found = e.name;
            longest = strlen(e.extension);
        }
    }
    return found;
}

int hotfn_tool_export(const char *command, const hotfn_record *record, const char *format,
                      const hotfn_export_options *options, const char *path)
{
    hotfn_env env = hotfn_tool_env();
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    export_file out = { .path = path && strcmp(path, "-") != 0 ? path : NULL };
    hotfn_record_get_info(record, &info);
    if (out.path && cli_would_overwrite(command, out.path, info.path)) {
        return TOOL_FAILED;
    }
    hotfn_status s = hotfn_export(record, format, options, export_file_write, &out, &env, &err);
    export_file_close(command, &out, s == HOTFN_OK);
    if (s == HOTFN_OK && !out.error) {
        return TOOL_OK;
    }
    if (!out.error) {
        hotfn_tool_fail(command, &err);
    }
    /* an error about the command line names no file */
    return (s == HOTFN_E_NOT_FOUND || s == HOTFN_E_OPTION) && !err.file[0] ? TOOL_USAGE
                                                                           : TOOL_FAILED;
}

void hotfn_tool_warn_unread_times(const char *command, const char *path, const hotfn_record *record)
{
    hotfn_record_time_info info = HOTFN_RECORD_TIME_INFO_INIT;
    hotfn_record_get_time_info(record, &info);
    if (info.note[0]) {
        fprintf(stderr, "hotfn %s: %s: offset %" PRIu64 ": %s\n", command, path, info.note_offset,
                info.note);
    }
}

hotfn_record *hotfn_tool_open_record(const char *command, const char *path, uint32_t pid,
                                     uint32_t tid)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record;
    if (hotfn_record_open(&record, path, NULL, &err) != HOTFN_OK) {
        hotfn_tool_fail(command, &err);
        return NULL;
    }
    if (pid && hotfn_record_choose_process(record, pid) != HOTFN_OK) {
        fprintf(stderr, "hotfn %s: %s: no process %u in this record (hotfn info lists them)\n",
                command, path, pid);
        hotfn_record_close(record);
        return NULL;
    }
    if (tid && hotfn_record_choose_thread(record, tid) != HOTFN_OK) {
        fprintf(stderr, "hotfn %s: %s: no thread %u in this record (hotfn info lists them)\n",
                command, path, tid);
        hotfn_record_close(record);
        return NULL;
    }
    hotfn_tool_warn_unread_times(command, path, record);
    return record;
}

static const char *read_option(void *user, int option, const char *argument)
{
    export_options *o = user;
    switch (option) {
    case 'F': o->format = argument; return NULL;
    case 'o': o->output = argument; return NULL;
    case 'f': o->export.match = argument; return NULL;
    case LIST: o->list = true; return NULL;
    case MANGLED: o->export.flags |= HOTFN_EXPORT_MANGLED; return NULL;
    case PROCESS:
        return cli_parse_u32(argument, 1, UINT32_MAX, &o->process) ? NULL
                                                                   : "the number of a process";
    case THREAD:
        return cli_parse_u32(argument, 1, UINT32_MAX, &o->thread) ? NULL : "the number of a thread";
    case SYMBOL_DIR:
        return hotfn_tool_add_source_dir(argument) ? NULL : "stored: not enough memory";
    default: return cli_parse_order(argument, &o->export.by);
    }
}

int hotfn_command_export(int argc, char **argv)
{
    export_options o = { .export = HOTFN_EXPORT_OPTIONS_INIT };
    const cli_options w = { usage, "F:o:f:", table, read_option, &o, 0, 1 };
    int status = cli_read_options(&w, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (o.list) {
        list_formats();
        return TOOL_OK;
    }
    if (o.format && export_plugin_is_path(o.format) && !(o.format = export_plugin_load(o.format))) {
        return TOOL_FAILED;
    }
    o.format = o.format ? o.format : find_format(o.output);
    if (!o.format) {
        fputs("hotfn export: which format? name it with -F (hotfn export --list)\n", stderr);
        return TOOL_USAGE;
    }
    const char *path = cli_choose_record(argv[0], usage, argc, argv);
    if (!path) {
        return TOOL_USAGE;
    }
    hotfn_record *record = hotfn_tool_open_record("export", path, o.process, o.thread);
    if (!record) {
        return TOOL_FAILED;
    }
    status = hotfn_tool_export("export", record, o.format, &o.export, o.output);
    hotfn_record_close(record);
    return status;
}
