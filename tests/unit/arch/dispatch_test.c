/* SPDX-License-Identifier: MIT */
/* Describes indirect jumps in the forms that compilers emit. */
#include "arch/arch.h"

#include "arch_dispatch_code.h"
#include "check.h"

#define RVA 0x1000u
#define LINK_BASE 0x400000u

/* Describe the jump that ends the line of all instructions in text. */
static hfn_dispatch dispatch_in(const char *text, size_t size, bool image_base)
{
    uint8_t bytes[128];
    uint32_t starts[32];
    hfn_straight_line line = { bytes, sizeof bytes, RVA, LINK_BASE, starts, 0, 0, image_base };
    hfn_instruction in;
    hfn_dispatch d;

    memset(bytes, 0x90, sizeof bytes);
    memcpy(bytes, text, size);
    for (uint32_t at = 0; at < size; at += in.length) {
        CHECK(hfn_arch_x86_64.decode(bytes + at, sizeof bytes - at, RVA + at, LINK_BASE, &in));
        starts[line.count++] = at;
    }
    hfn_arch_x86_64.dispatch(&line, &d);
    return d;
}
#define DISPATCH(text) dispatch_in(CODE_64(text), false)
#define DISPATCH_PE(text) dispatch_in(CODE_64(text), true)

/* gcc -O2 -fPIC -fcf-protection */
static void gcc_table_of_offsets_is_described(void)
{
    hfn_dispatch d = DISPATCH(
        "cmp edi, 0x8e; ja .+0x106; lea rdx, [rip+0x100]; mov edi, edi; movsxd rax, [rdx+rdi*4]; add rax, rdx; notrack jmp rax");

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_bytes, 4);
    CHECK_EQ_U64(d.table_rva, RVA + 19 + 0x100);
    CHECK_EQ_U64(d.base_rva, d.table_rva);
    CHECK_EQ_U64(d.entry_count, 143);
    CHECK_EQ_U64(d.proof_from, 0);
}

/* clang -O2 -fPIC */
static void clang_table_of_offsets_is_described(void)
{
    hfn_dispatch d = DISPATCH(
        "cmp edi, 5; jae .+0x22; mov eax, edi; lea rcx, [rip+0x40]; movsxd rax, [rcx+rax*4]; add rax, rcx; jmp rax");

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_count, 5);
    CHECK_EQ_U64(d.table_rva, RVA + 14 + 0x40);
}

/* rdx is the image base. */
static void microsoft_table_of_rvas_is_described(void)
{
    hfn_dispatch d = DISPATCH_PE(
        "cmp eax, 5; ja .+0x22; cdqe; lea rdx, [rip+0xffffffffffffeff2]; mov ecx, [rdx+rax*4+0x2000]; {load} add rcx, rdx; jmp rcx");

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_bytes, 4);
    CHECK_EQ_U64(d.table_rva, 0x2000);
    CHECK_EQ_U64(d.base_rva, 0);
    CHECK_EQ_U64(d.entry_count, 6);
    CHECK(!d.base_is_guessed);
}

static void base_set_before_the_line_is_assumed_to_be_the_image_base(void)
{
    hfn_dispatch d = DISPATCH_PE("mov ecx, [rdx+rax*4+0x2000]; {load} add rcx, rdx; jmp rcx");

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.table_rva, 0x2000);
    CHECK_EQ_U64(d.entry_count, 0);
    CHECK(d.base_is_guessed);
}

/* rdx is not the image base, and the entries are unsigned. */
static void base_other_than_the_image_base_is_rejected(void)
{
    hfn_dispatch d = DISPATCH_PE(
        "lea rdx, [rip+0x40]; mov ecx, [rdx+rax*4+0x2000]; {load} add rcx, rdx; jmp rcx");

    CHECK(d.kind != HFN_DISPATCH_TABLE);
}

/* gcc -O2 -fno-pie */
static void absolute_table_is_described(void)
{
    hfn_dispatch d = DISPATCH("cmp edi, 7; ja .+0x22; mov edi, edi; jmp [rdi*8+0x402000]");

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_bytes, 8);
    CHECK_EQ_U64(d.table_rva, 0x2000);
    CHECK_EQ_U64(d.entry_count, 8);
    d = DISPATCH("and edi, 3; mov rax, [rdi*8+0x402000]; jmp rax");
    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_count, 4);
}

static void narrow_index_has_a_bound(void)
{
    hfn_dispatch d = DISPATCH(
        "cmp dil, 9; ja .+0x22; movzx eax, dil; lea rcx, [rip+0x40]; movsxd rax, [rcx+rax*4]; add rax, rcx; jmp rax");

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_count, 10);
}

static void lea_may_add_entry_and_base(void)
{
    hfn_dispatch d =
        DISPATCH("lea rcx, [rip+0x40]; movsxd rax, [rcx+rdi*4]; lea rax, [rax+rcx]; jmp rax");

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_count, 0); /* the line has no bounds check */
}

static void base_may_differ_from_the_table(void)
{
    hfn_dispatch d = DISPATCH(
        "lea rcx, [rip+0x40]; lea rdx, [rip]; movsxd rax, [rcx+rdi*4]; add rax, rdx; jmp rax");

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.table_rva, RVA + 7 + 0x40);
    CHECK_EQ_U64(d.base_rva, RVA + 14);
}

static void cmp_with_overwritten_flags_is_no_bound(void)
{
    hfn_dispatch d = DISPATCH(
        "cmp edi, 5; add ebx, 1; ja .+0x22; lea rcx, [rip+0x40]; movsxd rax, [rcx+rdi*4]; add rax, rcx; jmp rax");

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_count, 0);
    /* a signed comparison */
    d = DISPATCH(
        "cmp edi, 5; jg .+0x22; lea rcx, [rip+0x40]; movsxd rax, [rcx+rdi*4]; add rax, rcx; jmp rax");
    CHECK_EQ_U64(d.entry_count, 0);
    d = DISPATCH(
        "cmp edi, 5; ja .+0x22; add edi, 3; lea rcx, [rip+0x40]; movsxd rax, [rcx+rdi*4]; add rax, rcx; jmp rax");
    CHECK_EQ_U64(d.entry_count, 0);
}

static void calls_clobber_volatile_registers(void)
{
    /* the call may change eax */
    hfn_dispatch d = DISPATCH(
        "cmp eax, 5; ja .+0x22; call .+5; lea rcx, [rip+0x40]; movsxd rax, [rcx+rax*4]; add rax, rcx; jmp rax");

    CHECK_EQ_U64(d.kind, HFN_DISPATCH_TABLE);
    CHECK_EQ_U64(d.entry_count, 0);
    /* the call may change rcx */
    d = DISPATCH("lea rcx, [rip+0x40]; call .+5; movsxd rax, [rcx+rdi*4]; add rax, rcx; jmp rax");
    CHECK_EQ_U64(d.kind, HFN_DISPATCH_OFFSET);
    /* the call preserves rbx */
    d = DISPATCH(
        "cmp ebx, 5; ja .+0x22; call .+5; lea rcx, [rip+0x40]; movsxd rax, [rcx+rbx*4]; add rax, rcx; jmp rax");
    CHECK_EQ_U64(d.entry_count, 6);
}

/* gcc -O0 */
static void an_extended_entry_is_an_offset(void)
{
    CHECK_EQ_U64(
        DISPATCH("mov eax, [rdx+rax]; cdqe; lea rdx, [rip+0x40]; add rax, rdx; jmp rax").kind,
        HFN_DISPATCH_OFFSET);
    /* a 4-byte load without extension is not a table entry */
    CHECK_EQ_U64(DISPATCH("mov eax, [rdx+rax]; lea rdx, [rip+0x40]; add rax, rdx; jmp rax").kind,
                 HFN_DISPATCH_COMPUTED);
}

static void base_set_before_the_line_gives_an_offset(void)
{
    CHECK_EQ_U64(DISPATCH("movsxd rax, [rbx+rdi*4]; add rax, rbx; jmp rax").kind,
                 HFN_DISPATCH_OFFSET);
    CHECK_EQ_U64(DISPATCH("add rax, rbx; jmp rax").kind, HFN_DISPATCH_OFFSET);
    /* the product cannot be a table entry */
    CHECK_EQ_U64(DISPATCH("imul rcx, rcx, 0x10; add rax, rcx; jmp rax").kind,
                 HFN_DISPATCH_COMPUTED);
}

static void pointers_are_distinguished_from_arithmetic(void)
{
    CHECK_EQ_U64(DISPATCH("mov rax, [rdi]; jmp rax").kind, HFN_DISPATCH_POINTER);
    CHECK_EQ_U64(DISPATCH("jmp [rbx+r12*8]").kind, HFN_DISPATCH_POINTER);
    CHECK_EQ_U64(DISPATCH("call .+5; jmp rax").kind, HFN_DISPATCH_POINTER);
    CHECK_EQ_U64(DISPATCH("lea rax, [rip]; jmp rax").kind, HFN_DISPATCH_POINTER);
    CHECK_EQ_U64(DISPATCH("jmp rdi").kind, HFN_DISPATCH_VALUE);
    CHECK_EQ_U64(DISPATCH("cmove rax, rcx; jmp rax").kind, HFN_DISPATCH_VALUE);
    CHECK_EQ_U64(DISPATCH("pop rdx; jmp rdx").kind, HFN_DISPATCH_VALUE);
    /* a pointer protected by glibc's pointer guard */
    CHECK_EQ_U64(DISPATCH("ror rdx, 0x11; xor rdx, fs:0x30; jmp rdx").kind, HFN_DISPATCH_VALUE);
    CHECK_EQ_U64(DISPATCH("lea rax, [rip]; imul rcx, rcx, 0x10; add rax, rcx; jmp rax").kind,
                 HFN_DISPATCH_COMPUTED);
    CHECK_EQ_U64(DISPATCH("inc rax; jmp rax").kind, HFN_DISPATCH_COMPUTED);
    CHECK_EQ_U64(DISPATCH("mov eax, [rbx+rdi*4]; jmp rax").kind, HFN_DISPATCH_COMPUTED);
}

static const check_test tests[] = {
    CHECK_TEST(gcc_table_of_offsets_is_described),
    CHECK_TEST(clang_table_of_offsets_is_described),
    CHECK_TEST(microsoft_table_of_rvas_is_described),
    CHECK_TEST(base_set_before_the_line_is_assumed_to_be_the_image_base),
    CHECK_TEST(base_other_than_the_image_base_is_rejected),
    CHECK_TEST(absolute_table_is_described),
    CHECK_TEST(narrow_index_has_a_bound),
    CHECK_TEST(lea_may_add_entry_and_base),
    CHECK_TEST(base_may_differ_from_the_table),
    CHECK_TEST(cmp_with_overwritten_flags_is_no_bound),
    CHECK_TEST(calls_clobber_volatile_registers),
    CHECK_TEST(an_extended_entry_is_an_offset),
    CHECK_TEST(base_set_before_the_line_gives_an_offset),
    CHECK_TEST(pointers_are_distinguished_from_arithmetic),
};
CHECK_MAIN(tests)
