/* SPDX-License-Identifier: MIT */
/* The calls between the files of the agent. */
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

/* exec/environment.c: the value of an environment variable; NULL if it is not set. */
const char *agent_find_setting(char **envp, const char *name);
/* Copy the agent's entry in LD_PRELOAD; returns its length, 0 if there is none or no room. */
size_t agent_copy_preload(char **envp, char *out, size_t capacity);
/* Remove the variables and values that hotfn added to the environment. */
void agent_restore_environment(char **envp);
/* --follow: change the environment so that children of the target are targets too. */
void agent_mark_children(char **envp, unsigned flags);

/* exec/follow.c: from now on, follow this process if it calls exec.  preload: the agent's entry in
 * LD_PRELOAD. */
void agent_follow_exec(const agent_settings *settings, const char *preload, size_t preload_bytes);
/* The size of the memory that agent_make_exec_environment needs for the environment of the new
 * program; 0 if this exec is not followed, for example in a child after vfork.  Both are
 * async-signal-safe. */
size_t agent_get_exec_bytes(char *const *envp);
char *const *agent_make_exec_environment(void *memory, size_t bytes, char *const *envp);

/* gdb_jit.c: called once, after the hooks are installed and before other threads exist. */
void agent_register_with_debuggers(void);

#endif
