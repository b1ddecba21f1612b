/* SPDX-License-Identifier: MIT */
/* The parts of .eh_frame: encoded pointers, CIEs, and what the unwinder believes at a first byte.
 * Sources: LSB core 'Exception Frames'; DWARF 5, 6.4. */
#ifndef HFN_FUNCTIONS_EH_FRAME_READ_H
#define HFN_FUNCTIONS_EH_FRAME_READ_H

#include "image/image.h"

enum { HFN_ENCODING_OMIT = 0xff };

/* A piece of .eh_frame (or .eh_frame_hdr) with its place in memory. */
typedef struct hfn_eh_bytes {
    hfn_span bytes;
    uint64_t address; /* link address of bytes.data[0]             */
    uint64_t data;    /* what 'datarel' counts from, 0 if unknown  */
    uint32_t word_bytes;
} hfn_eh_bytes;

/* The frame as call frame instructions describe it. */
typedef struct hfn_frame {
    uint64_t cfa_register;
    int64_t cfa_offset;
    int64_t return_at;    /* where the return address lies, from the CFA; 0: elsewhere */
    bool known;           /* all instructions so far were understood      */
    bool advanced;        /* behind the first byte already                */
    bool cfa_set;         /* by register and offset                       */
    bool by_expression;   /* the CFA is computed                          */
    bool saved_registers; /* a callee-saved register is on the stack      */
} hfn_frame;

typedef struct hfn_cie {
    uint64_t offset; /* in .eh_frame; FDEs name it by that */
    int64_t data_align;
    uint64_t return_register;
    hfn_frame initial; /* after its initial instructions     */
    uint8_t pointer_encoding, lsda_encoding;
    bool has_sizes;    /* 'z': augmentation data carry their size */
    bool signal_frame; /* 'S'                                     */
} hfn_cie;

/* Moves *at on.  raw receives the number before any base is added (0 is a null pointer under every
 * encoding).  False beyond the end, and for an encoding that a static reader cannot follow. */
bool hfn_eh_pointer(const hfn_eh_bytes *eh, uint64_t *at, uint8_t encoding, uint64_t *raw,
                    uint64_t *value);

/* The CIE whose bytes behind the id are [at, end). False if it is damaged or of an unknown kind. */
bool hfn_eh_read_cie(const hfn_eh_bytes *eh, uint64_t at, uint64_t end, hfn_cie *out);

/* What the unwinder believes at the first byte of an FDE with these instructions. */
hfn_frame hfn_eh_frame_at_entry(const hfn_cie *cie, hfn_span fde_instructions);

/* Are arguments on the stack at some of its calls, which an exception takes away before it lands
 * (DW_CFA_GNU_args_size)?  True as well if the instructions are not understood. */
bool hfn_eh_frame_sizes_arguments(const hfn_cie *cie, hfn_span fde_instructions);
/* Stores the size of these arguments at that offset from the FDE's first byte.  False if it is
 * unknown.  Only for code whose addresses advance by 1 (x86). */
bool hfn_eh_frame_arguments_at(hfn_span fde_instructions, uint64_t offset, uint64_t *byte_count);

/* Visits the frame of each piece [begin, end) of the function of byte_count bytes, also only for
 * x86
 * code.  False if a frame is unknown: then the caller must discard the visited pieces. */
typedef void (*hfn_eh_row_fn)(void *user, uint64_t begin, uint64_t end, const hfn_frame *frame);
bool hfn_eh_frame_rows(const hfn_cie *cie, hfn_span fde_instructions, uint64_t byte_count,
                       hfn_eh_row_fn visit, void *user);

#endif
