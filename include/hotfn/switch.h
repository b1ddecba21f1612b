/* SPDX-License-Identifier: MIT */
/* Functions of a running program that are switched off and on, or between counting and timing,
 * while it is counted by hotfn run or hotfn attach. */
#ifndef HOTFN_SWITCH_H
#define HOTFN_SWITCH_H

#include <hotfn/function.h>
#include <hotfn/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Modes. */
#define HOTFN_SWITCH_OFF 1u   /* the original bytes are restored; calls are not counted     */
#define HOTFN_SWITCH_COUNT 2u /* each call is counted                                       */
#define HOTFN_SWITCH_TIME                                                                          \
    3u /* and timed, if the launch times calls; functions whose hooks
                                 can only count are counted                                 */

/* What to switch: the hooked functions that the selection and the module globs both match.  A field
 * left 0 means the default in brackets; everything is borrowed. */
typedef struct hotfn_switch_order {
    uint32_t size;                    /* sizeof(hotfn_switch_order)                      */
    uint32_t mode;                    /* HOTFN_SWITCH_*                                  */
    const hotfn_selection *selection; /* [all functions]                                 */
    const char *const *modules;       /* globs on file names of modules [all modules]    */
    uint32_t module_count;
    uint32_t reserved; /* 0 */
} hotfn_switch_order;
#define HOTFN_SWITCH_ORDER_INIT                                                                    \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_switch_order), 0, 0, 0, 0, 0                                        \
    }

typedef struct hotfn_switch_result {
    uint32_t size;                 /* sizeof(hotfn_switch_result)                          */
    uint32_t matched_count;        /* hooked functions that the order matches              */
    uint32_t switched_count;       /* of these, those that were in another mode before     */
    uint32_t count_only_count;     /* HOTFN_SWITCH_TIME: their hooks can only count        */
    uint32_t busy_count;           /* still off: a thread was inside their first bytes     */
    uint32_t foreign_count;        /* unchanged: other code has changed their bytes        */
    uint32_t process_count;        /* processes that were changed: the program, its forks  */
    uint32_t failed_process_count; /* processes that could not be stopped                  */
    uint64_t stop_ns;              /* how long their threads stood, in sum                 */
} hotfn_switch_result;
#define HOTFN_SWITCH_RESULT_INIT                                                                   \
    {                                                                                              \
        (uint32_t)sizeof(hotfn_switch_result), 0, 0, 0, 0, 0, 0, 0, 0                              \
    }

/*
 * Switch functions of the launch's program, and of the processes that it has forked.  Counts go on
 * where they were; a function that was ever off has a count that is a lower bound.  Modules that
 * are loaded later are hooked as the launch's options say.
 *
 * out  borrowed, or NULL; written on success.
 *
 * HOTFN_OK.  HOTFN_E_NOT_FOUND: no hooked function matches.  HOTFN_E_STATE: the program has ended,
 * or could not be stopped, or the launch has a budget, which switches functions itself.
 * HOTFN_E_UNSUPPORTED: TIME, but the launch only counts; a 32-bit program; another system than
 * Linux.  HOTFN_E_OPTION (also a broken glob), HOTFN_E_NO_MEMORY.  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_switch(hotfn_launch *launch, const hotfn_switch_order *order,
                                           hotfn_switch_result *out, hotfn_error *err);

/*
 * Let the hotfn that counts a process switch functions, as hotfn ctl does.
 *
 * record_path  borrowed; of its record while the program runs.  NULL: the process is named by pid.
 * pid          a process that is counted; ignored if there is a record_path.
 * out          borrowed, or NULL; written on success.
 *
 * HOTFN_OK, and the statuses of hotfn_launch_switch.  Also HOTFN_E_NOT_FOUND: there is no such
 * process, or no hotfn counts it.  HOTFN_E_STATE: the run has ended.  HOTFN_E_DENIED: the process
 * belongs to another user.  HOTFN_E_MISMATCH: a hotfn of another version counts it.  HOTFN_E_IO,
 * HOTFN_E_FORMAT: the record.  HOTFN_E_LIMIT: the globs are too long.  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_switch_functions(const char *record_path, uint32_t pid,
                                              const hotfn_switch_order *order,
                                              hotfn_switch_result *out, const hotfn_env *env,
                                              hotfn_error *err);

/*
 * Find the live record of a process that hotfn run counts, or on Windows hotfn attach.
 * hotfn_record_open reads it.
 *
 * path  receives its path: at most path_bytes, NUL included; unspecified on failure.
 *
 * HOTFN_OK, HOTFN_E_NOT_FOUND (it is not counted, or is of another user).  Any thread.  Since 0.1.
 */
HOTFN_API hotfn_status hotfn_launch_find_record(char *path, uint64_t path_bytes, uint32_t pid,
                                                hotfn_error *err);

#ifdef __cplusplus
}
#endif

#endif
