/* SPDX-License-Identifier: MIT */
/* A function and a module, as scans and records list them, and the selection of functions to
 * hook. */
#ifndef HOTFN_FUNCTION_H
#define HOTFN_FUNCTION_H

#include <hotfn/machine.h>
#include <hotfn/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A list of functions; hotfn/lowlevel/lists.h makes and reads it. */
typedef struct hotfn_list hotfn_list;

#define HOTFN_STATE_HOOKED 1   /* counted                                      */
#define HOTFN_STATE_REFUSED 2  /* wanted, not hooked: reason says why          */
#define HOTFN_STATE_FRAGMENT 3 /* part of another function                     */
#define HOTFN_STATE_EXCLUDED 4 /* the user's selection excludes it             */
#define HOTFN_STATE_WAITING 5  /* live only: its module is not in the process yet */

#define HOTFN_NO_SLOT UINT32_MAX

/* Flags of a function. */
#define HOTFN_VERDICT_FLAGS_LIVE 1u     /* processor flags are live at the entry                */
#define HOTFN_VERDICT_ENTRY_LOOP 2u     /* jumps back to its entry: a count includes iterations */
#define HOTFN_VERDICT_LANDING_PAD 4u    /* begins with ENDBR; the patch follows it              */
#define HOTFN_VERDICT_RED_ZONE 8u       /* may keep data below the stack pointer                */
#define HOTFN_VERDICT_TIMED 16u         /* proven: its return may be intercepted                */
#define HOTFN_VERDICT_RETURN_SIGNED 32u /* begins with PACIASP: x30 is signed in the stub       */
#define HOTFN_VERDICT_KEY_B 64u         /* PACIBSP instead, at the entry or in the stub         */
/* What shows that the function begins at its rva, a HOTFN_FOUND_BY_*. */
#define HOTFN_VERDICT_FOUND_BY(flags) ((flags) >> 8 & 7u)
#define HOTFN_FOUND_BY_UNKNOWN 0u
#define HOTFN_FOUND_BY_SYMBOL 1u
#define HOTFN_FOUND_BY_UNWIND_DATA 2u
#define HOTFN_FOUND_BY_CALL 3u    /* a direct call targets it */
#define HOTFN_FOUND_BY_POINTER 4u /* data contains a pointer to it */
/* Not TIMED: the reason why it is only counted, a HOTFN_REASON_*. */
#define HOTFN_VERDICT_TIMING_REASON(flags) ((flags) >> 16 & 0xffu)
/* TIMED: the words of stack arguments that it accesses, and (i386) what its return pops. */
#define HOTFN_VERDICT_ARGUMENTS(flags) ((flags) >> 24 & 31u)
#define HOTFN_VERDICT_POPS(flags) ((flags) >> 29)
#define HOTFN_POPS_NOTHING 0u
#define HOTFN_POPS_ONE 1u /* the address of a returned struct */
#define HOTFN_POPS_ALL 2u /* stdcall, fastcall, thiscall      */

/* Reasons that are given while a program runs; hotfn/lowlevel/verdicts.h has the others. */
#define HOTFN_REASON_NO_SLOTS 35    /* the record has no slots left           */
#define HOTFN_REASON_NOT_LOADED 36  /* its module was never loaded            */
#define HOTFN_REASON_ENGINE 38      /* hotfn hooks it itself, to follow dlopen */
#define HOTFN_REASON_OVERWRITTEN 39 /* other code overwrote its hook: its calls are not known */

/* One function of a module.  Strings are views into the record, or borrowed where the caller fills
 * the struct.  names are the function's other names; each ends with NUL, and an empty name ends the
 * list. */
typedef struct hotfn_record_function {
    uint32_t size;   /* sizeof(hotfn_record_function) */
    uint32_t module; /* index; set by the record      */
    uint32_t slot;   /* HOTFN_NO_SLOT: not counted    */
    uint32_t state;  /* HOTFN_STATE_*                 */
    uint64_t rva;
    uint64_t byte_count;
    uint64_t calls;   /* out: sum over the chosen processes; 0 if not counted  */
    uint32_t counted; /* out: 1 if calls is known; else it is null in reports  */
    uint32_t flags;   /* HOTFN_VERDICT_*               */
    uint32_t name_count;
    /* Bytes from the entry.  FRAGMENT: the index of its function in the module plus 1, 0 if
     * unknown. */
    uint32_t reason_offset;
    const char *name;
    const char *names;
    const char *strategy; /* "jump"; "" if none    */
    const char *reason;   /* "too-short"; "" if none */
    const char *reason_text;
} hotfn_record_function;
#define HOTFN_RECORD_FUNCTION_INIT                                                                 \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_function), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0       \
    }

#define HOTFN_MODULE_MAIN 1u     /* the program itself                   */
#define HOTFN_MODULE_LOADED 2u   /* was seen in the process              */
#define HOTFN_MODULE_UNLOADED 4u /* and was unloaded again (dlclose)     */
#define HOTFN_MODULE_LEFT_OUT 8u /* not selected: it has no functions    */
#define HOTFN_MODULE_FAILED 16u  /* selected, but note says why it could not be hooked */
/* The methods of a runtime, whose name is the path.  An rva is a hash of the method's name. */
#define HOTFN_MODULE_METHODS 32u

typedef struct hotfn_record_module {
    uint32_t size;  /* sizeof(hotfn_record_module) */
    uint32_t flags; /* HOTFN_MODULE_* */
    uint32_t machine;
    uint32_t id_kind;
    uint32_t id_bytes;
    uint32_t function_count;
    uint32_t first_function; /* out: index in the record */
    uint32_t first_slot;     /* out */
    uint8_t id[32];
    uint64_t load_base;   /* address of RVA 0 in the (first) process, 0 unknown */
    uint64_t file_device; /* st_dev and st_ino of the file at scan time         */
    uint64_t file_inode;
    const char *path;
    const char *file;     /* out: last component of path */
    const char *note;     /* "" or why it failed         */
    uint64_t file_stamp;  /* of its size and times; 0: a later change may go unnoticed */
    uint64_t code_bytes;  /* of code, without padding; 0: unknown                       */
    uint64_t known_bytes; /* of these, the bytes of functions that are listed           */
} hotfn_record_module;
#define HOTFN_RECORD_MODULE_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_record_module), 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, \
            0                                                                                      \
    }

/* The functions that a user selects.  A glob has '*', '?', '[a-z]' and '\\' quoting.  A function
 * matches if any of its names does: mangled, or demangled, with or without parameters.  A function
 * that matches both an include and an exclude glob is excluded. */
typedef struct hotfn_selection {
    uint32_t size;              /* sizeof(hotfn_selection)  */
    uint32_t flags;             /* 0 */
    const char *const *include; /* borrowed [all]  */
    const char *const *exclude; /* borrowed [none] */
    uint32_t include_count;
    uint32_t exclude_count;
    uint64_t min_bytes; /* [0]         */
    uint64_t max_bytes; /* [unlimited] */
} hotfn_selection;
#define HOTFN_SELECTION_INIT                                                                       \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_selection), 0, 0, 0, 0, 0, 0, 0                                     \
    }

#ifdef __cplusplus
}
#endif

#endif
