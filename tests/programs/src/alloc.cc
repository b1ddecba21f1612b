// SPDX-License-Identifier: MIT
/* Each function allocates and frees a known number of blocks, and together they use every
 * allocation function. Prints for each function: allocated bytes and blocks, freed bytes and
 * blocks, with sizes from malloc_usable_size. */
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <thread>

#define CALLED extern "C" __attribute__((noinline, noclone)) void

enum { BLOCKS = 1000 };

struct block_counts {
    std::atomic<uint64_t> values[4];
};
static thread_local void *kept[BLOCKS];
static struct block_counts by_malloc, by_calloc, by_aligned, by_new, by_grow, by_drop, by_delete;

static void add_allocated(struct block_counts *t, void *block)
{
    t->values[0] += malloc_usable_size(block);
    t->values[1]++;
}

static void add_freed(struct block_counts *t, void *block)
{
    t->values[2] += malloc_usable_size(block);
    t->values[3]++;
}

CALLED use_malloc(int i)
{
    kept[i] = malloc(100 + static_cast<size_t>(i));
    add_allocated(&by_malloc, kept[i]);
}

CALLED use_calloc(int i)
{
    kept[i] = calloc(10, static_cast<size_t>(i));
    add_allocated(&by_calloc, kept[i]);
}

CALLED use_aligned(int i)
{
    if (i % 2)
        kept[i] = aligned_alloc(64, 640);
    else if (posix_memalign(&kept[i], 256, 1000) != 0)
        abort();
    add_allocated(&by_aligned, kept[i]);
}

CALLED use_new(int i)
{
    kept[i] = operator new(static_cast<size_t>(i) * 100); /* blocks above 128 KiB are mapped */
    add_allocated(&by_new, kept[i]);
}

CALLED use_delete(int i)
{
    add_freed(&by_delete, kept[i]);
    operator delete(kept[i]);
    kept[i] = nullptr;
}

CALLED use_realloc(int i)
{
    add_freed(&by_grow, kept[i]);
    kept[i] = realloc(kept[i], 200000u + static_cast<size_t>(i)); /* the block moves */
    add_allocated(&by_grow, kept[i]);
}

CALLED use_free(int i)
{
    if (kept[i])
        add_freed(&by_drop, kept[i]);
    free(kept[i]); /* also frees NULL */
    kept[i] = nullptr;
}

static void print_counts(const char *name, const struct block_counts *t)
{
    printf("%s", name);
    for (uint64_t value : t->values)
        printf(" %llu", static_cast<unsigned long long>(value));
    printf("\n");
}

CALLED use_everything(void)
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

static void print_all_counts()
{
    print_counts("use_malloc", &by_malloc);
    print_counts("use_calloc", &by_calloc);
    print_counts("use_aligned", &by_aligned);
    print_counts("use_new", &by_new);
    print_counts("use_realloc", &by_grow);
    print_counts("use_delete", &by_delete);
    print_counts("use_free", &by_drop);
}

int main()
{
    std::thread other(use_everything);
    other.join();
    use_everything();
    print_all_counts();
    return 0;
}
