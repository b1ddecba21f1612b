// SPDX-License-Identifier: MIT
/* Each function allocates and frees blocks in known numbers, by every function that can; prints for each
 * by name: allocated bytes and blocks, freed bytes and blocks, as malloc_usable_size tells. */
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <thread>

#define CALLED extern "C" __attribute__((noinline, noclone)) void

enum { BLOCKS = 1000 };

struct told {
    std::atomic<uint64_t> values[4];
};
static thread_local void *kept[BLOCKS];
static struct told by_malloc, by_calloc, by_aligned, by_new, by_grow, by_drop, by_delete;

static void came(struct told *t, void *block)
{
    t->values[0] += malloc_usable_size(block);
    t->values[1]++;
}

static void goes(struct told *t, void *block)
{
    t->values[2] += malloc_usable_size(block);
    t->values[3]++;
}

CALLED use_malloc(int i)
{
    kept[i] = malloc(100 + static_cast<size_t>(i));
    came(&by_malloc, kept[i]);
}

CALLED use_calloc(int i)
{
    kept[i] = calloc(10, static_cast<size_t>(i));
    came(&by_calloc, kept[i]);
}

CALLED use_aligned(int i)
{
    if (i % 2)
        kept[i] = aligned_alloc(64, 640);
    else if (posix_memalign(&kept[i], 256, 1000) != 0)
        abort();
    came(&by_aligned, kept[i]);
}

CALLED use_new(int i)
{
    kept[i] = operator new(static_cast<size_t>(i) * 100); /* above 128 KiB it is mapped */
    came(&by_new, kept[i]);
}

CALLED use_delete(int i)
{
    goes(&by_delete, kept[i]);
    operator delete(kept[i]);
    kept[i] = nullptr;
}

CALLED use_realloc(int i)
{
    goes(&by_grow, kept[i]);
    kept[i] = realloc(kept[i], 200000u + static_cast<size_t>(i)); /* it moves */
    came(&by_grow, kept[i]);
}

CALLED use_free(int i)
{
    if (kept[i])
        goes(&by_drop, kept[i]);
    free(kept[i]); /* of nothing at all, too */
    kept[i] = nullptr;
}

static void tell(const char *name, const struct told *t)
{
    printf("%s", name);
    for (uint64_t value : t->values)
        printf(" %llu", static_cast<unsigned long long>(value));
    printf("\n");
}

CALLED all_of_it(void)
{
    for (int i = 0; i < 200; i++)
        use_malloc(i);
    for (int i = 200; i < 400; i++)
        use_calloc(i);
    for (int i = 400; i < 600; i++)
        use_aligned(i);
    for (int i = 600; i < 900; i++)
        use_new(i);
    for (int i = 0; i < 100; i++)
        use_realloc(i);
    for (int i = 600; i < 800; i++)
        use_delete(i);
    for (int i = 0; i < BLOCKS; i++)
        if (i < 600 || i >= 900)
            use_free(i);
}

static void tell_all()
{
    tell("use_malloc", &by_malloc);
    tell("use_calloc", &by_calloc);
    tell("use_aligned", &by_aligned);
    tell("use_new", &by_new);
    tell("use_realloc", &by_grow);
    tell("use_delete", &by_delete);
    tell("use_free", &by_drop);
}

int main()
{
    std::thread other(all_of_it);
    other.join();
    all_of_it();
    tell_all();
    return 0;
}
