/* SPDX-License-Identifier: MIT */
/*
 * Property of i386 stubs.  Counting adds 1 to a 64-bit counter and changes no register, flag,
 * vector or byte of the stack, except that a stub with a scratch register changes it and may change
 * flags.  The slow path and the
 * call gate may run code that clobbers every register that a function may change.  A timed function
 * finds its registers, flags and arguments, may write and pop its arguments, and returns its
 * registers and flags; its caller's copy of the arguments stays unchanged.  Built separately with
 * -m32 and the assembly that stubs call.
 */
#include "arch/x86/emit_stub.h"
#include "counters/timing/alloc.h"
#include "counters/timing/counter_mode.h"
#include "counters/timing/sample_mode.h"
#include "counters/timing/tick_mode.h"
#include "random.h"

#include <hotfn/lowlevel/verdicts.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u
#define GATE_AT 0u
#define CALL_GATE_AT 64u
#define FILTER_GATE_AT 320u
#define TIME_GATES_AT 640u
#define STUB_AT 1024u
#define ROW_BYTES (1u << 24)
enum { EAX = 0, ESP = 4, FLAGS = 0x8d5, STACK_WORDS = 16384 };

/* The assembly below uses these offsets. */
typedef struct cpu_state {
    uint32_t registers[8]; /* by number */
    uint32_t flags;
    uint32_t code;
    uint32_t host_esp;
    uint32_t unused;
    uint32_t vector[4]; /* 48 */
} cpu_state;

cpu_state current_state;
void cpu_enter(void);
extern const uint8_t cpu_leave[];
__asm__(
    ".text\n"
    "cpu_enter:\n"
    "  pushal; pushfl; mov %esp, current_state+40\n"
    "  movups current_state+48, %xmm0; movups current_state+48, %xmm7\n"
    "  mov current_state+16, %esp; pushl current_state+32; popfl\n"
    "  mov current_state+0, %eax; mov current_state+4, %ecx; mov current_state+8, %edx; mov current_state+12, %ebx\n"
    "  mov current_state+20, %ebp; mov current_state+24, %esi; mov current_state+28, %edi\n"
    "  jmp *current_state+36\n"
    "cpu_leave:\n"
    "  mov %eax, current_state+0; mov %ecx, current_state+4; mov %edx, current_state+8; mov %ebx, current_state+12\n"
    "  mov %esp, current_state+16; mov %ebp, current_state+20; mov %esi, current_state+24; mov %edi, current_state+28\n"
    "  mov current_state+40, %esp; pushfl; popl current_state+32; movups %xmm7, current_state+48\n"
    "  popfl; popal; ret\n");

void hfn_thread_row_entry(void);
int64_t hfn_thread_row_displacement(void);
void hfn_thread_row_first_call(void);
__thread uint8_t *hfn_thread_row __attribute__((tls_model("initial-exec")));

static uint8_t *page, *row;
static uint32_t stack[STACK_WORDS];
static uint32_t slow_calls, callbacks, last_user;
static int failures;

/* Change all general registers that the psABI lets a function change.  The slow path is compiled
 * for general registers only. */
__attribute__((noinline)) static void clobber_general_registers(void)
{
    __asm__ volatile("movl $-1, %%eax; movl $-1, %%ecx; movl $-1, %%edx; cmpl %%eax, %%eax"
                     :
                     :
                     : "eax", "ecx", "edx", "cc");
}

void hfn_thread_row_first_call(void)
{
    slow_calls++;
    hfn_thread_row = row;
    clobber_general_registers();
}

static hfn_time_frame *entered, *exited;
static uint32_t enters, exits, given[2], returned;
hfn_time_engine hfn_time;

static void enter(hfn_time_frame *frame)
{
    entered = frame;
    enters++;
    frame->start = frame->call_word = frame->room = UINT64_MAX;
    frame->caller = frame->depth = UINT32_MAX;
    clobber_general_registers();
}

static void leave(hfn_time_frame *frame)
{
    exited = frame;
    exits++;
    clobber_general_registers();
}

void hfn_counter_enter(hfn_time_frame *frame)
{
    enter(frame);
}

void hfn_time_enter_sampled(hfn_time_frame *frame)
{
    enter(frame);
}

void hfn_tick_enter(hfn_time_frame *frame, uintptr_t first_argument)
{
    (void)first_argument;
    enter(frame);
}

void hfn_tick_exit(hfn_time_frame *frame, uintptr_t result)
{
    (void)result;
    leave(frame);
}

void hfn_counter_exit(hfn_time_frame *frame)
{
    leave(frame);
}

void hfn_time_exit_sampled(hfn_time_frame *frame)
{
    leave(frame);
}

void hfn_alloc_enter(hfn_time_frame *frame, uintptr_t first, uintptr_t second)
{
    given[0] = (uint32_t)first;
    given[1] = (uint32_t)second;
    enter(frame);
}

void hfn_alloc_exit(hfn_time_frame *frame, uintptr_t result)
{
    returned = (uint32_t)result;
    leave(frame);
}

static void callback(void *user)
{
    callbacks++;
    last_user = (uint32_t)(uintptr_t)user;
    __asm__ volatile("pcmpeqd %%xmm0, %%xmm0; pcmpeqd %%xmm7, %%xmm7; fldz; fstp %%st"
                     :
                     :
                     : "xmm0", "xmm7");
    clobber_general_registers();
}

static void check(bool holds, const char *what, uint32_t flags, uint32_t slot)
{
    if (holds) {
        return;
    }
    failures++;
    printf("# violated: %s (flags %x, slot %x)\n", what, (unsigned)flags, (unsigned)slot);
}

/* Write the stub, followed by a jump to cpu_leave. */
static void make_stub(const hfn_stub_request *request)
{
    uint8_t *stub = page + STUB_AT;
    uint32_t head = hfn_x86_32_get_stub_shape(request->kind, request->flags).head_bytes;
    uint32_t distance = (uint32_t)cpu_leave - (uint32_t)(uintptr_t)(stub + head + 5);

    memset(stub, 0xcc, 256);
    hfn_x86_32_emit_stub(stub, request);
    stub[head] = 0xe9;
    memcpy(stub + head + 1, &distance, sizeof distance);
}

static cpu_state start_randomly(random_source *r)
{
    cpu_state start = { .flags = 0x202 | (random_below(r, UINT32_MAX) & FLAGS) };

    for (int i = 0; i < 8; i++) {
        start.registers[i] = random_below(r, UINT32_MAX);
    }
    for (int i = 0; i < 4; i++) {
        start.vector[i] = random_below(r, UINT32_MAX);
    }
    for (uint32_t i = 0; i < STACK_WORDS; i++) {
        stack[i] = i;
    }
    start.registers[ESP] = (uint32_t)&stack[STACK_WORDS / 2 + random_below(r, 4)];
    return start;
}

/* scratch: the number of a register that may change, 8 for none; flags: they must not change. */
static bool is_state_kept(const cpu_state *a, const cpu_state *b, uint32_t scratch, bool flags)
{
    for (uint32_t i = 0; i < 8; i++) {
        if (i != scratch && a->registers[i] != b->registers[i]) {
            return false;
        }
    }
    for (uint32_t i = STACK_WORDS / 2; i < STACK_WORDS; i++) {
        if (stack[i] != i && &stack[i] >= (uint32_t *)(uintptr_t)a->registers[ESP]) {
            return false;
        }
    }
    return (!flags || ((a->flags ^ b->flags) & FLAGS) == 0) &&
           memcmp(a->vector, b->vector, sizeof a->vector) == 0;
}

static void run_count(random_source *r, uint32_t flags, uint32_t slot, bool has_row)
{
    hfn_stub_request request = { .kind = HFN_STUB_COUNT,
                                 .flags = flags,
                                 .address = (uintptr_t)(page + STUB_AT),
                                 .gate = (uintptr_t)(page + GATE_AT),
                                 .row_displacement = (int32_t)hfn_thread_row_displacement(),
                                 .slot_displacement = (int32_t)slot };
    const hfn_stub_shape shape = hfn_x86_32_get_stub_shape(HFN_STUB_COUNT, flags);
    uint64_t before = random_u64(r), after;
    uint32_t slow_before = slow_calls;
    cpu_state start = start_randomly(r);

    if (random_below(r, 2)) {
        before |= UINT32_MAX; /* the low word wraps */
    }
    memcpy(row + slot, &before, sizeof before);
    make_stub(&request);
    start.code = (uint32_t)(uintptr_t)(page + STUB_AT + shape.entry_at);
    hfn_thread_row = has_row ? row : NULL;
    current_state = start;
    cpu_enter();
    memcpy(&after, row + slot, sizeof after);
    check(after == before + 1, "counted once, in 64 bits", flags, slot);
    check(slow_calls == slow_before + !has_row, "the slow path runs if there is no row", flags,
          slot);
    check(is_state_kept(&start, &current_state, (flags >> HFN_STUB_SCRATCH_SHIFT) - 1,
                        flags & HFN_STUB_FLAGS_LIVE),
          "the state is kept", flags, slot);
}

static void run_call(random_source *r)
{
    uint32_t user = random_below(r, UINT32_MAX), before = callbacks;
    hfn_stub_request request = { .kind = HFN_STUB_CALL,
                                 .address = (uintptr_t)(page + STUB_AT),
                                 .gate = (uintptr_t)(page + CALL_GATE_AT),
                                 .callback = (uintptr_t)callback,
                                 .user = user };
    cpu_state start = start_randomly(r);

    make_stub(&request);
    start.code = (uint32_t)(uintptr_t)(page + STUB_AT);
    current_state = start;
    cpu_enter();
    check(callbacks == before + 1 && last_user == user, "called once with its argument", 0, 0);
    check(is_state_kept(&start, &current_state, 8, true), "a call stub keeps the state", 0, 0);
}

/* The argument that the filter received, the result that it sets, and its decision. */
static uint32_t seen_argument, result;
static int32_t decision;

static int32_t filter(void *user, void *saved)
{
    seen_argument = (uint32_t)hfn_x86_32_get_argument(saved, 1);
    if (!decision) {
        hfn_x86_32_set_result(saved, result);
    }
    callback(user);
    return decision;
}

static void run_filter(random_source *r, int32_t decides)
{
    uint32_t user = random_below(r, UINT32_MAX), *top;
    hfn_stub_request request = { .kind = HFN_STUB_FILTER,
                                 .address = (uintptr_t)(page + STUB_AT),
                                 .gate = (uintptr_t)(page + FILTER_GATE_AT),
                                 .callback = (uintptr_t)filter,
                                 .user = user };
    cpu_state start = start_randomly(r);

    decision = decides;
    result = random_below(r, UINT32_MAX);
    make_stub(&request);
    start.code = (uint32_t)(uintptr_t)(page + STUB_AT);
    top = (uint32_t *)(uintptr_t)start.registers[ESP];
    if (!decides) {
        *top = (uint32_t)(uintptr_t)cpu_leave; /* the caller's return address */
    }
    current_state = start;
    cpu_enter();
    check(seen_argument == top[2] && last_user == user, "a filter sees its arguments", 0, 0);
    if (!decides) {
        check(current_state.registers[EAX] == result, "the caller gets the result", 0, 0);
        check(current_state.registers[ESP] == start.registers[ESP] + 4, "the call returned", 0, 0);
        current_state.registers[EAX] = start.registers[EAX];
        current_state.registers[ESP] = start.registers[ESP];
        *top = (uint32_t)(top - stack);
    }
    check(is_state_kept(&start, &current_state, 8, true), "a filter stub keeps the state", 0, 0);
}

static void run_replace(random_source *r)
{
    hfn_stub_request request = { .kind = HFN_STUB_REPLACE,
                                 .address = (uintptr_t)(page + STUB_AT),
                                 .callback = (uintptr_t)cpu_leave };
    cpu_state start = start_randomly(r);

    make_stub(&request);
    start.code = (uint32_t)(uintptr_t)(page + STUB_AT);
    current_state = start;
    cpu_enter();
    check(is_state_kept(&start, &current_state, 8, true), "a replacement has the caller's state", 0,
          0);
}

/* The body records registers, flags and n words on the stack, adds 1 to each word, inverts CF,
 * and pops some of the words. */
enum { MAX_WORDS = 31, MARK = 0x5a5a0000 };
static struct {
    uint32_t registers[8], flags, words[MAX_WORDS + 1];
} found;

static uint8_t *put_body(uint8_t *at, uint32_t words, uint32_t popped)
{
    static const uint8_t keep_all[] = { 0x9c, 0x60 };   /* pushfd; pushad               */
    static const uint8_t done[] = { 0x61, 0x9d, 0xf5 }; /* popad; popfd; cmc            */
    uint32_t address = (uint32_t)(uintptr_t)found.registers;

    memcpy(at, keep_all, 2), at += 2;
    for (uint32_t i = 0; i < 9; i++) { /* pushad: eax is the highest, the flags are above it */
        memcpy(at, (const uint8_t[]){ 0x8b, 0x44, 0x24, (uint8_t)(i < 8 ? 28 - 4 * i : 32) }, 4);
        at += 4;
        *at++ = 0xa3; /* mov [found], eax */
        memcpy(at, (const uint32_t[]){ address + 4 * i }, 4), at += 4;
    }
    for (uint32_t i = 0; i < words; i++) {
        memcpy(at, (const uint8_t[]){ 0x8b, 0x84, 0x24 }, 3); /* mov eax, [esp + d]  */
        memcpy(at + 3, (const uint32_t[]){ 40 + 4 * i }, 4);
        at[7] = 0xa3; /* mov [found], eax */
        memcpy(at + 8, (const uint32_t[]){ address + 4 * (9 + i) }, 4);
        memcpy(at + 12, (const uint8_t[]){ 0x40, 0x89, 0x84, 0x24 },
               4); /* inc eax; mov [esp + d], eax */
        memcpy(at + 16, (const uint32_t[]){ 40 + 4 * i }, 4);
        at += 20;
    }
    memcpy(at, done, 3), at += 3;
    memcpy(at, (const uint8_t[]){ 0xc2, (uint8_t)(4 * popped), 0 }, 3);
    return at + 3;
}

static void run_timed(random_source *r, hfn_stub_kind kind, uint32_t words, uint32_t pops,
                      uint32_t scratch, bool is_sampled)
{
    uint32_t popped = pops == HOTFN_POPS_ALL ? words : pops, slot = random_below(r, 1 << 24);
    uint32_t stored = random_below(r, 256) & ((1u << words) - 1) & ~((1u << popped) - 1);
    hfn_stub_request request = { .kind = kind,
                                 .flags = scratch << HFN_STUB_SCRATCH_SHIFT |
                                          (words | pops << 5) << HFN_STUB_ARGUMENTS_SHIFT |
                                          stored << HFN_STUB_STORED_SHIFT,
                                 .address = (uintptr_t)(page + STUB_AT),
                                 .gate = (uintptr_t)(page + GATE_AT),
                                 .row_displacement = (int32_t)hfn_thread_row_displacement(),
                                 .slot_displacement = 64,
                                 .skip_displacement = 128,
                                 .time_enter = (uintptr_t)(page + TIME_GATES_AT),
                                 .time_exit = (uintptr_t)(page + TIME_GATES_AT) + 16,
                                 .slot = slot };
    hfn_stub_shape shape = hfn_x86_32_get_stub_shape(kind, request.flags);
    cpu_state start = start_randomly(r);
    uint32_t *top = &stack[STACK_WORDS / 2 + random_below(r, 4)], skip = is_sampled ? 0 : 7;
    bool timed = kind == HFN_STUB_TIME || is_sampled;
    uint64_t before = random_u64(r), after;

    for (uint32_t i = 0; i <= words + 4; i++) {
        top[i] = MARK + i;
    }
    top[0] = (uint32_t)(uintptr_t)cpu_leave;
    memset(page + STUB_AT, 0xcc, PAGE_BYTES - STUB_AT);
    hfn_x86_32_emit_stub(page + STUB_AT, &request);
    put_body(page + STUB_AT + shape.head_bytes, words, popped);
    memcpy(row + 64, &before, sizeof before);
    memcpy(row + 128, &skip, sizeof skip);
    hfn_thread_row = random_below(r, 2) ? row : NULL;
    enters = exits = 0;
    given[0] = MARK + 1, given[1] = MARK + 2, returned = start.registers[EAX];
    start.registers[ESP] = (uint32_t)(uintptr_t)top;
    start.code = (uint32_t)(uintptr_t)(page + STUB_AT + shape.entry_at);
    current_state = start;
    cpu_enter();
    memcpy(&after, row + 64, sizeof after);
    check(after == before + 1, "a timed call is counted", request.flags, kind);
    check(enters == timed && exits == timed, "entered and exited once if timed", request.flags,
          kind);
    check(!timed || (entered == exited && (uint32_t)entered->slot == slot &&
                     (const void *)(entered + 1) == top),
          "one frame, below the return address", request.flags, kind);
    check((words < 1 || given[0] == MARK + 1) && (words < 2 || given[1] == MARK + 2) &&
              (scratch == EAX + 1 || returned == start.registers[EAX]),
          "allocation probes get arguments and result", request.flags, kind);
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t number = i; /* in the order of pushad */
        check(number == ESP || number + 1 == scratch ||
                  (found.registers[i] == start.registers[number] &&
                   current_state.registers[number] == start.registers[number]),
              "registers are passed in and out", request.flags, number);
    }
    check((found.registers[ESP] + 4 - (uint32_t)(uintptr_t)top) % 16 == 0,
          "aligned as at the entry", request.flags, kind);
    check(scratch != 0 || ((found.flags ^ current_state.flags) & FLAGS) == 1,
          "flags are passed out", request.flags, 0);
    for (uint32_t i = 0; i < words; i++) {
        check(found.words[i] == MARK + 1 + i, "the arguments are passed", request.flags, i);
    }
    for (uint32_t i = 1; timed && i <= words + 4; i++) {
        check(top[i] == MARK + i + (i <= HFN_STORED_ARGUMENTS_MAX && (stored >> (i - 1) & 1)),
              "the caller sees stored arguments, the others are kept", request.flags, i);
    }
    check(current_state.registers[ESP] == (uint32_t)(uintptr_t)(top + 1 + popped),
          "the return pops its arguments", request.flags, popped);
}

static void run_all_timed(random_source *r)
{
    for (uint32_t words = 0; words <= MAX_WORDS; words++) {
        for (uint32_t pops = 0; pops <= HOTFN_POPS_ALL; pops++) {
            for (uint32_t scratch = 0; scratch <= 3; scratch++) {
                if (pops == HOTFN_POPS_ONE && words == 0) {
                    continue;
                }
                run_timed(r, HFN_STUB_TIME, words, pops, scratch, false);
                run_timed(r, HFN_STUB_SAMPLE, words, pops, scratch, false);
                run_timed(r, HFN_STUB_SAMPLE, words, pops, scratch, true);
            }
        }
    }
}

int main(void)
{
    static const uint32_t slots[] = { 0, 8, 120, 128, 65536, ROW_BYTES - 8 };
    static const uint32_t kinds[] = { 0,
                                      HFN_STUB_FLAGS_LIVE,
                                      HFN_STUB_RED_ZONE,
                                      1 << HFN_STUB_SCRATCH_SHIFT,
                                      2 << HFN_STUB_SCRATCH_SHIFT,
                                      3 << HFN_STUB_SCRATCH_SHIFT,
                                      7 << HFN_STUB_SCRATCH_SHIFT,
                                      8 << HFN_STUB_SCRATCH_SHIFT };
    random_source r = random_seed(1);
    hfn_x86_vector_state vector = hfn_x86_get_host_vector_state();
    uint8_t cfi[HFN_STUB_GATE_CFI_MAX];

    page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
    row = mmap(NULL, ROW_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || row == MAP_FAILED) {
        return 77;
    }
    hfn_x86_32_emit_count_gate(page + GATE_AT, (uintptr_t)hfn_thread_row_entry);
    for (int round = 0; round < 10; round++) {
        hfn_x86_emit_patch(
            page + TIME_GATES_AT, NULL, (uintptr_t)page + TIME_GATES_AT,
            (uintptr_t)(round & 1 ? hfn_alloc_enter_entry : hfn_counter_enter_entry));
        hfn_x86_emit_patch(page + TIME_GATES_AT + 16, NULL, (uintptr_t)page + TIME_GATES_AT + 16,
                           (uintptr_t)(round & 1 ? hfn_alloc_exit_entry : hfn_counter_exit_entry));
        run_all_timed(&r);
    }
    for (int round = 0; round < 300; round++) {
        hfn_x86_vector_state state = vector;
        state.method = (uint32_t)round % 3 <= vector.method ? (uint32_t)round % 3 : vector.method;
        uint32_t gate_bytes = hfn_x86_32_emit_call_gate(page + CALL_GATE_AT, &state, false);
        check(gate_bytes <= HFN_STUB_CALL_GATE_ROOM, "the call gate has room", 0, 0);
        check(hfn_x86_32_write_call_gate_cfi(cfi, gate_bytes) <= sizeof cfi, "its rules have room",
              0, 0);
        for (uint32_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
            for (uint32_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
                run_count(&r, kinds[k], slots[i], round & 1);
            }
        }
        run_call(&r);
        hfn_x86_32_emit_call_gate(page + FILTER_GATE_AT, &state, true);
        run_filter(&r, round & 1);
        run_replace(&r);
    }
    printf("1..1\n%sok 1 stubs_change_only_what_their_kind_allows\n", failures ? "not " : "");
    return failures != 0;
}
