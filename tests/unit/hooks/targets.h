/* SPDX-License-Identifier: MIT */
/* Small functions in assembly to hook, each with known bytes, and a plan of them made without
 * verdicts/: arch/ relocates the instructions as it does there. */
#ifndef HFN_TESTS_HOOKS_TARGETS_H
#define HFN_TESTS_HOOKS_TARGETS_H

#include "os/os.h"
#include "plan/plan_write.h"

#include "check.h"

#include <sys/mman.h>

/* The functions are code of this CPU.  Their arguments are in edi and esi, in 32-bit programs in
 * ecx and edx. */
#define TARGET_LIST(...)                                                                           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#if defined(__x86_64__)
#define TARGET_MACHINE HOTFN_MACHINE_X86_64
#define TARGET_MODE HFN_X86_64
#define TARGET_ARCH hfn_arch_x86_64
#define TARGET_CALL
#define TARGET_BYTES(wide, narrow) TARGET_LIST wide
#else
#define TARGET_MACHINE HOTFN_MACHINE_X86
#define TARGET_MODE HFN_X86_32
#define TARGET_ARCH hfn_arch_x86
#define TARGET_CALL __attribute__((fastcall))
#define TARGET_BYTES(wide, narrow) TARGET_LIST narrow
#endif

/* Functions that several tests use.  Their prologues have one-byte instructions, so that the PC of
 * an interrupted thread is often inside the bytes of the patch. */

/* push rbx; push rbp; push r12; mov ebx, edi; lea eax, [rbx + rsi]; pop r12; pop rbp; pop rbx;
 * ret */
static const uint8_t target_pushes[] = TARGET_BYTES(
    (0x53, 0x55, 0x41, 0x54, 0x89, 0xfb, 0x8d, 0x04, 0x33, 0x41, 0x5c, 0x5d, 0x5b, 0xc3),
    (0x53, 0x55, 0x56, 0x89, 0xcb, 0x8d, 0x04, 0x13, 0x5e, 0x5d, 0x5b, 0xc3));
/* mov eax, edi; nop; nop; nop; add eax, esi; ret */
static const uint8_t target_nops[] = TARGET_BYTES((0x89, 0xf8, 0x90, 0x90, 0x90, 0x01, 0xf0, 0xc3),
                                                  (0x89, 0xc8, 0x90, 0x90, 0x90, 0x01, 0xd0, 0xc3));
/* nop; mov eax, [rdi]; nop; nop; ret: it faults at its second byte */
static const uint8_t target_faulting[] =
    TARGET_BYTES((0x90, 0x8b, 0x07, 0x90, 0x90, 0xc3), (0x90, 0x8b, 0x01, 0x90, 0x90, 0xc3));

/* A page of code that only the test uses; every function is aligned to 32 and padded with int3. */
typedef struct target_code {
    uint8_t *bytes;
    size_t byte_count, used;
} target_code;

static inline target_code target_code_make(size_t byte_count)
{
    target_code code = { mmap(NULL, byte_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                              -1, 0),
                         byte_count, 0 };

    memset(code.bytes, 0xcc, byte_count);
    return code;
}

/* Code with unmapped addresses after it, where stubs of punned jumps can be placed. */
static inline target_code target_code_make_apart(size_t byte_count, size_t room_bytes)
{
    target_code code = { mmap(NULL, room_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                              -1, 0),
                         byte_count, 0 };

    munmap(code.bytes + byte_count, room_bytes - byte_count);
    memset(code.bytes, 0xcc, byte_count);
    return code;
}

/* Append a function; returns its rva. */
static inline uint32_t target_add(target_code *code, const uint8_t *bytes, size_t byte_count)
{
    size_t at = (code->used + 31) & ~(size_t)31;

    memcpy(code->bytes + at, bytes, byte_count);
    code->used = at + byte_count;
    return (uint32_t)at;
}

static inline void target_code_finish(const target_code *code)
{
    mprotect(code->bytes, code->byte_count, PROT_READ | PROT_EXEC);
}

static inline void *target_at(const target_code *code, uint32_t rva)
{
    return code->bytes + rva;
}

/* A source for a 5-byte jump at rva (or another strategy, filled in by the caller afterwards).  A
 * call at rva is assumed to load its return address into eax. */
static inline hfn_plan_new_entry target_source_of(const hfn_arch *arch, const target_code *code,
                                                  uint32_t index, uint32_t rva, hfn_moved *moved,
                                                  uint32_t patch_bytes)
{
    uint32_t offset = 0;
    uint8_t pc_register = code->bytes[rva] == 0xe8 ? 0 : HFN_NO_REGISTER;
    hfn_plan_new_entry source = { .function_index = index,
                                  .rva = rva,
                                  .strategy = HOTFN_STRATEGY_JUMP,
                                  .patch_bytes = patch_bytes,
                                  .original = code->bytes + rva,
                                  .moved = moved };

    CHECK(arch->move(code->bytes + rva, code->byte_count - rva, rva, patch_bytes, pc_register,
                     moved, &offset) == HFN_MOVED);
    source.original_bytes = moved->original_bytes > 5 ? moved->original_bytes : 5;
    return source;
}

static inline hfn_plan_new_entry target_source(const target_code *code, uint32_t index,
                                               uint32_t rva, hfn_moved *moved, uint32_t patch_bytes)
{
    return target_source_of(&TARGET_ARCH, code, index, rva, moved, patch_bytes);
}

#endif
