/* SPDX-License-Identifier: MIT */
/* Tables of functions of COM interfaces, whose slots lead to the pool of methods. */
#ifndef HFN_RUNTIMES_COM_TABLES_H
#define HFN_RUNTIMES_COM_TABLES_H

#include "runtimes/com_names.h"
#include "runtimes/methods.h"

typedef struct hfn_com_table {
    uint64_t address;                  /* 0: free */
    hotfn_code query, release, create; /* what the slots had; create: of IClassFactory, else NULL */
    uint32_t slot_count;
    hfn_guid class;
} hfn_com_table;

/* The functions that slots lead to, in place of the methods. */
typedef struct hfn_com_functions {
    hotfn_code query, release, create;
} hfn_com_functions;

/* Replace the slots of the table of the interface at pointer, unless that was done.  is_declared: a
 * method has returned it by an argument of this type; the interface may have more methods.  True if
 * the table is left alone and was not seen before.  Any thread. */
bool hfn_com_replace_slots(const hfn_methods *methods, const hfn_com_functions *functions,
                           uint64_t pointer, const hfn_guid *class, const hfn_guid *iid,
                           bool is_declared);
/* The table of the interface at pointer, whose method was called.  Other software may have given it
 * a copy of its table since: then it is the table that the interface had, or else the table that
 * the caller, a function of the pool, serves.  NULL: there is none. */
const hfn_com_table *hfn_com_find_table(const hfn_methods *methods, uint64_t pointer,
                                        const void *caller);

#endif
