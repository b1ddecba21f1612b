/* SPDX-License-Identifier: MIT */
/* Writes A64 instructions into a bounded buffer.  A writer that has become full stays full and
 * writes nothing more, so a sequence is checked once, at its end. */
#ifndef HFN_ARCH_ARM64_EMIT_H
#define HFN_ARCH_ARM64_EMIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hfn_arm64_writer {
    uint8_t *bytes;
    uint32_t capacity;
    uint32_t length;
    bool full; /* an instruction did not fit */
} hfn_arm64_writer;

hfn_arm64_writer hfn_arm64_begin_writer(uint8_t *bytes, uint32_t capacity);

/* Append a word, little endian as all A64 code; returns its offset. */
uint32_t hfn_arm64_put_word(hfn_arm64_writer *w, uint32_t word);
void hfn_arm64_replace_word(hfn_arm64_writer *w, uint32_t at, uint32_t word);

/* Make words.  Distances are in bytes from the instruction itself; false if out of reach. */
bool hfn_arm64_make_branch(uint32_t *word, int64_t distance);          /* b, +-128 MiB          */
bool hfn_arm64_set_branch_distance(uint32_t *word, int64_t distance);  /* set any branch's field  */
uint32_t hfn_arm64_make_load_literal(uint32_t reg, uint32_t distance); /* ldr xt, pc + distance */
uint32_t hfn_arm64_make_load(uint32_t reg, uint32_t base,
                             uint32_t offset); /* ldr xt, [xn, #offset] */
uint32_t hfn_arm64_make_store(uint32_t reg, uint32_t base, uint32_t offset);

#define HFN_ARM64_REACH (INT64_C(1) << 27) /* of b and bl */

#endif
