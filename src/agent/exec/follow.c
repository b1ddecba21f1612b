/* SPDX-License-Identifier: MIT */
/* Follow the target's process through exec.  The target runs in the environment that it would have
 * without hotfn; when it calls exec, the agent's settings are added to the new environment.  The
 * agent is then loaded into the next program, whose calls have a record of their own.  If a child
 * calls exec, no settings are added: the exec is only reported to the launcher. */
#include "agent/agent.h"

#include "counters/thread_row.h"
#include "live/run_flags.h"
#include "os/hot_path.h"

#include <stdio.h>
#include <string.h>

#define PRELOAD "LD_PRELOAD="
#define RUN "HOTFN_RUN="

static struct {
    uint32_t pid; /* 0: exec is not followed */
    size_t preload_bytes;
    char preload[4096]; /* the agent's entry in LD_PRELOAD */
    char run[128];
} target;

void agent_follow_exec(const agent_settings *s, const char *preload, size_t preload_bytes)
{
    if (s->flags & AGENT_FOLLOW || s->target_glob || preload_bytes >= sizeof target.preload) {
        return;
    }
    target.pid = hfn_os_hot_process_id();
    memcpy(target.preload, preload, preload_bytes);
    target.preload_bytes = preload_bytes;
    snprintf(target.run, sizeof target.run, RUN "%u:%u:%u:%u:%03u", s->parent, s->live_fd,
             s->channel_fd, target.pid, (s->flags | AGENT_NEXT) % 1000u);
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static const char *find_preload(char *const *envp)
{
    for (; envp && *envp; envp++) {
        if (begins_with(*envp, PRELOAD)) {
            return *envp + strlen(PRELOAD);
        }
    }
    return NULL;
}

size_t agent_get_exec_bytes(char *const *envp)
{
    const char *before = find_preload(envp);
    size_t count = 0;

    if (target.pid == 0 || !hfn_rows_may_call(HFN_CALLS_FORK) ||
        hfn_os_hot_process_id() != target.pid) {
        return 0;
    }
    while (envp && envp[count]) {
        count++;
    }
    return (count + 3) * sizeof *envp + sizeof PRELOAD + target.preload_bytes + 1 +
           (before ? strlen(before) : 0);
}

char *const *agent_make_exec_environment(void *memory, size_t bytes, char *const *envp)
{
    const char *before = find_preload(envp);
    const char **out = memory;
    size_t used = 0;

    for (; envp && *envp; envp++) {
        if (!begins_with(*envp, PRELOAD) && !begins_with(*envp, RUN)) {
            out[used++] = *envp;
        }
    }
    char *text = (char *)(out + used + 3);
    out[used++] = text;
    out[used++] = target.run;
    out[used] = NULL;
    snprintf(text, bytes - (size_t)(text - (char *)memory), PRELOAD "%.*s%s%s",
             (int)target.preload_bytes, target.preload, before && *before ? ":" : "",
             before ? before : "");
    return (char *const *)memory;
}
