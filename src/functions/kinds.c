/* SPDX-License-Identifier: MIT */
/*
 * Recognises functions that are not part of the program itself:
 * - linker stubs by section name and by the shape of their code (without section headers by the
 *   shape of the whole FDE);
 * - resolvers by symbol type (table.c) or by an IRELATIVE relocation;
 * - run-time glue by the entry point, DT_INIT and DT_FINI;
 * - the four helpers of crtstuff.c by the combination of their name, a local symbol of size 0, and
 *   no FDE.
 */
#include "functions/inside.h"
#include "image/elf_numbers.h"

#include <string.h>

hfn_function *hfn_functions_at_rva(hotfn_functions *functions, uint64_t rva)
{
    uint32_t i = hotfn_functions_find(functions, rva);

    return i != UINT32_MAX && functions->items[i].rva == rva ? &functions->items[i] : NULL;
}

/* Length of ENDBR (f3 0f 1e fa/fb) and BND (f2) at the start of a stub. */
static uint64_t skip_prefixes(hfn_span code)
{
    uint64_t at = 0;

    if (code.size >= 4 && memcmp(code.data, "\xf3\x0f\x1e", 3) == 0 && code.data[3] >= 0xfa) {
        at = 4;
    }
    if (at < code.size && code.data[at] == 0xf2) {
        at++;
    }
    return at;
}

/* x86 psABIs, 'Procedure Linkage Table': jmp [GOT] (ff 25, ff a3), push [GOT] (ff 35, ff b3) of
 * PLT0, push n (68) of a lazy stub. */
static bool is_x86_stub(hfn_span code)
{
    uint64_t at = skip_prefixes(code);
    uint8_t first = 0, second = 0;

    hfn_span_u8(code, at, &first);
    hfn_span_u8(code, at + 1, &second);
    return first == 0x68 || (first == 0xff && (second == 0x25 || second == 0xa3 || second == 0x35 ||
                                               second == 0xb3));
}

/* ELF for the Arm 64-bit Architecture: stp x16, x30 of PLT0, adrp x16 of a stub, after BTI C. */
static bool is_arm64_stub(hfn_span code)
{
    uint32_t word = 0;

    hfn_span_u32(code, 0, &word);
    if (word == 0xd503245fu) { /* bti c */
        hfn_span_u32(code, 4, &word);
    }
    return word == 0xa9bf7bf0u || (word & 0x9f00001fu) == 0x90000010u;
}

static bool has_stub_shape(const hotfn_functions *functions, uint32_t machine, uint64_t rva)
{
    hfn_span code = hfn_image_span(functions->image, rva);

    switch (machine) {
    case HOTFN_MACHINE_X86:
    case HOTFN_MACHINE_X86_64: return is_x86_stub(code);
    case HOTFN_MACHINE_ARM64: return is_arm64_stub(code);
    default: return true; /* the section name is sufficient */
    }
}

static bool is_plt_name(const char *name)
{
    static const char *const names[] = { ".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt" };

    for (size_t i = 0; i < HFN_COUNT_OF(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* True if the whole range consists of stubs of 16 (or 8) bytes. */
static bool is_all_stubs(const hotfn_functions *functions, const hfn_function *f, uint64_t stride)
{
    if (f->byte_count % stride != 0) {
        return false;
    }
    for (uint64_t at = 0; at < f->byte_count; at += stride) {
        if (!is_x86_stub(hfn_image_span(functions->image, f->rva + at))) {
            return false;
        }
    }
    return true;
}

static bool is_plt(const hotfn_functions *functions, const hfn_function *f, uint32_t machine)
{
    hotfn_section section = HOTFN_SECTION_INIT;

    if (hotfn_image_get_section(functions->image, f->section, &section) != HOTFN_OK) {
        return false;
    }
    if (strncmp(section.name, "segment", 7) != 0) {
        return is_plt_name(section.name) && has_stub_shape(functions, machine, f->rva);
    }
    return (machine == HOTFN_MACHINE_X86_64 || machine == HOTFN_MACHINE_X86) &&
           !(f->flags & HOTFN_FUNCTION_HAS_SYMBOL) &&
           (is_all_stubs(functions, f, 16) || is_all_stubs(functions, f, 8));
}

static void mark_plts(hotfn_functions *functions, uint32_t machine)
{
    for (uint32_t i = 0; i < functions->count; i++) {
        if (is_plt(functions, &functions->items[i], machine)) {
            functions->items[i].kind = HOTFN_FUNCTION_PLT;
        }
    }
}

static void mark_resolver(void *user, uint64_t rva)
{
    hfn_function *f = hfn_functions_at_rva(user, rva);

    if (f && f->kind != HOTFN_FUNCTION_PLT) {
        f->kind = HOTFN_FUNCTION_RESOLVER;
    }
}

static void mark_glue(hotfn_functions *functions, uint64_t rva)
{
    hfn_function *f = hfn_functions_at_rva(functions, rva);

    if (f) {
        f->kind = HOTFN_FUNCTION_GLUE;
    }
}

/* The linker assembles _init and _fini from pieces of crti.o, crtn.o and others: the
 * whole section is one function. A static program has no DT_INIT but the same sections. */
static void mark_init_and_fini(hotfn_functions *functions)
{
    static const char *const sections[] = { ".init", ".fini" };
    static const uint64_t tags[] = { HFN_DT_INIT, HFN_DT_FINI };
    uint64_t address, rva;

    for (size_t i = 0; i < HFN_COUNT_OF(tags); i++) {
        const hfn_elf_section *s = hfn_elf_section_named(functions->image, sections[i]);
        if (hfn_elf_dynamic(functions->image, tags[i], &address) &&
            hfn_image_rva(functions->image, address, &rva)) {
            mark_glue(functions, rva);
        }
        if (s && (s->flags & HFN_SHF_EXECINSTR) &&
            hfn_image_rva(functions->image, s->address, &rva)) {
            mark_glue(functions, rva);
        }
    }
}

static bool has_crt_name(const hotfn_functions *functions, const hfn_function *f)
{
    static const char *const names[] = { "deregister_tm_clones", "register_tm_clones",
                                         "__do_global_dtors_aux", "frame_dummy" };

    for (uint32_t k = 0; k < f->name_count; k++) {
        for (size_t i = 0; i < HFN_COUNT_OF(names); i++) {
            if (strcmp(functions->names[f->first_name + k], names[i]) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void mark_crt_helpers(hotfn_functions *functions)
{
    const uint32_t other = HOTFN_FUNCTION_HAS_FDE | HOTFN_FUNCTION_GLOBAL;

    for (uint32_t i = 0; i < functions->count; i++) {
        hfn_function *f = &functions->items[i];
        if ((f->flags & HOTFN_FUNCTION_SIZE_GUESSED) && !(f->flags & other) &&
            has_crt_name(functions, f)) {
            f->kind = HOTFN_FUNCTION_GLUE;
        }
    }
}

void hfn_functions_mark_kinds(hotfn_functions *functions)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    hotfn_image_get_info(functions->image, &info);
    if (info.format == HOTFN_FORMAT_PE) {
        hfn_functions_mark_pe_kinds(functions);
        return;
    }
    mark_plts(functions, info.machine);
    hfn_image_each_resolver(functions->image, mark_resolver, functions);
    if (info.entry_rva) {
        mark_glue(functions, info.entry_rva);
    }
    mark_init_and_fini(functions);
    mark_crt_helpers(functions);
}
