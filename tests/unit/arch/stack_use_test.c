/* SPDX-License-Identifier: MIT */
/* Follows the stack through instructions: accesses that leave or may leave a function's own
 * frame are found. */
#include "arch/x86/stack_use.h"

#include "arch_stack_use_code.h"
#include "check.h"

#include <string.h>

enum { RAX = 0, RCX = 1, RSP = 4, RBP = 5 };

/* Step through the instructions; returns the first outcome that is not HFN_STACK_OK. */
static hfn_stack_outcome follow_in(hfn_x86_mode mode, hfn_stack_state *s, const char *text,
                                   size_t size)
{
    const uint8_t *bytes = (const uint8_t *)text;
    hfn_stack_outcome outcome = HFN_STACK_OK;
    hfn_instruction in = { .length = 1 };

    hfn_x86_begin_stack(mode, s);
    for (uint64_t at = 0; at < size && outcome == HFN_STACK_OK; at += in.length) {
        hfn_x86_decode(mode, bytes + at, size - at, 0x1000 + at, 0, &in);
        outcome = hfn_x86_step_stack(mode, bytes + at, size - at, 0x1000 + at, s);
    }
    return outcome;
}
#define FOLLOW(s, text) follow_in(HFN_X86_64, s, CODE_64(text))
#define FOLLOW_32(s, text) follow_in(HFN_X86_32, s, CODE_32(text))

static void entry_state_points_to_the_return_address(void)
{
    hfn_stack_state s;

    hfn_x86_begin_stack(HFN_X86_64, &s);
    CHECK_EQ_I64(s.at[RSP], -8);
    CHECK_EQ_I64(s.at[RBP], HFN_STACK_CALLER_FRAME);
}

static void pushes_constants_and_copies_are_followed(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(
        FOLLOW(&s, "push rbp; mov rbp, rsp; sub rsp, 0x20; lea rax, [rbp-8]; mov rcx, rax"),
        HFN_STACK_OK);
    CHECK_EQ_I64(s.at[RSP], -48);
    CHECK_EQ_I64(s.at[RBP], -16);
    CHECK_EQ_I64(s.at[RAX], -24);
    CHECK_EQ_I64(s.at[RCX], -24);
    CHECK_EQ_I64(FOLLOW(&s, "push rbp; mov rbp, rsp; lea rax, [rbp-0x10]; add rax, 4; leave; ret"),
                 HFN_STACK_OK);
    CHECK_EQ_I64(s.at[RAX], -28);
    CHECK_EQ_I64(s.at[RSP], -8);
}

static void return_requires_rsp_at_the_return_address(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "ret"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, "repz ret"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, "push rbx; ret"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "ret 8"), HFN_STACK_POPS_UNKNOWN);
    CHECK_EQ_I64(FOLLOW(&s, "pop rax"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "add rsp, 8"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "leave"), HFN_STACK_LOST); /* rbp is unknown */
    CHECK_EQ_I64(FOLLOW(&s, "mov rbp, rsp; leave"), HFN_STACK_TOUCHES_RETURN);
}

static void accesses_beyond_the_frame_are_found(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "mov rax, [rsp+0x58]"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "mov rax, [rsp]"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "mov rax, [rsp-8]"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, "lea rax, [rsp+8]"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "lea rax, [rsp]"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "pop [rsp+8]"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "fxsave [rsp+8]"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "push rbp; mov rbp, rsp; mov rcx, rbp; add rcx, 0x10"),
                 HFN_STACK_TOUCHES_CALLER);
    /* the 16 bytes end just below the return address; the next ones overlap it */
    CHECK_EQ_I64(FOLLOW(&s, "movups xmm0, [rsp-0x10]"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, "movups xmm0, [rsp-8]"), HFN_STACK_TOUCHES_RETURN);
}

/* argument_bytes is the end of the access, as an offset from the CFA. */
static void arguments_at_known_places_are_allowed(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "mov rax, [rsp+8]"), HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 8);
    CHECK_EQ_I64(FOLLOW(&s, "mov rax, [rsp+0x50]"), HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 80);
    CHECK_EQ_I64(FOLLOW(&s, "push [rsp+0x10]"), HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 16);
    CHECK_EQ_I64(FOLLOW(&s, "call [rsp+8]"), HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 8);
    CHECK_EQ_I64(FOLLOW(&s, "fld tbyte ptr [rsp+8]"), HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 10);
    CHECK_EQ_I64(FOLLOW(&s, "push rbp; mov rbp, rsp; mov rax, [rbp+0x10]"), HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 8);
}

/* clang reads `b.a[i - 3]` of an argument on the stack at [rsp + 8*i - 16]. */
static void indexed_accesses_may_leave_the_frame(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "mov rax, [rsp+rax*8-0x10]"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "lea rax, [rsp+rax*8-0x10]; mov cl, [rax]"), HFN_STACK_TOUCHES_CALLER);
    /* the index register points into the frame */
    CHECK_EQ_I64(FOLLOW(&s, "mov rcx, rsp; sub rcx, 0x20; mov al, [rax+rcx*2]"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "mov rcx, rsp; sub rcx, 0x20; lea rax, [rax+rcx*2]; push [rax]"),
                 HFN_STACK_LOST);
    /* an address in the frame plus or minus an unknown number */
    CHECK_EQ_I64(FOLLOW(&s, "lea rcx, [rsp-0x20]; sub rcx, rax; push [rcx]"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "push rbp; mov rbp, rsp; add rax, rbp; push [rax]"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "push rbp; mov rbp, rsp; mov al, [rbp+rax]"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "lea rcx, [rsp-0x20]; mov eax, 4; mov dl, [rax+rcx*2]"),
                 HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "vpgatherqq ymm0, [rsp+ymm1*8-0x10], ymm2"), HFN_STACK_TOUCHES_CALLER);
}

/* A copy of the stack pointer at the entry is the address of the return address. */
static void address_of_the_return_address_is_not_stored(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "mov rax, rsp; mov [rdi], rax"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "mov rax, rsp; push rax"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "mov [rdi], rsp"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "push rsp"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "push rbx; mov [rdi], rsp"), HFN_STACK_OK);
}

static void unknown_changes_of_rsp_lose_the_stack(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "mov rsp, rdi"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "mov rsp, [rdi]"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "xchg rsp, rax"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "push rbx; pop rsp"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "push rbx; pop [rdi]"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "add rsp, rax"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "cmove rsp, rax"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "enter 0x10, 0"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "lea rsp, [rdi]"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "iretd"), HFN_STACK_POPS_UNKNOWN);
}

static void realigned_frame_ends_with_leave(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(
        FOLLOW(&s,
               "push rbp; mov rbp, rsp; and rsp, -64; sub rsp, 16; sub rsp, rax; mov [rsp+8], rax; "
               "leave; ret"),
        HFN_STACK_OK);
    CHECK_EQ_I64(s.at[RSP], -8);
    CHECK_EQ_I64(FOLLOW(&s, "push rbp; and rsp, -64; pop rbp; ret"), HFN_STACK_LOST);
}

static void calls_clobber_volatile_registers(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "push rbp; mov rbp, rsp; lea rax, [rbp-8]; call .+5"), HFN_STACK_OK);
    CHECK_EQ_I64(s.at[RAX], HFN_STACK_UNRELATED);
    CHECK_EQ_I64(s.at[RBP], -16);
    CHECK_EQ_I64(s.at[RSP], -16);
}

static void invalid_instructions_lose_the_stack(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, ".byte 0x06"), HFN_STACK_LOST); /* push es: not in 64-bit code */
    CHECK_EQ_I64(FOLLOW(&s, ".byte 0x48, 0x8b, 0x44, 0x24"), HFN_STACK_LOST); /* cut short */
}

/* ---- Transfer functions (docs/design/timing-proof.md): ways to lose an address.  rax is 16 bytes
 * below the CFA. */

#define TAKE_ADDRESS "lea rax, [rsp-8]; "
#define USE_RCX "; mov rdx, [rcx+0x60]"

/* Copies keep the address: its bound shows that the access reaches the caller's frame. */
static void copied_addresses_are_followed(void)
{
    hfn_stack_state s;

#define CHECK_FOLLOWED(text) CHECK_EQ_I64(FOLLOW(&s, text), HFN_STACK_TOUCHES_CALLER)
    CHECK_FOLLOWED(TAKE_ADDRESS "xchg rcx, rax" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS "push rbx; xchg [rsp], rax; pop rcx" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS "movq xmm0, rax; movq rcx, xmm0" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS "movq xmm0, rax; movaps xmm1, xmm0; pextrq rcx, xmm1, 0" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS
                   "movq xmm0, rax; movups [rsp-0x40], xmm0; mov rcx, [rsp-0x40]" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS "push rax; pop rcx" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS "mov [rsp-0x20], rax; mov rcx, [rsp-0x20]" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS "push rax; sub qword ptr [rsp], 8; pop rcx" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS "cmove rcx, rax" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS "and rax, -16; mov rcx, rax" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS "inc rax; mov rcx, rax; call .+5" USE_RCX);
    CHECK_FOLLOWED(TAKE_ADDRESS "mov rsi, rax; mov ecx, 16; rep movsq");
    CHECK_FOLLOWED(TAKE_ADDRESS "mov rsi, rax; rep movsb");
    CHECK_FOLLOWED(TAKE_ADDRESS "mov rdi, rax; mov ecx, 3; rep stosq");
#undef CHECK_FOLLOWED
    CHECK_EQ_I64(FOLLOW(&s, "push rbx; push rax; push rsp; pop rcx" USE_RCX),
                 HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "sub rsp, 0x40; lea rax, [rsp+8]; mov [rsp], rax; mov rcx, [rsp]; "
                            "cmove rdx, rcx; mov rdx, [rdx+8]; mov ecx, 4; lea rdi, [rsp+8]; "
                            "rep stosq"),
                 HFN_STACK_OK);
}

/* Every other instruction makes its result unknown. */
static void computed_addresses_are_unknown(void)
{
    hfn_stack_state s;

#define CHECK_COMPUTED(text) CHECK_EQ_I64(FOLLOW(&s, text), HFN_STACK_LOST)
    CHECK_COMPUTED(TAKE_ADDRESS "or rax, 0; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "neg rax; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "not rax; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "xor rax, 8; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "bswap rax; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "rol rax, 32; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "imul rax, rax, 1; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "xadd rax, rax; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "mov al, 0; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "adc rax, 0; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "movsxd rax, eax; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "bts rax, 5; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "lea rax, [rcx+rax*2]; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "sub rax, rcx; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "mov eax, eax; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "movq xmm0, rax; paddq xmm0, xmm1; movq rax, xmm0; mov cl, [rax]");
    CHECK_COMPUTED(TAKE_ADDRESS "movq mm0, rax; paddb mm0, mm1; movq rax, mm0; mov cl, [rax]");
#undef CHECK_COMPUTED
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "add rax, rax; mov cl, [rax]"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "mov cl, [rdi+rax*2]"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "mov rcx, rax; mov cl, [rcx+rax]"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "neg rax; mov [rdi], rax"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "neg rax; mov [rsp-0x20], rax"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "std"), HFN_STACK_LOST);
}

/* Arithmetic on the bits of an address may make another one; a part of it is at most the address
 * itself, which may be passed if it is in the frame. */
static void parts_of_addresses_are_passed_like_the_addresses(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "neg rax; call .+5"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "mov r8d, eax; call .+5"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "movsxd rax, eax; call .+5"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "movzx eax, ax; call .+5"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "mov eax, eax; mov [rdi], rax"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "neg rax; mov eax, eax; call .+5"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "mov eax, eax; xor eax, 64; call .+5"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "mov rax, rsp; mov eax, eax; call .+5"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "mov rax, rsp; movsxd rax, eax; call .+5"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "mov eax, ebp"), HFN_STACK_OK);
    CHECK_EQ_I64(s.at[0], HFN_STACK_UNRELATED);
}

static void numbers_are_unrelated(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "and rax, 15; mov cl, [rdi+rax]"), HFN_STACK_OK);
    /* compilers fold the difference of two known places */
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "lea rcx, [rsp-0x18]; sub rax, rcx; mov cl, [rdi+rax]"),
                 HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS
                        "lea rcx, [rsp-0x18]; and rcx, -16; sub rax, rcx; mov cl, [rdi+rax]"),
                 HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "xor eax, eax; mov cl, [rdi+rax]"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "call .+5; mov cl, [rax+0x60]"), HFN_STACK_OK);
    /* the low byte is replaced, or a part of the address is read */
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "setne al; movzx eax, al; mov cl, [rdi+rax]"),
                 HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "sete al; mov [rdi], al"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "sete al; mov [rdi], eax"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "sete ah; mov [rdi], al"), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "sete al; movzx ecx, ah; mov cl, [rdi+rcx]"),
                 HFN_STACK_LOST);
}

/* Each byte of a spilled address counts until a store replaces it. */
static void parts_of_spilled_addresses_are_unknown(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "mov [rsp-0x20], rax; mov ecx, [rsp-0x20]; mov cl, [rcx]"),
                 HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "mov [rsp-0x20], rax; mov ecx, [rsp-0x1c]; mov cl, [rcx]"),
                 HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "mov [rsp-0x20], rax; mov dword ptr [rsp-0x20], 1; "
                                         "mov rcx, [rsp-0x20]; mov cl, [rcx]"),
                 HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "mov [rsp-0x20], rax; mov dword ptr [rsp-0x20], 1; "
                                         "mov ecx, [rsp-0x20]; mov cl, [rcx]"),
                 HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, TAKE_ADDRESS "mov [rsp-0x20], rax; mov dword ptr [rsp-0x20], 1; "
                                         "mov dword ptr [rsp-0x1c], 1; mov rcx, [rsp-0x20]; "
                                         "mov cl, [rcx]"),
                 HFN_STACK_OK);
}

#define SPILL "lea rax, [rsp-8]; mov [rsp-0x20], rax; mov rax, [rsp-0x20]; "
static void check_noted(hfn_stack_outcome outcome, const hfn_stack_state *s, bool indexed)
{
    CHECK_EQ_I64(outcome, HFN_STACK_OK);
    CHECK_EQ_U64(s->object_count, 1);
    CHECK_EQ_I64(s->objects[0].at, -16);
    CHECK_EQ_U64(s->objects[0].indexed, indexed);
}

/* The proof needs evidence that an indexed pointer is the address of an object. */
static void indexed_pointers_are_noted(void)
{
    hfn_stack_state s;

    check_noted(FOLLOW(&s, SPILL "mov dl, [rax+rcx*4]"), &s, true);
    check_noted(FOLLOW(&s, SPILL "mov dl, [rcx+rax]"), &s, true);
    check_noted(FOLLOW(&s, SPILL "add rax, rcx; mov dl, [rax]"), &s, true);
    check_noted(FOLLOW(&s, SPILL "add rcx, rax; mov dl, [rcx]"), &s, true);
    check_noted(FOLLOW(&s, SPILL "lea rcx, [rax+rcx*8]; mov dl, [rcx]"), &s, true);
    check_noted(FOLLOW(&s, "sub rsp, 0x40; lea rdi, [rsp+0x38]; call .+5"), &s, false);
    check_noted(FOLLOW(&s, "lea rdi, [rsp-8]; mov ecx, 1; rep stosq; sub rsp, 8"), &s, false);
#undef SPILL
    check_noted(FOLLOW(&s, "lea rax, [rsp-8]; mov dl, [rax+rcx]"), &s, true);
    check_noted(FOLLOW(&s, "lea rax, [rsp-8]; mov dl, [rcx+rax+0x10]"), &s, true);
    check_noted(FOLLOW(&s, "lea rax, [rsp-8]; add rax, [rcx-0x18]; mov dl, [rax]"), &s, true);
}

/* The displacement of an access by rsp may be folded, unless it is the offset of a virtual base. */
static void offsets_of_virtual_bases_are_noted(void)
{
    hfn_stack_state s;

    check_noted(FOLLOW(&s, "mov rax, [rcx-0x18]; mov [rsp+rax-8], rdx"), &s, true);
    check_noted(FOLLOW(&s, "mov rax, [rcx-0x18]; lea rdi, [rsp+rax-8]; mov dl, [rdi]"), &s, true);
    CHECK_EQ_I64(FOLLOW(&s, "mov rax, [rcx+0x18]; mov [rsp+rax-8], rdx"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "mov rax, [rcx-0x18]; mov [rsp+rax-8], dl"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "mov rax, [rcx-0x18]; mov [rsp+rax*8-8], rdx"),
                 HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "mov rax, [rcx-0x18]; inc rax; mov [rsp+rax-8], rdx"),
                 HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "mov eax, [rcx-0x18]; mov [rsp+rax-8], rdx"), HFN_STACK_TOUCHES_CALLER);
}

/* The return address is at rsp, 0x48 above the beginning of the array. */
#define BEGIN "sub rsp, 0x48; "
#define READ_ARRAY "; mov ecx, [rsp+rax*4-0x3b8]; add rsp, 0x48"
static void numbers_with_a_limit_may_be_indexes(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, BEGIN "movzx eax, dl" READ_ARRAY), HFN_STACK_OK);
    CHECK_EQ_U64(s.object_count, 0);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "movzx eax, byte ptr [rdi]" READ_ARRAY), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "mov rax, rdi; and eax, 0xff" READ_ARRAY), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "mov rax, rdi; shr rax, 56" READ_ARRAY), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "mov eax, edi; shr eax, 24" READ_ARRAY), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "xor eax, eax; add rax, 255" READ_ARRAY), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "movzx edx, dl; mov rax, rdx" READ_ARRAY), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "mov edx, 127; lea rax, [rdx+rdx+1]" READ_ARRAY), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "mov eax, 256" READ_ARRAY), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "movzx eax, dx" READ_ARRAY), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "movsx rax, dl" READ_ARRAY), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "movzx eax, dl; mov ax, dx" READ_ARRAY),
                 HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "movzx eax, dl; inc rax" READ_ARRAY), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "movzx eax, dl; sub rax, 1" READ_ARRAY),
                 HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "movzx eax, dl; cmovz rax, rcx" READ_ARRAY),
                 HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "movzx eax, dl; call .+5" READ_ARRAY), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, BEGIN "mov rax, rdi; sar rax, 56" READ_ARRAY),
                 HFN_STACK_TOUCHES_CALLER);
}
#undef READ_ARRAY
#undef BEGIN

/* The limit of rax behind a conditional jump. */
#define LIMIT_AFTER(text, condition, is_taken) get_limit(CODE_64(text), condition, is_taken)
static uint64_t get_limit(const char *code, size_t size, uint8_t condition, bool is_taken)
{
    const uint8_t jump[] = { condition, 0 };
    hfn_stack_state s;

    CHECK_EQ_I64(follow_in(HFN_X86_64, &s, code, size), HFN_STACK_OK);
    hfn_arch_x86_64.apply_condition(jump, sizeof jump, is_taken, &s);
    return s.below[0];
}

static void comparisons_limit_numbers(void)
{
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15", 0x77, false), 16); /* ja */
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15", 0x77, true), 0);
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15", 0x76, true), 16);  /* jbe */
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15", 0x73, false), 15); /* jae */
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15", 0x72, true), 15);  /* jb */
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15", 0x74, true), 16);  /* je */
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15", 0x75, false), 16); /* jne */
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15", 0x7E, true), 0);   /* jle: may be negative */
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, -1", 0x76, true), 0);
    CHECK_EQ_U64(LIMIT_AFTER("cmp eax, 15", 0x76, true), 0); /* the upper half is unknown */
    CHECK_EQ_U64(LIMIT_AFTER("mov eax, edi; cmp eax, 15", 0x76, true), 16);
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15; mov rcx, rdx", 0x76, true), 16);
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15; mov rax, rdx", 0x76, true), 0);
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15; add rcx, rdx", 0x76, true), 0);
    CHECK_EQ_U64(LIMIT_AFTER("cmp rax, 15; call .+5", 0x76, true), 0);
}
#undef USE_RCX
#undef TAKE_ADDRESS

/* Free Pascal passes its frame pointer to nested procedures. */
static void address_of_the_saved_frame_pointer_is_not_passed(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "push rbp; mov rbp, rsp; mov rdi, rbp; call .+5"),
                 HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "push rbp; mov rbp, rsp; mov [rdi], rbp"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "push rbp; mov rbp, rsp; lea rdi, [rbp-8]; call .+5"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW_32(&s, "push ebp; mov ebp, esp; push ebp; call .+0x4030206"),
                 HFN_STACK_TOUCHES_RETURN);
}

/* A callee that was written by hand may read what it must preserve. */
static void addresses_of_arguments_are_not_kept_across_calls(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "lea rbx, [rsp-8]; push rbx; pop rbx; add rbx, 0x10; call .+5"),
                 HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW(&s, "lea rbx, [rsp-8]; push rbx; pop rbx; call .+5"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW_32(&s, "sub esp, 8; push esp; pop ebx; add ebx, 0xc; call .+0x4030206"),
                 HFN_STACK_TOUCHES_RETURN);
}

/* The caller may read what the function stored. */
static void arguments_are_not_written(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "mov [rsp+8], rax"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "add qword ptr [rsp+8], 1"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW_32(&s, "mov [esp+0x80], eax"), HFN_STACK_TOUCHES_CALLER);
}

/* i386: a stub writes stored arguments back for the caller. */
static void i386_stores_to_arguments_are_noted(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW_32(&s, "mov [esp+4], eax; fstp qword ptr [esp+8]; ret"), HFN_STACK_OK);
    CHECK_EQ_U64(s.stored_arguments, 7);
    CHECK_EQ_I64(FOLLOW_32(&s, "mov edx, [esp+4]; add dword ptr [esp+4], 1; ret"), HFN_STACK_OK);
    CHECK_EQ_U64(s.stored_arguments, 1);
    CHECK_EQ_I64(FOLLOW_32(&s, "mov edx, [esp+8]; cmp dword ptr [esp+4], 1; ret"), HFN_STACK_OK);
    CHECK_EQ_U64(s.stored_arguments, 0);
    CHECK_EQ_I64(FOLLOW_32(&s, "xchg [esp+4], eax; xadd [esp+8], eax; cmpxchg [esp+12], ecx; "
                               "bts dword ptr [esp+16], 3; movups [esp+20], xmm0; ret"),
                 HFN_STACK_OK);
    CHECK_EQ_U64(s.stored_arguments, 0xff);
}

/* ---- i386. */

static void i386_argument_accesses_are_measured(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW_32(&s, "mov eax, [esp+4]; mov eax, [esp+0xc]; ret"), HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 12);
    CHECK_EQ_U64(s.popped_bytes, 0);
    CHECK_EQ_I64(FOLLOW_32(&s, "push ebp; mov ebp, esp; fld qword ptr [ebp+0x10]; leave; ret"),
                 HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 16);
    /* the last word that a stub can copy, and the next one; an address; an unknown index */
    CHECK_EQ_I64(FOLLOW_32(&s, "mov eax, [esp+0x7c]"), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW_32(&s, "mov eax, [esp+0x80]"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW_32(&s, "lea eax, [esp+4]; nop; nop; nop"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW_32(&s, "mov eax, [esp+ecx*4+4]"), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW_32(&s, "mov eax, [esp]"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW_32(&s, "mov eax, [esp-2]"), HFN_STACK_TOUCHES_RETURN);
}

static void i386_returns_report_popped_bytes(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW_32(&s, "push ebx; pop ebx; ret 0xc"), HFN_STACK_OK);
    CHECK_EQ_U64(s.popped_bytes, 12);
    CHECK_EQ_U64(s.argument_bytes, 12);
    CHECK_EQ_I64(FOLLOW_32(&s, "ret 6"), HFN_STACK_POPS_UNKNOWN);
    CHECK_EQ_I64(FOLLOW_32(&s, "ret 0x80"), HFN_STACK_POPS_UNKNOWN); /* more than a stub can copy */
    CHECK_EQ_I64(FOLLOW_32(&s, "retf"), HFN_STACK_POPS_UNKNOWN);
    CHECK_EQ_I64(FOLLOW_32(&s, "push ebx; ret"), HFN_STACK_LOST);
}

static void i386_accesses_after_calls_are_uncertain(void)
{
    hfn_stack_state s;

    /* [esp+16] is the first argument if the callee popped nothing */
    CHECK_EQ_I64(FOLLOW_32(&s, "sub esp, 0xc; call .+0x4030206; mov eax, [esp+0x10]"),
                 HFN_STACK_OK);
    CHECK_EQ_U64(s.uncertain_calls, 1);
    CHECK(s.depends_on_calls);
    /* an access by the frame pointer does not depend on the callee */
    CHECK_EQ_I64(FOLLOW_32(&s, "push ebp; mov ebp, esp; call .+0x4030206; mov eax, [ebp+8]; leave"),
                 HFN_STACK_OK);
    CHECK(!s.depends_on_calls);
    CHECK_EQ_U64(s.uncertain_calls, 0);
    /* call +0 only pushes its address */
    CHECK_EQ_I64(FOLLOW_32(&s, "call .+5; pop ebx; ret"), HFN_STACK_OK);
    CHECK_EQ_U64(s.uncertain_calls, 0);
}

static void i386_realigned_frame_keeps_its_arguments(void)
{
    hfn_stack_state s;
#define REALIGNS "lea ecx, [esp+4]; and esp, -16; push [ecx-4]; push ebp; mov ebp, esp; push ecx"

    CHECK_EQ_I64(
        FOLLOW_32(
            &s, REALIGNS
            "; mov eax, [ecx+4]; call .+0x4030206; lea esp, [ebp-4]; pop ecx; pop ebp; lea esp, [ecx-4]; ret"),
        HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 8);
    CHECK_EQ_I64(FOLLOW_32(&s, REALIGNS "; mov ecx, [ebp-4]; leave; lea esp, [ecx-4]; ret"),
                 HFN_STACK_OK);
    /* ecx is loaded from another place; a call precedes the save of ecx; ecx is stored; the return
     * address is read by ecx */
    CHECK_EQ_I64(FOLLOW_32(&s, REALIGNS "; mov ecx, [ebp-8]; leave; lea esp, [ecx-4]"),
                 HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW_32(&s, "lea ecx, [esp+4]; and esp, -16; call .+0x4030206"),
                 HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW_32(&s, REALIGNS "; mov [eax], ecx"), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW_32(&s, REALIGNS "; mov eax, [ecx-4]"), HFN_STACK_TOUCHES_RETURN);
}

static void frame_addresses_stored_or_compared_are_noted(void)
{
    enum { STORED = HFN_FRAME_ADDRESS_STORED, COMPARED = HFN_FRAME_ADDRESS_COMPARED };
    hfn_stack_state s;

#define NOTED(text) (FOLLOW(&s, text), s.frame_address)
#define NOTED_32(text) (FOLLOW_32(&s, text), s.frame_address)
#define MAKE_ADDRESS "lea rax, [rsp-0x10]"
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; mov [rdi], rax"), STORED);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; xchg [rdi], rax"), STORED);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; mov [rsp-8], rax"), 0);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; push rax"), 0);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; mov [rdi], rcx"), 0);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; cmp [rdi], rax"), COMPARED);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; cmp rax, [rdi]"), COMPARED);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; cmp rcx, rax"), COMPARED);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; cmp rax, rcx"), COMPARED);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; cmp [rsp-8], rax"), 0);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; cmp rsp, rax"), 0);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; test rax, rax"), 0);
    CHECK_EQ_U64(NOTED(MAKE_ADDRESS "; cmp rax, [rdi]; mov [rdi], rax"), STORED | COMPARED);
    CHECK_EQ_U64(NOTED_32("lea eax, [esp-0x10]; cmp ecx, eax; mov [edx], eax"), STORED | COMPARED);
#undef MAKE_ADDRESS
}

static const check_test tests[] = {
    CHECK_TEST(entry_state_points_to_the_return_address),
    CHECK_TEST(pushes_constants_and_copies_are_followed),
    CHECK_TEST(return_requires_rsp_at_the_return_address),
    CHECK_TEST(accesses_beyond_the_frame_are_found),
    CHECK_TEST(arguments_at_known_places_are_allowed),
    CHECK_TEST(indexed_accesses_may_leave_the_frame),
    CHECK_TEST(address_of_the_return_address_is_not_stored),
    CHECK_TEST(unknown_changes_of_rsp_lose_the_stack),
    CHECK_TEST(realigned_frame_ends_with_leave),
    CHECK_TEST(calls_clobber_volatile_registers),
    CHECK_TEST(invalid_instructions_lose_the_stack),
    CHECK_TEST(copied_addresses_are_followed),
    CHECK_TEST(computed_addresses_are_unknown),
    CHECK_TEST(parts_of_addresses_are_passed_like_the_addresses),
    CHECK_TEST(numbers_are_unrelated),
    CHECK_TEST(address_of_the_saved_frame_pointer_is_not_passed),
    CHECK_TEST(addresses_of_arguments_are_not_kept_across_calls),
    CHECK_TEST(arguments_are_not_written),
    CHECK_TEST(i386_stores_to_arguments_are_noted),
    CHECK_TEST(parts_of_spilled_addresses_are_unknown),
    CHECK_TEST(indexed_pointers_are_noted),
    CHECK_TEST(offsets_of_virtual_bases_are_noted),
    CHECK_TEST(numbers_with_a_limit_may_be_indexes),
    CHECK_TEST(comparisons_limit_numbers),
    CHECK_TEST(i386_argument_accesses_are_measured),
    CHECK_TEST(i386_returns_report_popped_bytes),
    CHECK_TEST(i386_accesses_after_calls_are_uncertain),
    CHECK_TEST(i386_realigned_frame_keeps_its_arguments),
    CHECK_TEST(frame_addresses_stored_or_compared_are_noted),
};
CHECK_MAIN(tests)
