/* SPDX-License-Identifier: MIT */
/* 32-bit code where it differs from 64-bit code; the other tests cover 64-bit code. */
#include "arch/arch.h"
#include "arch/x86/relocate.h"

#include "arch_i386_code.h"
#include "check.h"

#include <hotfn/machine.h>

#define RVA 0x1000u
#define LINK_BASE 0x8048000u
#define GOT 0x4000u

static hfn_instruction decode(const char *text, size_t size)
{
    hfn_instruction in = { .length = 0 };

    CHECK(hfn_arch_x86.decode((const uint8_t *)text, size, RVA, LINK_BASE, &in));
    return in;
}
#define DECODE(text) decode(CODE_32(text))

static void opcodes_40_to_4f_are_instructions_not_prefixes(void)
{
    CHECK_EQ_U64(DECODE("inc eax; ret").length, 1);
    CHECK_EQ_U64(DECODE("dec edi; ret").length, 1);
    CHECK_EQ_U64(DECODE("bound eax, [ebx]").length, 2);
}

static void a_displacement_without_registers_is_absolute(void)
{
    hfn_instruction in =
        DECODE(".byte 0x8b, 0x05, 0x00, 0x90, 0x04, 0x08"); /* mov eax, [0x8049000] */

    CHECK(in.relative_bytes == 0 && !in.reads_memory_relative);
    in = DECODE("lea eax, ds:0x8049000");
    CHECK(in.takes_address && !in.from_register);
    CHECK_EQ_U64(in.target, 0x1000);
    in = DECODE("lea eax, [ebx-0x1000]");
    CHECK(in.takes_address && in.from_register);
    CHECK_EQ_U64((uint32_t)(in.target + LINK_BASE), 0xFFFFF000);
}

static void assembler_filler_is_padding(void)
{
    CHECK(DECODE(".byte 0x8d, 0xb4, 0x26, 0x00, 0x00, 0x00, 0x00")
              .is_padding); /* lea esi, [esi + eiz + 0] */
    CHECK(DECODE("{disp32} lea esi, [esi]").is_padding);
    CHECK(DECODE(".byte 0x8d, 0x74, 0x26, 0x00").is_padding);
    CHECK(DECODE("{disp8} lea esi, [esi]").is_padding);
    CHECK(DECODE(".byte 0x8d, 0xbc, 0x27, 0x00, 0x00, 0x00, 0x00").is_padding); /* lea edi, ... */
    CHECK(DECODE("mov esi, esi").is_padding);
    CHECK(!DECODE("lea esi, [esi+1]").is_padding);
    CHECK(!DECODE("{disp8} lea edi, [esi]").is_padding);
    CHECK(!DECODE("lea esi, ds:0").is_padding);
    CHECK(!DECODE("lea esi, [esi+esi]").is_padding);
    CHECK(!DECODE(".byte 0x67, 0x8d, 0x36, 0x00, 0x00").is_padding); /* a 16-bit address   */
    CHECK(!DECODE("mov edi, esi").is_padding);
}

static void branches_wrap_around_at_4_gib(void)
{
    CHECK_EQ_U64(DECODE("jmp .-0x1ffb").target, 0xFFFFF005); /* jmp -0x2000 */
}

static hfn_move_result move(const char *text, size_t size, hfn_moved *m)
{
    uint8_t bytes[32];
    uint32_t offset;

    memset(bytes, 0x90, sizeof bytes);
    memcpy(bytes, text, size);
    return hfn_arch_x86.move(bytes, sizeof bytes, RVA, 5, HFN_NO_REGISTER, m, &offset);
}
#define MOVE(text, m) move(CODE_32(text), m)

/* The launcher finds the patches of another process by them, on every CPU. */
static void target_of_a_written_jump_is_found(void)
{
    static const uint32_t machines[] = { HOTFN_MACHINE_X86_64, HOTFN_MACHINE_X86,
                                         HOTFN_MACHINE_ARM64 };
    const uint8_t jump[] = { 0xe9, 0x10, 0x00, 0x00, 0x00 },
                  nop[] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
    const hfn_patching *patching = hfn_patching_find(HOTFN_MACHINE_X86);

    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        CHECK(hfn_patching_find(machines[i])->jump_target != NULL);
    }
    CHECK_EQ_U64(patching->jump_target(jump, 0x401000), 0x401015);
    CHECK_EQ_U64(patching->jump_target(jump, 0xfffffff0), 5); /* addresses wrap around */
    CHECK_EQ_U64(patching->jump_target(nop, 0x401000), 0);
}

static void moved_prologues_count_the_stack_in_words_of_4(void)
{
    hfn_moved m;

    CHECK_EQ_U64(MOVE("push ebp; mov ebp, esp; push ebx; sub esp, 0x14", &m), HFN_MOVED);
    CHECK_EQ_U64(m.length, 7 + 5);
    CHECK_EQ_I64(m.cfa_delta[1], 4);
    CHECK_EQ_I64(m.cfa_delta[3], 8);
    CHECK_EQ_I64(m.cfa_delta_end, 28);
    /* an absolute address is the same elsewhere */
    CHECK_EQ_U64(MOVE("mov eax, ds:0x8049000", &m), HFN_MOVED);
    CHECK_EQ_U64(m.fixup_count, 1);
    /* mov eax, [5], which 64-bit code would read as [rip+5] */
    CHECK_EQ_U64(MOVE(".byte 0x8b, 0x05, 0x05, 0x00, 0x00, 0x00", &m), HFN_MOVED);
    CHECK_EQ_U64(m.fixup_count, 1);
}

/* push ebx; call a thunk that loads its return address into ebx.  The moved code corrects ebx by
 * lea. */
static void call_of_a_get_pc_thunk_moves_with_a_correction(void)
{
    static const uint8_t code[16] = "\x53\xE8\xFB\x0F\x00\x00\x83\xC3\x10\x90";
    static const uint8_t thunks[][4] = { "\x8B\x1C\x24\xC3", "\x8B\x04\x24\xC3", "\x8B\x24\x24\xC3",
                                         "\x8B\x1C\x24\xC2", "\x8B\x5C\x24\x04" };
    static const uint8_t wanted[] = "\x53\xE8\0\0\0\0\x8D\x9B\0\0\0\0\xE9";
    uint8_t moved[HFN_MOVED_MAX];
    uint32_t offset;
    hfn_moved m;

    CHECK_EQ_U64(hfn_arch_x86.pc_register(thunks[0], 4), 3);
    CHECK_EQ_U64(hfn_arch_x86.pc_register(thunks[1], 4), 0);
    CHECK_EQ_U64(hfn_arch_x86.pc_register(thunks[0], 3), HFN_NO_REGISTER);
    for (int i = 2; i < 5; i++) { /* loads esp; ret n; loads an argument */
        CHECK_EQ_U64(hfn_arch_x86.pc_register(thunks[i], 4), HFN_NO_REGISTER);
    }

    CHECK_EQ_U64(hfn_arch_x86.move(code, sizeof code, RVA, 5, HFN_NO_REGISTER, &m, &offset),
                 HFN_MOVE_CALL);
    CHECK_EQ_U64(hfn_arch_x86.move(code, sizeof code, RVA, 5, 3, &m, &offset), HFN_MOVED);
    CHECK_EQ_U64(m.original_bytes, 6);
    CHECK_EQ_U64(m.length, 17);
    CHECK_MEM(m.bytes, wanted, 13);
    CHECK_EQ_U64(m.fixup_count, 3);
    CHECK_EQ_U64(m.fixups[0].target_rva, RVA + 6 + 0xffb);
    CHECK_EQ_I64(m.cfa_delta_end, 4);
    memcpy(moved, m.bytes, sizeof moved);
    for (uint32_t i = 0; i < m.fixup_count; i++) {
        CHECK_EQ_U64(hfn_patching_x86.fixup_kind(m.fixups[i].at, m.fixups[i].end, m.length),
                     HFN_FIXUP_NEAR);
        CHECK(hfn_patching_x86.fix_up(moved, 0x500000, m.fixups[i].at, m.fixups[i].end,
                                      m.fixups[i].target_rva));
    }
    /* after the call ebx is 0x500006 and must become RVA + 6 */
    CHECK_EQ_U64(0x500006 + (moved[8] | (uint32_t)moved[9] << 8 | (uint32_t)moved[10] << 16 |
                             (uint32_t)moved[11] << 24),
                 (RVA + 6) & UINT32_MAX);
}

/* The call only obtains its return address, so it must not move; its target is changed instead. */
static void inline_get_pc_call_is_retargeted_not_moved(void)
{
    static const uint8_t get_pc[16] = { 0xE8, 0, 0, 0, 0, 0x5B }; /* call $+5; pop ebx */
    hfn_moved m;

    CHECK_EQ_U64(MOVE("call .+5; pop ebx", &m), HFN_MOVE_CALL);
    CHECK(hfn_arch_x86.retarget(get_pc, sizeof get_pc, RVA, &m));
    CHECK_EQ_U64(m.fixups[0].target_rva, RVA + 5);
}

static int32_t growth(const char *bytes, size_t size)
{
    int32_t bytes_grown = 0;

    return hfn_x86_get_stack_growth(HFN_X86_32, (const uint8_t *)bytes, size, &bytes_grown)
               ? bytes_grown
               : INT32_MAX;
}
#define GROWTH(text) growth(CODE_32(text))

static void stack_grows_in_words_of_4(void)
{
    CHECK_EQ_I64(GROWTH("push ebx"), 4);
    CHECK_EQ_I64(GROWTH("push ds:0x8049000"), 4);
    CHECK_EQ_I64(GROWTH("pop ebx"), -4);
    CHECK_EQ_I64(GROWTH("sub esp, 0x1c"), 28);
    CHECK_EQ_I64(GROWTH("sub esp, 0x1000"), 4096);
    CHECK_EQ_I64(GROWTH("lea esp, [esp-8]"), 8);
    CHECK_EQ_I64(GROWTH("sub sp, 0x1c"), INT32_MAX);
    CHECK_EQ_I64(GROWTH("push bx"), INT32_MAX);
    CHECK_EQ_I64(GROWTH("pusha"), INT32_MAX); /* pushad */
    CHECK_EQ_I64(GROWTH("and esp, -16"), INT32_MAX);
    CHECK_EQ_I64(GROWTH("dec ebx"), 0);
    CHECK_EQ_I64(GROWTH("dec esp"), INT32_MAX);
}

static bool live(const char *bytes, size_t size)
{
    const hfn_flag_reads nowhere = { .at_return = false };
    uint64_t leaves_to;

    return hfn_arch_x86.flags_live((const uint8_t *)bytes, size, RVA, RVA, &nowhere, &leaves_to);
}
#define LIVE(text) live(CODE_32(text))

static void inc_and_arpl_preserve_some_flags(void)
{
    CHECK(LIVE("inc eax; jb .+2")); /* inc leaves CF */
    CHECK(!LIVE("inc eax; xor eax, eax; jb .+2"));
    CHECK(LIVE("arpl ax, ax; jb .+2")); /* arpl leaves CF */
    CHECK(!LIVE("sub esp, 0x10; mov eax, [esp+0x14]; ret"));
}

static hfn_dispatch dispatch(const char *text, size_t size, uint64_t pic_base)
{
    uint8_t bytes[128];
    uint32_t starts[32];
    hfn_straight_line line = { bytes, sizeof bytes, RVA, LINK_BASE, starts, 0, pic_base, false };
    hfn_instruction in;
    hfn_dispatch d;

    memset(bytes, 0x90, sizeof bytes);
    memcpy(bytes, text, size);
    for (uint32_t at = 0; at < size; at += in.length) {
        CHECK(hfn_arch_x86.decode(bytes + at, sizeof bytes - at, RVA + at, LINK_BASE, &in));
        starts[line.count++] = at;
    }
    hfn_arch_x86.dispatch(&line, &d);
    return d;
}
#define DISPATCH(text, pic_base) dispatch(CODE_32(text), pic_base)

/* gcc -m32 -O2 -fno-pie */
static void absolute_table_is_described(void)
{
    hfn_dispatch d = DISPATCH("cmp eax, 6; ja .+0x69; jmp [eax*4+0x804a008]", 0);

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_bytes, 4);
    CHECK(!d.entry_is_signed);
    CHECK_EQ_U64(d.table_rva, 0x2008);
    CHECK_EQ_U64(d.base_rva + 0x8049123u, 0x1123);
    CHECK_EQ_U64(d.entry_count, 7);
}

static void table_of_got_offsets_is_described(void)
{
    /* gcc -m32 -O2 -fPIE */
    hfn_dispatch d = DISPATCH("cmp edx, 6; ja .+0x6f; add eax, [eax+edx*4-0x1fec]; jmp eax", GOT);

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_bytes, 4);
    CHECK_EQ_U64(d.table_rva, GOT - 0x1fec);
    CHECK_EQ_U64(d.base_rva, GOT);
    CHECK_EQ_U64(d.entry_count, 7);
    /* clang -m32 -O0 -fPIE */
    d = DISPATCH("mov eax, [ecx+eax*4-0x1fec]; add eax, ecx; jmp eax", GOT);
    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.table_rva, GOT - 0x1fec);
    CHECK_EQ_U64(d.object_rva, 0); /* the GOT is no table */
    CHECK_EQ_U64(d.entry_count, 0);
    /* gcc -m32 -O0 -fPIE */
    d = DISPATCH("shl edx, 2; mov edx, [edx+eax-0x1fec]; add eax, edx; jmp eax", GOT);
    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.table_rva, GOT - 0x1fec);
    /* glibc's memcpy */
    d = DISPATCH("lea ebx, [ebx-0x100]; add ebx, [ebx+ecx*4]; jmp ebx", GOT);
    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.table_rva, GOT - 0x100);
    CHECK_EQ_U64(d.base_rva, GOT - 0x100);
    CHECK_EQ_U64(d.object_rva, 0);
    /* an index from 1: the entries begin at ebx, 4 bytes behind the accessed address of index 0 */
    d = DISPATCH("mov ebx, 0x804bf00; mov edi, [ebx+edi*4-4]; add ebx, edi; jmp ebx", GOT);
    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.table_rva, GOT - 0x104);
    CHECK_EQ_U64(d.object_rva, GOT - 0x100);
    CHECK_EQ_U64(d.base_rva, GOT - 0x100);
}

static void got_address_may_be_computed_in_the_line(void)
{
    /* the thunk returns its return address in edx; 0x2ffb is GOT - (RVA + 5) */
    hfn_dispatch d = DISPATCH(
        "call .+0x105; add edx, 0x2ffb; cmp eax, 6; ja .+0x2d; mov ecx, [edx+eax*4-0x1fec]; add ecx, edx; jmp ecx",
        GOT);

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.table_rva, GOT - 0x1fec);
    CHECK_EQ_U64(d.base_rva, GOT);
    CHECK_EQ_U64(d.entry_count, 7);
    /* clang's call +0 and pop in place of the thunk */
    d = DISPATCH(
        "call .+5; pop ebx; add ebx, 0x2ffb; cmp eax, 6; ja .+0x2d; mov ecx, [ebx+eax*4-0x1fec]; add ecx, ebx; jmp ecx",
        GOT);
    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_count, 7);
    /* the added number is not the GOT's distance */
    d = DISPATCH(
        "call .+0x105; add edx, 0x2ffc; cmp eax, 6; ja .+0x2d; mov ecx, [edx+eax*4-0x1fec]; add ecx, edx; jmp ecx",
        GOT);
    CHECK_EQ_U64(d.kind, HFN_DISPATCH_COMPUTED);
}

static void jump_without_a_pic_base_is_computed(void)
{
    hfn_dispatch d = DISPATCH("add eax, [eax+edx*4-0x1fec]; jmp eax", 0);

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_COMPUTED);
}

static void unwinding_moved_code_counts_in_words_of_4(void)
{
    /* push ebp; mov ebp, esp; push ebx; sub esp, 20: ebp has number 5, CFA is esp + 4 at first;
     * ebx has no row, since it cannot change before the jump back */
    static const uint8_t want[] = {
        0x41, 0x0e, 8, /* after push ebp: CFA = esp + 8 */
        0x85, 2,       /* ebp at CFA - 8 */
        0x42, 0x0d, 5, /* after mov ebp, esp: CFA = ebp + 8 */
    };
    uint8_t cfi[32];
    hfn_moved m;

    CHECK_EQ_U64(MOVE("push ebp; mov ebp, esp; push ebx; sub esp, 0x14", &m), HFN_MOVED);
    CHECK_EQ_U64(hfn_patching_x86.cfi_steps(&m, cfi, sizeof cfi), sizeof want);
    CHECK(memcmp(cfi, want, sizeof want) == 0);
}

static void popped_registers_are_no_longer_saved(void)
{
    /* push ebx; push esi; pop esi; pop ebx; nop; ret: a signal frame may overwrite bytes below
     * esp */
    static const uint8_t want[] = {
        0x41, 0x0e, 8,    0x41, 0x0e, 12, /* the pushes                       */
        0x83, 2,    0x86, 3,              /* saved, from the first pop on     */
        0x41, 0xc6, 0x0e, 8,              /* after pop esi                    */
        0x41, 0xc3, 0x0e, 4               /* after pop ebx                    */
    };
    uint8_t cfi[32];
    hfn_moved m;

    CHECK_EQ_U64(MOVE("push ebx; push esi; pop esi; pop ebx; nop; ret", &m), HFN_MOVED);
    CHECK_EQ_U64(hfn_patching_x86.cfi_steps(&m, cfi, sizeof cfi), sizeof want);
    CHECK(memcmp(cfi, want, sizeof want) == 0);
}

static const check_test tests[] = {
    CHECK_TEST(opcodes_40_to_4f_are_instructions_not_prefixes),
    CHECK_TEST(a_displacement_without_registers_is_absolute),
    CHECK_TEST(assembler_filler_is_padding),
    CHECK_TEST(branches_wrap_around_at_4_gib),
    CHECK_TEST(target_of_a_written_jump_is_found),
    CHECK_TEST(moved_prologues_count_the_stack_in_words_of_4),
    CHECK_TEST(call_of_a_get_pc_thunk_moves_with_a_correction),
    CHECK_TEST(inline_get_pc_call_is_retargeted_not_moved),
    CHECK_TEST(stack_grows_in_words_of_4),
    CHECK_TEST(unwinding_moved_code_counts_in_words_of_4),
    CHECK_TEST(popped_registers_are_no_longer_saved),
    CHECK_TEST(inc_and_arpl_preserve_some_flags),
    CHECK_TEST(absolute_table_is_described),
    CHECK_TEST(table_of_got_offsets_is_described),
    CHECK_TEST(got_address_may_be_computed_in_the_line),
    CHECK_TEST(jump_without_a_pic_base_is_computed),
};
CHECK_MAIN(tests)
