/* SPDX-License-Identifier: MIT */
/*
 * Where an indirect jump goes, read backwards along the straight line that ends with it.  The forms
 * of gcc and clang are known:
 *     jmp [table + i*8]            mov r, [table + i*8]; jmp r          (absolute addresses)
 *     lea b, [rip+table]; movsxd r, [b + i*4]; add r, b; jmp r          (offsets from the table)
 *     the same with mov, cdqe in the place of movsxd, at -O0            (table and bound not shown)
 *     mov r, [b + i*4 + table]; add r, b; jmp r, b the image base      (Microsoft's; table is an RVA)
 *     mov r, [b + i*4 + table]; add r, b; jmp r; or add b, [b + i*4 + table]; jmp b,
 *                                                b holds the GOT's address (i386, -fPIC)
 * The number of entries comes from the `cmp i, n; ja` or the `and i, n` before it, along the same
 * line; where the line shows none it is 0 and the caller must do without.
 */
#include "arch/x86/dispatch.h"
#include "arch/x86/decode.h"
#include "base/byte_order.h"

#include <string.h>

/* The line, and which instruction set it is in. */
typedef struct code_line {
    hfn_straight_line shown;
    hfn_x86_mode mode;
} code_line;

static uint32_t word_bytes(const code_line *line)
{
    return line->mode == HFN_X86_32 ? 4 : 8;
}

/* Registers that a call does not keep: rax rcx rdx rsi rdi r8-r11 (System V psABI x86-64, 3.2.1);
 * eax ecx edx (System V psABI i386, table 2.3). */
static uint32_t call_clobbered(const code_line *line)
{
    return line->mode == HFN_X86_32 ? 0x7 : 0xFC7;
}

/* An address as an RVA: it wraps around where pointers do. */
static uint64_t wrapped(const code_line *line, uint64_t rva)
{
    return line->mode == HFN_X86_32 ? (uint32_t)rva : rva;
}

/* The search for one register's value, going backwards; `at` is an index into the line. */
typedef struct search {
    const code_line *line;
    uint32_t at; /* instructions before this index are still to be looked at */
} search;

static bool effects_at(const code_line *line, uint32_t index, hfn_x86_effects *out)
{
    uint32_t offset = line->shown.starts[index];

    return hfn_x86_decode_effects(line->mode, line->shown.bytes + offset, line->shown.size - offset,
                                  line->shown.rva + offset, out);
}

static bool flow_at(const code_line *line, uint32_t index, hfn_instruction *out)
{
    uint32_t offset = line->shown.starts[index];

    return hfn_x86_decode(line->mode, line->shown.bytes + offset, line->shown.size - offset,
                          line->shown.rva + offset, 0, out);
}

typedef enum found { FOUND, FOUND_CALL, NOT_IN_LINE } found;

/* The last instruction before s->at that writes reg; s->at becomes its index. */
static found find_write(search *s, uint8_t reg, hfn_x86_effects *out)
{
    hfn_instruction in;

    while (s->at > 0) {
        s->at--;
        if (!effects_at(s->line, s->at, out) || !flow_at(s->line, s->at, &in)) {
            return NOT_IN_LINE;
        }
        bool calls = in.flow == HFN_FLOW_CALL || in.flow == HFN_FLOW_CALL_INDIRECT;
        if (calls && (call_clobbered(s->line) >> reg & 1)) {
            return FOUND_CALL;
        }
        if (out->writes >> reg & 1) {
            return FOUND;
        }
    }
    return NOT_IN_LINE;
}

/* Index of the instruction that loaded an entry, and the register that chose it. */
typedef struct chosen {
    uint32_t at;
    uint8_t index;
} chosen;

static void note_proof(const code_line *line, uint32_t index, hfn_dispatch *out)
{
    if (line->shown.starts[index] < out->proof_from) {
        out->proof_from = line->shown.starts[index];
    }
}

/* `cmp dest, n` stood before a not taken jump: how many values of dest come through. */
static uint64_t compared_count(const hfn_x86_effects *compare, uint8_t condition)
{
    uint64_t limit = compare->immediate;

    if (compare->width == 4) {
        limit &= UINT32_MAX;
    } else if (compare->width < 4) {
        limit &= (1u << (8 * compare->width)) - 1;
    }
    if (condition == 7) { /* ja */
        return limit + 1;
    }
    return condition == 3 ? limit : 0; /* jae */
}

/* The condition of a jcc, or 16. */
static uint8_t condition_at(const code_line *line, uint32_t index)
{
    const uint8_t *bytes = line->shown.bytes + line->shown.starts[index];

    if ((bytes[0] & 0xF0) == 0x70) {
        return bytes[0] & 15;
    }
    if (bytes[0] == 0x0F && (bytes[1] & 0xF0) == 0x80) {
        return bytes[1] & 15;
    }
    return 16;
}

/* What is known while looking back for the bound of one index register. */
typedef struct bound_search {
    uint8_t reg;
    uint8_t condition; /* of a jcc whose cmp is still to come, 16 none  */
    uint64_t count;    /* the answer                                    */
} bound_search;

/* One step back; true when the search is over. */
static bool step_bound(const hfn_x86_effects *e, bound_search *b)
{
    if (e->shape == HFN_X86_COMPARE && e->dest == b->reg && b->condition < 16) {
        b->count = compared_count(e, b->condition);
        return true;
    }
    if (e->flags_written) {
        b->condition = 16;
    }
    if (!(e->writes >> b->reg & 1)) {
        return false;
    }
    if (e->shape == HFN_X86_AND && e->dest == b->reg && (int64_t)e->immediate >= 0) {
        b->count = e->immediate + 1;
        return true;
    }
    /* A number below 2^31 is the same when its sign is extended; larger counts are believed nowhere. */
    bool copies = (e->shape == HFN_X86_MOVE || e->shape == HFN_X86_EXTEND) && e->dest == b->reg;
    if (copies) {
        b->reg = e->src;
    }
    return !copies;
}

/* A call ends the search if it changes the register, and forgets the flags in any case. */
static bool passes_call(const code_line *line, uint32_t index, bound_search *b)
{
    hfn_instruction in;

    if (!flow_at(line, index, &in) ||
        (in.flow != HFN_FLOW_CALL && in.flow != HFN_FLOW_CALL_INDIRECT)) {
        return false;
    }
    b->condition = 16;
    return call_clobbered(line) >> b->reg & 1;
}

/* How many entries a table that is indexed by pick->index has, 0 if the line does not show it. */
static uint32_t count_entries(const code_line *line, const chosen *pick, hfn_dispatch *out)
{
    bound_search b = { .reg = pick->index, .condition = 16 };
    hfn_x86_effects e;
    uint32_t at = pick->at;

    while (at > 0) {
        at--;
        uint8_t condition = condition_at(line, at);
        if (condition < 16) {
            b.condition = condition;
        } else if (!effects_at(line, at, &e) || passes_call(line, at, &b) || step_bound(&e, &b)) {
            break;
        }
    }
    if (b.count == 0 || b.count > UINT32_MAX) {
        return 0;
    }
    note_proof(line, at, out);
    return (uint32_t)b.count;
}

/* [disp32 + index*8], or *4 in 32-bit code: absolute entries at a fixed place. */
static bool is_absolute_table(const code_line *line, const hfn_x86_effects *e)
{
    return e->has_memory && e->base == HFN_X86_NO_REGISTER && e->index != HFN_X86_NO_REGISTER &&
           e->scale == word_bytes(line);
}

static void describe_absolute(const code_line *line, uint32_t at, const hfn_x86_effects *e,
                              hfn_dispatch *out)
{
    const chosen pick = { .at = at, .index = e->index };

    out->kind = HFN_DISPATCH_TABLE;
    out->entry_bytes = (uint8_t)word_bytes(line);
    out->base_rva = 0 - line->shown.link_base;
    out->table_rva = wrapped(line, (uint64_t)e->displacement - line->shown.link_base);
    note_proof(line, at, out);
    out->entry_count = count_entries(line, &pick, out);
}

/* The constant that reg holds before index `at`: from lea reg, [rip+x], through moves. */
static bool find_address(const code_line *line, uint32_t at, uint8_t reg, uint64_t *address,
                         hfn_dispatch *out)
{
    search s = { .line = line, .at = at };
    hfn_x86_effects e;

    while (find_write(&s, reg, &e) == FOUND) {
        note_proof(line, s.at, out);
        if (e.shape == HFN_X86_LEA && e.dest == reg && e.base == HFN_X86_RIP) {
            *address = (uint64_t)e.displacement;
            return true;
        }
        if (e.shape == HFN_X86_CONSTANT && e.dest == reg) {
            *address = wrapped(line, e.immediate - line->shown.link_base);
            return true;
        }
        if (e.shape == HFN_X86_LEA && e.dest == reg && e.base < 16 && e.index >= 16 &&
            line->shown.pic_base) {
            *address = wrapped(line, line->shown.pic_base + (uint64_t)e.displacement);
            return true;
        }
        if (e.shape != HFN_X86_MOVE || e.width != word_bytes(line)) {
            return false;
        }
        reg = e.src;
    }
    return false;
}

/* Does the instruction make reg the GOT's address: `add reg, n` right behind a call that gave reg its own
 * return address, or behind `call +0; pop reg`? */
static bool makes_pic_base(const code_line *line, uint32_t index, uint8_t reg)
{
    const uint32_t *starts = line->shown.starts;
    const uint8_t *bytes = line->shown.bytes + starts[index];
    bool by_eax = reg == 0 && bytes[0] == 0x05;
    uint32_t pc_of = index;
    hfn_instruction in;

    if (line->shown.pic_base == 0 || index == 0 ||
        (!by_eax && (bytes[0] != 0x81 || bytes[1] != (0xC0 | reg)))) {
        return false;
    }
    if (line->shown.bytes[starts[index - 1]] == (0x58 | reg)) { /* pop */
        pc_of--;
    }
    if (pc_of == 0 || !flow_at(line, pc_of - 1, &in) || in.flow != HFN_FLOW_CALL) {
        return false;
    }
    bytes += by_eax ? 1 : 2;
    return wrapped(line, line->shown.rva + starts[pc_of] + hfn_read_le32(bytes)) ==
           line->shown.pic_base;
}

/* A summand, as far as the line before index `at` shows it. */
typedef enum summand_kind { UNSHOWN, ADDRESS, LOADED, ARITHMETIC } summand_kind;

typedef struct summand {
    summand_kind kind;
    uint32_t at; /* of the instruction that wrote it */
    hfn_x86_effects write;
} summand;

static summand find_summand(const code_line *line, uint32_t at, uint8_t reg)
{
    summand found_one = { .kind = UNSHOWN };
    search s = { .line = line, .at = at };
    bool extended = false;

    while (find_write(&s, reg, &found_one.write) == FOUND) {
        const hfn_x86_effects *e = &found_one.write;
        bool whole = e->dest == reg;
        found_one.at = s.at;
        if (makes_pic_base(line, s.at, reg)) {
            break;
        }
        if (whole && ((e->shape == HFN_X86_MOVE && e->width == word_bytes(line)) ||
                      e->shape == HFN_X86_EXTEND)) {
            extended |= e->shape == HFN_X86_EXTEND;
            reg = e->src;
            continue;
        }
        bool loads_narrow = (extended || line->mode == HFN_X86_32 || line->shown.image_base) &&
                            e->shape == HFN_X86_LOAD && e->width == 4;
        if (whole && (e->shape == HFN_X86_LOAD_SIGNED || loads_narrow)) {
            found_one.kind = LOADED;
        } else if (whole && ((e->shape == HFN_X86_LEA && e->base == HFN_X86_RIP) ||
                             e->shape == HFN_X86_CONSTANT)) {
            found_one.kind = ADDRESS;
        } else {
            found_one.kind = ARITHMETIC;
        }
        break;
    }
    return found_one;
}

/* What reg holds before index `at` in position-independent i386 code: the address that a lea made, or
 * the GOT's. */
static uint64_t pic_value(const code_line *line, uint32_t at, uint8_t reg, hfn_dispatch *out)
{
    uint32_t proof_from = out->proof_from;
    uint64_t address;

    if (find_address(line, at, reg, &address, out)) {
        return address;
    }
    out->proof_from = proof_from;
    return line->shown.pic_base;
}

/* The same of i386: the instruction `e` at index `at` loads an entry, base_reg is the other summand.
 * It is what entries count from and, at most by a lea away, the table's own place too. */
static bool describe_pic_table(const code_line *line, uint32_t at, const hfn_x86_effects *e,
                               uint8_t base_reg, hfn_dispatch *out)
{
    const chosen pick = { .at = at, .index = e->index };
    bool scaled = e->scale == 4 && e->index != HFN_X86_NO_REGISTER;
    uint8_t place_reg = e->scale == 1 && e->index == base_reg ? base_reg : e->base;

    if (line->shown.pic_base == 0 || !e->has_memory || place_reg == HFN_X86_NO_REGISTER ||
        (place_reg != base_reg && !scaled)) {
        return false;
    }
    out->entry_bytes = 4;
    out->base_rva = pic_value(line, at, base_reg, out);
    out->table_rva = wrapped(line, pic_value(line, at, place_reg, out) + (uint64_t)e->displacement);
    note_proof(line, at, out);
    out->entry_count = scaled ? count_entries(line, &pick, out) : 0;
    return true;
}

/* Microsoft's: `lea b, [rip+image base]`, most often before the line, then `mov r, [b + i*4 + table]`
 * with the table's RVA and entries that are RVAs.  What b holds is guessed where the line does not
 * set it; a table that counts from itself names no displacement. */
static bool is_image_table(const code_line *line, uint32_t at, const hfn_x86_effects *e,
                           uint8_t base_reg, hfn_dispatch *out)
{
    uint32_t proof_from = out->proof_from;
    uint64_t base = 0;

    if (!e->has_memory || e->base != base_reg || e->scale != 4 || e->index == HFN_X86_NO_REGISTER ||
        e->displacement <= 0) {
        return false;
    }
    bool shown = find_address(line, at, base_reg, &base, out);
    if (shown && base != 0) {
        return false;
    }
    if (!shown) {
        out->proof_from = proof_from;
    }
    out->base_is_guessed = !shown;
    out->entry_bytes = 4;
    out->base_rva = 0;
    out->table_rva = (uint64_t)e->displacement;
    note_proof(line, at, out);
    return true;
}

/* The loaded summand and the register with the base are known: is it a whole table? */
static bool describe_table(const code_line *line, uint32_t at, const summand *loaded,
                           uint8_t base_reg, hfn_dispatch *out)
{
    const hfn_x86_effects *e = &loaded->write;
    const chosen pick = { .at = loaded->at, .index = e->index };
    uint64_t table = 0 - line->shown.link_base, base = 0;

    if (line->mode == HFN_X86_32) {
        return describe_pic_table(line, loaded->at, e, base_reg, out);
    }
    if (line->shown.image_base && is_image_table(line, at, e, base_reg, out)) {
        out->entry_count = count_entries(line, &pick, out);
        return true;
    }
    if (e->shape != HFN_X86_LOAD_SIGNED || e->scale != 4 || e->index == HFN_X86_NO_REGISTER ||
        !find_address(line, at, base_reg, &base, out)) {
        return false;
    }
    if (e->base != HFN_X86_NO_REGISTER && !find_address(line, loaded->at, e->base, &table, out)) {
        return false;
    }
    out->entry_bytes = 4;
    out->entry_is_signed = true;
    out->base_rva = base;
    out->table_rva = table + (uint64_t)e->displacement;
    note_proof(line, loaded->at, out);
    out->entry_count = count_entries(line, &pick, out);
    return true;
}

/* One of first and second is the loaded offset, the other the base. */
static void describe_sum(const code_line *line, uint32_t at, uint8_t first, uint8_t second,
                         hfn_dispatch *out)
{
    const summand a = find_summand(line, at, first), b = find_summand(line, at, second);

    out->kind = HFN_DISPATCH_OFFSET;
    if (a.kind == ARITHMETIC || b.kind == ARITHMETIC || (a.kind == ADDRESS && b.kind == ADDRESS)) {
        out->kind = HFN_DISPATCH_COMPUTED;
    } else if ((a.kind == LOADED && describe_table(line, at, &a, second, out)) ||
               (b.kind == LOADED && describe_table(line, at, &b, first, out))) {
        out->kind = HFN_DISPATCH_TABLE;
    }
}

/* The instruction that wrote the jump's register, at index `at`. */
static void describe_write(const code_line *line, uint32_t at, uint8_t reg,
                           const hfn_x86_effects *e, hfn_dispatch *out)
{
    bool whole = e->dest == reg;

    if (whole && e->shape == HFN_X86_LOAD && e->width == word_bytes(line) &&
        is_absolute_table(line, e)) {
        describe_absolute(line, at, e, out);
    } else if (whole && e->shape == HFN_X86_ADD) {
        describe_sum(line, at, reg, e->src, out);
    } else if (whole && e->shape == HFN_X86_ADD_LOAD) {
        out->kind = line->mode == HFN_X86_32 && describe_pic_table(line, at, e, reg, out)
                        ? HFN_DISPATCH_TABLE
                        : HFN_DISPATCH_COMPUTED;
    } else if (whole && e->shape == HFN_X86_LEA && e->base < 16 && e->index < 16 && e->scale == 1) {
        describe_sum(line, at, e->base, e->index, out);
    } else if (whole && ((e->shape == HFN_X86_LOAD && e->width == word_bytes(line)) ||
                         e->shape == HFN_X86_CONSTANT ||
                         (e->shape == HFN_X86_LEA && e->base == HFN_X86_RIP))) {
        out->kind = HFN_DISPATCH_POINTER;
    } else {
        out->kind = e->shape == HFN_X86_SELECT ? HFN_DISPATCH_VALUE : HFN_DISPATCH_COMPUTED;
    }
}

static void describe_register(const code_line *line, uint8_t reg, hfn_dispatch *out)
{
    search s = { .line = line, .at = line->shown.count - 1 };
    hfn_x86_effects e;

    for (;;) {
        found where = find_write(&s, reg, &e);
        if (where != FOUND) {
            out->kind = where == FOUND_CALL ? HFN_DISPATCH_POINTER : HFN_DISPATCH_VALUE;
            return;
        }
        note_proof(line, s.at, out);
        if (e.shape != HFN_X86_MOVE || e.dest != reg || e.width != word_bytes(line)) {
            break;
        }
        reg = e.src;
    }
    describe_write(line, s.at, reg, &e, out);
}

void hfn_x86_describe_dispatch(hfn_x86_mode mode, const hfn_straight_line *shown, hfn_dispatch *out)
{
    const code_line line = { *shown, mode };
    hfn_x86_effects e;
    uint32_t last = shown->count - 1;

    memset(out, 0, sizeof *out);
    out->proof_from = shown->starts[last];
    if (!effects_at(&line, last, &e)) {
        out->kind = HFN_DISPATCH_COMPUTED;
    } else if (e.dest != HFN_X86_NO_REGISTER) {
        describe_register(&line, e.dest, out);
    } else if (is_absolute_table(&line, &e)) {
        describe_absolute(&line, last, &e, out);
    } else {
        out->kind = HFN_DISPATCH_POINTER;
    }
}
