/* SPDX-License-Identifier: MIT */
/* Reads parts of .eh_frame: encoded pointers, CIEs, and the frame that the unwinder assumes at the
 * first byte of a function or at any other.
 * Sources: LSB core 'Exception Frames'; DWARF 5, 6.4. */
#ifndef HFN_FUNCTIONS_EH_FRAME_READ_H
#define HFN_FUNCTIONS_EH_FRAME_READ_H

#include "image/image.h"

enum { HFN_ENCODING_OMIT = 0xff };

/* The bytes of .eh_frame or .eh_frame_hdr, or a part of them, with their address. */
typedef struct hfn_eh_bytes {
    hfn_span bytes;
    uint64_t address; /* link address of bytes.data[0]             */
    uint64_t data;    /* the address that 'datarel' is relative to; 0: unknown */
    uint32_t word_bytes;
} hfn_eh_bytes;

/* The frame as call frame instructions describe it. */
typedef struct hfn_frame {
    uint64_t cfa_register;
    int64_t cfa_offset;
    int64_t return_at;    /* of the return address, from the CFA; 0: any rule but DW_CFA_offset */
    bool known;           /* no instruction was unknown */
    bool advanced;        /* an instruction advanced beyond the first byte */
    bool cfa_set;         /* the CFA is a register plus an offset */
    bool by_expression;   /* the CFA is a DWARF expression */
    bool saved_registers; /* a callee-saved register is on the stack      */
} hfn_frame;

typedef struct hfn_cie {
    uint64_t offset; /* in .eh_frame; FDEs refer to the CIE by it */
    int64_t data_align;
    uint64_t return_register;
    hfn_frame initial; /* after the CIE's initial instructions */
    uint8_t pointer_encoding, lsda_encoding;
    bool has_sizes;    /* 'z': a length precedes the augmentation data */
    bool signal_frame; /* 'S': the frame of a signal handler */
} hfn_cie;

/* Reads a pointer and advances *at.  raw receives the number before a base is added (0 is a null
 * pointer under every encoding).  False beyond the end, and for an encoding that is not supported:
 * indirect, or relative to an unknown base. */
bool hfn_eh_pointer(const hfn_eh_bytes *eh, uint64_t *at, uint8_t encoding, uint64_t *raw,
                    uint64_t *value);

/* Reads the CIE whose bytes after the id are [at, end). False if it is damaged or of an unknown
 * kind. */
bool hfn_eh_read_cie(const hfn_eh_bytes *eh, uint64_t at, uint64_t end, hfn_cie *out);

/* The frame that the unwinder assumes at the first byte of an FDE with these instructions. */
hfn_frame hfn_eh_frame_at_entry(const hfn_cie *cie, hfn_span fde_instructions);

/* True if the unwinder must remove stack arguments before it enters a landing pad of the function
 * (DW_CFA_GNU_args_size), or if the instructions are not understood. */
bool hfn_eh_frame_has_argument_sizes(const hfn_cie *cie, hfn_span fde_instructions);
/* Stores the size of these arguments at this offset from the FDE's first byte.  False if it is
 * unknown.  Only for a code alignment factor of 1 (x86). */
bool hfn_eh_frame_arguments_at(hfn_span fde_instructions, uint64_t offset, uint64_t *byte_count);

/* Visits each range [begin, end) of a function of byte_count bytes with its frame; also only for
 * x86 code.  False if a frame is unknown: then the caller must discard the visited ranges. */
typedef void (*hfn_eh_row_fn)(void *user, uint64_t begin, uint64_t end, const hfn_frame *frame);
bool hfn_eh_frame_rows(const hfn_cie *cie, hfn_span fde_instructions, uint64_t byte_count,
                       hfn_eh_row_fn visit, void *user);

#endif
