/* SPDX-License-Identifier: MIT */
/* `hotfn doctor`: checks whether this system allows counting.  doctor_system.c, or on Windows
 * windows/doctor.c, has the checks.  Each finding is ok, a warning or a problem, with advice.  A
 * problem means that counting cannot work here; the exit status is then 1. */
#include "doctor.h"
#include "cli/cli_options.h"
#include "cli/commands.h"
#include "cli/listing.h"

#include <hotfn/lowlevel/timing.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHECKS = 32 };

void doctor_add_text(doctor_finding *f, const char *format, ...)
{
    size_t used = strlen(f->text);
    va_list args;

    va_start(args, format);
    vsnprintf(f->text + used, sizeof f->text - used, format, args);
    va_end(args);
}

void doctor_raise_level(doctor_finding *f, int level, const char *advice)
{
    if (level > f->level) {
        f->level = level;
        snprintf(f->advice, sizeof f->advice, "%s", advice);
    }
}

/* The clock of `hotfn run --mode time`. */
void doctor_check_clock(doctor_finding *f)
{
    switch (hotfn_launch_choose_ticker()) {
    case HOTFN_TICKER_NONE: doctor_add_text(f, "none: calls cannot be timed on this CPU"); break;
    case HOTFN_TICKER_SPINS:
        doctor_add_text(f,
                        "tick: every 4 us from a processor that is idle, about every 35 us while "
                        "none is");
        break;
    case HOTFN_TICKER_QUOTA:
        doctor_add_text(f, "tick: about every 35 us from a thread that sleeps, because a quota "
                           "limits processor time");
        doctor_raise_level(f, DOCTOR_WARNING,
                           "times below 1 ms are uncertain: run hotfn without a quota (cpu.max)");
        break;
    default:
        doctor_add_text(f, "tick: about every 35 us from a thread that sleeps, because hotfn may "
                           "use only one processor");
        doctor_raise_level(f, DOCTOR_WARNING,
                           "times below 1 ms are uncertain: allow hotfn a second processor");
    }
}

/* ---- The proof that counting works. */

static const char proof_function[] = "hotfn_get_version";

/* The calls of the proof function in the record at path.  In a stripped program the function's name
 * is unknown, so the calls of all functions that are named module+offset are counted instead. */
uint64_t doctor_count_proof_calls(const char *path)
{
    hotfn_record *record;
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    uint64_t calls = 0;

    if (hotfn_record_open(&record, path, NULL, NULL) != HOTFN_OK) {
        return 0;
    }
    for (uint32_t i = 0; hotfn_record_get_function(record, i, &f) == HOTFN_OK; i++) {
        if (strcmp(f.name, proof_function) == 0 || strchr(f.name, '+')) {
            calls += f.calls;
        }
    }
    hotfn_record_close(record);
    return calls;
}

/* ---- The command. */

static const char *const level_names[] = { "ok", "warning", "problem" };

void doctor_print_finding(const doctor_finding *f)
{
    printf("%-8s %-14s %s\n", level_names[f->level], f->name, f->text);
    if (f->advice[0]) {
        printf("%-8s %-14s -> %s\n", "", "", f->advice);
    }
}

void doctor_print_json(const char *key, bool is_good, const doctor_finding *found, size_t count)
{
    hotfn_json_writer *out = json_open(stdout);
    hotfn_json_begin_object(out, NULL);
    json_write_text(out, "schema", "hotfn.doctor/1");
    json_write_text(out, "version", hotfn_get_version());
    json_write_bool(out, key, is_good);
    hotfn_json_begin_array(out, "checks");
    for (size_t i = 0; i < count; i++) {
        hotfn_json *o = hotfn_json_create_object();
        json_add_text(o, "name", found[i].name);
        json_add_text(o, "state", level_names[found[i].level]);
        json_add_text(o, "text", found[i].text);
        json_add_text(o, "advice", found[i].advice[0] ? found[i].advice : NULL);
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
    hotfn_json_end(out);
    json_close(out);
}

static const char usage[] =
    "usage: hotfn doctor [--json] [PID]\n"
    "Checks whether counting works on this system, and prints what to change if it does not; with\n"
    "PID, whether hotfn attach would attach to that process.\n"
    "Exit status 0: it works; 1: it cannot work.\n";

static const char *read_option(void *user, int option, const char *argument)
{
    (void)option, (void)argument;
    *(bool *)user = true;
    return NULL;
}

int hotfn_command_doctor(int argc, char **argv)
{
    static const struct option table[] = { { "json", no_argument, NULL, 'j' }, CLI_OPTIONS_END };
    static doctor_finding found[MAX_CHECKS];
    bool json = false;
    size_t count = 0;
    uint32_t pid;
    const cli_options w = { usage, "", table, read_option, &json, 0, 1 };
    int worst = DOCTOR_OK, status = cli_read_options(&w, argc, argv);

    if (status >= 0) {
        return status;
    }
    if (optind < argc) {
        if (!cli_parse_u32(argv[optind], 1, INT32_MAX, &pid)) {
            fprintf(stderr, "hotfn doctor: '%s' is not the number of a process (see ps)\n",
                    argv[optind]);
            return TOOL_USAGE;
        }
        return doctor_check_process(pid, json);
    }
    for (; doctor_checks[count].run; count++) {
        size_t i = count;
        found[i] = (doctor_finding){ .level = DOCTOR_OK };
        snprintf(found[i].name, sizeof found[i].name, "%s", doctor_checks[i].name);
        doctor_checks[i].run(&found[i]);
        worst = found[i].level > worst ? found[i].level : worst;
        if (!json) {
            doctor_print_finding(&found[i]);
        }
    }
    if (json) {
        doctor_print_json("can_count", worst < DOCTOR_PROBLEM, found, count);
    } else {
        printf("%s\n",
               worst < DOCTOR_PROBLEM ? "Counting works here." : "Counting cannot work here.");
    }
    return worst < DOCTOR_PROBLEM ? TOOL_OK : TOOL_FAILED;
}
