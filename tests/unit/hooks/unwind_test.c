/* SPDX-License-Identifier: MIT */
/* Unwinding from every instruction of a stub: the processor's trap flag stops at each one, and
 * from the signal handler libgcc's unwinder must find the caller, its stack pointer and its
 * registers. */
#include "row.h"
#include "targets.h"

#include "base/compiler.h"
#include "hooks/unwind.h"

#include <signal.h>
#include <ucontext.h>
#include <unwind.h>

enum { CALLER_MARK = 0x1000, CODE_BYTES = 8192, MAX_FRAMES = 6 };
enum { SKIP = 40 /* index of the skip counter in the row */, MANY = 70000 };
/* SCRATCH: a register that no function of this test uses: r11 or edx. */
#if defined(__x86_64__)
enum { PC_REGISTER = REG_RIP, SCRATCH = 11, ARGUMENT_WORDS = HFN_ARGUMENTS_MAX_64 / 8 };
#else
enum { PC_REGISTER = REG_EIP, SCRATCH = 2, ARGUMENT_WORDS = HFN_ARGUMENTS_MAX / 4 };
#endif

/* DWARF numbers of the registers that a function must keep.  The caller holds CALLER_MARK plus that
 * number in each. */
static const int kept[] = TARGET_BYTES((3, 6, 12, 13, 14, 15), (3, 5, 6, 7));

__attribute__((used)) static const void *traced_function;
__attribute__((used)) static uintptr_t caller_rsp;
extern const char behind_traced_call[];

/* Call traced_function with the trap flag set and known values in the kept registers. */
__attribute__((naked, noinline)) static void call_traced(void)
{
#if defined(__x86_64__)
    __asm__("pushq %rbx; pushq %rbp; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n\t"
            "movq %rsp, caller_rsp(%rip)\n\t"
            "movq $0x1003, %rbx; movq $0x1006, %rbp; movq $0x100c, %r12\n\t"
            "movq $0x100d, %r13; movq $0x100e, %r14; movq $0x100f, %r15\n\t"
            "pushfq\n\t"
            "orq $0x100, (%rsp)\n\t"
            "popfq\n\t"
            "call *traced_function(%rip)\n\t"
            ".globl behind_traced_call\n"
            "behind_traced_call:\n\t"
            "pushfq\n\t"
            "andq $-0x101, (%rsp)\n\t"
            "popfq\n\t"
            "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbp; popq %rbx\n\t"
            "ret");
#else
    __asm__("pushl %ebx; pushl %ebp; pushl %esi; pushl %edi\n\t"
            "call 1f\n"
            "1:  popl %eax\n\t"
            "movl %esp, caller_rsp - 1b(%eax)\n\t"
            "movl $0x1003, %ebx; movl $0x1005, %ebp; movl $0x1006, %esi; movl $0x1007, %edi\n\t"
            "pushfl\n\t"
            "orl $0x100, (%esp)\n\t"
            "popfl\n\t"
            "call *traced_function - 1b(%eax)\n\t"
            ".globl behind_traced_call\n"
            "behind_traced_call:\n\t"
            "pushfl\n\t"
            "andl $-0x101, (%esp)\n\t"
            "popfl\n\t"
            "popl %edi; popl %esi; popl %ebp; popl %ebx\n\t"
            "ret");
#endif
}

/* ---- In the handler. */

static const hotfn_hooks *traced_hooks;
static uint32_t steps_in_stubs, bad_steps, fde_mismatches;
static uint64_t first_bad_pc;

typedef struct walk {
    uint64_t pc; /* of the trap */
    int frames;  /* frames visited after that of pc; -1: its frame was not reached yet */
    bool is_correct;
} walk;

static _Unwind_Reason_Code check_frame(struct _Unwind_Context *context, void *user)
{
    walk *w = user;
    uint64_t pc = _Unwind_GetIP(context);

    if (w->frames < 0 && pc != w->pc) {
        return _URC_NO_REASON; /* the handler and the signal frame */
    }
    if (++w->frames > MAX_FRAMES) {
        return _URC_END_OF_STACK;
    }
    if (pc != (uint64_t)(uintptr_t)behind_traced_call) {
        return _URC_NO_REASON;
    }
    w->is_correct = _Unwind_GetCFA(context) == caller_rsp;
    for (size_t i = 0; i < HFN_COUNT_OF(kept); i++) {
        w->is_correct &= _Unwind_GetGR(context, kept[i]) == (uintptr_t)(CALLER_MARK + kept[i]);
    }
    return _URC_END_OF_STACK;
}

/* libgcc's own look-up in the tables that __register_frame registered (unwind-dw2-fde.h). */
struct dwarf_eh_bases {
    void *tbase, *dbase, *func;
};
extern const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases);

static void compare_fdes(uint64_t pc)
{
    struct dwarf_eh_bases bases = { NULL, NULL, NULL };
    uint64_t begin = 0;
    const void *found = hotfn_hooks_find_fde(traced_hooks, pc, &begin);
    const void *expected = _Unwind_Find_FDE((void *)(uintptr_t)pc, &bases);

    if (found != expected || (found && begin != (uint64_t)(uintptr_t)bases.func)) {
        fde_mismatches++;
    }
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    walk w = { (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[PC_REGISTER], -1, false };
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;

    (void)number;
    (void)info;
    if (!hotfn_hooks_find_region(traced_hooks, w.pc, &region)) {
        return;
    }
    compare_fdes(w.pc);
    _Unwind_Backtrace(check_frame, &w);
    steps_in_stubs++;
    if (!w.is_correct && bad_steps++ == 0) {
        first_bad_pc = w.pc;
    }
}

/* ---- Functions with all kinds of prologues. */

typedef struct prologue {
    const char *name;
    uint8_t bytes[32];
    uint8_t byte_count;
} prologue;

/* clang-format off */
#define PROLOGUE(name, wide, narrow)                                                               \
    { name, TARGET_BYTES(wide, narrow), sizeof(uint8_t[])TARGET_BYTES(wide, narrow) }
static const prologue prologues[] = {
    PROLOGUE("push rbp; mov rbp, rsp; sub rsp, 16; leave; ret", (0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xc9, 0xc3),
             (0x55, 0x89, 0xe5, 0x83, 0xec, 0x10, 0xc9, 0xc3)),
    PROLOGUE("push rbp; mov rbp, rsp; mov eax, edi; leave; ret", (0x55, 0x48, 0x89, 0xe5, 0x89, 0xf8, 0xc9, 0xc3),
             (0x55, 0x89, 0xe5, 0x89, 0xc8, 0xc9, 0xc3)),
    PROLOGUE("push r15; push r14; push r13; pop r13; pop r14; pop r15; ret", (0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x5d, 0x41, 0x5e, 0x41, 0x5f, 0xc3),
             (0x57, 0x56, 0x53, 0x5b, 0x5e, 0x5f, 0xc3)),
    PROLOGUE("push rbp; push rbx; xor ebx, ebx; xor ebp, ebp; pop rbx; pop rbp; ret", (0x55, 0x53, 0x31, 0xdb, 0x31, 0xed, 0x5b, 0x5d, 0xc3),
             (0x55, 0x53, 0x31, 0xdb, 0x31, 0xed, 0x5b, 0x5d, 0xc3)),
    PROLOGUE("push rbx; mov rbx, rdi; xor ebx, ebx; pop rbx; ret", (0x53, 0x48, 0x89, 0xfb, 0x31, 0xdb, 0x5b, 0xc3),
             (0x53, 0x89, 0xcb, 0x31, 0xdb, 0x5b, 0xc3)),
    PROLOGUE("sub rsp, 40; xor eax, eax; add rsp, 40; ret", (0x48, 0x83, 0xec, 0x28, 0x31, 0xc0, 0x48, 0x83, 0xc4, 0x28, 0xc3),
             (0x83, 0xec, 0x28, 0x31, 0xc0, 0x83, 0xc4, 0x28, 0xc3)),
    PROLOGUE("sub rsp, 1000; add rsp, 1000; ret", (0x48, 0x81, 0xec, 0xe8, 0x03, 0, 0, 0x48, 0x81, 0xc4, 0xe8, 0x03, 0, 0, 0xc3),
             (0x81, 0xec, 0xe8, 0x03, 0, 0, 0x81, 0xc4, 0xe8, 0x03, 0, 0, 0xc3)),
    PROLOGUE("push rbp; mov rbp, rsp; and rsp, -32; leave; ret", (0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0xc9, 0xc3),
             (0x55, 0x89, 0xe5, 0x83, 0xe4, 0xe0, 0xc9, 0xc3)),
    PROLOGUE("push 7; pop rax; push r12; xor r12d, r12d; pop r12; ret", (0x6a, 0x07, 0x58, 0x41, 0x54, 0x45, 0x31, 0xe4, 0x41, 0x5c, 0xc3),
             (0x6a, 0x07, 0x58, 0x56, 0x31, 0xf6, 0x5e, 0xc3)),
    PROLOGUE("lea eax, [rdi + 1]; add eax, esi; ret", (0x8d, 0x47, 0x01, 0x01, 0xf0, 0xc3),
             (0x8d, 0x41, 0x01, 0x01, 0xd0, 0xc3)),
    PROLOGUE("lea eax, [rdi + 1]; test eax, eax; jne 9; xor eax, eax; 9: neg eax; ret", (0x8d, 0x47, 0x01, 0x85, 0xc0, 0x75, 0x02, 0x31, 0xc0, 0xf7, 0xd8, 0xc3),
             (0x8d, 0x41, 0x01, 0x85, 0xc0, 0x75, 0x02, 0x31, 0xc0, 0xf7, 0xd8, 0xc3)),
};
/* clang-format on */

enum { PROLOGUES = sizeof prologues / sizeof prologues[0] };

typedef struct fixture {
    target_code code;
    uint32_t rva[PROLOGUES];
    hotfn_plan *plan;
    hotfn_hooks *hooks;
} fixture;

static void make_plan(fixture *f, uint32_t flags, uint32_t scratch, uint32_t words)
{
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, TARGET_MACHINE, PROLOGUES);

    f->code = target_code_make(CODE_BYTES);
    for (uint32_t i = 0; i < PROLOGUES; i++) {
        f->rva[i] = target_add(&f->code, prologues[i].bytes, prologues[i].byte_count);
    }
    for (uint32_t i = 0; i < PROLOGUES; i++) {
        hfn_moved moved;
        hfn_plan_new_entry source = target_source(&f->code, i, f->rva[i], &moved, 5);
        source.flags = flags;
        source.scratch = scratch;
        source.arguments = words;
        CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    }
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &f->plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    target_code_finish(&f->code);
}

/* Replaces the timing functions: it has no effect, and it lies outside of the stubs. */
__attribute__((naked)) static void time_nothing(void)
{
    __asm__("ret");
}

static hotfn_row_access timing_access(void)
{
    hotfn_row_access access = row_access();

    access.time_enter = access.time_exit = time_nothing;
    access.skip_base_bytes = 8 * SKIP;
    return access;
}

static void nothing(void *user)
{
    (void)user;
}

static void hook_all(fixture *f, uint32_t kind)
{
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_row_access access = timing_access();
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
    uint32_t module;

    action.kind = kind;
    action.callback = nothing;
    options.flags = HOTFN_HOOKS_REGISTER_UNWIND;
    CHECK_EQ_I64(hotfn_hooks_create(&f->hooks, &options, &access, NULL, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < PROLOGUES; i++) {
        CHECK_EQ_I64(hotfn_hooks_add(f->hooks, f->plan, (uint64_t)(uintptr_t)f->code.bytes, i,
                                     &action, &module, NULL),
                     HOTFN_OK);
    }
    CHECK_EQ_I64(hotfn_hooks_commit(f->hooks, &stats, NULL), HOTFN_OK);
    CHECK_EQ_U64(stats.hooked, PROLOGUES);
}

static void trace_function(const fixture *f, uint32_t index)
{
    struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO }, before;

    steps_in_stubs = bad_steps = fde_mismatches = 0;
    traced_hooks = f->hooks;
    traced_function = target_at(&f->code, f->rva[index]);
    sigaction(SIGTRAP, &action, &before);
    call_traced();
    sigaction(SIGTRAP, &before, NULL);
    CHECK(steps_in_stubs >= 2);
    CHECK_EQ_U64(fde_mismatches, 0);
    if (!CHECK_EQ_U64(bad_steps, 0)) {
        printf("# %s: first at stub pc %#" PRIx64 "\n", prologues[index].name, first_bad_pc);
    }
}

static void trace_each(uint32_t kind, uint32_t flags, uint32_t scratch, uint32_t words)
{
    fixture f;

    make_plan(&f, flags, scratch, words);
    hook_all(&f, kind);
    for (uint32_t i = 0; i < PROLOGUES; i++) {
        row = i & 1 ? slots : NULL; /* with NULL, the slow path and its gate run too */
        slots[SKIP] = 0;
        trace_function(&f, i);
        if (kind == HOTFN_ACTION_SAMPLE) {
            trace_function(&f, i); /* this call is skipped and not timed */
        }
    }
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    hotfn_hooks_destroy(f.hooks);
    hotfn_plan_destroy(f.plan);
}

static void trace_all(uint32_t kind, uint32_t flags, uint32_t scratch)
{
    trace_each(kind, flags, scratch, 0);
}

static void count_stubs_unwind_from_every_instruction(void)
{
    trace_all(HOTFN_ACTION_COUNT, 0, 0);
}

static void flag_preserving_stubs_unwind_from_every_instruction(void)
{
    trace_all(HOTFN_ACTION_COUNT, HOTFN_VERDICT_FLAGS_LIVE, 0);
}

static void red_zone_stubs_unwind_from_every_instruction(void)
{
    trace_all(HOTFN_ACTION_COUNT, HOTFN_VERDICT_RED_ZONE, 0);
}

static void stubs_with_a_scratch_register_unwind_from_every_instruction(void)
{
    trace_all(HOTFN_ACTION_COUNT, 0, SCRATCH + 1);
    trace_all(HOTFN_ACTION_COUNT, HOTFN_VERDICT_RED_ZONE, SCRATCH + 1);
}

static void call_stubs_and_their_gate_unwind_from_every_instruction(void)
{
    trace_all(HOTFN_ACTION_CALL, 0, 0);
}

static void timing_stubs_unwind_from_every_instruction(void)
{
    for (uint32_t kind = HOTFN_ACTION_TIME; kind <= HOTFN_ACTION_SAMPLE; kind++) {
        trace_all(kind, HOTFN_VERDICT_TIMED, 0);
        trace_all(kind, HOTFN_VERDICT_TIMED, SCRATCH + 1);
    }
}

static void stubs_that_copy_arguments_unwind_from_every_instruction(void)
{
    for (uint32_t words = 1; words <= ARGUMENT_WORDS; words++) {
        for (uint32_t kind = HOTFN_ACTION_TIME; kind <= HOTFN_ACTION_SAMPLE; kind++) {
            trace_each(kind, HOTFN_VERDICT_TIMED, 0, words);
            trace_each(kind, HOTFN_VERDICT_TIMED, SCRATCH + 1, words);
        }
    }
}

/* The module has as many stubs as a large program.  Its tables must be right for the last stub as
 * for the first. */
static void stubs_of_a_large_module_unwind_from_every_instruction(void)
{
    static hfn_moved moved;
    fixture f = { .rva = { 0 } };
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, TARGET_MACHINE, MANY);
    hotfn_row_access access = timing_access();
    hotfn_hook_options options = HOTFN_HOOK_OPTIONS_INIT;
    hotfn_hook_action action = HOTFN_HOOK_ACTION_INIT;
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    uint32_t module;

    f.code = target_code_make(MANY * 32);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t rva = target_add(&f.code, prologues[1].bytes, prologues[1].byte_count);
        hfn_plan_new_entry source = target_source(&f.code, i, rva, &moved, 5);
        source.flags = HOTFN_VERDICT_TIMED;
        CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    }
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &f.plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    target_code_finish(&f.code);
    action.kind = HOTFN_ACTION_TIME;
    options.flags = HOTFN_HOOKS_REGISTER_UNWIND;
    CHECK_EQ_I64(hotfn_hooks_create(&f.hooks, &options, &access, NULL, NULL), HOTFN_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        hotfn_hooks_add(f.hooks, f.plan, (uint64_t)(uintptr_t)f.code.bytes, i, &action, &module,
                        NULL);
    }
    CHECK_EQ_I64(hotfn_hooks_commit(f.hooks, &stats, NULL), HOTFN_OK);
    CHECK_EQ_U64(stats.hooked, MANY);
    printf("# %u timed hooks: %u bytes of unwind tables each\n", (unsigned)MANY,
           (unsigned)(stats.unwind_bytes / MANY));
    row = slots;
    for (uint32_t i = 0; i < MANY; i += i < 130 ? 1 : MANY / 97) {
        f.rva[0] = i * 32;
        trace_function(&f, 0);
    }
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    hotfn_hooks_destroy(f.hooks);
    hotfn_plan_destroy(f.plan);
    munmap(f.code.bytes, f.code.byte_count);
}

static void bare_stubs_unwind_from_every_instruction(void)
{
    trace_all(HOTFN_ACTION_FLOOR, 0, 0);
}

static void raise_end(void *user, uint64_t address, uint32_t byte_count, uint32_t module,
                      uint32_t function_index)
{
    uint64_t *end = user;

    (void)module;
    (void)function_index;
    *end = address + byte_count > *end ? address + byte_count : *end;
}

static void addresses_after_the_last_stub_have_no_fde(void)
{
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
    uint64_t end = 0, begin;
    fixture f;

    make_plan(&f, 0, 0, 0);
    hook_all(&f, HOTFN_ACTION_COUNT);
    hotfn_hooks_each_stub(f.hooks, raise_end, &end);
    CHECK(hotfn_hooks_find_region(f.hooks, end - 1, &region));
    CHECK(hfn_unwind_find(&region, end - 1, &begin) != NULL);
    CHECK(hfn_unwind_find(&region, end, &begin) == NULL);
    traced_hooks = f.hooks;
    fde_mismatches = 0;
    compare_fdes(end - 1);
    compare_fdes(end);
    CHECK_EQ_U64(fde_mismatches, 0);
    CHECK_EQ_I64(hotfn_hooks_remove(f.hooks, NULL), HOTFN_OK);
    hotfn_hooks_destroy(f.hooks);
    hotfn_plan_destroy(f.plan);
}

static uint32_t u32_at(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Check that the FDE of each stub in .eh_frame refers to a CIE for the stub's key.  Returns the
 * number of FDEs. */
static uint32_t check_keys(const uint8_t *frame, uint32_t stubs)
{
    uint32_t fdes = 0;

    for (const uint8_t *at = frame; u32_at(at) != 0; at += 4 + u32_at(at)) {
        if (u32_at(at + 4) == 0) {
            continue; /* a CIE */
        }
        const uint8_t *cie = at + 4 - u32_at(at + 4);
        /* The augmentation string follows length, id and version. */
        CHECK_STR((const char *)cie + 9, fdes % 2 ? "zRB" : "zR");
        fdes++;
    }
    CHECK_EQ_U64(fdes, stubs);
    return fdes;
}

static void stubs_refer_to_the_cie_of_their_key(void)
{
    enum { STUBS = 500, BYTES = 32 };
    static uint8_t code[STUBS * BYTES];
    hfn_stub_shape made;
    const hfn_stub_shape *shape = hfn_stub_get_shape(HFN_STUB_COUNT, 0, &made);
    const uint64_t room = hfn_unwind_max_bytes(STUBS, STUBS - 1, 0);
    uint8_t *tables = calloc(1, room);
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
    hfn_unwind u;

    hfn_unwind_begin(&u, tables, STUBS, STUBS - 1, NULL);
    for (uint64_t i = 0; i < STUBS; i++) {
        const hfn_plan_hook hook = { .flags = i % 2 ? HOTFN_VERDICT_KEY_B : 0 };

        hfn_unwind_stub(&u, (uint64_t)(uintptr_t)code + i * BYTES, BYTES, shape, &hook, 0);
    }
    CHECK(hfn_unwind_finish(&u, &region) <= room);
    CHECK_EQ_U64(u32_at((const uint8_t *)region.eh_frame_hdr + 8),
                 check_keys(region.eh_frame, STUBS));
    free(tables);
}

static const check_test tests[] = {
    CHECK_TEST(stubs_refer_to_the_cie_of_their_key),
    CHECK_TEST(bare_stubs_unwind_from_every_instruction),
    CHECK_TEST(addresses_after_the_last_stub_have_no_fde),
    CHECK_TEST(count_stubs_unwind_from_every_instruction),
    CHECK_TEST(flag_preserving_stubs_unwind_from_every_instruction),
    CHECK_TEST(red_zone_stubs_unwind_from_every_instruction),
    CHECK_TEST(stubs_with_a_scratch_register_unwind_from_every_instruction),
    CHECK_TEST(timing_stubs_unwind_from_every_instruction),
    CHECK_TEST(stubs_that_copy_arguments_unwind_from_every_instruction),
    CHECK_TEST(stubs_of_a_large_module_unwind_from_every_instruction),
    CHECK_TEST(call_stubs_and_their_gate_unwind_from_every_instruction),
};
CHECK_MAIN(tests)
