/* SPDX-License-Identifier: MIT */
/* Memory that creations and releases of COM objects allocate and free. */
#ifndef HFN_RUNTIMES_COM_MEMORY_H
#define HFN_RUNTIMES_COM_MEMORY_H

#include "runtimes/com_names.h"
#include "runtimes/methods.h"
#include "session/runtime.h"

/* Bytes that a thread allocates, less those that it frees, between begin and end. */
typedef struct hfn_com_measure {
    struct hfn_com_thread *thread; /* NULL: there was no room for the thread */
    int64_t before;
} hfn_com_measure;

/* Store the functions of ntdll.dll by which all heaps allocate and free, if the module at base has
 * them; returns their number. */
uint32_t hfn_com_find_heap(hfn_find_symbol_fn *find_symbol, uint64_t base,
                           hfn_replaced out[HFN_MAX_REPLACED]);
void hfn_com_begin_measure(hfn_com_measure *out);
/* False if nothing was measured. */
bool hfn_com_end_measure(const hfn_com_measure *measure, int64_t *bytes);
/* Count a creation or release of an object of the class, under a name with its bytes. */
void hfn_com_count_memory(const hfn_methods *methods, const hfn_guid *class, int64_t bytes,
                          bool is_release);

#endif
