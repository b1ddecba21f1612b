/* SPDX-License-Identifier: MIT */
/* One table of pointers by address, which a lock protects.  Addresses are used again, so entries
 * are overwritten and never removed. */
#include "runtimes/com_objects.h"

#include "os/os.h"

#include <stdatomic.h>
#include <stddef.h>

enum {
    ENTRIES = 1 << 19, /* a power of two */
    MAX_PROBES = 64,
    WAIT_NS = 20000,
};

static hfn_com_pointer *entries;
static _Atomic uint32_t lock_word;

static void lock_table(void)
{
    while (atomic_exchange_explicit(&lock_word, 1, memory_order_acquire)) {
        hfn_os_wait_word(&lock_word, 1, WAIT_NS);
    }
}

static void unlock_table(void)
{
    atomic_store_explicit(&lock_word, 0, memory_order_release);
}

bool hfn_com_open_objects(void)
{
    if (!entries) {
        entries = hfn_os_map_pages((uint64_t)ENTRIES * sizeof *entries);
    }
    return entries != NULL;
}

/* NULL: not there; with `add`, no room. */
static hfn_com_pointer *find_entry(uint64_t pointer, bool add)
{
    uint32_t at = (uint32_t)(pointer * UINT64_C(0x9E3779B97F4A7C15) >> 40);

    for (uint32_t i = 0; i < MAX_PROBES; i++) {
        hfn_com_pointer *e = &entries[(at + i) % ENTRIES];

        if (e->pointer == pointer) {
            return e;
        }
        if (e->pointer == 0) {
            e->pointer = add ? pointer : 0;
            return add ? e : NULL;
        }
    }
    return NULL;
}

bool hfn_com_add_object(uint64_t pointer, const hfn_guid *class)
{
    hfn_com_pointer *e;
    bool is_new;

    lock_table();
    e = find_entry(pointer, true);
    is_new = !e || e->root != pointer || !e->is_alive;
    if (e && is_new) {
        e->root = pointer;
        e->generation++;
        e->is_alive = true;
        e->class = *class;
    }
    unlock_table();
    return is_new;
}

void hfn_com_add_class_object(uint64_t pointer, const hfn_guid *class)
{
    hfn_com_pointer *e;

    lock_table();
    e = find_entry(pointer, true);
    if (e) {
        e->root = 0;
        e->is_alive = false;
        e->class = *class;
    }
    unlock_table();
}

void hfn_com_add_pointer(uint64_t pointer, uint64_t other)
{
    const hfn_com_pointer *from;
    hfn_com_pointer *to;

    lock_table();
    from = find_entry(pointer, false);
    to = from && other != from->root ? find_entry(other, true) : NULL;
    if (to) {
        to->root = from->root;
        to->generation = from->generation;
        to->class = from->class;
    }
    unlock_table();
}

void hfn_com_set_table(uint64_t pointer, uint64_t table)
{
    hfn_com_pointer *e;

    lock_table();
    e = find_entry(pointer, false);
    if (e) {
        e->table = table;
    }
    unlock_table();
}

bool hfn_com_find_pointer(hfn_com_pointer *out, uint64_t pointer)
{
    const hfn_com_pointer *e;

    lock_table();
    e = find_entry(pointer, false);
    if (e) {
        *out = *e;
    }
    unlock_table();
    return e != NULL;
}

bool hfn_com_end_object(const hfn_com_pointer *before)
{
    hfn_com_pointer *e;
    bool has_ended;

    lock_table();
    e = before->root ? find_entry(before->root, false) : NULL;
    has_ended = e && e->is_alive && e->generation == before->generation;
    if (has_ended) {
        e->is_alive = false;
    }
    unlock_table();
    return has_ended;
}
