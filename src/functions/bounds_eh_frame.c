/* SPDX-License-Identifier: MIT */
/*
 * Reads .eh_frame from end to end rather than the sorted table in .eh_frame_hdr, which has starts
 * but no sizes. The section is found by its section header, else by the pointer in .eh_frame_hdr
 * (PT_GNU_EH_FRAME). FDEs remain in stripped files and show where functions begin and end.
 * Fragments have FDEs too; those whose first frame proves it are marked.
 */
#include "functions/bounds_eh_frame.h"

#include "base/memory.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/status.h"
#include "functions/eh_frame_read.h"
#include "image/elf_numbers.h"

#include <string.h>

/* From the psABIs: DWARF number of the stack pointer, and CFA minus stack pointer at an entry. */
typedef struct entry_rule {
    uint32_t machine;
    uint64_t stack_register;
    int32_t cfa_offset;
} entry_rule;

static const entry_rule rules[] = {
    { HOTFN_MACHINE_X86, 4, 4 },
    { HOTFN_MACHINE_X86_64, 7, 8 },
    { HOTFN_MACHINE_ARM, 13, 0 },
    { HOTFN_MACHINE_ARM64, 31, 0 },
};

typedef struct cie_list {
    hfn_cie *items; /* sorted by offset, as in the section */
    size_t capacity, count;
} cie_list;

typedef struct reader {
    const hotfn_image *image;
    const hotfn_env *env;
    hfn_eh_bytes eh;
    const entry_rule *rule; /* NULL: first bytes are not examined */
    cie_list cies;
    hfn_fde_list *fdes;
    bool bounded; /* the size of the section is known */
    bool no_memory;
} reader;

static const entry_rule *rule_of(uint32_t machine)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].machine == machine) {
            return &rules[i];
        }
    }
    return NULL;
}

/* Finds .eh_frame with .eh_frame_hdr: version 1, three encodings, then eh_frame_ptr (LSB core, 'The
 * .eh_frame_hdr section').  The size is unknown; the zero terminator ends the section. */
static bool find_by_header(reader *r, uint64_t link_base)
{
    hfn_eh_bytes header = { .word_bytes = r->eh.word_bytes };
    uint64_t rva, bytes, at = 4, raw, address;
    uint8_t version, encoding;

    if (!hfn_elf_segment_of_type(r->image, HFN_PT_GNU_EH_FRAME, &rva, &bytes)) {
        return false;
    }
    header.bytes = hfn_image_span(r->image, rva);
    header.address = link_base + rva;
    header.data = header.address;
    if (!hfn_span_u8(header.bytes, 0, &version) || version != 1 ||
        !hfn_span_u8(header.bytes, 1, &encoding) ||
        !hfn_eh_pointer(&header, &at, encoding, &raw, &address) ||
        !hfn_image_rva(r->image, address, &rva)) {
        return false;
    }
    r->eh.bytes = hfn_image_span(r->image, rva);
    r->eh.address = address;
    return r->eh.bytes.size > 0;
}

static bool find_section(reader *r)
{
    const hfn_elf_section *section = hfn_elf_section_named(r->image, ".eh_frame");
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    hotfn_image_get_info(r->image, &info);
    r->eh.word_bytes = info.bits / 8;
    r->rule = rule_of(info.machine);
    if (!section) {
        return find_by_header(r, info.link_base);
    }
    r->eh.bytes = hfn_elf_section_bytes(r->image, section);
    r->eh.address = section->address;
    r->bounded = true;
    return r->eh.bytes.size > 0;
}

static bool add_cie(reader *r, uint64_t offset, uint64_t at, uint64_t end)
{
    hfn_cie cie;

    if (!hfn_eh_read_cie(&r->eh, at, end, &cie)) {
        return true; /* its FDEs are skipped */
    }
    cie.offset = offset;
    if (!hfn_grow_array(r->env, (void **)&r->cies.items, &r->cies.capacity, r->cies.count + 1,
                        sizeof *r->cies.items)) {
        return false;
    }
    r->cies.items[r->cies.count++] = cie;
    return true;
}

static const hfn_cie *find_cie(const cie_list *cies, uint64_t offset)
{
    size_t low = hfn_count_below(cies->items, cies->count, sizeof *cies->items,
                                 offsetof(hfn_cie, offset), offset);

    return low < cies->count && cies->items[low].offset == offset ? &cies->items[low] : NULL;
}

/* At the entry of a function the stack is as the caller left it; any other frame at the first byte
 * means that the FDE begins in the middle of a function.  An FDE that is not understood proves
 * nothing. */
static void examine_first_byte(const reader *r, const hfn_cie *cie, hfn_span instructions,
                               hfn_fde *fde)
{
    hfn_frame frame = hfn_eh_frame_at_entry(cie, instructions);

    fde->cfa_offset = -1;
    if (!r->rule || !frame.known) {
        return;
    }
    if (frame.by_expression) {
        fde->flags |= HFN_FDE_EXPRESSION | HFN_FDE_INSIDE;
    } else if (frame.cfa_set && frame.cfa_register != r->rule->stack_register) {
        fde->flags |= HFN_FDE_INSIDE;
    } else if (frame.cfa_set && frame.cfa_offset >= 0 && frame.cfa_offset <= INT32_MAX) {
        fde->cfa_offset = (int32_t)frame.cfa_offset;
    }
    if (frame.saved_registers ||
        (frame.cfa_set && fde->cfa_offset >= 0 && fde->cfa_offset != r->rule->cfa_offset)) {
        fde->flags |= HFN_FDE_INSIDE;
    }
}

/* Stores the place of the call frame instructions, which begin at `at`. */
static void store_instructions(const reader *r, uint64_t at, uint64_t byte_count, hfn_fde *fde)
{
    uint64_t rva;

    fde->flags |= HFN_FDE_ARGUMENTS;
    if (hfn_image_rva(r->image, r->eh.address + at, &rva) && rva <= UINT32_MAX &&
        byte_count <= UINT32_MAX) {
        fde->cfi_rva = (uint32_t)rva;
        fde->cfi_bytes = (uint32_t)byte_count;
    }
}

static bool read_fde(const reader *r, const hfn_cie *cie, uint64_t at, uint64_t end, hfn_fde *fde)
{
    hfn_eh_bytes own = r->eh;
    uint64_t begin, raw, ignored, lsda, lsda_at, data_bytes = 0;
    hfn_span instructions;

    own.bytes = hfn_span_sub(r->eh.bytes, 0, end);
    if (!hfn_eh_pointer(&own, &at, cie->pointer_encoding, &raw, &begin) || raw == 0 ||
        !hfn_eh_pointer(&own, &at, cie->pointer_encoding & 0x0f, &fde->byte_count, &ignored)) {
        return false;
    }
    if (cie->has_sizes &&
        (!hfn_span_uleb(own.bytes, &at, &data_bytes) || !hfn_span_has(own.bytes, at, data_bytes))) {
        return false;
    }
    if (!hfn_image_rva(r->image, begin, &fde->rva) || fde->byte_count == 0) {
        return false; /* belongs to a function that the linker dropped */
    }
    fde->flags = cie->signal_frame ? HFN_FDE_SIGNAL : 0;
    fde->cfi_rva = fde->cfi_bytes = 0;
    lsda_at = at;
    at += data_bytes;
    instructions = hfn_span_from(own.bytes, at);
    examine_first_byte(r, cie, instructions, fde);
    fde->lsda_rva = UINT64_MAX;
    if (hfn_eh_pointer(&own, &lsda_at, cie->lsda_encoding & 0x7f, &raw, &lsda) && data_bytes &&
        cie->lsda_encoding != HFN_ENCODING_OMIT && raw != 0) {
        fde->flags |= HFN_FDE_LSDA;
        if (hfn_eh_frame_has_argument_sizes(cie, instructions)) {
            store_instructions(r, at, instructions.size, fde);
        }
        if ((cie->lsda_encoding & 0x80) || !hfn_image_rva(r->image, lsda, &fde->lsda_rva)) {
            fde->lsda_rva = UINT64_MAX;
        }
    }
    return true;
}

static bool add_fde(reader *r, const hfn_cie *cie, uint64_t at, uint64_t end)
{
    hfn_fde fde;

    if (!cie || !read_fde(r, cie, at, end, &fde)) {
        return true;
    }
    if (r->fdes->count == UINT32_MAX - 1 ||
        !hfn_grow_array(r->env, (void **)&r->fdes->items, &r->fdes->capacity,
                        (size_t)r->fdes->count + 1, sizeof fde)) {
        return false;
    }
    r->fdes->items[r->fdes->count++] = fde;
    return true;
}

/* Reads one CIE or FDE at *at and advances *at.  False at the end: at the terminator, at damage, or
 * if there is no memory. */
static bool read_entry(reader *r, uint64_t *at)
{
    hfn_span s = r->eh.bytes;
    uint64_t start = *at, id_at = start + 4, bytes, end;
    uint32_t narrow, id;

    if (!hfn_span_u32(s, start, &narrow)) {
        return false;
    }
    if (narrow == 0) { /* the terminator of the section, or of one object file's part */
        *at += 4;
        return r->bounded;
    }
    bytes = narrow;
    if (narrow == UINT32_MAX) {
        if (!hfn_span_u64(s, start + 4, &bytes)) {
            return false;
        }
        id_at = start + 12;
    }
    if (bytes < 4 || !hfn_span_has(s, id_at, bytes) || !hfn_span_u32(s, id_at, &id)) {
        hfn_log_message(r->env, HOTFN_LOG_WARNING, "%s: .eh_frame is damaged at offset %llu",
                        hfn_image_path(r->image), (unsigned long long)start);
        return false;
    }
    end = id_at + bytes;
    *at = end;
    if (id == 0) {
        r->no_memory = !add_cie(r, start, id_at + 4, end);
    } else if (id <= id_at) {
        r->no_memory = !add_fde(r, find_cie(&r->cies, id_at - id), id_at + 4, end);
    }
    return !r->no_memory;
}

static bool comes_before(const void *left, const void *right)
{
    const hfn_fde *a = left, *b = right;

    return a->rva < b->rva;
}

bool hfn_bounds_eh_frame(hfn_fde_list *out, const hotfn_image *image, const hotfn_env *env)
{
    reader r = { .image = image, .env = env, .fdes = out };
    uint64_t at = 0;

    memset(out, 0, sizeof *out);
    if (!find_section(&r)) {
        return true;
    }
    while (read_entry(&r, &at)) {
        ;
    }
    hfn_free_memory(env, r.cies.items, r.cies.capacity * sizeof *r.cies.items);
    if (r.no_memory || !hfn_sort_array(env, (void **)&out->items, out->capacity, out->count,
                                       sizeof *out->items, comes_before)) {
        hfn_fde_list_finish(out, env);
        return false;
    }
    return true;
}

void hfn_fde_list_finish(hfn_fde_list *list, const hotfn_env *env)
{
    hfn_free_memory(env, list->items, list->capacity * sizeof *list->items);
    memset(list, 0, sizeof *list);
}
