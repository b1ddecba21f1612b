/* SPDX-License-Identifier: MIT */
/* A scene whose functions are also proven for timing, and the results of the proofs. */
#ifndef HFN_TESTS_TIMED_H
#define HFN_TESTS_TIMED_H

#include "scene.h"

/* Store the address of the function in data, so that it counts as a function and not as a fragment.
 * A relocation has three words of this size. */
static inline uint64_t refer_to(scene *s, uint64_t rva)
{
    scene_pointer(s, RODATA + 0x80 + s->relocations->size / 3, rva);
    return rva;
}

static inline void prove_scene(scene *s)
{
    s->options = HOTFN_VERDICTS_TIMING;
    scene_analyze(s);
}

/* The flags of a hookable function, after a check that timing flag and reason agree. */
static inline uint32_t flags_at(const scene *s, uint64_t rva)
{
    const hfn_verdict v = scene_verdict(s, rva);
    bool timed = v.pub.flags & HOTFN_VERDICT_TIMED;

    CHECK_EQ_U64(v.pub.verdict, HOTFN_VERDICT_HOOKABLE);
    CHECK(timed == (HOTFN_VERDICT_TIMING_REASON(v.pub.flags) == HOTFN_REASON_NONE));
    return v.pub.flags;
}

/* The reason for not timing the function; 0 if it is timed. */
static inline uint32_t reason_at(const scene *s, uint64_t rva)
{
    return HOTFN_VERDICT_TIMING_REASON(flags_at(s, rva));
}

/* The flags of function `f` with these bytes, in a scene that ends with another function: xor eax,
 * eax; ret. */
static inline uint32_t flags_of(scene s, const char *bytes, size_t size)
{
    uint64_t f = refer_to(&s, scene_function(&s, "f", bytes, size));
    uint32_t flags;

    scene_nops(&s, 16);
    SCENE_FUNCTION(&s, "leaf", "\x31\xC0\xC3");
    prove_scene(&s);
    flags = flags_at(&s, f);
    scene_finish(&s);
    return flags;
}

#endif
