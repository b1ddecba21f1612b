/* SPDX-License-Identifier: MIT */
/* Small functions in assembly to hook, each with known bytes, and a plan of them made without a judge:
 * the instructions are moved by the arch station as verdicts would. */
#ifndef HFN_TESTS_HOOKS_TARGETS_H
#define HFN_TESTS_HOOKS_TARGETS_H

#include "hooks/plan_write.h"
#include "os/os.h"

#include "check.h"

#include <sys/mman.h>

/* A page of code that is ours alone; every function is aligned to 32 and padded with int3. */
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

/* Append a function; the answer is its rva. */
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

/* A source for a 5-byte jump at rva (or another strategy, filled in by the caller afterwards). */
static inline hfn_plan_source target_source(const target_code *code, uint32_t index, uint32_t rva,
                                            hfn_moved *moved, uint32_t patch_bytes)
{
    uint32_t offset = 0;
    hfn_plan_source source = { .function_index = index,
                               .rva = rva,
                               .strategy = HOTFN_STRATEGY_JUMP,
                               .patch_bytes = patch_bytes,
                               .original = code->bytes + rva,
                               .moved = moved };

    CHECK(hfn_arch_x86_64.move(code->bytes + rva, code->byte_count - rva, rva, patch_bytes, HFN_NO_REGISTER, moved,
                               &offset) == HFN_MOVED);
    source.original_bytes = moved->original_bytes > 5 ? moved->original_bytes : 5;
    return source;
}

#endif
