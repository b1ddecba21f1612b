/* SPDX-License-Identifier: MIT */
/* The part of decode.c that translates how an instruction moves data. */
#ifndef HFN_ARCH_X86_DECODE_DATA_H
#define HFN_ARCH_X86_DECODE_DATA_H

#include "arch/x86/decode.h"

#include <Zydis/Zydis.h>

void hfn_x86_translate_data(hfn_x86_mode mode, const ZydisDecodedInstruction *in,
                            const ZydisDecodedOperand *operands, hfn_x86_data *out);

/* decode.c: the number of a general register or of its whole register; HFN_X86_RIP;
 * HFN_X86_NO_REGISTER. */
uint8_t hfn_x86_get_register_number(ZydisRegister reg);

#endif
