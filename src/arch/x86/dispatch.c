/* SPDX-License-Identifier: MIT */
/*
 * Finds the targets of an indirect jump by reading backwards the straight line that ends with it.
 * These forms of gcc, clang and Microsoft's compiler are known:
 *     jmp [table + i*8]                                                  (absolute addresses)
 *     mov r, [table + i*8]; jmp r                                        (the same)
 *     lea b, [rip+table]; movsxd r, [b + i*4]; add r, b; jmp r           (offsets from the table)
 *     the same with mov, cdqe instead of movsxd, at -O0                  (the line shows no table)
 *     mov r, [b + i*4 + table]; add r, b; jmp r                          (Microsoft: b is the image
 *                                                                         base, table an RVA)
 *     mov r, [b + i*4 + table]; add r, b; jmp r                          (i386, -fPIC: b is GOT)
 *     add b, [b + i*4 + table]; jmp b                                    (the same)
 * The number of entries comes from a `cmp i, n; ja` or an `and i, n` earlier in the line; it is 0
 * if the line has neither.
 */
#include "arch/x86/dispatch.h"
#include "arch/x86/decode.h"
#include "base/byte_order.h"

#include <string.h>

/* A line and its instruction set. */
typedef struct code_line {
    hfn_straight_line code;
    hfn_x86_mode mode;
} code_line;

static uint32_t get_word_bytes(const code_line *line)
{
    return line->mode == HFN_X86_32 ? 4 : 8;
}

/* Registers that a call does not preserve: rax rcx rdx rsi rdi r8-r11 (System V psABI x86-64,
 * 3.2.1); eax ecx edx (System V psABI i386, table 2.3). */
static uint32_t get_call_clobbered(const code_line *line)
{
    return line->mode == HFN_X86_32 ? 0x7 : 0xFC7;
}

/* Truncate an RVA to the size of a pointer. */
static uint64_t wrap_address(const code_line *line, uint64_t rva)
{
    return line->mode == HFN_X86_32 ? (uint32_t)rva : rva;
}

/* The backward search for one register's value. */
typedef struct register_search {
    const code_line *line;
    uint32_t at; /* instructions before this index are still to be searched */
} register_search;

static bool decode_effects_at(const code_line *line, uint32_t index, hfn_x86_effects *out)
{
    uint32_t offset = line->code.starts[index];

    return hfn_x86_decode_effects(line->mode, line->code.bytes + offset, line->code.size - offset,
                                  line->code.rva + offset, out);
}

static bool decode_flow_at(const code_line *line, uint32_t index, hfn_instruction *out)
{
    uint32_t offset = line->code.starts[index];

    return hfn_x86_decode(line->mode, line->code.bytes + offset, line->code.size - offset,
                          line->code.rva + offset, 0, out);
}

typedef enum find_result { FOUND, FOUND_CALL, NOT_IN_LINE } find_result;

/* Find the last instruction before s->at that writes reg, and set s->at to its index. */
static find_result find_write(register_search *s, uint8_t reg, hfn_x86_effects *out)
{
    hfn_instruction in;

    while (s->at > 0) {
        s->at--;
        if (!decode_effects_at(s->line, s->at, out) || !decode_flow_at(s->line, s->at, &in)) {
            return NOT_IN_LINE;
        }
        bool calls = in.flow == HFN_FLOW_CALL || in.flow == HFN_FLOW_CALL_INDIRECT;
        if (calls && (get_call_clobbered(s->line) >> reg & 1)) {
            return FOUND_CALL;
        }
        if (out->writes >> reg & 1) {
            return FOUND;
        }
    }
    return NOT_IN_LINE;
}

/* The instruction that loads a table entry, by its place in the line, and the index register. */
typedef struct table_access {
    uint32_t at;
    uint8_t index;
} table_access;

static void extend_proof(const code_line *line, uint32_t index, hfn_dispatch *out)
{
    if (line->code.starts[index] < out->proof_from) {
        out->proof_from = line->code.starts[index];
    }
}

/* The number of values of dest for which the jump after `cmp dest, n` is not taken: n + 1 for ja, n
 * for jae, 0 (unknown) for other conditions. */
static uint64_t get_compared_count(const hfn_x86_effects *compare, uint8_t condition)
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
static uint8_t get_condition(const code_line *line, uint32_t index)
{
    const uint8_t *bytes = line->code.bytes + line->code.starts[index];

    if ((bytes[0] & 0xF0) == 0x70) {
        return bytes[0] & 15;
    }
    if (bytes[0] == 0x0F && (bytes[1] & 0xF0) == 0x80) {
        return bytes[1] & 15;
    }
    return 16;
}

/* The backward search for the bound of an index register. */
typedef struct bound_search {
    uint8_t reg;
    uint8_t condition; /* of a jcc whose cmp is still searched; 16: none */
    uint64_t count;    /* the result                                     */
} bound_search;

/* Go back over one instruction; true when the search is finished. */
static bool step_bound_search(const hfn_x86_effects *e, bound_search *b)
{
    if (e->shape == HFN_X86_COMPARE && e->dest == b->reg && b->condition < 16) {
        b->count = get_compared_count(e, b->condition);
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
    /* Sign extension does not change a number below 2^31, and larger counts are rejected. */
    bool copies = (e->shape == HFN_X86_MOVE || e->shape == HFN_X86_EXTEND) && e->dest == b->reg;
    if (copies) {
        b->reg = e->src;
    }
    return !copies;
}

/* A call ends the search if it may change the register; it always invalidates the flags. */
static bool ends_at_call(const code_line *line, uint32_t index, bound_search *b)
{
    hfn_instruction in;

    if (!decode_flow_at(line, index, &in) ||
        (in.flow != HFN_FLOW_CALL && in.flow != HFN_FLOW_CALL_INDIRECT)) {
        return false;
    }
    b->condition = 16;
    return get_call_clobbered(line) >> b->reg & 1;
}

/* The number of entries of the table indexed by entry->index, 0 if unknown. */
static uint32_t count_entries(const code_line *line, const table_access *entry, hfn_dispatch *out)
{
    bound_search b = { .reg = entry->index, .condition = 16 };
    hfn_x86_effects e;
    uint32_t at = entry->at;

    while (at > 0) {
        at--;
        uint8_t condition = get_condition(line, at);
        if (condition < 16) {
            b.condition = condition;
        } else if (!decode_effects_at(line, at, &e) || ends_at_call(line, at, &b) ||
                   step_bound_search(&e, &b)) {
            break;
        }
    }
    if (b.count == 0 || b.count > UINT32_MAX) {
        return 0;
    }
    extend_proof(line, at, out);
    return (uint32_t)b.count;
}

/* [disp32 + index*8], or *4 in 32-bit code: absolute entries at a fixed address. */
static bool is_absolute_table(const code_line *line, const hfn_x86_effects *e)
{
    return e->has_memory && e->base == HFN_X86_NO_REGISTER && e->index != HFN_X86_NO_REGISTER &&
           e->scale == get_word_bytes(line);
}

static void describe_absolute(const code_line *line, uint32_t at, const hfn_x86_effects *e,
                              hfn_dispatch *out)
{
    const table_access entry = { .at = at, .index = e->index };

    out->kind = HFN_DISPATCH_TABLE;
    out->entry_bytes = (uint8_t)get_word_bytes(line);
    out->base_rva = 0 - line->code.link_base;
    out->table_rva = wrap_address(line, (uint64_t)e->displacement - line->code.link_base);
    extend_proof(line, at, out);
    out->entry_count = count_entries(line, &entry, out);
}

/* Find the constant in reg before index `at`: from lea reg, [rip+x], through moves. */
static bool find_address(const code_line *line, uint32_t at, uint8_t reg, uint64_t *address,
                         hfn_dispatch *out)
{
    register_search s = { .line = line, .at = at };
    hfn_x86_effects e;

    while (find_write(&s, reg, &e) == FOUND) {
        extend_proof(line, s.at, out);
        if (e.shape == HFN_X86_LEA && e.dest == reg && e.base == HFN_X86_RIP) {
            *address = (uint64_t)e.displacement;
            return true;
        }
        if (e.shape == HFN_X86_CONSTANT && e.dest == reg) {
            *address = wrap_address(line, e.immediate - line->code.link_base);
            return true;
        }
        if (e.shape == HFN_X86_LEA && e.dest == reg && e.base < 16 && e.index >= 16 &&
            line->code.pic_base) {
            *address = wrap_address(line, line->code.pic_base + (uint64_t)e.displacement);
            return true;
        }
        if (e.shape != HFN_X86_MOVE || e.width != get_word_bytes(line)) {
            return false;
        }
        reg = e.src;
    }
    return false;
}

/* Does the instruction set reg to the GOT's address?  It is `add reg, n` directly after a call
 * that put its return address into reg, or after `call +0; pop reg`. */
static bool makes_pic_base(const code_line *line, uint32_t index, uint8_t reg)
{
    const uint32_t *starts = line->code.starts;
    const uint8_t *bytes = line->code.bytes + starts[index];
    bool by_eax = reg == 0 && bytes[0] == 0x05;
    uint32_t after_call = index; /* the instruction at the return address */
    hfn_instruction in;

    if (line->code.pic_base == 0 || index == 0 ||
        (!by_eax && (bytes[0] != 0x81 || bytes[1] != (0xC0 | reg)))) {
        return false;
    }
    if (line->code.bytes[starts[index - 1]] == (0x58 | reg)) { /* pop */
        after_call--;
    }
    if (after_call == 0 || !decode_flow_at(line, after_call - 1, &in) || in.flow != HFN_FLOW_CALL) {
        return false;
    }
    bytes += by_eax ? 1 : 2;
    return wrap_address(line, line->code.rva + starts[after_call] + hfn_read_le32(bytes)) ==
           line->code.pic_base;
}

/* A summand of the jump's target, described by the instruction that computes it in the line. */
typedef enum summand_kind { NOT_IN_CODE, ADDRESS, LOADED, ARITHMETIC } summand_kind;

typedef struct summand {
    summand_kind kind;
    uint32_t at; /* index of the instruction that writes it */
    hfn_x86_effects write;
} summand;

static summand find_summand(const code_line *line, uint32_t at, uint8_t reg)
{
    summand result = { .kind = NOT_IN_CODE };
    register_search s = { .line = line, .at = at };
    bool extended = false;

    while (find_write(&s, reg, &result.write) == FOUND) {
        const hfn_x86_effects *e = &result.write;
        bool whole = e->dest == reg;
        result.at = s.at;
        if (makes_pic_base(line, s.at, reg)) {
            break;
        }
        if (whole && ((e->shape == HFN_X86_MOVE && e->width == get_word_bytes(line)) ||
                      e->shape == HFN_X86_EXTEND)) {
            extended |= e->shape == HFN_X86_EXTEND;
            reg = e->src;
            continue;
        }
        bool loads_narrow = (extended || line->mode == HFN_X86_32 || line->code.image_base) &&
                            e->shape == HFN_X86_LOAD && e->width == 4;
        if (whole && (e->shape == HFN_X86_LOAD_SIGNED || loads_narrow)) {
            result.kind = LOADED;
        } else if (whole && ((e->shape == HFN_X86_LEA && e->base == HFN_X86_RIP) ||
                             e->shape == HFN_X86_CONSTANT)) {
            result.kind = ADDRESS;
        } else {
            result.kind = ARITHMETIC;
        }
        break;
    }
    return result;
}

/* The address in reg before index `at` in position-independent i386 code: from a lea, or else the
 * GOT's. */
static uint64_t find_pic_value(const code_line *line, uint32_t at, uint8_t reg, hfn_dispatch *out)
{
    uint32_t proof_from = out->proof_from;
    uint64_t address;

    if (find_address(line, at, reg, &address, out)) {
        return address;
    }
    out->proof_from = proof_from;
    return line->code.pic_base;
}

/* i386: the instruction `e` at index `at` loads an entry, base_reg is the other summand.
 * Entries are relative to base_reg, and the table lies at a constant distance from it. */
static bool describe_pic_table(const code_line *line, uint32_t at, const hfn_x86_effects *e,
                               uint8_t base_reg, hfn_dispatch *out)
{
    const table_access entry = { .at = at, .index = e->index };
    bool scaled = e->scale == 4 && e->index != HFN_X86_NO_REGISTER;
    uint8_t place_reg = e->scale == 1 && e->index == base_reg ? base_reg : e->base;
    uint64_t place;

    if (line->code.pic_base == 0 || !e->has_memory || place_reg == HFN_X86_NO_REGISTER ||
        (place_reg != base_reg && !scaled)) {
        return false;
    }
    out->entry_bytes = 4;
    out->base_rva = find_pic_value(line, at, base_reg, out);
    place = find_pic_value(line, at, place_reg, out);
    out->table_rva = wrap_address(line, place + (uint64_t)e->displacement);
    out->object_rva = e->displacement < 0 && place != line->code.pic_base ? place : 0;
    extend_proof(line, at, out);
    out->entry_count = scaled ? count_entries(line, &entry, out) : 0;
    return true;
}

/* Microsoft's compiler: `lea b, [rip+image base]`, usually before the line, then `mov r, [b +
 * i*4 + table]` with the table's RVA; entries are RVAs.  If the line does not set b, b is assumed
 * to be the image base: if b were the table, the load would have no displacement. */
static bool describe_image_table(const code_line *line, uint32_t at, const hfn_x86_effects *e,
                                 uint8_t base_reg, hfn_dispatch *out)
{
    uint32_t proof_from = out->proof_from;
    uint64_t base = 0;

    if (!e->has_memory || e->base != base_reg || e->scale != 4 || e->index == HFN_X86_NO_REGISTER ||
        e->displacement <= 0) {
        return false;
    }
    bool is_known = find_address(line, at, base_reg, &base, out);
    if (is_known && base != 0) {
        return false;
    }
    if (!is_known) {
        out->proof_from = proof_from;
    }
    out->base_is_guessed = !is_known;
    out->entry_bytes = 4;
    out->base_rva = 0;
    out->table_rva = (uint64_t)e->displacement;
    extend_proof(line, at, out);
    return true;
}

/* Describe the table from the loaded summand and the base register; false if a part is unknown. */
static bool describe_table(const code_line *line, uint32_t at, const summand *loaded,
                           uint8_t base_reg, hfn_dispatch *out)
{
    const hfn_x86_effects *e = &loaded->write;
    const table_access entry = { .at = loaded->at, .index = e->index };
    uint64_t table = 0 - line->code.link_base, base = 0;

    if (line->mode == HFN_X86_32) {
        return describe_pic_table(line, loaded->at, e, base_reg, out);
    }
    if (line->code.image_base && describe_image_table(line, at, e, base_reg, out)) {
        out->entry_count = count_entries(line, &entry, out);
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
    out->object_rva = e->displacement < 0 ? table : 0;
    extend_proof(line, loaded->at, out);
    out->entry_count = count_entries(line, &entry, out);
    return true;
}

/* Describe a sum of two registers, one the loaded offset and the other the base. */
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

/* Describe the instruction `e` at index `at`, which writes the jump's register. */
static void describe_write(const code_line *line, uint32_t at, uint8_t reg,
                           const hfn_x86_effects *e, hfn_dispatch *out)
{
    bool whole = e->dest == reg;

    if (whole && e->shape == HFN_X86_LOAD && e->width == get_word_bytes(line) &&
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
    } else if (whole && ((e->shape == HFN_X86_LOAD && e->width == get_word_bytes(line)) ||
                         e->shape == HFN_X86_CONSTANT ||
                         (e->shape == HFN_X86_LEA && e->base == HFN_X86_RIP))) {
        out->kind = HFN_DISPATCH_POINTER;
    } else {
        out->kind = e->shape == HFN_X86_SELECT ? HFN_DISPATCH_VALUE : HFN_DISPATCH_COMPUTED;
    }
}

static void describe_register(const code_line *line, uint8_t reg, hfn_dispatch *out)
{
    register_search s = { .line = line, .at = line->code.count - 1 };
    hfn_x86_effects e;

    for (;;) {
        find_result where = find_write(&s, reg, &e);
        if (where != FOUND) {
            out->kind = where == FOUND_CALL ? HFN_DISPATCH_POINTER : HFN_DISPATCH_VALUE;
            return;
        }
        extend_proof(line, s.at, out);
        if (e.shape != HFN_X86_MOVE || e.dest != reg || e.width != get_word_bytes(line)) {
            break;
        }
        reg = e.src;
    }
    describe_write(line, s.at, reg, &e, out);
}

void hfn_x86_describe_dispatch(hfn_x86_mode mode, const hfn_straight_line *code, hfn_dispatch *out)
{
    const code_line line = { *code, mode };
    hfn_x86_effects e;
    uint32_t last = code->count - 1;

    memset(out, 0, sizeof *out);
    out->proof_from = code->starts[last];
    if (!decode_effects_at(&line, last, &e)) {
        out->kind = HFN_DISPATCH_COMPUTED;
    } else if (e.dest != HFN_X86_NO_REGISTER) {
        describe_register(&line, e.dest, out);
    } else if (is_absolute_table(&line, &e)) {
        describe_absolute(&line, last, &e, out);
    } else {
        out->kind = HFN_DISPATCH_POINTER;
    }
}
