/* SPDX-License-Identifier: MIT */
/*
 * Entering a process that runs already with the agent, where the system lets a process load a
 * library into another: only windows/ has these calls.  Launcher and agent share the order of the
 * process, named memory that the agent keeps for good, so that it outlives a launcher:
 *
 *   IDLE --launcher--> ENTERING --agent--> INSIDE --launcher--> LEAVING --agent--> IDLE
 *
 * After a step that failed the agent goes back to the state before, and the order has the reason.
 * `word` holds the state and the launcher that attached, so both change together.
 */
#ifndef HFN_OS_AGENT_H
#define HFN_OS_AGENT_H

#include "os/error.h"

#include <stdbool.h>
#include <stdint.h>

/* The last digit is the version, for which the bytes before it are the same. */
#define HFN_ORDER_MAGIC UINT64_C(0x324452304e464824)

enum { HFN_ORDER_RUN = 1, HFN_ORDER_ATTACH };
enum { HFN_AGENT_IDLE, HFN_AGENT_ENTERING, HFN_AGENT_INSIDE, HFN_AGENT_LEAVING };

/* The bytes of the image's headers that were changed to load the agent; byte_count 0: none. */
typedef struct hfn_changed_headers {
    uint64_t address[2];
    uint32_t byte_count[2];
    uint8_t original[2][8];
} hfn_changed_headers;

typedef struct hfn_agent_order {
    uint64_t magic;
    uint32_t kind; /* HFN_ORDER_*; the fields behind `text` are only those of ATTACH */
    uint32_t text_bytes;
    hfn_changed_headers headers;
    char text[1008];        /* flags, path of the live record, path of the plan channel, each with
                                its NUL */
    _Atomic uint64_t word;  /* HFN_AGENT_* | launcher's process id << 32 */
    _Atomic uint64_t serve; /* address of the agent's function; 0: it is not loaded */
    _Atomic uint32_t
        offered;      /* 1: a step waits for the agent; the process that sets it to 0 does it, or
                                 withdraws it */
    uint32_t by_hook; /* how the launcher entered */
    int32_t status;   /* HOTFN_E_* of the latest step, HOTFN_OK */
    uint32_t reserved;
    uint64_t stop_ns; /* for how long its threads were stopped */
    char error[512];  /* why it failed; after HOTFN_OK a warning, or "" */
} hfn_agent_order;

static inline uint64_t hfn_agent_word(uint32_t state, uint32_t launcher_pid)
{
    return state | (uint64_t)launcher_pid << 32;
}

/* ---- The launcher's side. */

typedef struct hfn_os_agent {
    uint32_t pid;
    int64_t process, section; /* the system's; 0: not open */
    hfn_agent_order *order;   /* NULL: not mapped          */
} hfn_os_agent;

/* Open the process.  hfn_os_is_gone: there is none, or it has ended; hfn_os_is_denied. */
hfn_os_error hfn_os_agent_open(hfn_os_agent *out, uint32_t pid);
void hfn_os_agent_close(hfn_os_agent *agent);
bool hfn_os_agent_has_ended(const hfn_os_agent *agent);

/* Map the order of the process; `creates` makes an order for an attach if there is none.
 * hfn_os_is_missing: there is none.  Of another version only the magic number can be read. */
hfn_os_error hfn_os_agent_map_order(hfn_os_agent *agent, bool creates);

/* Load the agent unless it is loaded, and let it do the step that the order's state asks for: by
 * a thread that is started in the process, or by a message hook of a thread that has a window.
 * hfn_os_is_missing: by a hook, and no thread has a window. hfn_os_is_denied, hfn_os_is_timeout. */
hfn_os_error hfn_os_agent_call(const hfn_os_agent *agent, const char *agent_path, bool by_hook);

#endif
