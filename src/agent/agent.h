/* SPDX-License-Identifier: MIT */
#ifndef HOTFN_AGENT_H
#define HOTFN_AGENT_H

#include <hotfn.h>
#include <hotfn/lowlevel.h>

/* agent.c: the target's hook set; NULL before the session has joined, or if joining failed. */
const hotfn_hooks *agent_hooks(void);

typedef struct agent_settings {
    unsigned parent, live_fd, channel_fd, pid, flags;
    const char *target_glob;
} agent_settings;

/* exec/environment.c: the value of a variable; NULL if there is none. */
const char *agent_find_setting(char **envp, const char *name);
/* Copy the agent's entry in LD_PRELOAD; returns its length, 0 if there is none or it is too long.
 * */
size_t agent_copy_preload(char **envp, char *out, size_t capacity);
/* Remove what hotfn added. */
void agent_restore_environment(char **envp);
/* With --follow, children of the target are targets too. */
void agent_mark_children(char **envp, unsigned flags);

/* exec/follow.c: the process of this target is followed through exec.  preload: the agent's entry
 * in LD_PRELOAD. */
void agent_follow_exec(const agent_settings *settings, const char *preload, size_t preload_bytes);
/* Memory for the environment of an exec that is followed; 0 if this exec is not followed, also in a
 * child after vfork.  Both calls are async-signal-safe. */
size_t agent_exec_bytes(char *const *envp);
char *const *agent_exec_environment(void *memory, size_t bytes, char *const *envp);

/* gdb_jit.c: called once, after the hooks are installed and before other threads exist. */
void agent_register_with_debuggers(void);

#endif
