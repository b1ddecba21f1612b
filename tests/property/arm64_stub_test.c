/* SPDX-License-Identifier: MIT */
/*
 * Property of AArch64 stubs, run under qemu-user.  A count stub increments the counter and changes
 * no register, flag, vector or byte of the stack except x16 and x17, and these only if it need not
 * keep them.  The slow path and the call gate may run code that clobbers every register that a
 * function may change.  A timing stub calls the body below its frame with a copy of the stack
 * arguments, and restores the return address, signed or not.  Built separately for AArch64 with the
 * assembly of the slow path and of the probes.
 */
#include "arch/arm64/emit_stub.h"
#include "arm64_cpu.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_BYTES 65536u
#define GATE_AT 0u
#define CALL_GATE_AT 64u
#define FILTER_GATE_AT 320u
#define ENTER_GATE_AT 640u
#define EXIT_GATE_AT 656u
#define STUB_AT 1024u
#define FUNCTION_AT 2048u
#define SKIP_AT 4096u
#define ROW_BYTES (UINT64_C(1) << 24)
#define CALLER_BYTES 128u

void hfn_thread_row_entry(void);
int64_t hfn_thread_row_displacement(void);
void hfn_thread_row_first_call(void);
__thread uint8_t *hfn_thread_row __attribute__((tls_model("initial-exec")));

static uint8_t *page, *row;
static uint32_t slow_calls, callbacks;
static uint64_t last_user;
static int failures;

/* Change all general registers that AAPCS64 lets a function change.  The slow path is compiled for
 * general registers only. */
__attribute__((noinline)) static void clobber_general_registers(void)
{
    __asm__ volatile("mov x0, #-1\n mov x1, #-1\n mov x2, #-1\n mov x3, #-1\n mov x4, #-1\n"
                     "mov x5, #-1\n mov x6, #-1\n mov x7, #-1\n mov x8, #-1\n mov x9, #-1\n"
                     "mov x10, #-1\n mov x11, #-1\n mov x12, #-1\n mov x13, #-1\n mov x14, #-1\n"
                     "mov x15, #-1\n mov x16, #-1\n mov x17, #-1\n mov x18, #-1\n cmp x0, x0\n"
                     :
                     :
                     : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11",
                       "x12", "x13", "x14", "x15", "x16", "x17", "x18", "cc");
}

void hfn_thread_row_first_call(void)
{
    slow_calls++;
    hfn_thread_row = row;
    clobber_general_registers();
}

/* ---- The functions that the probes call. */

void hfn_counter_enter_entry(void);
void hfn_counter_exit_entry(void);
void hfn_time_enter_sampled_entry(void);

static uint64_t entered, exited; /* frames; 0: not called */
static uint64_t frame_slot, frame_return;

/* Uses general registers only, like the engine. */
__attribute__((noinline, target("general-regs-only"))) static void time_enter(uint64_t *frame)
{
    entered = (uint64_t)(uintptr_t)frame;
    frame_slot = frame[4];
    frame_return = frame[5];
    frame[0] = frame[1] = frame[2] = frame[3] = ~UINT64_C(0);
    clobber_general_registers();
}

void hfn_counter_enter(uint64_t *frame)
{
    time_enter(frame);
}

void hfn_time_enter_sampled(uint64_t *frame)
{
    time_enter(frame);
}

void hfn_tick_enter(uint64_t *frame)
{
    time_enter(frame);
}

void hfn_counter_exit(uint64_t *frame)
{
    exited = (uint64_t)(uintptr_t)frame;
    clobber_general_registers();
}

void hfn_tick_exit(uint64_t *frame)
{
    hfn_counter_exit(frame);
}

void hfn_time_exit_sampled(uint64_t *frame)
{
    hfn_counter_exit(frame);
}

static void callback(void *user)
{
    callbacks++;
    last_user = (uint64_t)(uintptr_t)user;
    __asm__ volatile("movi v0.16b, #255\n movi v1.16b, #255\n movi v2.16b, #255\n"
                     "movi v3.16b, #255\n movi v7.16b, #255\n movi v31.16b, #255\n"
                     :
                     :
                     : "v0", "v1", "v2", "v3", "v7", "v31");
    clobber_general_registers();
}

static void check(bool holds, const char *what, uint32_t flags, uint64_t slot)
{
    if (holds) {
        return;
    }
    failures++;
    printf("# does not hold: %s (flags %x, slot %llx)\n", what, (unsigned)flags,
           (unsigned long long)slot);
}

static void put_word(uint8_t *at, uint32_t word)
{
    memcpy(at, &word, sizeof word);
}

/* Write the stub, followed by code that copies x16 and x17 to x19 and x20 and returns. */
static void make_stub(const hfn_stub_request *request)
{
    uint8_t *stub = page + STUB_AT;
    uint32_t head = hfn_arm64_get_stub_shape(request->kind, request->flags)->head_bytes;

    mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE);
    memset(stub, 0, 256);
    hfn_arm64_emit_stub(stub, request);
    put_word(stub + head, 0xAA1003F3);     /* mov x19, x16 */
    put_word(stub + head + 4, 0xAA1103F4); /* mov x20, x17 */
    put_word(stub + head + 8, 0xD61F0380); /* br x28       */
    mprotect(page, PAGE_BYTES, PROT_READ | PROT_EXEC);
    __builtin___clear_cache((char *)page, (char *)page + PAGE_BYTES);
}

/* Write a hooked function: a landing pad and a branch to the stub.  The moved code stores sp and
 * x29 to x19 and x20, its first and last stack arguments to x21 and x22, and overwrites the
 * arguments. */
static void make_timed(const hfn_stub_request *request)
{
    const hfn_stub_shape *shape = hfn_arm64_get_stub_shape(request->kind, request->flags);
    uint8_t *body = page + STUB_AT + shape->head_bytes, *moved = body, *at = page + FUNCTION_AT;
    uint32_t words = request->flags >> HFN_STUB_ARGUMENTS_SHIFT;
    bool is_signed = request->flags & HFN_STUB_SIGNED;

    mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE);
    hfn_arm64_emit_stub(page + STUB_AT, request);
    put_word(moved, 0x910003F3);     /* mov x19, sp  */
    put_word(moved + 4, 0xAA1D03F4); /* mov x20, x29 */
    moved += 8;
    if (words > 0) {
        put_word(moved, 0xF94003F5);                          /* ldr x21, [sp]              */
        put_word(moved + 4, 0xF94003F6 | (words - 1) << 10);  /* ldr x22, [sp, #8 * last]   */
        put_word(moved + 8, 0xF90003FF);                      /* str xzr, [sp]              */
        put_word(moved + 12, 0xF90003FF | (words - 1) << 10); /* str xzr, [sp, #8 * last]   */
        moved += 16;
    }
    put_word(moved, is_signed ? 0xD50323BF : 0xD503201F); /* autiasp; nop */
    put_word(moved + 4, 0xD65F03C0);                      /* ret          */
    put_word(at, is_signed ? 0xD503233F : 0xD503245F);    /* paciasp; bti c */
    hfn_arm64_emit_patch(at + 4, body, (uint64_t)(uintptr_t)(at + 4),
                         (uint64_t)(uintptr_t)(page + STUB_AT + shape->entry_at));
    mprotect(page, PAGE_BYTES, PROT_READ | PROT_EXEC);
    __builtin___clear_cache((char *)page, (char *)page + PAGE_BYTES);
}

static void start_randomly(random_source *r, outcome *start)
{
    for (int i = 0; i < 31; i++) {
        start->state.x[i] = random_u64(r);
    }
    for (int i = 0; i < 8; i++) {
        start->state.q[i] = random_u64(r);
    }
    start->state.flags = (uint64_t)random_below(r, 16) << 28;
    start->state.x[28] = (uint64_t)(uintptr_t)cpu_leave;
    for (uint32_t i = 0; i < STACK_BYTES; i++) {
        start->stack[i] = (uint8_t)random_u64(r);
    }
    start->state.x[31] = (uint64_t)(uintptr_t)(run_stack + STACK_BYTES - CALLER_BYTES);
}

/* Is the caller's frame above `words` words of arguments unchanged? */
static bool is_caller_frame_kept(const outcome *a, const outcome *b, uint32_t words)
{
    uint32_t from = STACK_BYTES - CALLER_BYTES + 8 * words;

    return memcmp(a->stack + from, b->stack + from, STACK_BYTES - from) == 0;
}

static uint64_t get_argument(const outcome *start, uint32_t word)
{
    uint64_t value;

    memcpy(&value, start->stack + STACK_BYTES - CALLER_BYTES + 8 * word, sizeof value);
    return value;
}

static bool is_state_kept(const outcome *a, const outcome *b)
{
    for (int i = 0; i < 32; i++) {
        bool scratch = i == 16 || i == 17 || (i >= 19 && i <= 22);
        if (!scratch && a->state.x[i] != b->state.x[i]) {
            return false;
        }
    }
    return a->state.flags == b->state.flags &&
           memcmp(a->state.q, b->state.q, sizeof a->state.q) == 0;
}

static void run_count(random_source *r, uint32_t flags, uint64_t slot, bool has_row)
{
    static outcome start, end;
    hfn_stub_request request = { .kind = HFN_STUB_COUNT,
                                 .flags = flags | (slot >= 32768 ? HFN_STUB_FAR_SLOT : 0),
                                 .address = (uint64_t)(uintptr_t)(page + STUB_AT),
                                 .gate = (uint64_t)(uintptr_t)(page + GATE_AT),
                                 .row_displacement = (int32_t)hfn_thread_row_displacement(),
                                 .slot_displacement = (int32_t)slot };
    const hfn_stub_shape *shape = hfn_arm64_get_stub_shape(HFN_STUB_COUNT, request.flags);
    const void *entry = page + STUB_AT + shape->entry_at;
    uint64_t before = *(uint64_t *)(void *)(row + slot);
    uint32_t slow_before = slow_calls;

    make_stub(&request);
    start_randomly(r, &start);
    hfn_thread_row = has_row ? row : NULL;
    run_from(&start, entry, &end);
    check(*(uint64_t *)(void *)(row + slot) == before + 1, "counted once", flags, slot);
    check(slow_calls == slow_before + !has_row, "the slow path runs if there is no row", flags,
          slot);
    check(is_state_kept(&start, &end), "the state is kept", flags, slot);
    if (flags & HFN_STUB_FLAGS_LIVE) {
        check(end.state.x[19] == (uint64_t)(uintptr_t)entry, "x16 is kept", flags, slot);
    }
}

static void run_call(random_source *r)
{
    static outcome start, end;
    uint64_t user = random_u64(r);
    hfn_stub_request request = { .kind = HFN_STUB_CALL,
                                 .address = (uint64_t)(uintptr_t)(page + STUB_AT),
                                 .gate = (uint64_t)(uintptr_t)(page + CALL_GATE_AT),
                                 .callback = (uint64_t)(uintptr_t)callback,
                                 .user = user };
    uint32_t before = callbacks;

    make_stub(&request);
    start_randomly(r, &start);
    run_from(&start, page + STUB_AT, &end);
    check(callbacks == before + 1 && last_user == user, "called once with its argument", 0, 0);
    check(is_state_kept(&start, &end), "a call stub keeps the state", 0, 0);
}

/* What the filter saw, and what it decides. */
static uint64_t seen_arguments[9];
static int32_t decision;
static uint64_t result;

static int32_t filter(void *user, void *saved)
{
    for (uint32_t i = 0; i < 9; i++) {
        seen_arguments[i] = hfn_arm64_get_argument(saved, i);
    }
    if (!decision) {
        hfn_arm64_set_result(saved, result);
    }
    callback(user);
    return decision;
}

/* The entry of a function that signs its return address, then the stub. */
static void put_signed_entry(const hfn_stub_request *request)
{
    uint8_t *at = page + FUNCTION_AT;

    mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE);
    put_word(at, request->flags & HFN_STUB_SIGNED ? 0xD503233F : 0xD503245F); /* paciasp; bti c */
    hfn_arm64_emit_patch(at + 4, NULL, (uint64_t)(uintptr_t)(at + 4),
                         (uint64_t)(uintptr_t)(page + STUB_AT));
    mprotect(page, PAGE_BYTES, PROT_READ | PROT_EXEC);
    __builtin___clear_cache((char *)page, (char *)page + PAGE_BYTES);
}

static void run_filter(random_source *r, uint32_t flags, int32_t decides)
{
    static outcome start, end;
    hfn_stub_request request = { .kind = HFN_STUB_FILTER,
                                 .flags = flags,
                                 .address = (uint64_t)(uintptr_t)(page + STUB_AT),
                                 .gate = (uint64_t)(uintptr_t)(page + FILTER_GATE_AT),
                                 .callback = (uint64_t)(uintptr_t)filter,
                                 .user = random_u64(r) };
    bool arguments = true;

    decision = decides;
    result = random_u64(r);
    make_stub(&request);
    put_signed_entry(&request);
    start_randomly(r, &start);
    start.state.x[30] = (uint64_t)(uintptr_t)cpu_leave;
    run_from(&start, page + FUNCTION_AT, &end);
    for (uint32_t i = 0; i < 8; i++) {
        arguments = arguments && seen_arguments[i] == start.state.x[i];
    }
    check(arguments && seen_arguments[8] == get_argument(&start, 0), "a filter sees the arguments",
          flags, 0);
    check(last_user == request.user, "a filter gets its argument", flags, 0);
    if (!decides) {
        check(end.state.x[0] == result, "the caller gets the result", flags, 0);
        end.state.x[0] = start.state.x[0];
    }
    end.state.x[30] = start.state.x[30]; /* signed if the function runs */
    check(is_state_kept(&start, &end), "a filter stub keeps the state", flags, (uint64_t)decides);
}

/* How many originals, of functions that sign their return address and of others, signed it.  A
 * signature may be 0 by chance. */
static uint32_t signed_originals[2];

/* The replacement is reached with the return address of the caller. */
static void run_replace(random_source *r, uint32_t flags)
{
    static outcome start, end;
    hfn_stub_request request = { .kind = HFN_STUB_REPLACE,
                                 .flags = flags,
                                 .address = (uint64_t)(uintptr_t)(page + STUB_AT),
                                 .callback = (uint64_t)(uintptr_t)cpu_leave };

    make_stub(&request);
    put_signed_entry(&request);
    start_randomly(r, &start);
    start.state.x[30] &= UINT64_C(0xffffffffffff); /* an address that can be signed */
    run_from(&start, page + FUNCTION_AT, &end);
    check(is_state_kept(&start, &end), "a replacement starts with the caller's state", flags, 0);
    run_from(&start, page + STUB_AT + hfn_arm64_get_original_at(flags), &end);
    signed_originals[(flags & HFN_STUB_SIGNED) != 0] += end.state.x[30] != start.state.x[30];
    end.state.x[30] = start.state.x[30];
    check(is_state_kept(&start, &end), "the original starts with the caller's state", flags, 0);
}

static void run_time(random_source *r, hfn_stub_kind kind, uint32_t flags, uint64_t slot,
                     uint32_t skip)
{
    static outcome start, end;
    hfn_stub_request request = { .kind = kind,
                                 .flags = flags | (slot >= 32768 ? HFN_STUB_FAR_SLOT : 0),
                                 .address = (uint64_t)(uintptr_t)(page + STUB_AT),
                                 .gate = (uint64_t)(uintptr_t)(page + GATE_AT),
                                 .time_enter = (uint64_t)(uintptr_t)(page + ENTER_GATE_AT),
                                 .time_exit = (uint64_t)(uintptr_t)(page + EXIT_GATE_AT),
                                 .slot = (uint32_t)random_u64(r),
                                 .row_displacement = (int32_t)hfn_thread_row_displacement(),
                                 .slot_displacement = (int32_t)slot,
                                 .skip_displacement = (int32_t)(slot + SKIP_AT) };
    uint32_t *skips = (uint32_t *)(void *)(row + slot + SKIP_AT);
    uint64_t before = *(uint64_t *)(void *)(row + slot), sp;
    uint32_t words = flags >> HFN_STUB_ARGUMENTS_SHIFT, copied = 8 * ((words + 1) & ~1u);
    bool timed = kind == HFN_STUB_TIME || skip == 0;

    make_timed(&request);
    start_randomly(r, &start);
    start.state.x[30] = (uint64_t)(uintptr_t)cpu_leave;
    sp = start.state.x[31];
    entered = exited = 0;
    *skips = skip;
    hfn_thread_row = random_u64(r) & 1 ? row : NULL;
    run_from(&start, page + FUNCTION_AT, &end);
    check(*(uint64_t *)(void *)(row + slot) == before + 1, "a timed call counts once", flags, slot);
    check(is_state_kept(&start, &end), "a timed call keeps the state and returns", flags, slot);
    check(entered == (timed ? sp - 64 : 0) && exited == entered, "both probes receive its frame",
          flags, slot);
    check(end.state.x[19] == (timed ? sp - 64 - copied : sp), "the body runs below the frame",
          flags, slot);
    check(is_caller_frame_kept(&start, &end, timed ? 0 : words), "the caller's frame stays", flags,
          slot);
    check(words == 0 || (end.state.x[21] == get_argument(&start, 0) &&
                         end.state.x[22] == get_argument(&start, words - 1)),
          "the body receives its arguments", flags, slot);
    check(kind == HFN_STUB_TIME || timed || *skips == skip - 1, "a skipped call is counted down",
          flags, slot);
    if (!timed) {
        return;
    }
    check(end.state.x[20] == sp - 16, "x29 points to the frame record", flags, slot);
    check(frame_slot == request.slot, "the frame contains its slot", flags, slot);
    check(kind == HFN_STUB_TIME || frame_return == (uint64_t)(uintptr_t)cpu_leave,
          "a sample receives its caller's address without signature", flags, slot);
}

static void run_times(random_source *r, uint64_t slot)
{
    static void (*const enters[2])(void) = { hfn_counter_enter_entry,
                                             hfn_time_enter_sampled_entry };
    static const hfn_stub_kind kinds[2] = { HFN_STUB_TIME, HFN_STUB_SAMPLE };

    for (int i = 0; i < 2; i++) {
        mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE);
        hfn_arm64_emit_count_gate(page + ENTER_GATE_AT, (uint64_t)(uintptr_t)enters[i]);
        hfn_arm64_emit_count_gate(page + EXIT_GATE_AT, (uint64_t)(uintptr_t)hfn_counter_exit_entry);
        for (uint32_t flags = 0; flags <= HFN_STUB_SIGNED; flags += HFN_STUB_SIGNED) {
            for (uint32_t skip = 0; skip < 3; skip++) {
                for (uint32_t words = 0; words <= HFN_ARGUMENTS_MAX_64 / 8; words++) {
                    run_time(r, kinds[i], flags | words << HFN_STUB_ARGUMENTS_SHIFT, slot, skip);
                }
            }
        }
    }
}

int main(void)
{
    static const uint64_t slots[] = { 0, 8, 32760, 32768, 32776, 65528, 1000008, ROW_BYTES - 8 };
    random_source r = random_seed(1);
    uint8_t cfi[HFN_STUB_GATE_CFI_MAX];
    const uint32_t ret = 0xD65F03C0;

    page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    row = mmap(NULL, ROW_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || row == MAP_FAILED) {
        return 77;
    }
    hfn_arm64_emit_count_gate(page + GATE_AT, (uint64_t)(uintptr_t)hfn_thread_row_entry);
    uint32_t gate_bytes = hfn_arm64_emit_call_gate(page + CALL_GATE_AT, false);
    check(gate_bytes <= HFN_STUB_CALL_GATE_ROOM, "the call gate fits its room", 0, 0);
    gate_bytes = hfn_arm64_emit_call_gate(page + FILTER_GATE_AT, true);
    check(gate_bytes <= HFN_STUB_FILTER_GATE_ROOM, "the filter gate fits its room", 0, 0);
    check(memcmp(page + FILTER_GATE_AT + gate_bytes - 4, &ret, sizeof ret) == 0,
          "the filter gate is whole", 0, 0);
    check(hfn_arm64_write_call_gate_cfi(cfi, gate_bytes) <= sizeof cfi,
          "the rules of the call gate fit", 0, 0);
    check(hfn_arm64_get_stub_shape(HFN_STUB_COUNT, 0)->head_bytes == 4 * (2 + 6),
          "a count has six instructions", 0, 0);
    check(hfn_arm64_get_stub_shape(HFN_STUB_COUNT, HFN_STUB_FAR_SLOT)->head_bytes == 4 * (2 + 7),
          "a count beyond slot 4095 has seven", 0, 0);
    for (int round = 0; round < 200; round++) {
        for (uint32_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
            run_count(&r, round & 1 ? HFN_STUB_FLAGS_LIVE : 0, slots[i], round & 2);
        }
        run_call(&r);
        run_filter(&r, round & 1 ? HFN_STUB_SIGNED : 0, round & 2);
        run_replace(&r, round & 1 ? HFN_STUB_SIGNED : 0);
        run_times(&r, slots[(uint32_t)round % 7]);
    }
    check(signed_originals[0] == 0 && signed_originals[1] >= 80,
          "the original signs its return address", signed_originals[1], 0);
    printf("1..1\n%sok 1 stubs_change_only_what_their_kind_allows\n", failures ? "not " : "");
    return failures != 0;
}
