/* SPDX-License-Identifier: MIT */
/* The interface pointers of a program: to which object each belongs, and whether it is alive. */
#ifndef HFN_RUNTIMES_COM_OBJECTS_H
#define HFN_RUNTIMES_COM_OBJECTS_H

#include "runtimes/com_names.h"

/* An interface pointer.  Several pointers belong to one object; its root is the pointer that its
 * creation returned. */
typedef struct hfn_com_pointer {
    uint64_t pointer; /* 0: free */
    uint64_t root;
    uint64_t table;      /* of functions, when the pointer was seen; 0: not replaced */
    uint32_t generation; /* of the root when the pointer was seen; counts its creations */
    bool is_alive;       /* of a root */
    hfn_guid class;
} hfn_com_pointer;

/* False if there is no memory. */
bool hfn_com_open_objects(void);
/* An object was created: true if it is new; false if it is known and alive. */
bool hfn_com_add_object(uint64_t pointer, const hfn_guid *class);
/* The pointer is a class object of the class. */
void hfn_com_add_class_object(uint64_t pointer, const hfn_guid *class);
/* `other` belongs to the same object as `pointer`; nothing happens if that is not known. */
void hfn_com_add_pointer(uint64_t pointer, uint64_t other);
/* The slots of this table of a known pointer were replaced. */
void hfn_com_set_table(uint64_t pointer, uint64_t table);
/* What is known of a pointer; false: nothing. */
bool hfn_com_find_pointer(hfn_com_pointer *out, uint64_t pointer);
/* The object of the pointer, as it was found before, has released itself: true if it was alive. */
bool hfn_com_end_object(const hfn_com_pointer *before);

#endif
