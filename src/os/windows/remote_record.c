/* SPDX-License-Identifier: MIT */
/* The live record of a process: the order for its agent has the path. */
#include "os/remote.h"
#include "os/windows/nt.h"
#include "os/windows/order.h"

#include <stdatomic.h>
#include <string.h>

/* The second of the order's texts.  The texts are NUL-terminated, as the last one is. */
static bool copy_path(const hfn_agent_order *order, char *path, size_t capacity)
{
    const char *end = order->text + order->text_bytes,
               *live = order->text + strlen(order->text) + 1;
    size_t bytes = live < end ? strlen(live) + 1 : 1;

    if (bytes == 1 || bytes > capacity) {
        return false;
    }
    memcpy(path, live, bytes);
    return true;
}

static bool is_counted(const hfn_agent_order *order)
{
    return order->magic == HFN_ORDER_MAGIC &&
           (order->kind == HFN_ORDER_RUN ||
            (uint32_t)atomic_load(&order->word) == HFN_AGENT_INSIDE);
}

bool hfn_os_remote_find_record(uint32_t pid, char *path, size_t capacity)
{
    static hfn_agent_order copy; /* the process may change the order */
    hfn_agent_order *order;
    int64_t section;
    bool found;

    if (hfn_order_map(&section, &order, pid, false) != 0) {
        return false;
    }
    found = is_counted(order);
    if (found) {
        memcpy(&copy, order, sizeof copy);
        found = hfn_order_is_valid(&copy) && copy_path(&copy, path, capacity);
    }
    UnmapViewOfFile(order);
    CloseHandle((HANDLE)(intptr_t)section);
    return found;
}

bool hfn_os_remote_names_record(void)
{
    return true;
}
