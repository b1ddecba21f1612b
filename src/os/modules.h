/* SPDX-License-Identifier: MIT */
/* The modules of this process: its program and libraries, as the loader lists them. */
#ifndef HFN_OS_MODULES_H
#define HFN_OS_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hfn_os_module {
    const char *path;   /* its file; the program's own path for the main module */
    uint64_t load_bias; /* address minus link address                           */
    uint64_t base;      /* address of RVA 0                                     */
    uint64_t end;
    bool is_main;
} hfn_os_module;

/* True if programs of this system are PE images, false if they are ELF images. */
bool hfn_os_loads_pe(void);

/* Calls visit for each loaded module, the program first, until it returns false.  Takes no lock:
 * the list is consistent only for a thread inside the loader, or while no other thread loads
 * modules. */
typedef bool (*hfn_os_module_fn)(void *user, const hfn_os_module *module);
void hfn_os_each_module(hfn_os_module_fn visit, void *user);

/* Where the module at base keeps the index of its unwind tables, and the mapped bytes around it;
 * false if it has none.  Linux: .eh_frame_hdr. */
typedef struct hfn_os_unwind {
    uint64_t header, begin, end;
} hfn_os_unwind;
bool hfn_os_find_unwind(uint64_t base, hfn_os_unwind *out);

/* Register a table of RUNTIME_FUNCTIONs, which must stay mapped.  Does nothing on systems other
 * than Windows, where the unwinder is part of the program. */
void hfn_os_add_unwind_table(const void *functions, uint32_t count, uint64_t base);
/* Let the system call `changed` after each change of the list, in the thread that loads or unloads
 * a module; NULL stops these calls.  False if the system does not support them. */
bool hfn_os_watch_modules(void (*changed)(void *user), void *user);
/* The function that the loader calls before and after each change of its list; 0 if it has none. */
uint64_t hfn_os_get_module_list_hook(void);
/* False while the loader changes its list: between the two calls of the hook. */
bool hfn_os_module_list_is_complete(void);

/* Never unload the module that holds this address. */
void hfn_os_keep_module_loaded(const void *address);
/* The address of a symbol of a shared library; 0 if either is missing.  On Linux the library is
 * loaded, for good, if it was not; on Windows it must be loaded. */
uint64_t hfn_os_find_symbol(const char *library, const char *symbol);

#endif
