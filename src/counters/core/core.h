/* SPDX-License-Identifier: MIT */
/* The image of the core (core.c) that a launcher maps into a process: its bytes, and the offsets
 * of the symbols that the launcher needs.  Generated from the linked core by embed_core.py. */
#ifndef HFN_COUNTERS_CORE_H
#define HFN_COUNTERS_CORE_H

#include <stdint.h>

typedef struct hfn_core_image {
    const uint8_t *bytes;
    uint32_t byte_count;      /* whole pages; the rest of the last one is 0        */
    uint32_t data_at;         /* pages before it are executable, the others writable */
    uint32_t unwind_at;       /* .eh_frame_hdr                                      */
    uint32_t slow_path_at;    /* hfn_thread_row_entry                              */
    uint32_t count_shared_at; /* hfn_thread_row_count_shared                       */
    uint32_t tick_enter_at, tick_exit_at;
    uint32_t sample_enter_at, sample_exit_at;
    uint32_t personality_at;
    uint32_t find_object_at, iterate_phdr_at;
    uint32_t prctl_at, syscall_at;
    uint32_t next_prctl_at, next_syscall_at; /* the addresses of the originals, uint64_t  */
    uint32_t rows_at;    /* hfn_rows, hfn_row_state                                */
    uint32_t time_at;    /* hfn_time, hfn_time_engine                              */
    uint32_t word_at_at; /* hfn_core_word_at, int64_t                              */
    uint32_t gs_rows_at; /* hfn_core_gs_rows, uint64_t                             */
    uint32_t frames_at;  /* hfn_core_frames, uint64_t                              */
    uint32_t tables_at;  /* hfn_core_tables, hfn_core_unwind                       */
} hfn_core_image;

/* byte_count 0: this CPU has no core. */
extern const hfn_core_image hfn_core;

#endif
