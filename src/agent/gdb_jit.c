/* SPDX-License-Identifier: MIT */
/* Unwind tables for gdb, which does not call the process's unwinder: each region of stubs has a
 * small ELF object, which is registered through gdb's interface for generated code (gdb manual,
 * "JIT Compilation Interface").  gdb finds the interface by the names below. */
#include "agent/agent.h"

#define EXPORT __attribute__((visibility("default")))
#define OBJECTS_MAX 512

enum { JIT_REGISTER = 1 };

struct jit_code_entry {
    struct jit_code_entry *next, *previous;
    const void *object;
    uint64_t byte_count;
};

EXPORT extern struct jit_descriptor {
    uint32_t version, action;
    struct jit_code_entry *relevant, *first;
} __jit_debug_descriptor;
struct jit_descriptor __jit_debug_descriptor = { 1, 0, NULL, NULL };

EXPORT void __jit_debug_register_code(void);

/* gdb sets a breakpoint here.  The barrier keeps the stores before the calls, and keeps the
 * compiler from removing the calls. */
__attribute__((noinline)) void __jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory");
}

static void register_object(struct jit_code_entry *entry)
{
    struct jit_code_entry *first = __jit_debug_descriptor.first;
    entry->next = first;
    if (first) {
        first->previous = entry;
    }
    __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = entry;
    __jit_debug_descriptor.action = JIT_REGISTER;
    __jit_debug_register_code();
}

void agent_register_with_debuggers(void)
{
    static struct jit_code_entry entries[OBJECTS_MAX];
    static const void *objects[OBJECTS_MAX];
    static uint64_t byte_counts[OBJECTS_MAX];
    void *paused = hotfn_counters_pause(); /* mmap may be hooked */
    const hotfn_hooks *hooks = agent_hooks();
    uint32_t count =
        hooks ? hotfn_hooks_debug_objects(hooks, objects, byte_counts, OBJECTS_MAX) : 0;
    for (uint32_t i = 0; i < count; i++) {
        entries[i].object = objects[i];
        entries[i].byte_count = byte_counts[i];
        register_object(&entries[i]);
    }
    hotfn_counters_resume(paused);
}
