/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: the functions that compilers call for 64-bit atomic accesses in 32-bit code restricted
 * to general registers (GCC wiki, Atomic/GCCMM/LIbrary).  libatomic's are not used: it would have
 * to be loaded, and its functions may be hooked.  cmpxchg8b (Intel SDM vol. 2, CMPXCHG8B) writes
 * even when it only reads, so the memory must be writable; every access is sequentially consistent.
 */
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

#define NAMED(name) __asm__(HFN_SYMBOL_PREFIX name)

uint64_t hfn_atomic_load(volatile uint64_t *at, int order) NAMED("__atomic_load_8");
void hfn_atomic_store(volatile uint64_t *at, uint64_t value, int order) NAMED("__atomic_store_8");
uint64_t hfn_atomic_add(volatile uint64_t *at, uint64_t value, int order)
    NAMED("__atomic_fetch_add_8");
bool hfn_atomic_swap(volatile uint64_t *at, uint64_t *expected, uint64_t value, bool weak,
                     int success, int failure) NAMED("__atomic_compare_exchange_8");

/* If *at equals *expected, set it to value; else set *expected to *at. */
static inline bool compare_and_swap(volatile uint64_t *at, uint64_t *expected, uint64_t value)
{
    bool same;

    __asm__ volatile("lock cmpxchg8b %[at]"
                     : "+A"(*expected), [at] "+m"(*at), "=@ccz"(same)
                     : "b"((uint32_t)value), "c"((uint32_t)(value >> 32))
                     : "memory");
    return same;
}

uint64_t hfn_atomic_load(volatile uint64_t *at, int order)
{
    uint64_t value = 0;

    (void)order;
    compare_and_swap(at, &value, 0);
    return value;
}

void hfn_atomic_store(volatile uint64_t *at, uint64_t value, int order)
{
    uint64_t before = 0;

    (void)order;
    while (!compare_and_swap(at, &before, value)) {
    }
}

uint64_t hfn_atomic_add(volatile uint64_t *at, uint64_t value, int order)
{
    uint64_t before = 0;

    (void)order;
    while (!compare_and_swap(at, &before, before + value)) {
    }
    return before;
}

bool hfn_atomic_swap(volatile uint64_t *at, uint64_t *expected, uint64_t value, bool weak,
                     int success, int failure)
{
    (void)weak, (void)success, (void)failure;
    return compare_and_swap(at, expected, value);
}
