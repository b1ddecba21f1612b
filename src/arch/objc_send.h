/* SPDX-License-Identifier: MIT */
/* Replacements for objc_msgSend of libobjc2, and for its variants for other results.  Each finds
 * the method's function by hfn_objc_choose, and jumps to it with the arguments unchanged; a message
 * to nil is left to the original. */
#ifndef HFN_ARCH_OBJC_SEND_H
#define HFN_ARCH_OBJC_SEND_H

/* The variants, which are numbers in assembly too. */
#define HFN_OBJC_SEND 0
#define HFN_OBJC_SEND_FPRET 1
#define HFN_OBJC_SEND_STRET 2
#define HFN_OBJC_SENDS 3

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stdint.h>

typedef void hfn_objc_code(void);

/* What was replaced. */
extern hfn_objc_code *hfn_objc_originals[HFN_OBJC_SENDS];
/* The function to jump to; an original, or a method. */
hfn_objc_code *hfn_objc_choose(const void *receiver, const void *selector, uint32_t variant);

#if !defined(_WIN32) && (defined(__x86_64__) || defined(__aarch64__))
void hfn_objc_send(void);
void hfn_objc_send_fpret(void);
void hfn_objc_send_stret(void);
#define HFN_OBJC_SEND_ENTRIES                                                                      \
    {                                                                                              \
        hfn_objc_send, hfn_objc_send_fpret, hfn_objc_send_stret                                    \
    }

/* Is the function objc_msg_lookup_super as compilers make it from libobjc2's source?  It is too
 * short for a hook at its entry, but its call of the lookup of slots can be replaced:
 *   push rax; call lookup; mov rax, [rax]; pop rcx; ret */
static inline bool hfn_objc_calls_slot_lookup(const uint8_t *code)
{
#if defined(__x86_64__)
    return code[0] == 0x50 && code[1] == 0xe8 && code[6] == 0x48 && code[7] == 0x8b &&
           code[8] == 0x00 && code[9] == 0x59 && code[10] == 0xc3;
#else
    (void)code;
    return false;
#endif
}
#else
static inline bool hfn_objc_calls_slot_lookup(const uint8_t *code)
{
    (void)code;
    return false;
}
#define HFN_OBJC_SEND_ENTRIES                                                                      \
    {                                                                                              \
        0, 0, 0                                                                                    \
    } /* not for this CPU or system */
#endif
#endif

#endif
