/* SPDX-License-Identifier: MIT */
/*
 * Property of patched PE code: the exports of an x64 image, called with the Windows convention,
 * return the same values before and after every hookable function has been patched, and patched
 * functions that run are counted.  The image is loaded into this process like by Windows' loader;
 * it must not import anything. Argument: the image.
 */
#include "image/pe.h"
#include "verdicts/verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
int main(void)
{
    return 77; /* needs this CPU */
}
#else

enum { STUB_BYTES = 160, INPUTS = 24, EXPORTS_MAX = 4096, TAIL_BYTES = 1 << 22 };

typedef int(__attribute__((ms_abi)) * entry_fn)(int, int, int, int);

typedef struct loaded_image {
    hotfn_image *image;
    hotfn_symbols *symbols;
    hotfn_functions *functions;
    hotfn_verdicts *verdicts;
    hotfn_image_info info;
    uint8_t *base, *fresh; /* the image in memory, and a copy of it before anything ran */
    uint8_t *stubs;        /* after the image */
    uint64_t *counts;      /* after the stubs */
} loaded_image;

static void must(bool ok, const char *what)
{
    if (ok) {
        return;
    }
    printf("# %s\nnot ok 1 pe_moved\n", what);
    exit(1);
}

static void analyze_image(loaded_image *l, const char *path)
{
    hotfn_error err = HOTFN_ERROR_INIT;

    l->info = (hotfn_image_info)HOTFN_IMAGE_INFO_INIT;
    must(hotfn_image_open(&l->image, path, NULL, &err) == HOTFN_OK &&
             hotfn_symbols_load(&l->symbols, l->image, NULL, NULL, &err) == HOTFN_OK &&
             hotfn_functions_build(&l->functions, l->image, l->symbols, NULL, &err) == HOTFN_OK &&
             hotfn_verdicts_create(&l->verdicts, l->image, l->functions, NULL, NULL, &err) ==
                 HOTFN_OK,
         err.text);
    hotfn_image_get_info(l->image, &l->info);
}

static void relocate_word(void *user, uint64_t rva, uint32_t byte_count)
{
    const loaded_image *l = user;
    uint64_t word;

    must(byte_count == 8, "a relocation does not have 8 bytes");
    memcpy(&word, l->base + rva, 8);
    word += (uint64_t)(uintptr_t)l->base - l->info.link_base;
    memcpy(l->base + rva, &word, 8);
}

static void load_image(loaded_image *l)
{
    size_t size = (size_t)l->info.loaded_bytes;

    l->base = mmap(NULL, size + TAIL_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    l->fresh = malloc(size);
    must(l->base != MAP_FAILED && l->fresh, "no memory");
    for (uint32_t i = 0; i < hotfn_image_get_section_count(l->image); i++) {
        hotfn_section s = HOTFN_SECTION_INIT;
        hotfn_image_get_section(l->image, i, &s);
        hfn_span bytes = hfn_image_span(l->image, s.rva);
        if (bytes.size) {
            memcpy(l->base + s.rva, bytes.data, (size_t)bytes.size);
        }
    }
    hfn_pe_each_relocated(l->image, relocate_word, l);
    l->stubs = l->base + size;
    l->counts = (uint64_t *)(void *)(l->base + size + TAIL_BYTES / 2);
}

static void put_rel32(uint8_t *at, const uint8_t *end, const uint8_t *target)
{
    uint32_t distance = (uint32_t)(target - end);

    memcpy(at, &distance, sizeof distance);
}

/* Write a stub: inc qword [rip+count], then the moved code. */
static uint8_t *make_stub(const loaded_image *l, uint32_t index)
{
    uint8_t *stub = l->stubs + (size_t)index * STUB_BYTES, *code = stub + 7;
    hfn_moved moved;

    must(hfn_verdicts_moved(l->verdicts, index, &moved), "a hookable function has no moved code");
    memcpy(stub, "\x48\xff\x05", 3);
    put_rel32(stub + 3, code, (const uint8_t *)&l->counts[index]);
    memcpy(code, moved.bytes, moved.length);
    for (uint32_t i = 0; i < moved.fixup_count; i++) {
        put_rel32(code + moved.fixups[i].at, code + moved.fixups[i].end,
                  l->base + moved.fixups[i].target_rva);
    }
    return stub;
}

/* Patch a function; false for a strategy that needs a stub at a special address. */
static bool patch_function(const loaded_image *l, uint32_t index)
{
    const hfn_verdict *v = hfn_verdicts_at(l->verdicts, index);
    uint8_t *site = l->base + v->site_rva;
    hfn_span original = hfn_verdicts_original(l->verdicts, index);

    if (v->pub.verdict != HOTFN_VERDICT_HOOKABLE || (v->pub.flags & HOTFN_VERDICT_FLAGS_LIVE) ||
        v->pub.strategy == HOTFN_STRATEGY_PUN) {
        return false;
    }
    must(memcmp(site, original.data, (size_t)original.size) == 0,
         "the loader changed bytes of a patch");
    uint8_t *stub = make_stub(l, index);
    if (v->pub.strategy == HOTFN_STRATEGY_ISLAND) {
        uint8_t *island = l->base + v->island_rva;
        island[0] = 0xe9;
        put_rel32(island + 1, island + 5, stub);
        site[0] = 0xeb;
        site[1] = (uint8_t)(island - (site + 2));
        return true;
    }
    if (v->pub.strategy != HOTFN_STRATEGY_RETARGET) {
        site[0] = 0xe9;
    }
    put_rel32(site + 1, site + 5, stub);
    return true;
}

/* Restore everything but code. */
static void restore_data(const loaded_image *l)
{
    for (uint32_t i = 0; i < hotfn_image_get_section_count(l->image); i++) {
        hotfn_section s = HOTFN_SECTION_INIT;
        hotfn_image_get_section(l->image, i, &s);
        if (!(s.flags & HOTFN_SECTION_EXECUTE)) {
            memcpy(l->base + s.rva, l->fresh + s.rva, (size_t)s.byte_count);
        }
    }
}

static uint32_t run_all(const loaded_image *l, int *results)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < hotfn_symbols_get_count(l->symbols) && count < EXPORTS_MAX; i++) {
        hotfn_symbol s = HOTFN_SYMBOL_INIT;
        hotfn_symbols_get(l->symbols, i, &s);
        if (!(s.flags & HOTFN_SYMBOL_EXPORTED) || s.kind != HOTFN_SYMBOL_FUNCTION) {
            continue;
        }
        entry_fn entry;
        uint8_t *address = l->base + s.rva;
        memcpy(&entry, &address, sizeof entry);
        for (int k = 0; k < INPUTS; k++) {
            restore_data(l);
            results[count * INPUTS + (uint32_t)k] = entry(k - 4, k * 3, 7 - k, k * k);
        }
        count++;
    }
    return count;
}

static void release_image(loaded_image *l)
{
    munmap(l->base, (size_t)l->info.loaded_bytes + TAIL_BYTES);
    free(l->fresh);
    hotfn_verdicts_destroy(l->verdicts);
    hotfn_functions_destroy(l->functions);
    hotfn_symbols_destroy(l->symbols);
    hotfn_image_close(l->image);
}

int main(int argc, char **argv)
{
    static int before[EXPORTS_MAX * INPUTS], after[EXPORTS_MAX * INPUTS];
    loaded_image l = { 0 };
    uint32_t patched = 0, counted = 0, exports;

    must(argc == 2, "an image is needed");
    analyze_image(&l, argv[1]);
    load_image(&l);
    memcpy(l.fresh, l.base, (size_t)l.info.loaded_bytes);
    exports = run_all(&l, before);
    for (uint32_t i = 0; i < hotfn_functions_get_count(l.functions); i++) {
        patched += patch_function(&l, i);
    }
    must(run_all(&l, after) == exports && exports > 0, "no exports");
    for (uint32_t i = 0; i < exports * INPUTS; i++) {
        if (before[i] != after[i]) {
            printf("# export %u input %u: %d, patched %d\n", i / INPUTS, i % INPUTS, before[i],
                   after[i]);
        }
    }
    must(memcmp(before, after, sizeof before) == 0, "a result changed");
    for (uint32_t i = 0; i < hotfn_functions_get_count(l.functions); i++) {
        counted += l.counts[i] > 0;
    }
    must(counted >= patched / 2, "most patched functions were never counted");
    printf("1..1\nok 1 pe_moved: %u exports, %u functions patched, %u of them ran\n", exports,
           patched, counted);
    release_image(&l);
    return 0;
}

#endif
