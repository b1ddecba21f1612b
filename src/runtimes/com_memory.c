/* SPDX-License-Identifier: MIT */
/* Replacements of the heap functions of ntdll.dll.  They add up bytes for threads that are inside a
 * creation or release; for all other threads they cost one test of a word. */
#include "runtimes/com_memory.h"

#include "os/os.h"
#include "runtimes/com_results.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* MAX_SIZES: names with different bytes for creations, or releases, of one class. */
enum { MAX_THREADS = 64, MAX_CLASSES = 1024, MAX_SIZES = 16 };

typedef struct hfn_com_thread {
    uint32_t id;    /* atomic; 0: free */
    uint32_t depth; /* nested measures */
    int64_t net;
} hfn_com_thread;

typedef void *allocate_fn(void *heap, uint32_t flags, uint64_t bytes);
typedef void *resize_fn(void *heap, uint32_t flags, void *block, uint64_t bytes);
typedef uint8_t free_fn(void *heap, uint32_t flags, void *block);
typedef uint64_t get_size_fn(void *heap, uint32_t flags, const void *block);

static struct {
    hotfn_code allocate, resize, release; /* the originals */
    get_size_fn *get_size;
    hfn_com_thread threads[MAX_THREADS];
    uint32_t measured; /* atomic; entries that are not free */
} memory;

/* ---- Threads. */

/* Only the thread itself uses its entry, so no other data is published with the id. */
static hfn_com_thread *find_thread(uint32_t id)
{
    for (uint32_t i = 0; i < MAX_THREADS; i++) {
        if (__atomic_load_n(&memory.threads[i].id, __ATOMIC_RELAXED) == id) {
            return &memory.threads[i];
        }
    }
    return NULL;
}

static hfn_com_thread *claim_thread(uint32_t id)
{
    for (uint32_t i = 0; i < MAX_THREADS; i++) {
        uint32_t before = 0;

        if (__atomic_compare_exchange_n(&memory.threads[i].id, &before, id, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            __atomic_fetch_add(&memory.measured, 1, __ATOMIC_RELAXED);
            return &memory.threads[i];
        }
    }
    return NULL;
}

void hfn_com_begin_measure(hfn_com_measure *out)
{
    uint32_t id = hfn_os_thread_id();

    *out = (hfn_com_measure){ NULL, 0 };
    if (!memory.allocate || !memory.resize || !memory.release) {
        return;
    }
    out->thread = find_thread(id);
    out->thread = out->thread ? out->thread : claim_thread(id);
    if (out->thread) {
        out->thread->depth++;
        out->before = out->thread->net;
    }
}

bool hfn_com_end_measure(const hfn_com_measure *measure, int64_t *bytes)
{
    hfn_com_thread *t = measure->thread;

    if (!t) {
        return false;
    }
    *bytes = t->net - measure->before;
    if (--t->depth == 0) {
        __atomic_fetch_sub(&memory.measured, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&t->id, 0, __ATOMIC_RELAXED);
    }
    return true;
}

/* ---- The heap. */

/* NULL: the calling thread is not measured. */
static hfn_com_thread *get_measured(void)
{
    return __atomic_load_n(&memory.measured, __ATOMIC_RELAXED) ? find_thread(hfn_os_thread_id())
                                                               : NULL;
}

static int64_t get_size(void *heap, const void *block)
{
    uint64_t bytes = block ? memory.get_size(heap, 0, block) : 0;

    return bytes == UINT64_MAX ? 0 : (int64_t)bytes;
}

static void *allocate_block(void *heap, uint32_t flags, uint64_t bytes)
{
    void *block = ((allocate_fn *)memory.allocate)(heap, flags, bytes);
    hfn_com_thread *t = block ? get_measured() : NULL;

    if (t) {
        t->net += (int64_t)bytes;
    }
    return block;
}

static void *resize_block(void *heap, uint32_t flags, void *block, uint64_t bytes)
{
    hfn_com_thread *t = get_measured();
    int64_t before = t ? get_size(heap, block) : 0;
    void *resized = ((resize_fn *)memory.resize)(heap, flags, block, bytes);

    if (t && resized) {
        t->net += (int64_t)bytes - before;
    }
    return resized;
}

static uint8_t free_block(void *heap, uint32_t flags, void *block)
{
    hfn_com_thread *t = get_measured();

    if (t) {
        t->net -= get_size(heap, block);
    }
    return ((free_fn *)memory.release)(heap, flags, block);
}

uint32_t hfn_com_find_heap(hfn_find_symbol_fn *find_symbol, uint64_t base,
                           hfn_replaced out[HFN_MAX_REPLACED])
{
    uint64_t allocate = (uint64_t)(uintptr_t)find_symbol(base, "RtlAllocateHeap");
    uint64_t resize = (uint64_t)(uintptr_t)find_symbol(base, "RtlReAllocateHeap");
    uint64_t release = (uint64_t)(uintptr_t)find_symbol(base, "RtlFreeHeap");
    void *size = find_symbol(base, "RtlSizeHeap");

    if (!allocate || !resize || !release || !size || memory.get_size) {
        return 0;
    }
    memcpy((void *)&memory.get_size, &size, sizeof size);
    out[0] = (hfn_replaced){ allocate, (hotfn_code)allocate_block, &memory.allocate, false };
    out[1] = (hfn_replaced){ resize, (hotfn_code)resize_block, &memory.resize, false };
    out[2] = (hfn_replaced){ release, (hotfn_code)free_block, &memory.release, false };
    return 3;
}

/* ---- Counting. */

typedef struct class_sizes {
    hfn_guid class;
    uint32_t count;
    int64_t sizes[MAX_SIZES];
} class_sizes;

static class_sizes classes[2][MAX_CLASSES]; /* of creations and releases; the lock protects them */
static _Atomic uint32_t lock_word;

/* Whether the size gets a name of its own: the first MAX_SIZES sizes of a class do, and are
 * stored. */
static bool claim_own_name(class_sizes *known, const hfn_guid *class, int64_t bytes)
{
    static const hfn_guid none;

    for (uint32_t i = 0; i < MAX_CLASSES; i++) {
        class_sizes *c = &known[i];

        if (hfn_guid_equals(&c->class, &none)) {
            c->class = *class;
        }
        if (!hfn_guid_equals(&c->class, class)) {
            continue;
        }
        for (uint32_t n = 0; n < c->count; n++) {
            if (c->sizes[n] == bytes) {
                return true;
            }
        }
        if (c->count < MAX_SIZES) {
            c->sizes[c->count++] = bytes;
            return true;
        }
        return false;
    }
    return false;
}

void hfn_com_count_memory(const hfn_methods *methods, const hfn_guid *class, int64_t bytes,
                          bool is_release)
{
    uint64_t size = (uint64_t)(is_release == (bytes < 0) ? bytes < 0 ? -bytes : bytes : 0);
    char name[160];
    bool has_name;

    while (atomic_exchange_explicit(&lock_word, 1, memory_order_acquire)) {
        hfn_os_wait_word(&lock_word, 1, 20000);
    }
    has_name = claim_own_name(classes[is_release], class, (int64_t)size);
    atomic_store_explicit(&lock_word, 0, memory_order_release);
    hfn_guid_write(name, class);
    if (has_name) {
        snprintf(name + strlen(name), sizeof name - HFN_GUID_BYTES, " memory: %u bytes %s",
                 (unsigned)size, is_release ? "freed by release" : "allocated by creation");
    } else {
        snprintf(name + strlen(name), sizeof name - HFN_GUID_BYTES, " memory: other sizes %s",
                 is_release ? "freed by release" : "allocated by creation");
    }
    hfn_com_count_event(methods, name);
}
