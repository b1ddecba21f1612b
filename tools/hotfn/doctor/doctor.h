/* SPDX-License-Identifier: MIT */
/* The findings of `hotfn doctor`, and the checks of doctor_try.c. */
#ifndef HOTFN_TOOL_DOCTOR_H
#define HOTFN_TOOL_DOCTOR_H

#define DOCTOR_OK 0
#define DOCTOR_WARNING 1
#define DOCTOR_PROBLEM 2

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct doctor_finding {
    char name[32];
    int level; /* DOCTOR_* */
    char text[512];
    char advice[256]; /* "" if level is DOCTOR_OK */
} doctor_finding;

/* The checks of this system; run is NULL after the last one. */
typedef struct doctor_check {
    const char *name;
    void (*run)(doctor_finding *f);
} doctor_check;

extern const doctor_check doctor_checks[];

/* Append to the finding's text. */
__attribute__((format(printf, 2, 3))) void doctor_add_text(doctor_finding *f, const char *format,
                                                           ...);
/* Set level and advice, unless the finding already has this level or a worse one. */
void doctor_raise_level(doctor_finding *f, int level, const char *advice);

void doctor_print_finding(const doctor_finding *f);
/* Print an object with the findings; its member `key` is is_good. */
void doctor_print_json(const char *key, bool is_good, const doctor_finding *found, size_t count);

/* The clock of `hotfn run --mode time`. */
void doctor_check_clock(doctor_finding *f);

/* Returns the number of calls of hotfn_get_version in the record of `hotfn --version`. */
uint64_t doctor_count_proof_calls(const char *path);

/* doctor_process.c: returns the exit status. */
int doctor_check_process(uint32_t pid, bool json);

/* doctor_try.c; on Windows only the proof */
void doctor_try_text(doctor_finding *f);
void doctor_try_new_code(doctor_finding *f);
void doctor_try_shared_memory(doctor_finding *f);
void doctor_try_membarrier(doctor_finding *f);
void doctor_try_exec32(doctor_finding *f);
void doctor_try_proof(doctor_finding *f);

#endif
