/* SPDX-License-Identifier: MIT */
/* The contract of an operating system folder: memory near code, changing code, threads, loaded
 * modules.  Twin folders hold twin file names. */
#ifndef HFN_OS_OS_H
#define HFN_OS_OS_H

#include <hotfn/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- code_memory: pages for generated code, and text that is patched. */

uint64_t hfn_os_page_bytes(void);

/* Map byte_count writable bytes so that all of them and all of [near_begin, near_end) lie within
 * range_bytes of each other; 0 if there is no such gap.  Uses /proc/self/maps by raw reads. */
uint64_t hfn_os_map_near(uint64_t near_begin, uint64_t near_end, uint64_t byte_count,
                         uint64_t range_bytes);
/* The free ranges that touch [begin, end), at most capacity of them, rising; a hint: others map too. */
typedef struct hfn_os_gap {
    uint64_t begin, end;
} hfn_os_gap;
uint32_t hfn_os_find_gaps(uint64_t begin, uint64_t end, hfn_os_gap *out, uint32_t capacity);
/* Map byte_count writable bytes exactly there; false if something is there already. */
bool hfn_os_map_at(uint64_t address, uint64_t byte_count);
/* The same pages, now read-only and executable. */
bool hfn_os_make_executable(uint64_t address, uint64_t byte_count);
void hfn_os_unmap(uint64_t address, uint64_t byte_count);

/* A range of pages of text that may be written while it stays executable all the time. */
typedef struct hfn_text_window {
    uint64_t begin, end; /* page aligned                                            */
    int protection;      /* what it was, to be put back                             */
    int how;             /* by protection change, or by /proc/self/mem where W^X forbids */
    int fd;
} hfn_text_window;
/* False if the system forbids it every way. */
bool hfn_os_text_open(hfn_text_window *window, uint64_t begin, uint64_t end);
/* Make pages of the window private now, in one batch: a hint that saves a fault for each. */
void hfn_os_text_populate(const hfn_text_window *window, uint64_t begin, uint64_t end);
void hfn_os_text_write(hfn_text_window *window, uint64_t address, const uint8_t *bytes,
                       uint32_t byte_count);
void hfn_os_text_close(hfn_text_window *window);

/* ---- threads. */

uint32_t hfn_os_thread_id(void);
bool hfn_os_is_single_threaded(void); /* by /proc/self/task */
/* The stack that the process began on, as far down as it may grow: nothing else stands there.  False: not known. */
bool hfn_os_main_stack(uint64_t *begin, uint64_t *end);
/* This thread's signals, all blocked: no handler may run while bytes are half written. */
void hfn_os_block_signals(uint64_t *before);
void hfn_os_restore_signals(const uint64_t *before);
/* Serialise the instruction streams of all threads (membarrier SYNC_CORE); false if not available. */
bool hfn_os_sync_core(void);

/* Stop every other thread of the process at any instruction, let `adjust` look at each one's PC and
 * answer a new one (the same one to leave it), run `work`, then let all go on.  False if a thread did
 * not stop within timeout_ns: then nothing was run and all go on.  Other threads may hold any lock:
 * adjust and work must not allocate. */
typedef uint64_t (*hfn_adjust_pc_fn)(void *user, uint64_t pc);
typedef void (*hfn_quiesced_fn)(void *user);
bool hfn_os_with_threads_stopped(uint64_t timeout_ns, hfn_adjust_pc_fn adjust, hfn_quiesced_fn work,
                                 void *user);

/* ---- modules: what is loaded in this process. */

typedef struct hfn_os_module {
    const char *path;   /* of the file; the program's own path for the main image */
    uint64_t load_bias; /* address minus link address                             */
    uint64_t base;      /* address of RVA 0                                       */
    uint64_t end;
    bool is_main;
} hfn_os_module;
/* Newest state, by the loader's own list; visit returns false to stop. */
typedef bool (*hfn_os_module_fn)(void *user, const hfn_os_module *module);
void hfn_os_each_module(hfn_os_module_fn visit, void *user);
/* Where the module whose ELF header stands at base has its unwind table (PT_GNU_EH_FRAME), and all that is mapped with
 * it; false if it has none. */
typedef struct hfn_os_unwind {
    uint64_t header, begin, end;
} hfn_os_unwind;
bool hfn_os_find_unwind(uint64_t base, hfn_os_unwind *out);
/* The function that the loader calls whenever its list changed (r_debug.r_brk), 0 if unknown. */
uint64_t hfn_os_loader_breakpoint(void);
/* 1 while the list is consistent (r_debug.r_state == RT_CONSISTENT). */
bool hfn_os_loader_is_consistent(void);

/* ---- clock. */
uint64_t hfn_os_wall_ns(void);
uint64_t hfn_os_monotonic_ns(void);
uint64_t hfn_os_thread_cpu_ns(void); /* of the calling thread */
uint64_t hfn_os_raw_ns(void);        /* as the hardware counts: nobody adjusts it */
void hfn_os_sleep(uint32_t ns);      /* below a second; a signal may end it */
/* Does the processor's own counter go evenly, on all processors alike?  As the processor says, and the
 * system where it can be asked. */
bool hfn_os_ticks_are_steady(void);

#endif
