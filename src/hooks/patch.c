/* SPDX-License-Identifier: MIT */
/* HOT PATH: compares, writes and restores one patch without libc, because the bytes may be those
 * of memcmp or memcpy.  The caller has stopped all other threads and blocked signals. */
#include "hooks/patch.h"

enum { JUMP_BYTES = HFN_STUB_PATCH_MAX, SHORT_JUMP_BYTES = 2, SHORT_JUMP = 0xeb };

static const volatile uint8_t *memory_at(uint64_t address)
{
    return (const volatile uint8_t *)(uintptr_t)address;
}

typedef struct unaligned_u32 {
    uint32_t value;
} __attribute__((packed, may_alias)) unaligned_u32;

static bool word_differs(uint64_t address, const uint8_t *bytes)
{
    return ((const volatile unaligned_u32 *)(uintptr_t)address)->value !=
           ((const unaligned_u32 *)(const void *)bytes)->value;
}

static uint32_t first_difference(uint64_t address, const uint8_t *bytes, uint32_t byte_count)
{
    const volatile uint8_t *memory = memory_at(address);

    if (byte_count >= 4 && byte_count <= 8 && !word_differs(address, bytes) &&
        !word_differs(address + byte_count - 4, bytes + byte_count - 4)) {
        return HFN_PATCH_SAME; /* the common case */
    }
    for (uint32_t i = 0; i < byte_count; i++) {
        if (memory[i] != bytes[i]) {
            return i;
        }
    }
    return HFN_PATCH_SAME;
}

hfn_patch hfn_patch_make(const hfn_plan_hook *hook, uint64_t base, uint64_t target)
{
    hfn_patch p = { { 0 }, { 0 }, base + hook->site_rva, 0 };

    if (hook->strategy == HOTFN_STRATEGY_ISLAND) {
        p.island_at = base + hook->island_rva;
        hfn_stub_emit_patch(p.island, NULL, p.island_at, target);
        p.site[0] = SHORT_JUMP;
        p.site[1] = (uint8_t)(p.island_at - (p.site_at + SHORT_JUMP_BYTES));
    } else {
        hfn_stub_emit_patch(p.site,
                            hook->strategy == HOTFN_STRATEGY_RETARGET ? hook->original : NULL,
                            p.site_at, target);
    }
    return p;
}

/* The original bytes at the site as the loader relocated them; `room` is used if it did. */
static const uint8_t *get_original(const hfn_plan_hook *hook, uint64_t base,
                                   uint8_t room[PLAN_ORIGINAL_MAX])
{
    const uint8_t *original = hook->original;

    for (uint32_t i = 0; hfn_stub_get_patching()->has_addresses && i < hook->fixup_count; i++) {
        const uint8_t *fixup = hook->fixups + i * PLAN_FIXUP_BYTES;

        if (fixup[1] != HFN_FIXUP_NO_END) {
            continue;
        }
        for (uint32_t k = 0; original == hook->original && k < hook->original_bytes; k++) {
            room[k] = original[k];
        }
        original = room;
        hfn_write_le32(room + hfn_plan_original_at(hook, fixup[0]),
                       (uint32_t)(base + hook->site_rva) + hfn_read_le32(fixup + 2));
    }
    return original;
}

uint32_t hfn_patch_compare(const hfn_plan_hook *hook, uint64_t base)
{
    uint8_t room[PLAN_ORIGINAL_MAX];
    uint32_t at = first_difference(base + hook->site_rva, get_original(hook, base, room),
                                   hook->original_bytes);

    if (at != HFN_PATCH_SAME) {
        return hook->patch_offset + at;
    }
    if (hook->island_rva == 0) {
        return HFN_PATCH_SAME;
    }
    at = first_difference(base + hook->island_rva, hook->island_original, PLAN_ISLAND_BYTES);
    return at == HFN_PATCH_SAME ? at : hook->island_rva + at - hook->rva;
}

static void put_back(const hfn_plan_hook *hook, const hfn_patch *p, hfn_os_writable_text *text)
{
    uint8_t room[PLAN_ORIGINAL_MAX];

    hfn_os_write_text(text, p->site_at, get_original(hook, p->site_at - hook->site_rva, room),
                      hook->patch_bytes);
    if (p->island_at != 0) {
        hfn_os_write_text(text, p->island_at, hook->island_original, PLAN_ISLAND_BYTES);
    }
}

static bool is_in_place(const hfn_plan_hook *hook, const hfn_patch *p)
{
    return first_difference(p->site_at, p->site, hook->patch_bytes) == HFN_PATCH_SAME &&
           (p->island_at == 0 ||
            first_difference(p->island_at, p->island, JUMP_BYTES) == HFN_PATCH_SAME);
}

bool hfn_patch_write(const hfn_plan_hook *hook, uint64_t base, uint64_t target,
                     hfn_os_writable_text *text)
{
    hfn_patch p = hfn_patch_make(hook, base, target);

    if (p.island_at != 0) {
        hfn_os_write_text(text, p.island_at, p.island, JUMP_BYTES);
    }
    hfn_os_write_text(text, p.site_at, p.site, hook->patch_bytes);
    if (is_in_place(hook, &p)) {
        return true;
    }
    put_back(hook, &p, text);
    return false;
}

bool hfn_patch_restore(const hfn_plan_hook *hook, uint64_t base, uint64_t target,
                       hfn_os_writable_text *text)
{
    hfn_patch p = hfn_patch_make(hook, base, target);

    if (!is_in_place(hook, &p)) {
        return hfn_patch_compare(hook, base) == HFN_PATCH_SAME;
    }
    put_back(hook, &p, text);
    return true;
}
