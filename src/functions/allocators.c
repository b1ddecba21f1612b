/* SPDX-License-Identifier: MIT */
/* The names of allocator functions, mangled according to the Itanium C++ ABI. */
#include "functions/allocators.h"

#include "base/compiler.h"

#include <hotfn/lowlevel/functions.h>
#include <string.h>

typedef struct known_name {
    const char *name;
    hfn_allocator_kind kind;
} known_name;

/* reallocarray is not among them: it calls realloc. */
static const known_name known_names[] = {
    { "malloc", HFN_ALLOCATOR_RETURNS },
    { "calloc", HFN_ALLOCATOR_RETURNS },
    { "memalign", HFN_ALLOCATOR_RETURNS },
    { "aligned_alloc", HFN_ALLOCATOR_RETURNS },
    { "valloc", HFN_ALLOCATOR_RETURNS },
    { "pvalloc", HFN_ALLOCATOR_RETURNS },
    { "free", HFN_ALLOCATOR_FREES },
    { "cfree", HFN_ALLOCATOR_FREES },
    { "realloc", HFN_ALLOCATOR_MOVES },
    { "posix_memalign", HFN_ALLOCATOR_STORES },
    /* operator new, new[], delete, delete[] */
    { "_Znw#", HFN_ALLOCATOR_RETURNS },
    { "_Zna#", HFN_ALLOCATOR_RETURNS },
    { "_Znw#RKSt9nothrow_t", HFN_ALLOCATOR_RETURNS },
    { "_Zna#RKSt9nothrow_t", HFN_ALLOCATOR_RETURNS },
    { "_Znw#St11align_val_t", HFN_ALLOCATOR_RETURNS },
    { "_Zna#St11align_val_t", HFN_ALLOCATOR_RETURNS },
    { "_Znw#St11align_val_tRKSt9nothrow_t", HFN_ALLOCATOR_RETURNS },
    { "_Zna#St11align_val_tRKSt9nothrow_t", HFN_ALLOCATOR_RETURNS },
    { "_ZdlPv", HFN_ALLOCATOR_FREES },
    { "_ZdaPv", HFN_ALLOCATOR_FREES },
    { "_ZdlPv#", HFN_ALLOCATOR_FREES },
    { "_ZdaPv#", HFN_ALLOCATOR_FREES },
    { "_ZdlPvRKSt9nothrow_t", HFN_ALLOCATOR_FREES },
    { "_ZdaPvRKSt9nothrow_t", HFN_ALLOCATOR_FREES },
    { "_ZdlPvSt11align_val_t", HFN_ALLOCATOR_FREES },
    { "_ZdaPvSt11align_val_t", HFN_ALLOCATOR_FREES },
    { "_ZdlPv#St11align_val_t", HFN_ALLOCATOR_FREES },
    { "_ZdaPv#St11align_val_t", HFN_ALLOCATOR_FREES },
};

/* '#' in known matches the mangled size_t: unsigned long if that has 64 bits, unsigned int on i386
 * (Itanium C++ ABI, 5.1.5). */
static bool equals_known_name(const char *known, const char *name)
{
    for (; *known && (*known == *name || (*known == '#' && (*name == 'm' || *name == 'j')));
         known++) {
        name++;
    }
    return *known == *name;
}

static hfn_allocator_kind find_kind(const char *name)
{
    for (size_t i = 0; i < HFN_COUNT_OF(known_names); i++) {
        if (equals_known_name(known_names[i].name, name)) {
            return known_names[i].kind;
        }
    }
    return HFN_ALLOCATOR_NONE;
}

hfn_allocator_kind hfn_find_allocator_kind(const char *names)
{
    hfn_allocator_kind kind = HFN_ALLOCATOR_NONE;

    for (const char *name = names; name[0] && kind == HFN_ALLOCATOR_NONE;
         name += strlen(name) + 1) {
        kind = find_kind(name);
    }
    return kind;
}

bool hfn_has_allocator_name(const char *names)
{
    return hfn_find_allocator_kind(names) != HFN_ALLOCATOR_NONE;
}

int32_t hotfn_is_allocator(const char *name)
{
    return name && find_kind(name) != HFN_ALLOCATOR_NONE;
}
