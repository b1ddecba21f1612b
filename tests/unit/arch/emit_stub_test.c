/* SPDX-License-Identifier: MIT */
/* Runs heads of stubs on this processor with random registers and flags: the function after a
 * head must start with the registers, flags and stack of its caller. */
#include "arch/x86/emit_stub.h"

#include "arch/arch.h"
#include "arch/stub.h"
#include "check.h"
#include "hooks/row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 2000, BELOW_BYTES = 256, PAGE_BYTES = 4096 };
enum { ENTER_AT = 512, EXIT_AT = 544, SLOT = 7, SKIP = 8, ENTERED = 9, EXITED = 10 };

/* The state before and after a head: rax rcx rdx rbx rbp rsi rdi r8..r15, flags, bytes below
 * rsp. */
typedef struct machine {
    uint64_t registers[15];
    uint64_t flags;
    uint8_t below[BELOW_BYTES]; /* [rsp - 256, rsp) at the head's entry */
} machine;

__attribute__((used)) static machine given, found;
__attribute__((used)) static const void *head_entry;

/* The arithmetic flags and DF; the system owns the other bits of rflags. */
#define FREE_FLAGS UINT64_C(0xcd5)

/* Load `given`, call head_entry, whose head is followed by `ret`, and store `found`. */
__attribute__((naked, noinline)) static void run_head(void)
{
    __asm__("pushq %rbx; pushq %rbp; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n\t"
            "leaq -8(%rsp), %rdi\n\t" /* rsp at the entry */
            "subq $256, %rdi\n\t"
            "leaq given+128(%rip), %rsi\n\t"
            "movl $32, %ecx\n\t"
            "cld\n\t"
            "rep movsq\n\t"
            "pushq given+120(%rip)\n\t"
            "popfq\n\t"
            /* rewrite the 8 bytes that pushq overwrote */
            "movq given+128+248(%rip), %rax\n\t"
            "movq %rax, -16(%rsp)\n\t"
            "movq given(%rip), %rax; movq given+8(%rip), %rcx; movq given+16(%rip), %rdx\n\t"
            "movq given+24(%rip), %rbx; movq given+32(%rip), %rbp; movq given+40(%rip), %rsi\n\t"
            "movq given+48(%rip), %rdi; movq given+56(%rip), %r8; movq given+64(%rip), %r9\n\t"
            "movq given+72(%rip), %r10; movq given+80(%rip), %r11; movq given+88(%rip), %r12\n\t"
            "movq given+96(%rip), %r13; movq given+104(%rip), %r14; movq given+112(%rip), %r15\n\t"
            "call *head_entry(%rip)\n\t"
            "movq %rax, found(%rip); movq %rcx, found+8(%rip); movq %rdx, found+16(%rip)\n\t"
            "movq %rbx, found+24(%rip); movq %rbp, found+32(%rip); movq %rsi, found+40(%rip)\n\t"
            "movq %rdi, found+48(%rip); movq %r8, found+56(%rip); movq %r9, found+64(%rip)\n\t"
            "movq %r10, found+72(%rip); movq %r11, found+80(%rip); movq %r12, found+88(%rip)\n\t"
            "movq %r13, found+96(%rip); movq %r14, found+104(%rip); movq %r15, found+112(%rip)\n\t"
            "leaq -264(%rsp), %rsi\n\t" /* lea, mov and movs change no flag */
            "leaq found+128(%rip), %rdi\n\t"
            "movl $32, %ecx\n\t"
            "1: movq (%rsi), %rax; movq %rax, (%rdi)\n\t"
            "leaq 8(%rsi), %rsi; leaq 8(%rdi), %rdi; leaq -1(%rcx), %rcx\n\t"
            "jrcxz 2f; jmp 1b\n\t"
            "2: pushfq\n\t"
            "popq found+120(%rip)\n\t"
            "cld\n\t"
            "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbp; popq %rbx\n\t"
            "ret");
}

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void fill_random(void *out, size_t byte_count)
{
    for (size_t i = 0; i < byte_count; i++) {
        ((uint8_t *)out)[i] = (uint8_t)next_random();
    }
}

/* Make a gate, in place of a probe, that counts calls with SLOT in the fifth word of the frame. */
static void make_time_gate(uint8_t *gate, uint64_t *counted)
{
    static const uint8_t code[] = {
        0x50,                                        /* push rax                             */
        0x48, 0xb8, 0,    0,    0,    0, 0, 0, 0, 0, /* mov rax, counted                     */
        0x80, 0x7c, 0x24, 0x30, SLOT,                /* cmp byte [rsp + 8 + 8 + 32], SLOT    */
        0x75, 0x03,                                  /* jne over                             */
        0x48, 0xff, 0x00,                            /* inc qword [rax]                      */
        0x58, 0xc3,                                  /* over: pop rax; ret                   */
    };

    memcpy(gate, code, sizeof code);
    memcpy(gate + 3, &counted, sizeof counted);
}

/* Make a page with all gates, a head of the given kind, and `ret`. */
static void *make_head(hfn_stub_kind kind, uint32_t flags, void *callback, void *user)
{
    uint8_t *page =
        mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hotfn_row_access access = row_access();
    hfn_x86_vector_state vector = hfn_x86_get_host_vector_state();
    const hfn_stub_shape shape = hfn_x86_get_stub_shape(kind, flags);
    uint8_t *head = page + 1024;
    hfn_stub_request request = {
        .kind = kind,
        .flags = flags,
        .address = (uint64_t)(uintptr_t)head,
        .gate = (uint64_t)(uintptr_t)(kind == HFN_STUB_CALL ? page + 64 : page),
        .row_displacement = access.displacement,
        .slot_displacement = (int32_t)access.slot_base_bytes + 8 * SLOT,
        .callback = (uint64_t)(uintptr_t)callback,
        .user = (uint64_t)(uintptr_t)user,
        .time_enter = (uint64_t)(uintptr_t)page + ENTER_AT,
        .time_exit = (uint64_t)(uintptr_t)page + EXIT_AT,
        .slot = SLOT,
        .skip_displacement = (int32_t)access.slot_base_bytes + 8 * SKIP,
    };
    uint64_t slow;

    memcpy(&slow, &access.slow_path, sizeof slow);
    hfn_x86_emit_count_gate(page, slow);
    CHECK(hfn_x86_emit_call_gate(page + 64, &vector, false) <= HFN_X86_CALL_GATE_MAX);
    make_time_gate(page + ENTER_AT, &slots[ENTERED]);
    make_time_gate(page + EXIT_AT, &slots[EXITED]);
    hfn_x86_emit_stub(head, &request);
    head[shape.head_bytes] = 0xc3;
    mprotect(page, PAGE_BYTES, PROT_READ | PROT_EXEC);
    head_entry = head + shape.entry_at;
    return page;
}

/* Indexes of the registers in machine.registers, by number; rsp has none. */
static const uint8_t place_of[16] = { 0, 1, 2, 3, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };

/* Run the head once and compare.  scratch: a register that the head may change. */
static void run_and_compare(bool flags_kept, uint32_t below_kept, uint8_t scratch)
{
    fill_random(&given, sizeof given);
    given.flags = (given.flags & FREE_FLAGS) | 0x202;
    run_head();
    if (scratch != HFN_NO_REGISTER) {
        found.registers[place_of[scratch]] = given.registers[place_of[scratch]];
    }
    CHECK_MEM(found.registers, given.registers, sizeof given.registers);
    if (flags_kept) {
        CHECK_EQ_U64(found.flags & FREE_FLAGS, given.flags & FREE_FLAGS);
    }
    CHECK_MEM(found.below + BELOW_BYTES - below_kept, given.below + BELOW_BYTES - below_kept,
              below_kept);
}

static void run_counts(uint32_t flags, uint8_t scratch)
{
    bool red_zone = (flags & HFN_STUB_RED_ZONE) != 0, live = (flags & HFN_STUB_FLAGS_LIVE) != 0;
    void *page = make_head(HFN_STUB_COUNT, flags, NULL, NULL);
    uint64_t before = slots[SLOT], slow_before = slow_calls;

    for (int i = 0; i < ROUNDS && !check_failures; i++) {
        row = i % 4 == 0 ? NULL : slots; /* every fourth call takes the slow path */
        run_and_compare(live, red_zone ? 128 : 0, scratch);
    }
    CHECK_EQ_U64(slots[SLOT] - before, ROUNDS);
    CHECK_EQ_U64(slow_calls - slow_before, ROUNDS / 4);
    munmap(page, PAGE_BYTES);
}

static void count_keeps_all_registers(void)
{
    run_counts(0, HFN_NO_REGISTER);
}

static void count_with_live_flags_keeps_the_flags(void)
{
    run_counts(HFN_STUB_FLAGS_LIVE, HFN_NO_REGISTER);
}

static void red_zone_count_keeps_the_red_zone(void)
{
    run_counts(HFN_STUB_RED_ZONE, HFN_NO_REGISTER);
    run_counts(HFN_STUB_RED_ZONE | HFN_STUB_FLAGS_LIVE, HFN_NO_REGISTER);
}

static void count_with_a_scratch_register_keeps_all_others(void)
{
    static const uint8_t numbers[] = { 0, 1, 2, 6, 7, 8, 9, 10, 11 };

    for (size_t i = 0; i < sizeof numbers; i++) {
        uint32_t flags = (numbers[i] + 1u) << HFN_STUB_SCRATCH_SHIFT;
        run_counts(flags, numbers[i]);
        run_counts(flags | HFN_STUB_RED_ZONE, numbers[i]);
        run_counts(flags | HFN_STUB_FLAGS_LIVE, HFN_NO_REGISTER); /* live flags: it is not used */
    }
}

/* The skip word decides which calls are timed; it is 0 at a thread's first call. */
static void run_times(hfn_stub_kind kind, uint32_t flags, uint8_t scratch)
{
    void *page = make_head(kind, flags, NULL, NULL);
    uint64_t before = slots[SLOT], entered = slots[ENTERED], exited = slots[EXITED];
    uint64_t timed = kind == HFN_STUB_TIME ? ROUNDS : ROUNDS / 4;

    for (int i = 0; i < ROUNDS && !check_failures; i++) {
        row = i % 5 == 0 ? NULL : slots;
        slots[SKIP] = i % 4 == 0 ? 0 : 3;
        run_and_compare(false, 0, scratch);
        CHECK_EQ_U64((uint32_t)slots[SKIP],
                     kind == HFN_STUB_TIME ? (i % 4 == 0 ? 0 : 3) : (i % 4 == 0 ? UINT32_MAX : 2));
    }
    CHECK_EQ_U64(slots[SLOT] - before, ROUNDS);
    CHECK_EQ_U64(slots[ENTERED] - entered, timed);
    CHECK_EQ_U64(slots[EXITED] - exited, timed);
    munmap(page, PAGE_BYTES);
}

/* With the counted bytes of hfn_stub_find_timing no probe runs; with the timed ones all is as
 * before. */
static void run_counted(hfn_stub_kind kind, uint32_t flags, uint8_t scratch)
{
    void *page = make_head(kind, flags, NULL, NULL);
    uint8_t *entry = (uint8_t *)(uintptr_t)head_entry;
    hfn_stub_edit edits[HFN_STUB_MAX_EDITS], unused[HFN_STUB_MAX_EDITS];
    uint32_t count = hfn_stub_find_timing(edits, entry, HFN_STUB_TIMED_BYTES);
    uint64_t before = slots[SLOT], entered = slots[ENTERED], exited = slots[EXITED];

    CHECK_EQ_U64(count, kind == HFN_STUB_TIME ? 1 : 2);
    mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(entry + edits[i].at, edits[i].counted, edits[i].byte_count);
    }
    CHECK_EQ_U64(hfn_stub_find_timing(unused, entry, HFN_STUB_TIMED_BYTES), 0);
    row = slots;
    for (int i = 0; i < ROUNDS && !check_failures; i++) {
        slots[SKIP] = i % 2;
        run_and_compare(false, 0, scratch);
        CHECK_EQ_U64((uint32_t)slots[SKIP], i % 2);
    }
    CHECK_EQ_U64(slots[SLOT] - before, ROUNDS);
    CHECK_EQ_U64(slots[ENTERED], entered);
    CHECK_EQ_U64(slots[EXITED], exited);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(entry + edits[i].at, edits[i].timed, edits[i].byte_count);
    }
    slots[SKIP] = 0;
    run_and_compare(false, 0, scratch);
    CHECK_EQ_U64(slots[ENTERED] - entered, 1);
    CHECK_EQ_U64(slots[EXITED] - exited, 1);
    munmap(page, PAGE_BYTES);
}

static void timing_is_switched_off_and_on_in_the_stub(void)
{
    static const uint8_t numbers[] = { 0, 1, 2, 6, 7, 8, 9, 10, 11 };
    const uint32_t words = UINT32_C(3) << HFN_STUB_ARGUMENTS_SHIFT;
    uint8_t counted[HFN_STUB_TIMED_BYTES] = { 0 };
    hfn_stub_edit unused[HFN_STUB_MAX_EDITS];

    for (hfn_stub_kind kind = HFN_STUB_TIME; kind <= HFN_STUB_SAMPLE; kind++) {
        run_counted(kind, 0, HFN_NO_REGISTER);
        run_counted(kind, words, HFN_NO_REGISTER);
        for (size_t i = 0; i < sizeof numbers; i++) {
            run_counted(kind, (numbers[i] + 1u) << HFN_STUB_SCRATCH_SHIFT, numbers[i]);
        }
    }
    for (uint32_t bytes = 0; bytes < sizeof counted; bytes++) { /* not a stub, and less than one */
        CHECK_EQ_U64(hfn_stub_find_timing(unused, counted, bytes), 0);
    }
    void *page = make_head(HFN_STUB_COUNT, 0, NULL, NULL);
    CHECK_EQ_U64(hfn_stub_find_timing(unused, head_entry, HFN_STUB_TIMED_BYTES), 0);
    munmap(page, PAGE_BYTES);
}

static void time_stubs_call_both_probes_and_keep_registers(void)
{
    static const uint8_t numbers[] = { 0, 1, 2, 6, 7, 8, 9, 10, 11 };

    for (hfn_stub_kind kind = HFN_STUB_TIME; kind <= HFN_STUB_SAMPLE; kind++) {
        run_times(kind, 0, HFN_NO_REGISTER);
        for (size_t i = 0; i < sizeof numbers; i++) {
            run_times(kind, (numbers[i] + 1u) << HFN_STUB_SCRATCH_SHIFT, numbers[i]);
        }
        for (uint32_t words = 1; words <= HFN_ARGUMENTS_MAX_64 / 8; words++) {
            run_times(kind, words << HFN_STUB_ARGUMENTS_SHIFT, HFN_NO_REGISTER);
            run_times(kind, words << HFN_STUB_ARGUMENTS_SHIFT | 9u << HFN_STUB_SCRATCH_SHIFT, 8);
        }
    }
}

static uint64_t callback_calls;

/* A callback that changes every register that a function may change. */
static void clobber_registers(void *user)
{
    uint64_t stack;

    callback_calls += user == &callback_calls;
    __asm__ volatile("movq %%rsp, %0" : "=r"(stack));
    __asm__ volatile("xorl %%eax, %%eax; movq $-1, %%rcx; movq %%rcx, %%rdx; movq %%rcx, %%rsi\n\t"
                     "movq %%rcx, %%rdi; movq %%rcx, %%r8; movq %%rcx, %%r9; movq %%rcx, %%r10\n\t"
                     "movq %%rcx, %%r11; pcmpeqb %%xmm0, %%xmm0; movdqa %%xmm0, %%xmm7\n\t"
                     "movdqa %%xmm0, %%xmm15; fldpi; fstp %%st(0); std; cld"
                     :
                     :
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm7",
                       "xmm15", "cc", "memory");
}

static void call_keeps_all_registers_flags_and_red_zone(void)
{
    void *page = make_head(HFN_STUB_CALL, 0, (void *)(uintptr_t)clobber_registers, &callback_calls);

    callback_calls = 0;
    for (int i = 0; i < ROUNDS && !check_failures; i++) {
        run_and_compare(true, 128, HFN_NO_REGISTER);
    }
    CHECK_EQ_U64(callback_calls, ROUNDS);
    munmap(page, PAGE_BYTES);
}

/* The vector registers and mxcsr. */
typedef struct vectors {
    uint8_t bytes[32][64];
    uint32_t mxcsr;
} vectors;

static vectors vectors_given, vectors_found;

__attribute__((target("avx512f"), noinline)) static void clobber_vectors_512(void *user)
{
    (void)user;
    __asm__ volatile(
        "vpternlogd $255, %%zmm0, %%zmm0, %%zmm0\n\tvmovdqa64 %%zmm0, %%zmm5\n\t"
        "vmovdqa64 %%zmm0, %%zmm17\n\tvmovdqa64 %%zmm0, %%zmm31\n\tkxnorw %%k1, %%k1, %%k1" ::
            : "memory");
}

#define LOAD_512(n) "vmovdqu64 64*" #n "(%0), %%zmm" #n "\n\t"
#define STORE_512(n) "vmovdqu64 %%zmm" #n ", 64*" #n "(%0)\n\t"
#define ALL_32(op)                                                                                 \
    op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) op(14) \
        op(15) op(16) op(17) op(18) op(19) op(20) op(21) op(22) op(23) op(24) op(25) op(26) op(27) \
            op(28) op(29) op(30) op(31)

__attribute__((target("avx512f"), noinline)) static void run_with_vectors(void)
{
    uint32_t mask = 0x5a5a, mask_found;

    __asm__ volatile("ldmxcsr %2\n\tkmovw %1, %%k1\n\t" ALL_32(LOAD_512)::"r"(vectors_given.bytes),
                     "r"(mask), "m"(vectors_given.mxcsr)
                     : "memory");
    run_head();
    __asm__ volatile(ALL_32(STORE_512)::"r"(vectors_found.bytes) : "memory");
    __asm__ volatile("kmovw %%k1, %0\n\tstmxcsr %1" : "=r"(mask_found), "=m"(vectors_found.mxcsr));
    CHECK_EQ_U64(mask_found, mask);
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}

static void call_keeps_vector_registers(void)
{
    void *page;

    if (!has_avx512()) {
        printf("# this processor has no AVX-512: not run\n");
        return;
    }
    page = make_head(HFN_STUB_CALL, 0, (void *)(uintptr_t)clobber_vectors_512, NULL);
    for (int i = 0; i < ROUNDS && !check_failures; i++) {
        fill_random(&given, sizeof given);
        given.flags = 0x202;
        fill_random(vectors_given.bytes, sizeof vectors_given.bytes);
        vectors_given.mxcsr = i & 1 ? 0x1f80 : 0x3f80; /* round to nearest, down */
        run_with_vectors();
        CHECK_MEM(&vectors_found, &vectors_given, sizeof vectors_given);
    }
    munmap(page, PAGE_BYTES);
}

static void every_head_has_the_size_of_its_shape(void)
{
    for (uint32_t kind = 0; kind < HFN_STUB_KINDS; kind++) {
        for (uint32_t n = 0; n < 4 * 12 * (HFN_ARGUMENTS_MAX_64 / 8 + 1); n++) {
            uint32_t words = n / 48;
            uint32_t flags =
                n % 4 | n / 4 % 12 << HFN_STUB_SCRATCH_SHIFT | words << HFN_STUB_ARGUMENTS_SHIFT;
            if (n / 4 % 12 == 5) {
                continue; /* rsp cannot be a scratch register */
            }
            const hfn_stub_shape shape = hfn_x86_get_stub_shape((hfn_stub_kind)kind, flags);
            hfn_stub_request request = { .kind = (hfn_stub_kind)kind, .flags = flags };
            uint8_t once[256], twice[256];
            memset(once, 0xaa, sizeof once);
            memset(twice, 0x55, sizeof twice);
            hfn_x86_emit_stub(once, &request);
            hfn_x86_emit_stub(twice, &request);
            CHECK_MEM(once, twice, shape.head_bytes);
            CHECK_EQ_U64(once[shape.head_bytes], 0xaa);
            CHECK_EQ_U64(twice[shape.head_bytes], 0x55);
        }
    }
}

/* hotfn-run(1) names the number, which is the same on every CPU. */
static void timed_call_uses_the_stack_that_the_manual_names(void)
{
    const char *root = getenv("HOTFN_SOURCE_ROOT");
    char path[4096], line[256], wanted[80];
    bool is_named = false;

    snprintf(wanted, sizeof wanted, "A timed call uses %u bytes of stack",
             hfn_stub_get_call_stack_bytes());
    snprintf(path, sizeof path, "%s/docs/man/hotfn-run.1", root ? root : ".");
    FILE *manual = fopen(path, "r");
    CHECK(manual != NULL);
    while (manual && fgets(line, sizeof line, manual)) {
        is_named |= strncmp(line, wanted, strlen(wanted)) == 0;
    }
    CHECK(is_named);
    if (manual) {
        fclose(manual);
    }
}

static const check_test tests[] = {
    CHECK_TEST(timed_call_uses_the_stack_that_the_manual_names),
    CHECK_TEST(every_head_has_the_size_of_its_shape),
    CHECK_TEST(count_keeps_all_registers),
    CHECK_TEST(count_with_live_flags_keeps_the_flags),
    CHECK_TEST(red_zone_count_keeps_the_red_zone),
    CHECK_TEST(count_with_a_scratch_register_keeps_all_others),
    CHECK_TEST(time_stubs_call_both_probes_and_keep_registers),
    CHECK_TEST(timing_is_switched_off_and_on_in_the_stub),
    CHECK_TEST(call_keeps_all_registers_flags_and_red_zone),
    CHECK_TEST(call_keeps_vector_registers),
};
CHECK_MAIN(tests)
