/* SPDX-License-Identifier: MIT */
/* Counts the calls that -finstrument-functions reports for each function.  At the end writes
 * "address count" lines to $INSTRUMENT_OUT; the addresses are relative to the load bias, as in the
 * symbol table. */
#define _GNU_SOURCE
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define OFF __attribute__((no_instrument_function))
#define PLACES 65536u

void __cyg_profile_func_enter(void *function, void *site) OFF;
void __cyg_profile_func_exit(void *function, void *site) OFF;

static _Atomic uint64_t functions[PLACES], counts[PLACES];

void __cyg_profile_func_enter(void *function, void *site)
{
    uint64_t address = (uint64_t)(uintptr_t)function;
    uint32_t at = (uint32_t)(address / 4 * 2654435761u) % PLACES;

    (void)site;
    for (;; at = (at + 1) % PLACES) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&functions[at], &there, address) || there == address) {
            break;
        }
    }
    atomic_fetch_add(&counts[at], 1);
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
}

OFF static int print_main(struct dl_phdr_info *info, size_t size, void *data)
{
    FILE *file = data;

    (void)size;
    for (uint32_t i = 0; i < PLACES; i++) {
        if (functions[i]) {
            fprintf(file, "%llx %llu\n", (unsigned long long)(functions[i] - info->dlpi_addr),
                    (unsigned long long)counts[i]);
        }
    }
    return 1; /* the first entry is the program */
}

__attribute__((destructor, no_instrument_function)) static void print(void)
{
    FILE *file = fopen(getenv("INSTRUMENT_OUT"), "w");

    if (file) {
        dl_iterate_phdr(print_main, file);
        fclose(file);
    }
}
