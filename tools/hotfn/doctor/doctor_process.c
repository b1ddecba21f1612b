/* SPDX-License-Identifier: MIT */
/* `hotfn doctor PID`: shows each condition of `hotfn attach PID`, and whether it holds.  The
 * library checks them with the code of the attach itself (hotfn_launch_check_attach). */
#include "cli/commands.h"
#include "doctor.h"

#include <hotfn/launch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CONDITIONS = 32 };

typedef struct process_findings {
    doctor_finding found[MAX_CONDITIONS];
    size_t count;
    bool json;
} process_findings;

static void keep_condition(void *user, const char *name, hotfn_status status, const char *text)
{
    process_findings *findings = user;
    doctor_finding *f = &findings->found[findings->count];

    if (findings->count == MAX_CONDITIONS) {
        return;
    }
    findings->count++;
    *f = (doctor_finding){ .level = status == HOTFN_OK           ? DOCTOR_OK
                                    : strcmp(name, "times") == 0 ? DOCTOR_WARNING
                                                                 : DOCTOR_PROBLEM };
    snprintf(f->name, sizeof f->name, "%s", name);
    doctor_add_text(f, "%s", text);
    if (!findings->json) {
        doctor_print_finding(f);
    }
}

int doctor_check_process(uint32_t pid, bool json)
{
    static process_findings findings;
    hotfn_env env = hotfn_tool_env();
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_status status;

    findings.json = json;
    status = hotfn_launch_check_attach(pid, keep_condition, &findings, &env, &err);
    if (status == HOTFN_E_NO_MEMORY) {
        return hotfn_tool_fail("doctor", &err);
    }
    if (json) {
        doctor_print_json("can_attach", status == HOTFN_OK, findings.found, findings.count);
    } else {
        printf(status == HOTFN_OK ? "Process %u can be attached to.\n"
                                  : "Process %u cannot be attached to.\n",
               pid);
    }
    return status == HOTFN_OK ? TOOL_OK : TOOL_FAILED;
}
