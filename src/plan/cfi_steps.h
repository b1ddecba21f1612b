/* SPDX-License-Identifier: MIT */
/* The DWARF call frame instructions of a plan, which describe moved code to unwinders. */
#ifndef HFN_PLAN_CFI_STEPS_H
#define HFN_PLAN_CFI_STEPS_H

#include <stdbool.h>
#include <stdint.h>

/* Check that the bytes are complete instructions of the kinds that plans contain, and set
 * *advanced to the sum of their advances: the size of the code that they describe. */
bool hfn_cfi_check_steps(const uint8_t *cfi, uint32_t byte_count, uint32_t *advanced);

#endif
