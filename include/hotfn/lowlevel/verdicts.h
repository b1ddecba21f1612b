/* SPDX-License-Identifier: MIT */
/* Verdicts: may a function be hooked, how, or why not, before any process is touched. */
#ifndef HOTFN_VERDICTS_H
#define HOTFN_VERDICTS_H

#include <hotfn/lowlevel/functions.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hotfn_verdicts hotfn_verdicts;

#define HOTFN_VERDICT_HOOKABLE 1
#define HOTFN_VERDICT_REFUSED 2
#define HOTFN_VERDICT_FRAGMENT 3 /* nothing calls it, or its unwind data begins in a frame */

/* The ladder, cheapest first. */
#define HOTFN_STRATEGY_NONE 0
#define HOTFN_STRATEGY_RETARGET                                                                    \
    1                             /* the first call or jmp rel32, at the entry or behind a few
                                     instructions that always lead to it, gets another target   */
#define HOTFN_STRATEGY_JUMP 2     /* 5-byte jmp over whole instructions of the function         */
#define HOTFN_STRATEGY_JUMP_PAD 3 /* 5-byte jmp that runs on into padding behind the function   */
#define HOTFN_STRATEGY_ISLAND 4   /* 2-byte jmp to a 5-byte jmp in padding nearby               */
#define HOTFN_STRATEGY_PUN 5      /* 5-byte jmp whose last bytes are the bytes that stand there */
#define HOTFN_STRATEGY_INT3 6     /* a trap; off unless asked                                   */

/* Stable ids: never renumbered, hotfn_reason_get_name gives the word. */
#define HOTFN_REASON_NONE 0
#define HOTFN_REASON_JUMP_INTO_PATCH 1 /* a jump lands inside the bytes that would be patched   */
#define HOTFN_REASON_TOO_SHORT 2       /* ends before the patch does, no padding, no island     */
#define HOTFN_REASON_CALL_IN_PATCH 3   /* a call among the bytes that would move                */
#define HOTFN_REASON_CANNOT_MOVE                                                                   \
    4 /* an instruction that cannot be relocated (loop, jrcxz out of range ...) */
#define HOTFN_REASON_UNDECODABLE 5      /* bytes that are no instruction                         */
#define HOTFN_REASON_UNBOUNDED_TABLE 6  /* a jump table whose bound the code does not show       */
#define HOTFN_REASON_NO_ISLAND 7        /* short entry, no padding in reach                      */
#define HOTFN_REASON_NOT_CODE 8         /* outside executable sections, or no bytes in the file  */
#define HOTFN_REASON_PLT 9              /* a linker stub, no function of its own                 */
#define HOTFN_REASON_RESOLVER 10        /* reserved: ifunc resolvers are hookable                */
#define HOTFN_REASON_GLUE 11            /* C run-time glue that is no ABI function (_start)      */
#define HOTFN_REASON_FRAGMENT 12        /* a part of another function                            */
#define HOTFN_REASON_RSEQ 13            /* restartable sequence                                  */
#define HOTFN_REASON_SIGNAL_RESTORER 14 /* the kernel and unwinders know its bytes               */
#define HOTFN_REASON_FAULT_KNOWN 15     /* a fault handler knows its addresses (SafeFetch, __try) */
#define HOTFN_REASON_MACHINE 16         /* no judge for this machine                             */
#define HOTFN_REASON_TEXTREL 17         /* the loader rewrites this code                         */
#define HOTFN_REASON_OVERLAP 18         /* its patch would overlap a neighbour's                 */
#define HOTFN_REASON_EXCLUDED 19        /* left out by the user's selection                      */
#define HOTFN_REASON_RELOCATED 20       /* the loader rewrites an address among the bytes        */
#define HOTFN_REASON_READ 21            /* code reads bytes of the patch as data                 */
/* From here: known only when a process is patched. */
#define HOTFN_REASON_BYTES_DIFFER 32   /* memory is not what the file holds                     */
#define HOTFN_REASON_NO_NEAR_MEMORY 33 /* no free pages in jump range                           */
#define HOTFN_REASON_NOT_WRITABLE 34   /* the system forbids changing the page                  */
#define HOTFN_REASON_BUSY 37           /* a thread stood on the bytes and did not leave         */
/* From here: why a function is counted but not timed. */
#define HOTFN_REASON_NOT_PROVEN 64 /* nobody asked for the proof that it may be timed       */
#define HOTFN_REASON_STACK_ARGUMENTS                                                               \
    65 /* reaches into its caller's frame, or takes an address there  */
#define HOTFN_REASON_RETURN_ADDRESS 66 /* reads its return address, or moves it                 */
#define HOTFN_REASON_STACK_UNKNOWN 67  /* where its stack pointer is cannot be followed         */
#define HOTFN_REASON_RETURN_POPS 68 /* its returns take this and that from the stack, or are none */
#define HOTFN_REASON_TAIL_UNKNOWN 69   /* jumps on to code that cannot be told beforehand       */
#define HOTFN_REASON_TAIL_UNPROVEN 70  /* jumps on to a function that may not be timed          */
#define HOTFN_REASON_TAIL_CIRCLE 71    /* is jumped back to by functions that it jumps on to    */
#define HOTFN_REASON_ENTRY_JUMPED 72   /* is entered by jumps, or with data below the stack     */
#define HOTFN_REASON_PATCH_INSIDE 73   /* its patch stands behind its entry                     */
#define HOTFN_REASON_OWN_STACK_WALK 74 /* its runtime walks the stack itself (V8, JVM, Go)      */
#define HOTFN_REASON_OWN_ADDRESS 75    /* keeps an address in its frame, and compares one       */

typedef struct hotfn_verdict {
    uint32_t size;         /* sizeof(hotfn_verdict)                                         */
    uint32_t verdict;      /* HOTFN_VERDICT_HOOKABLE ...                                    */
    uint32_t strategy;     /* HOTFN_STRATEGY_*, NONE unless hookable                        */
    uint32_t reason;       /* HOTFN_REASON_*, NONE if hookable                              */
    uint32_t offset;       /* where the reason stands, bytes from the entry                 */
    uint32_t flags;        /* HOTFN_VERDICT_FLAGS_LIVE ...                                  */
    uint32_t patch_offset; /* bytes from the entry to the patch: 4 behind ENDBR64, or where
                               RETARGET's call stands: the stub runs at the callee's entry */
    uint32_t patch_bytes;  /* bytes that the patch overwrites at the entry                 */
    uint32_t comes_to;     /* TIMED: its call ends where it jumps on to this function, which may not
                               run within it: its index plus 1; 0: there is none.
                               FRAGMENT: the only function that jumps there                */
} hotfn_verdict;
#define HOTFN_VERDICT_INIT                                                                         \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_verdict), 0, 0, 0, 0, 0, 0, 0, 0                                    \
    }

#define HOTFN_VERDICTS_ALLOW_INT3 1u
#define HOTFN_VERDICTS_TIMING 2u /* also prove which functions may be timed */
#define HOTFN_VERDICTS_NO_COMEBACK                                                                 \
    4u /* none whose call must end at a jump: that site is never put back */

typedef struct hotfn_verdicts_options {
    uint32_t size;    /* sizeof(hotfn_verdicts_options) */
    uint32_t flags;   /* HOTFN_VERDICTS_* [none]        */
    uint32_t threads; /* that scan [number of CPUs, 1 in an agent] */
    uint32_t reserved;
} hotfn_verdicts_options;
#define HOTFN_VERDICTS_OPTIONS_INIT                                                                \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_verdicts_options), 0, 0, 0                                          \
    }

/*
 * Judge every function.  image and functions are kept: they must outlive the verdicts.
 * HOTFN_OK, HOTFN_E_NO_MEMORY, HOTFN_E_OPTION.  A machine without a judge is not an error: every
 * function is refused with HOTFN_REASON_MACHINE.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_verdicts_judge(hotfn_verdicts **out, const hotfn_image *image,
                                            const hotfn_functions *functions,
                                            const hotfn_verdicts_options *options,
                                            const hotfn_env *env, hotfn_error *err);
/* NULL is fine.  Since 0.1. */
HOTFN_API void hotfn_verdicts_destroy(hotfn_verdicts *verdicts);
/* The same count and order as the functions.  Since 0.1. */
HOTFN_API uint32_t hotfn_verdicts_get_count(const hotfn_verdicts *verdicts);
/* HOTFN_OK, HOTFN_E_NOT_FOUND past the end, HOTFN_E_OPTION.  Since 0.1. */
HOTFN_API hotfn_status hotfn_verdicts_get(const hotfn_verdicts *verdicts, uint32_t index,
                                          hotfn_verdict *out);

/* The word of a HOTFN_STRATEGY_* ("jump") or HOTFN_REASON_* ("jump-into-patch"), "unknown" of any other number; and
 * the reason as a sentence for people.  Static text, never NULL.  Since 0.1. */
HOTFN_API const char *hotfn_strategy_get_name(uint32_t strategy);
HOTFN_API const char *hotfn_reason_get_name(uint32_t reason);
HOTFN_API const char *hotfn_reason_get_text(uint32_t reason);

#ifdef __cplusplus
}
#endif

#endif
