/* SPDX-License-Identifier: MIT */
/*
 * HOT PATH: what compilers call for an atomic access of 64 bits in 32-bit code that has general registers
 * only (GCC wiki, Atomic/GCCMM/LIbrary).  libatomic has these too, but nobody is to load it for us, and
 * it may be hooked.  cmpxchg8b (Intel SDM vol. 2) writes what it reads, so memory must be writable;
 * all orders are the strongest.
 */
#include <stdbool.h>
#include <stdint.h>

uint64_t hfn_atomic_load(volatile uint64_t *at, int order) __asm__("__atomic_load_8");
void hfn_atomic_store(volatile uint64_t *at, uint64_t value, int order) __asm__("__atomic_store_8");
uint64_t hfn_atomic_add(volatile uint64_t *at, uint64_t value,
                        int order) __asm__("__atomic_fetch_add_8");
bool hfn_atomic_swap(volatile uint64_t *at, uint64_t *expected, uint64_t value, bool weak,
                     int success, int failure) __asm__("__atomic_compare_exchange_8");

/* If *at is *expected it becomes value, else *expected becomes what it is. */
static inline bool swap(volatile uint64_t *at, uint64_t *expected, uint64_t value)
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
    swap(at, &value, 0);
    return value;
}

void hfn_atomic_store(volatile uint64_t *at, uint64_t value, int order)
{
    uint64_t before = 0;

    (void)order;
    while (!swap(at, &before, value)) {
    }
}

uint64_t hfn_atomic_add(volatile uint64_t *at, uint64_t value, int order)
{
    uint64_t before = 0;

    (void)order;
    while (!swap(at, &before, before + value)) {
    }
    return before;
}

bool hfn_atomic_swap(volatile uint64_t *at, uint64_t *expected, uint64_t value, bool weak,
                     int success, int failure)
{
    (void)weak, (void)success, (void)failure;
    return swap(at, expected, value);
}
