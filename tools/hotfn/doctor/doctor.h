/* SPDX-License-Identifier: MIT */
/* What the parts of `hotfn doctor` share: a finding, and the checks that try something. */
#ifndef HOTFN_TOOL_DOCTOR_H
#define HOTFN_TOOL_DOCTOR_H

#define DOCTOR_OK 0
#define DOCTOR_WARNING 1
#define DOCTOR_PROBLEM 2

typedef struct doctor_finding {
    const char *name;
    int level; /* DOCTOR_* */
    char text[512];
    char advice[256]; /* "" if all is well */
} doctor_finding;

/* Add to the finding's text. */
__attribute__((format(printf, 2, 3))) void doctor_say(doctor_finding *f, const char *format, ...);
/* The worst level of a finding stays, with its advice. */
void doctor_worsen(doctor_finding *f, int level, const char *advice);

/* doctor_try.c */
void doctor_try_text(doctor_finding *f);
void doctor_try_new_code(doctor_finding *f);
void doctor_try_shared_memory(doctor_finding *f);
void doctor_try_membarrier(doctor_finding *f);
void doctor_try_exec32(doctor_finding *f);
void doctor_try_proof(doctor_finding *f);

#endif
