/* SPDX-License-Identifier: MIT */
/* Verdicts: for each function of an image, whether and how it can be hooked, or why not.  They
 * are computed from the file, before any process is touched. */
#ifndef HOTFN_VERDICTS_H
#define HOTFN_VERDICTS_H

#include <hotfn/lowlevel/functions.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_verdicts hotfn_verdicts;

#define HOTFN_VERDICT_HOOKABLE 1
#define HOTFN_VERDICT_REFUSED 2
#define HOTFN_VERDICT_FRAGMENT                                                                     \
    3 /* part of another function: not called, or entered with a stack frame */

/* Strategies, in the order in which they are tried. */
#define HOTFN_STRATEGY_NONE 0
/* The first direct call or jump gets a new target.  It is at the entry, or behind a few
 * instructions that always reach it. */
#define HOTFN_STRATEGY_RETARGET 1
#define HOTFN_STRATEGY_JUMP 2     /* a jump over whole instructions of the function             */
#define HOTFN_STRATEGY_JUMP_PAD 3 /* a jump that extends into the padding after the function    */
#define HOTFN_STRATEGY_ISLAND 4   /* a 2-byte jump to a 5-byte jump in padding nearby           */
#define HOTFN_STRATEGY_PUN 5      /* a 5-byte jump whose last bytes are existing bytes          */
#define HOTFN_STRATEGY_INT3 6     /* a trap; only if HOTFN_VERDICTS_ALLOW_INT3 is set           */

/* Stable numbers; hotfn_reason_get_name returns the word. */
#define HOTFN_REASON_NONE 0
#define HOTFN_REASON_JUMP_INTO_PATCH 1  /* a jump targets the bytes that would be patched        */
#define HOTFN_REASON_TOO_SHORT 2        /* shorter than the patch; no padding follows            */
#define HOTFN_REASON_CALL_IN_PATCH 3    /* a call is among the bytes that would move             */
#define HOTFN_REASON_CANNOT_MOVE 4      /* an instruction cannot be relocated (loop, jrcxz ...)  */
#define HOTFN_REASON_UNDECODABLE 5      /* the bytes are not valid instructions                  */
#define HOTFN_REASON_UNBOUNDED_TABLE 6  /* an indirect jump whose targets are not known          */
#define HOTFN_REASON_NO_ISLAND 7        /* short, and no padding is in reach                     */
#define HOTFN_REASON_NOT_CODE 8         /* outside executable sections, or not in the file       */
#define HOTFN_REASON_PLT 9              /* a PLT entry                                           */
#define HOTFN_REASON_RESOLVER 10        /* reserved: ifunc resolvers are hookable                */
#define HOTFN_REASON_GLUE 11            /* the process entry point (_start)                      */
#define HOTFN_REASON_FRAGMENT 12        /* part of another function                              */
#define HOTFN_REASON_RSEQ 13            /* contains a restartable sequence                       */
#define HOTFN_REASON_SIGNAL_RESTORER 14 /* the kernel and unwinders recognise its bytes          */
#define HOTFN_REASON_FAULT_KNOWN 15     /* a fault handler compares its addresses (SafeFetch)    */
#define HOTFN_REASON_MACHINE 16         /* the machine is not supported                          */
#define HOTFN_REASON_TEXTREL 17         /* the image has text relocations                        */
#define HOTFN_REASON_OVERLAP 18         /* the patch would overlap the next function             */
#define HOTFN_REASON_EXCLUDED 19        /* not selected by the user                              */
#define HOTFN_REASON_RELOCATED 20       /* the loader relocates an address among the bytes       */
#define HOTFN_REASON_READ 21            /* code reads bytes of the patch as data                 */
#define HOTFN_REASON_RUNTIME_READS 22   /* a runtime reads or patches the code (Mono AOT, XRay)  */
/* Found only when a process is patched; hotfn/function.h has 35, 36 and 38: */
#define HOTFN_REASON_BYTES_DIFFER 32   /* memory differs from the file                           */
#define HOTFN_REASON_NO_NEAR_MEMORY 33 /* no free memory within reach of a jump                  */
#define HOTFN_REASON_NOT_WRITABLE 34   /* the system does not allow the page to be changed       */
#define HOTFN_REASON_BUSY 37           /* a thread could not be moved away from the bytes        */
/* Why a hookable function is counted but not timed: */
#define HOTFN_REASON_NOT_PROVEN 64      /* the proof was not requested, or the machine lacks it */
#define HOTFN_REASON_STACK_ARGUMENTS 65 /* accesses its caller's frame, or takes an address in it */
#define HOTFN_REASON_RETURN_ADDRESS 66  /* reads or moves its return address                     */
#define HOTFN_REASON_STACK_UNKNOWN 67   /* its stack pointer cannot be followed                  */
#define HOTFN_REASON_RETURN_POPS 68     /* its returns pop different or unsupported amounts      */
#define HOTFN_REASON_TAIL_UNKNOWN 69    /* tail jump to code that is not known in advance        */
#define HOTFN_REASON_TAIL_UNPROVEN 70   /* tail jump to a function that may not be timed         */
#define HOTFN_REASON_TAIL_CYCLE 71      /* part of a cycle of tail jumps                         */
#define HOTFN_REASON_ENTRY_JUMPED 72    /* entered by jumps, or with data below the stack pointer */
#define HOTFN_REASON_PATCH_INSIDE 73    /* the patch is not at the entry                         */
#define HOTFN_REASON_OWN_STACK_WALK 74  /* its runtime finds frames by return address (Go, OCaml) */
#define HOTFN_REASON_OWN_ADDRESS 75     /* stores an address of its frame, and compares one      */
#define HOTFN_REASON_SYSTEM_CALL 76     /* sigreturn, clone or vfork, or an unknown system call  */
#define HOTFN_REASON_OWN_THREADS 77     /* the image sets thread pointers itself                 */

typedef struct hotfn_verdict {
    uint32_t size;         /* sizeof(hotfn_verdict)                                              */
    uint32_t verdict;      /* HOTFN_VERDICT_HOOKABLE ...                                         */
    uint32_t strategy;     /* HOTFN_STRATEGY_*, NONE unless hookable                             */
    uint32_t reason;       /* HOTFN_REASON_*, NONE if hookable                                   */
    uint32_t offset;       /* of the instruction or byte that the reason is about                */
    uint32_t flags;        /* HOTFN_VERDICT_FLAGS_LIVE ...                                       */
    uint32_t patch_offset; /* from the entry to the patch: 4 behind ENDBR64; RETARGET: to the call,
                            * so that the stub runs at the entry of the callee                   */
    uint32_t patch_bytes;  /* size of the patch                                                  */
    uint32_t tail_target;  /* TIMED: index plus 1 of the function that this one jumps to at its end
                            * and that must not run inside the timed call, which therefore ends at
                            * the jump; 0: none                                                  */
    uint32_t owner;        /* FRAGMENT: index plus 1 of the only function that jumps to it;
                            * 0: none                                                            */
} hotfn_verdict;
#define HOTFN_VERDICT_INIT                                                                         \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_verdict), 0, 0, 0, 0, 0, 0, 0, 0, 0                                 \
    }

#define HOTFN_VERDICTS_ALLOW_INT3 1u
#define HOTFN_VERDICTS_TIMING 2u /* also prove which functions may be timed */
/* Never time a function through tail_target: such a patch is not restored when hooks are removed.
 */
#define HOTFN_VERDICTS_NO_TAIL_EXIT 4u

typedef struct hotfn_verdicts_options {
    uint32_t size;    /* sizeof(hotfn_verdicts_options) */
    uint32_t flags;   /* HOTFN_VERDICTS_* [none]        */
    uint32_t threads; /* for the analysis [number of CPUs] */
    uint32_t reserved;
} hotfn_verdicts_options;
#define HOTFN_VERDICTS_OPTIONS_INIT                                                                \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_verdicts_options), 0, 0, 0                                          \
    }

/*
 * Add the functions that have neither a symbol nor unwind data, but that direct calls or pointers
 * prove to be functions.  Only ELF images, and PE images of x86, of which functions are missing
 * are searched.
 *
 * functions  nothing else uses them yet: indexes of functions change.
 * image      borrowed; the image of the functions.
 * threads    for the search; 0: number of CPUs.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION.  One thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_verdicts_find_functions(hotfn_functions *functions,
                                                     const hotfn_image *image, uint32_t threads,
                                                     const hotfn_env *env, hotfn_error *err);
/*
 * Compute the verdicts of all functions of an image.
 *
 * out               receives verdicts that the caller owns; untouched on failure.
 * image, functions  kept until the verdicts are destroyed.
 * options           borrowed; NULL means all defaults.
 *
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION.  An unsupported machine is not an error: every
 * function is then refused with HOTFN_REASON_MACHINE.  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_verdicts_create(hotfn_verdicts **out, const hotfn_image *image,
                                             const hotfn_functions *functions,
                                             const hotfn_verdicts_options *options,
                                             const hotfn_env *env, hotfn_error *err);
/* Free the verdicts; NULL is fine.  Any thread.  Since 0.1. */
HOTFN_API void hotfn_verdicts_destroy(hotfn_verdicts *verdicts);
/* Get the number of verdicts: one for each function, in the same order.  Any thread.  Since 0.1. */
HOTFN_API uint32_t hotfn_verdicts_get_count(const hotfn_verdicts *verdicts);
/* Get one verdict.  HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Any thread.  Since
 * 0.1. */
HOTFN_API hotfn_status hotfn_verdicts_get(const hotfn_verdicts *verdicts, uint32_t index,
                                          hotfn_verdict *out);

/* Get the word for a HOTFN_STRATEGY_* ("jump"); "unknown" for other numbers.  Static text.  Any
 * thread. Since 0.1. */
HOTFN_API const char *hotfn_strategy_get_name(uint32_t strategy);
/* Get the word for a HOTFN_REASON_* ("jump-into-patch"); "unknown" for other numbers.  Static
 * text.  Any thread.  Since 0.1. */
HOTFN_API const char *hotfn_reason_get_name(uint32_t reason);
/* Get the sentence that explains a reason.  Static text, never NULL.  Any thread.  Since 0.1. */
HOTFN_API const char *hotfn_reason_get_text(uint32_t reason);

#ifdef __cplusplus
}
#endif

#endif
