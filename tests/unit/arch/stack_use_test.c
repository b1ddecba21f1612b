/* SPDX-License-Identifier: MIT */
/* Follows the stack through instructions: accesses that leave or may leave a function's own
 * frame are found. */
#include "arch/x86/stack_use.h"

#include "check.h"

#include <string.h>

enum { RAX = 0, RCX = 1, RSP = 4, RBP = 5 };

/* Step through the instructions; returns the first outcome that is not HFN_STACK_OK. */
static hfn_stack_outcome follow_in(hfn_x86_mode mode, hfn_stack_state *s, const char *bytes,
                                   size_t size, const uint8_t *lengths)
{
    hfn_stack_outcome outcome = HFN_STACK_OK;
    uint64_t at = 0;

    hfn_x86_begin_stack(mode, s);
    for (; at < size && outcome == HFN_STACK_OK; at += *lengths++) {
        outcome = hfn_x86_step_stack(mode, (const uint8_t *)bytes + at, size - at, 0x1000 + at, s);
    }
    return outcome;
}
/* FOLLOW(&state, "bytes", lengths of the instructions) */
#define FOLLOW(s, bytes, ...)                                                                      \
    follow_in(HFN_X86_64, s, bytes, sizeof(bytes) - 1, (const uint8_t[]){ __VA_ARGS__ })
#define FOLLOW_32(s, bytes, ...)                                                                   \
    follow_in(HFN_X86_32, s, bytes, sizeof(bytes) - 1, (const uint8_t[]){ __VA_ARGS__ })

static void entry_state_points_to_the_return_address(void)
{
    hfn_stack_state s;

    hfn_x86_begin_stack(HFN_X86_64, &s);
    CHECK_EQ_I64(s.at[RSP], -8);
    CHECK_EQ_I64(s.at[RBP], HFN_STACK_UNKNOWN);
}

static void pushes_constants_and_copies_are_followed(void)
{
    hfn_stack_state s;

    /* push rbp; mov rbp, rsp; sub rsp, 32; lea rax, [rbp-8]; mov rcx, rax */
    CHECK_EQ_I64(
        FOLLOW(&s, "\x55\x48\x89\xE5\x48\x83\xEC\x20\x48\x8D\x45\xF8\x48\x89\xC1", 1, 3, 4, 4, 3),
        HFN_STACK_OK);
    CHECK_EQ_I64(s.at[RSP], -48);
    CHECK_EQ_I64(s.at[RBP], -16);
    CHECK_EQ_I64(s.at[RAX], -24);
    CHECK_EQ_I64(s.at[RCX], -24);
    /* add rax, 4 stays in the frame; leave; ret */
    CHECK_EQ_I64(
        FOLLOW(&s, "\x55\x48\x89\xE5\x48\x8D\x45\xF0\x48\x83\xC0\x04\xC9\xC3", 1, 3, 4, 4, 1, 1),
        HFN_STACK_OK);
    CHECK_EQ_I64(s.at[RAX], -28);
    CHECK_EQ_I64(s.at[RSP], -8);
}

static void return_requires_rsp_at_the_return_address(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "\xC3", 1), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, "\xF3\xC3", 2), HFN_STACK_OK);                     /* rep ret */
    CHECK_EQ_I64(FOLLOW(&s, "\x53\xC3", 1, 1), HFN_STACK_LOST);                /* push rbx; ret */
    CHECK_EQ_I64(FOLLOW(&s, "\xC2\x08\x00", 3), HFN_STACK_POPS_UNKNOWN);       /* ret 8 */
    CHECK_EQ_I64(FOLLOW(&s, "\x58", 1), HFN_STACK_TOUCHES_RETURN);             /* pop rax */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x83\xC4\x08", 4), HFN_STACK_TOUCHES_RETURN); /* add rsp, 8 */
    CHECK_EQ_I64(FOLLOW(&s, "\xC9", 1), HFN_STACK_LOST); /* leave, with any rbp */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x89\xE5\xC9", 3, 1),
                 HFN_STACK_TOUCHES_RETURN); /* mov rbp, rsp; leave */
}

static void accesses_beyond_the_frame_are_found(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8B\x44\x24\x58", 5),
                 HFN_STACK_TOUCHES_CALLER); /* mov rax, [rsp+88] */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8B\x04\x24", 4),
                 HFN_STACK_TOUCHES_RETURN);                            /* mov rax, [rsp]   */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8B\x44\x24\xF8", 5), HFN_STACK_OK); /* mov rax, [rsp-8] */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8D\x44\x24\x08", 5),
                 HFN_STACK_TOUCHES_CALLER); /* lea rax, [rsp+8] */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8D\x04\x24", 4),
                 HFN_STACK_TOUCHES_RETURN); /* lea rax, [rsp]   */
    CHECK_EQ_I64(FOLLOW(&s, "\x8F\x44\x24\x08", 4),
                 HFN_STACK_TOUCHES_CALLER); /* pop [rsp+8]      */
    CHECK_EQ_I64(FOLLOW(&s, "\x0F\xAE\x44\x24\x08", 5),
                 HFN_STACK_TOUCHES_CALLER); /* fxsave [rsp+8]   */
    /* push rbp; mov rbp, rsp; mov rcx, rbp; add rcx, 16 */
    CHECK_EQ_I64(FOLLOW(&s, "\x55\x48\x89\xE5\x48\x89\xE9\x48\x83\xC1\x10", 1, 3, 3, 4),
                 HFN_STACK_TOUCHES_CALLER);
    /* movups xmm0, [rsp-16] ends below the return address, movups xmm0, [rsp-8] does not */
    CHECK_EQ_I64(FOLLOW(&s, "\x0F\x10\x44\x24\xF0", 5), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW(&s, "\x0F\x10\x44\x24\xF8", 5), HFN_STACK_TOUCHES_RETURN);
}

/* The measured size is the end of the access, counted from the CFA. */
static void arguments_at_known_places_are_allowed(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8B\x44\x24\x08", 5), HFN_STACK_OK); /* mov rax, [rsp+8] */
    CHECK_EQ_U64(s.argument_bytes, 8);
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8B\x44\x24\x50", 5), HFN_STACK_OK); /* mov rax, [rsp+80] */
    CHECK_EQ_U64(s.argument_bytes, 80);
    CHECK_EQ_I64(FOLLOW(&s, "\xFF\x74\x24\x10", 4), HFN_STACK_OK); /* push [rsp+16] */
    CHECK_EQ_U64(s.argument_bytes, 16);
    CHECK_EQ_I64(FOLLOW(&s, "\xFF\x54\x24\x08", 4), HFN_STACK_OK); /* call [rsp+8] */
    CHECK_EQ_U64(s.argument_bytes, 8);
    CHECK_EQ_I64(FOLLOW(&s, "\xDB\x6C\x24\x08", 4), HFN_STACK_OK); /* fld tbyte [rsp+8] */
    CHECK_EQ_U64(s.argument_bytes, 10);
    /* push rbp; mov rbp, rsp; mov rax, [rbp+16] */
    CHECK_EQ_I64(FOLLOW(&s, "\x55\x48\x89\xE5\x48\x8B\x45\x10", 1, 3, 4), HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 8);
}

/* clang reads `b.a[i - 3]` of an argument on the stack at [rsp + 8*i - 16]. */
static void indexed_accesses_may_leave_the_frame(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8B\x44\xC4\xF0", 5),
                 HFN_STACK_TOUCHES_CALLER); /* mov rax, [rsp+8*rax-16] */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8D\x44\xC4\xF0", 5),
                 HFN_STACK_TOUCHES_CALLER); /* lea rax, [rsp+8*rax-16] */
    /* mov rcx, rsp; sub rcx, 32: mov al, [rax+rcx] and lea rax, [rax+rcx]: the index is the
     * frame's */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x89\xE1\x48\x83\xE9\x20\x8A\x04\x08", 3, 4, 3), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x89\xE1\x48\x83\xE9\x20\x48\x8D\x04\x08", 3, 4, 4),
                 HFN_STACK_LOST);
    /* lea rcx, [rsp-32]; add rcx, rax; or add rax, rcx; or sub rcx, rax; or add rcx, [rax] */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8D\x4C\x24\xE0\x48\x01\xC1", 5, 3), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8D\x4C\x24\xE0\x48\x01\xC8", 5, 3), HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8D\x4C\x24\xE0\x48\x29\xC1", 5, 3), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8D\x4C\x24\xE0\x48\x03\x08", 5, 3), HFN_STACK_TOUCHES_CALLER);
    /* vpgatherqq ymm0, [rsp + ymm1*8 - 16], ymm2 */
    CHECK_EQ_I64(FOLLOW(&s, "\xC4\xE2\xED\x91\x44\xCC\xF0", 7), HFN_STACK_TOUCHES_CALLER);
}

/* A copy of the stack pointer at the entry is the address of the return address. */
static void address_of_the_return_address_is_not_stored(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "\x48\x89\xE0\x48\x89\x07", 3, 3),
                 HFN_STACK_TOUCHES_RETURN); /* mov rax, rsp;
                                                                                     mov [rdi], rax */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x89\xE0\x50", 3, 1),
                 HFN_STACK_TOUCHES_RETURN); /* mov rax, rsp; push rax */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x89\x27", 3), HFN_STACK_TOUCHES_RETURN); /* mov [rdi], rsp */
    CHECK_EQ_I64(FOLLOW(&s, "\x54", 1), HFN_STACK_TOUCHES_RETURN);         /* push rsp       */
    CHECK_EQ_I64(FOLLOW(&s, "\x53\x48\x89\x27", 1, 3), HFN_STACK_OK); /* push rbx; mov [rdi], rsp */
}

static void unknown_changes_of_rsp_lose_the_stack(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "\x48\x89\xFC", 3), HFN_STACK_LOST);     /* mov rsp, rdi    */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8B\x27", 3), HFN_STACK_LOST);     /* mov rsp, [rdi]  */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x94", 2), HFN_STACK_LOST);         /* xchg rsp, rax   */
    CHECK_EQ_I64(FOLLOW(&s, "\x53\x5C", 1, 1), HFN_STACK_LOST);      /* pop rsp         */
    CHECK_EQ_I64(FOLLOW(&s, "\x53\x8F\x07", 1, 2), HFN_STACK_LOST);  /* pop [rdi]       */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x01\xC4", 3), HFN_STACK_LOST);     /* add rsp, rax    */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x0F\x44\xE0", 4), HFN_STACK_LOST); /* cmove rsp, rax  */
    CHECK_EQ_I64(FOLLOW(&s, "\xC8\x10\x00\x00", 4), HFN_STACK_LOST); /* enter 16, 0     */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8D\x27", 3), HFN_STACK_LOST);     /* lea rsp, [rdi]  */
    CHECK_EQ_I64(FOLLOW(&s, "\xCF", 1), HFN_STACK_POPS_UNKNOWN);     /* iret            */
}

/* push rbp; mov rbp, rsp; and rsp, -64; sub rsp, rax; mov [rsp+8], rax; leave; ret */
static void realigned_frame_ends_with_leave(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s,
                        "\x55\x48\x89\xE5\x48\x83\xE4\xC0\x48\x29\xC4\x48\x89\x44\x24\x08\xC9\xC3",
                        1, 3, 4, 3, 5, 1, 1),
                 HFN_STACK_OK);
    CHECK_EQ_I64(s.at[RSP], -8);
    CHECK_EQ_I64(FOLLOW(&s, "\x55\x48\x83\xE4\xC0\x5D\xC3", 1, 4, 1, 1), HFN_STACK_LOST);
}

static void calls_clobber_volatile_registers(void)
{
    hfn_stack_state s;

    /* push rbp; mov rbp, rsp; lea rax, [rbp-8]; call +0 */
    CHECK_EQ_I64(FOLLOW(&s, "\x55\x48\x89\xE5\x48\x8D\x45\xF8\xE8\x00\x00\x00\x00", 1, 3, 4, 5),
                 HFN_STACK_OK);
    CHECK_EQ_I64(s.at[RAX], HFN_STACK_UNKNOWN);
    CHECK_EQ_I64(s.at[RBP], -16);
    CHECK_EQ_I64(s.at[RSP], -16);
}

static void invalid_instructions_lose_the_stack(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW(&s, "\x06", 1), HFN_STACK_LOST); /* push es: not in 64-bit code */
    CHECK_EQ_I64(FOLLOW(&s, "\x48\x8B\x44\x24", 4), HFN_STACK_LOST); /* cut short */
}

/* ---- i386. */

static void i386_argument_accesses_are_measured(void)
{
    hfn_stack_state s;

    /* mov eax, [esp+4]; mov [esp+12], eax; ret */
    CHECK_EQ_I64(FOLLOW_32(&s, "\x8B\x44\x24\x04\x89\x44\x24\x0C\xC3", 4, 4, 1), HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 12);
    CHECK_EQ_U64(s.popped_bytes, 0);
    /* push ebp; mov ebp, esp; fld qword [ebp+16]; leave; ret */
    CHECK_EQ_I64(FOLLOW_32(&s, "\x55\x89\xE5\xDD\x45\x10\xC9\xC3", 1, 2, 3, 1, 1), HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 16);
    /* mov eax, [esp+124] and one further; lea eax, [esp+4]; mov eax, [esp+4*ecx+4] */
    CHECK_EQ_I64(FOLLOW_32(&s, "\x8B\x44\x24\x7C", 4), HFN_STACK_OK);
    CHECK_EQ_I64(FOLLOW_32(&s, "\x8B\x84\x24\x80\x00\x00\x00", 7), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW_32(&s, "\x8D\x44\x24\x04\x90\x90\x90", 4), HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW_32(&s, "\x8B\x44\x8C\x04", 4), HFN_STACK_TOUCHES_CALLER);
    /* mov eax, [esp]; mov eax, [esp-2] */
    CHECK_EQ_I64(FOLLOW_32(&s, "\x8B\x04\x24", 3), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW_32(&s, "\x8B\x44\x24\xFE", 4), HFN_STACK_TOUCHES_RETURN);
}

static void i386_returns_report_popped_bytes(void)
{
    hfn_stack_state s;

    CHECK_EQ_I64(FOLLOW_32(&s, "\x53\x5B\xC2\x0C\x00", 1, 1, 3), HFN_STACK_OK);
    CHECK_EQ_U64(s.popped_bytes, 12);
    CHECK_EQ_U64(s.argument_bytes, 12);
    CHECK_EQ_I64(FOLLOW_32(&s, "\xC2\x06\x00", 3), HFN_STACK_POPS_UNKNOWN);
    CHECK_EQ_I64(FOLLOW_32(&s, "\xC2\x80\x00", 3),
                 HFN_STACK_POPS_UNKNOWN); /* more than a stub can copy */
    CHECK_EQ_I64(FOLLOW_32(&s, "\xCB", 1), HFN_STACK_POPS_UNKNOWN);
    CHECK_EQ_I64(FOLLOW_32(&s, "\x53\xC3", 1, 1), HFN_STACK_LOST);
}

static void i386_accesses_after_calls_are_uncertain(void)
{
    hfn_stack_state s;

    /* sub esp, 12; call; mov eax, [esp+16], the first argument if the callee popped nothing */
    CHECK_EQ_I64(FOLLOW_32(&s, "\x83\xEC\x0C\xE8\x01\x02\x03\x04\x8B\x44\x24\x10", 3, 5, 4),
                 HFN_STACK_OK);
    CHECK_EQ_U64(s.uncertain_calls, 1);
    CHECK(s.depends_on_calls);
    /* push ebp; mov ebp, esp; call; mov eax, [ebp+8]; leave: the frame pointer is certain */
    CHECK_EQ_I64(FOLLOW_32(&s, "\x55\x89\xE5\xE8\x01\x02\x03\x04\x8B\x45\x08\xC9", 1, 2, 5, 3, 1),
                 HFN_STACK_OK);
    CHECK(!s.depends_on_calls);
    CHECK_EQ_U64(s.uncertain_calls, 0);
    /* call +0; pop ebx is no call */
    CHECK_EQ_I64(FOLLOW_32(&s, "\xE8\x00\x00\x00\x00\x5B\xC3", 5, 1, 1), HFN_STACK_OK);
    CHECK_EQ_U64(s.uncertain_calls, 0);
}

static void i386_realigned_frame_keeps_its_arguments(void)
{
    hfn_stack_state s;
#define REALIGNS "\x8D\x4C\x24\x04\x83\xE4\xF0\xFF\x71\xFC\x55\x89\xE5\x51" /* lea ... push ecx */

    /* mov eax, [ecx+4]; call; lea esp, [ebp-4]; pop ecx; pop ebp; lea esp, [ecx-4]; ret */
    CHECK_EQ_I64(FOLLOW_32(&s,
                           REALIGNS "\x8B\x41\x04\xE8\x01\x02\x03\x04\x8D\x65\xFC\x59\x5D"
                                    "\x8D\x61\xFC\xC3",
                           4, 3, 3, 1, 2, 1, 3, 5, 3, 1, 1, 3, 1),
                 HFN_STACK_OK);
    CHECK_EQ_U64(s.argument_bytes, 8);
    /* mov ecx, [ebp-4]; leave; lea esp, [ecx-4]; ret */
    CHECK_EQ_I64(
        FOLLOW_32(&s, REALIGNS "\x8B\x4D\xFC\xC9\x8D\x61\xFC\xC3", 4, 3, 3, 1, 2, 1, 3, 1, 3, 1),
        HFN_STACK_OK);
    /* loaded from another place; passed on before it is saved; stored; its return address read */
    CHECK_EQ_I64(FOLLOW_32(&s, REALIGNS "\x8B\x4D\xF8\xC9\x8D\x61\xFC", 4, 3, 3, 1, 2, 1, 3, 1, 3),
                 HFN_STACK_LOST);
    CHECK_EQ_I64(FOLLOW_32(&s, "\x8D\x4C\x24\x04\x83\xE4\xF0\xE8\x01\x02\x03\x04", 4, 3, 5),
                 HFN_STACK_TOUCHES_CALLER);
    CHECK_EQ_I64(FOLLOW_32(&s, REALIGNS "\x89\x08", 4, 3, 3, 1, 2, 1, 2), HFN_STACK_TOUCHES_RETURN);
    CHECK_EQ_I64(FOLLOW_32(&s, REALIGNS "\x8B\x41\xFC", 4, 3, 3, 1, 2, 1, 3),
                 HFN_STACK_TOUCHES_RETURN);
}

static void frame_addresses_stored_or_compared_are_noted(void)
{
    enum { STORED = HFN_FRAME_ADDRESS_STORED, COMPARED = HFN_FRAME_ADDRESS_COMPARED };
    hfn_stack_state s;

#define NOTED(mode, bytes, ...)                                                                    \
    (follow_in(mode, &s, bytes, sizeof(bytes) - 1, (const uint8_t[]){ __VA_ARGS__ }),              \
     s.frame_address)
#define MAKE_ADDRESS "\x48\x8D\x44\x24\xF0" /* lea rax, [rsp-16] */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x89\x07", 5, 3),
                 STORED); /* mov [rdi], rax     */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x87\x07", 5, 3),
                 STORED); /* xchg [rdi], rax    */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x89\x44\x24\xF8", 5, 5),
                 0);                                                       /* mov [rsp-8], rax   */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x50", 5, 1), 0);         /* push rax           */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x89\x0F", 5, 3), 0); /* mov [rdi], rcx     */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x39\x07", 5, 3),
                 COMPARED); /* cmp [rdi], rax     */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x3B\x07", 5, 3),
                 COMPARED); /* cmp rax, [rdi]     */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x39\xC1", 5, 3),
                 COMPARED); /* cmp rcx, rax       */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x39\xC8", 5, 3),
                 COMPARED); /* cmp rax, rcx       */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x39\x44\x24\xF8", 5, 5),
                 0);                                                       /* cmp [rsp-8], rax   */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x39\xC4", 5, 3), 0); /* cmp rsp, rax       */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x85\xC0", 5, 3), 0); /* test rax, rax      */
    CHECK_EQ_U64(NOTED(HFN_X86_64, MAKE_ADDRESS "\x48\x3B\x07\x48\x89\x07", 5, 3, 3),
                 STORED | COMPARED);
    /* lea eax, [esp-16]; cmp ecx, eax; mov [edx], eax */
    CHECK_EQ_U64(NOTED(HFN_X86_32, "\x8D\x44\x24\xF0\x39\xC1\x89\x02", 4, 2, 2), STORED | COMPARED);
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
    CHECK_TEST(i386_argument_accesses_are_measured),
    CHECK_TEST(i386_returns_report_popped_bytes),
    CHECK_TEST(i386_accesses_after_calls_are_uncertain),
    CHECK_TEST(i386_realigned_frame_keeps_its_arguments),
    CHECK_TEST(frame_addresses_stored_or_compared_are_noted),
};
CHECK_MAIN(tests)
