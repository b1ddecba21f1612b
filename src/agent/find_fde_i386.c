/* SPDX-License-Identifier: MIT */
/* glibc on i386 exports its own _Unwind_Find_FDE (GCC_3.0), which precedes that of a libgcc_s
 * loaded later and finds no generated code.  The agent therefore interposes it there, too. */
#include "agent/agent.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* libgcc, unwind-dw2-fde.h. */
struct dwarf_eh_bases {
    void *tbase, *dbase, *func;
};

typedef const void *(*find_fde_fn)(void *pc, struct dwarf_eh_bases *bases);

EXPORT const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases); /* in no header */

static find_fde_fn next_find_fde;

/* Runs before agent_start: an unwinder may run in a signal handler, where no symbol can be looked
 * up. */
__attribute__((constructor(101))) static void find_next_definition(void)
{
    void *found = dlsym(RTLD_NEXT, "_Unwind_Find_FDE");
    memcpy(&next_find_fde, &found, sizeof found);
}

const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases)
{
    const hotfn_hooks *hooks = agent_hooks();
    uint64_t begin = 0;
    const void *fde = hooks ? hotfn_hooks_find_fde(hooks, (uint64_t)(uintptr_t)pc, &begin) : NULL;
    if (!fde) {
        return next_find_fde ? next_find_fde(pc, bases) : NULL;
    }
    *bases = (struct dwarf_eh_bases){ NULL, NULL, (void *)(uintptr_t)begin };
    return fde;
}
