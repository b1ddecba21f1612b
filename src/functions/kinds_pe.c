/* SPDX-License-Identifier: MIT */
/*
 * Recognises functions of a PE image that are not part of the program itself.  Stubs of imports are
 * recognised by the slot that they jump through (in the import address table or that of a delayed
 * import).  Glue is code of the loader and the C run-time library: the entry point, TLS callbacks,
 * and the helper functions of Control Flow Guard.
 */
#include "functions/inside.h"
#include "image/pe.h"

#include <string.h>

enum { DELAY_BYTES = 32, DELAY_MAX = 256, SLOTS_MAX = 8192 };

/* The slots that the loader writes the addresses of imports to. */
typedef struct slots {
    const hotfn_image *image;
    uint64_t link_base;
    uint32_t word_bytes, machine, delayed_count;
    struct {
        uint64_t begin, end;
    } delayed[DELAY_MAX]; /* the slots of each delayed library */
} slots;

/* The number of names in the list, which a 0 terminates. */
static uint64_t count_names(const slots *s, uint32_t names)
{
    hfn_span list = hfn_image_span(s->image, names);
    uint64_t count = 0, name;

    while (count < SLOTS_MAX && hfn_span_word(list, count * s->word_bytes, s->word_bytes, &name) &&
           name) {
        count++;
    }
    return count;
}

/* PE Format, 'The Delay-Load Directory Table': the fourth field of an entry is the RVA of the
 * slots, the fifth that of the names; there is one slot for each name. */
static void find_delayed(slots *s)
{
    uint64_t ignored;
    hfn_span table = hfn_pe_directory(s->image, HFN_PE_DELAY_IMPORTS, &ignored);
    uint32_t first, names;

    for (uint64_t at = 0; s->delayed_count < DELAY_MAX && hfn_span_u32(table, at + 12, &first) &&
                          first && hfn_span_u32(table, at + 16, &names);
         at += DELAY_BYTES) {
        s->delayed[s->delayed_count].begin = first;
        s->delayed[s->delayed_count++].end = first + count_names(s, names) * s->word_bytes;
    }
}

static bool in_delayed(const slots *s, uint64_t rva)
{
    for (uint32_t i = 0; i < s->delayed_count; i++) {
        if (rva >= s->delayed[i].begin && rva < s->delayed[i].end) {
            return true;
        }
    }
    return false;
}

static bool is_slot(const slots *s, uint64_t rva)
{
    hotfn_section section = HOTFN_SECTION_INIT;
    uint32_t index = hfn_image_section_of(s->image, rva);

    if (hfn_pe_directory_has(s->image, HFN_PE_IAT, rva) || in_delayed(s, rva)) {
        return true;
    }
    return hotfn_image_get_section(s->image, index, &section) == HOTFN_OK &&
           strcmp(section.name, ".idata") == 0;
}

/* The code that loads a delayed import: lea rax, [slot] and jmp (48 8d 05, e9) on x64, mov eax,
 * slot and jmp (b8, e9) on x86. */
static bool is_x86_delay_load(const slots *s, hfn_span code, uint64_t rva)
{
    uint8_t first = 0, second = 0, third = 0, jump = 0;
    uint64_t jump_at = s->word_bytes == 8 ? 7 : 5;
    uint32_t field = 0;

    hfn_span_u8(code, 0, &first);
    hfn_span_u8(code, 1, &second);
    hfn_span_u8(code, 2, &third);
    hfn_span_u8(code, jump_at, &jump);
    if (jump != 0xe9 || !hfn_span_u32(code, jump_at - 4, &field)) {
        return false;
    }
    if (s->word_bytes == 8) {
        return first == 0x48 && second == 0x8d && third == 0x05 &&
               in_delayed(s, rva + 7 + (uint64_t)(int32_t)field);
    }
    return first == 0xb8 && in_delayed(s, field - s->link_base);
}

/* jmp [slot] (ff 25), with or without REX.W. */
static bool is_x86_stub(const slots *s, hfn_span code, uint64_t rva)
{
    uint8_t first = 0, second = 0;
    uint32_t field = 0;
    uint64_t at = 0;

    hfn_span_u8(code, 0, &first);
    if (first == 0x48 && s->word_bytes == 8) {
        at = 1;
    }
    hfn_span_u8(code, at, &first);
    hfn_span_u8(code, at + 1, &second);
    if (first == 0xff && second == 0x25 && hfn_span_u32(code, at + 2, &field)) {
        return is_slot(s, s->word_bytes == 8 ? rva + at + 6 + (uint64_t)(int32_t)field
                                             : field - s->link_base);
    }
    return is_x86_delay_load(s, code, rva);
}

/* adrp x16, page; ldr x16, [x16, #offset]; br x16.  For a delayed import also: adrp x17, page; add
 * x17, x17, #offset; b (Arm ARM: ADRP, LDR immediate, BR, ADD immediate, B). */
static bool is_arm64_stub(const slots *s, hfn_span code, uint64_t rva)
{
    uint32_t adrp = 0, use = 0, jump = 0;

    if (!hfn_span_u32(code, 0, &adrp) || !hfn_span_u32(code, 4, &use) ||
        !hfn_span_u32(code, 8, &jump) || (adrp & 0x9f00001e) != 0x90000010) {
        return false;
    }
    uint64_t pages = (uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
    if (pages >> 20) {
        pages |= ~(uint64_t)0x1fffff;
    }
    uint64_t page = (rva & ~(uint64_t)0xfff) + (pages << 12);
    if ((adrp & 1) == 0) {
        return (use & 0xffc003ff) == 0xf9400210 && jump == 0xd61f0200 &&
               is_slot(s, page + ((use >> 10 & 0xfff) << 3));
    }
    return (use & 0xffc003ff) == 0x91000231 && jump >> 26 == 5 &&
           in_delayed(s, page + (use >> 10 & 0xfff));
}

static bool is_stub(const slots *s, uint64_t rva)
{
    hfn_span code = hfn_image_span(s->image, rva);

    switch (s->machine) {
    case HOTFN_MACHINE_X86:
    case HOTFN_MACHINE_X86_64: return is_x86_stub(s, code, rva);
    case HOTFN_MACHINE_ARM64: return is_arm64_stub(s, code, rva);
    default: return false;
    }
}

static void mark_glue(void *user, uint64_t rva)
{
    hfn_function *f = hfn_functions_at_rva(user, rva);

    if (f && f->kind == HOTFN_FUNCTION_PLAIN) {
        f->kind = HOTFN_FUNCTION_GLUE;
    }
}

void hfn_functions_mark_pe_kinds(hotfn_functions *functions)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    hotfn_image_get_info(functions->image, &info);
    slots s = { functions->image, info.link_base, info.bits / 8, info.machine, 0, { { 0, 0 } } };
    find_delayed(&s);
    for (uint32_t i = 0; i < functions->count; i++) {
        if (is_stub(&s, functions->items[i].rva)) {
            functions->items[i].kind = HOTFN_FUNCTION_PLT;
        }
    }
    if (info.entry_rva) {
        mark_glue(functions, info.entry_rva);
    }
    hfn_pe_each_tls_callback(functions->image, mark_glue, functions);
    hfn_pe_each_guard_function(functions->image, mark_glue, functions);
}
