/* SPDX-License-Identifier: MIT */
/* The environment of the agent, and that of the program: without hotfn's
 * variables, and without the agent's entry in LD_PRELOAD. */
#include "agent/agent.h"

#include "live/run_flags.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

const char *agent_find_setting(char **envp, const char *name)
{
    size_t length = strlen(name);
    for (; *envp; envp++) {
        if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=') {
            return *envp + length + 1;
        }
    }
    return NULL;
}

static void drop_entry(char **at)
{
    for (; *at; at++) {
        at[0] = at[1];
    }
}

static size_t get_entry_bytes(const char *entry)
{
    size_t length = 0;
    while (entry[length] && !strchr(": ", entry[length])) {
        length++;
    }
    return length;
}

/* Does the entry name the pool of methods, which the launcher puts behind the agent? */
static bool is_pool(const char *entry, size_t length)
{
    static const char *const names[] = { "/hotfn-methods.so", "/hotfn-messages.so" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t bytes = strlen(names[i]);
        if (length >= bytes && memcmp(entry + length - bytes, names[i], bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* The agent's entry and its length, with the pool of methods if that follows.  A wrapper may have
 * put other libraries in front of the agent; an agent of another name is the first entry, where the
 * launcher puts it.  Entries are separated by colons or spaces (ld.so(8)). */
static char *find_agent_entry(char *preloads, size_t *length)
{
    char *begin = preloads;
    while (*begin && strncmp(begin, "hotfn-agent", 11) != 0) {
        begin++;
    }
    begin = *begin ? begin : preloads;
    while (begin > preloads && begin[-1] != ':' && begin[-1] != ' ') {
        begin--;
    }
    *length = get_entry_bytes(begin);
    if (begin[*length]) {
        size_t next = get_entry_bytes(begin + *length + 1);
        *length += is_pool(begin + *length + 1, next) ? 1 + next : 0;
    }
    return begin;
}

/* Returns whether other entries remain. */
static bool remove_agent_entry(char *preloads)
{
    size_t length;
    char *begin = find_agent_entry(preloads, &length), *end = begin + length;
    if (*end) {
        memmove(begin, end + 1, strlen(end + 1) + 1);
    } else {
        *(begin > preloads ? begin - 1 : begin) = 0;
    }
    return *preloads != 0;
}

size_t agent_copy_preload(char **envp, char *out, size_t capacity)
{
    char *preloads = (char *)(uintptr_t)agent_find_setting(envp, "LD_PRELOAD");
    size_t length = 0;
    const char *entry = preloads ? find_agent_entry(preloads, &length) : "";

    length = length < capacity ? length : 0;
    memcpy(out, entry, length);
    return length;
}

void agent_restore_environment(char **envp)
{
    for (char **at = envp; *at;) {
        bool dropped =
            strncmp(*at, "HOTFN_RUN=", 10) == 0 || strncmp(*at, "HOTFN_TARGET=", 13) == 0;

        if (strncmp(*at, "LD_PRELOAD=", 11) == 0) {
            dropped = !remove_agent_entry(*at + strlen("LD_PRELOAD="));
        }
        if (dropped) {
            drop_entry(at);
        } else {
            at++;
        }
    }
}

/* With --follow, children of the target are targets too.  The flags are the last three digits. */
void agent_mark_children(char **envp, unsigned flags)
{
    char *run = (char *)(uintptr_t)agent_find_setting(envp, "HOTFN_RUN");
    char digits[4];
    size_t length = run ? strlen(run) : 0;
    if (length > 3) {
        snprintf(digits, sizeof digits, "%03u", (flags | AGENT_INSIDE) % 1000u);
        memcpy(run + length - 3, digits, 3);
    }
}
