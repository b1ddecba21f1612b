/* SPDX-License-Identifier: MIT */
/*
 * The property of relocate_test.c for 32-bit code: moved code has the same effect as the original.
 * A 64-bit process runs it in a 32-bit code segment, so the decoder need not be built for i386.
 * All memory that the code accesses is at fixed addresses below 4 GiB.  Arguments: seed, number of
 * sequences.
 */
#include "arch/arch.h"
#include "random.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__x86_64__)
int main(void)
{
    return 77; /* needs this CPU */
}
#else

#include <sys/mman.h>
#include <unistd.h>

#define STATE 0x10000000u
#define SWITCH 0x10001000u /* code that switches modes */
#define DATA 0x10002000u   /* ebx: its middle */
#define STACK 0x10003000u
#define CODE 0x20000000u
#define NEAR 0x20010000u
#define FAR 0xb0000000u /* beyond 2 GiB: distances wrap around */
#define PAGE 4096u
#define TAIL 24u /* nops after a sequence, so that every patch fits */
enum { INSTRUCTIONS_MAX = 12, FLAGS = 0xcd5 };

/* The state before and after the code.  The assembly below uses these offsets. */
typedef struct cpu_state {
    uint32_t registers[8]; /* by number; [3] is ebx, [4] esp */
    uint32_t flags;
    uint32_t code;
    uint64_t host_stack; /* 40 */
    uint64_t back;       /* 48 */
    uint32_t enter;      /* 56: a far pointer */
    uint16_t segment;
} cpu_state;

void cpu_enter(void);
extern const uint8_t mode_switch[], cpu_leave[], mode_switch_end[];

__asm__(".text\n"
        "cpu_enter:\n"
        "  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; pushfq\n"
        "  mov %rsp, 0x10000028\n"
        "  mov $0x2b, %eax; mov %eax, %ds; mov %eax, %es\n"
        "  lea return_to_host(%rip), %rax; mov %rax, 0x10000030\n"
        "  ljmpl *0x10000038\n"
        "return_to_host:\n"
        "  popfq; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "  ret\n"
        ".code32\n"
        "mode_switch:\n"
        "  mov $0x10000800, %esp; pushl 0x10000020; popfl\n"
        "  mov 0x10000000, %eax; mov 0x10000004, %ecx; mov 0x10000008, %edx; mov 0x1000000c, %ebx\n"
        "  mov 0x10000010, %esp; mov 0x10000014, %ebp; mov 0x10000018, %esi; mov 0x1000001c, %edi\n"
        "  jmp *0x10000024\n"
        "cpu_leave:\n"
        "  mov %eax, 0x10000000; mov %ecx, 0x10000004; mov %edx, 0x10000008; mov %ebx, 0x1000000c\n"
        "  mov %esp, 0x10000010; mov %ebp, 0x10000014; mov %esi, 0x10000018; mov %edi, 0x1000001c\n"
        "  mov $0x10000800, %esp; pushfl; popl 0x10000020\n"
        "  ljmp $0x33, $(0x10001000 + wide_code - mode_switch)\n"
        ".code64\n"
        "wide_code:\n"
        "  mov 0x10000028, %rsp\n"
        "  jmp *0x10000030\n"
        "mode_switch_end:\n");

static uint8_t *at_address(uint32_t address)
{
    return (uint8_t *)(uintptr_t)address;
}

static bool map_at(uint32_t address, uint32_t bytes)
{
    return mmap(at_address(address), bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at_address(address);
}

static bool make_stage(void)
{
    if (!map_at(STATE, 4 * PAGE) || !map_at(CODE, PAGE) || !map_at(NEAR, PAGE) ||
        !map_at(FAR, PAGE)) {
        return false;
    }
    memcpy(at_address(SWITCH), mode_switch, (size_t)(mode_switch_end - mode_switch));
    return true;
}

/* ---- A random sequence. */

typedef struct sequence {
    uint8_t bytes[128];
    uint32_t size, count;
    uint32_t starts[INSTRUCTIONS_MAX + 1];
    struct {
        uint32_t at, bytes, from;
    } branches[INSTRUCTIONS_MAX];
    uint32_t branch_count;
} sequence;

static void put_value(sequence *s, uint32_t value, uint32_t byte_count)
{
    memcpy(s->bytes + s->size, &value, byte_count);
    s->size += byte_count;
}

/* Any register except ebx, which points to data, and esp. */
static uint32_t any_register(random_source *r)
{
    static const uint8_t allowed[] = { 0, 1, 2, 5, 6, 7 };

    return allowed[random_below(r, sizeof allowed)];
}

static void put_branch(sequence *s, random_source *r)
{
    uint32_t kind = random_below(r, 4), bytes = kind == 1 || kind == 2 ? 4 : 1;

    if (kind == 0) {
        put_value(s, 0x70 + random_below(r, 16), 1); /* jcc rel8 */
    } else if (kind == 1) {
        put_value(s, 0x800f + (random_below(r, 16) << 8), 2); /* jcc rel32 */
    } else if (kind == 2) {
        put_value(s, 0xe9, 1);
    } else {
        put_value(s, random_below(r, 2) ? 0xe3 : 0xe0 + random_below(r, 3), 1); /* jecxz, loop */
    }
    s->branches[s->branch_count].at = s->size;
    s->branches[s->branch_count].from = s->count;
    s->branches[s->branch_count++].bytes = bytes;
    put_value(s, 0, bytes);
}

static void put_memory(sequence *s, random_source *r, uint32_t opcode)
{
    uint32_t reg = any_register(r), displacement = random_below(r, 200) - 100;

    put_value(s, opcode, 1);
    if (random_below(r, 3) == 0) { /* an absolute address */
        put_value(s, 0x05 | reg << 3, 1);
        put_value(s, DATA + PAGE / 2 + displacement, 4);
    } else {
        put_value(s, 0x43 | reg << 3, 1);
        put_value(s, displacement, 1);
    }
}

static void put_other(sequence *s, random_source *r)
{
    static const uint8_t gap[] = { 0x8d, 0xb4, 0x26, 0, 0, 0, 0 };
    uint32_t reg = any_register(r);

    switch (random_below(r, 8)) {
    case 0:
        put_value(s, 0xb8 | reg, 1);
        put_value(s, random_below(r, UINT32_MAX), 4);
        break;
    case 1: put_value(s, 0x40 | reg | random_below(r, 2) << 3, 1); break; /* inc, dec */
    case 2: put_value(s, 0x50 | reg, 1); break;
    case 3: put_value(s, 0x58 | reg, 1); break;
    case 4: /* add, sub esp, 4 to 28 */
        put_value(s, random_below(r, 2) ? 0xc483 : 0xec83, 2);
        put_value(s, 4 * (1 + random_below(r, 7)), 1);
        break;
    case 5: /* lea reg, [a + b*s + d] */
        put_value(s, 0x448d | reg << 11, 2);
        put_value(s, any_register(r) | any_register(r) << 3 | random_below(r, 4) << 6, 1);
        put_value(s, random_below(r, 256), 1);
        break;
    case 6:
        memcpy(s->bytes + s->size, gap, sizeof gap);
        s->size += sizeof gap;
        break;
    default:
        put_value(s,
                  0xc0900f | random_below(r, 16) << 8 | (random_below(r, 8) & ~3u) << 16 |
                      random_below(r, 3) << 16,
                  3);
        break; /* setcc */
    }
}

static void put_instruction(sequence *s, random_source *r)
{
    uint32_t operation = random_below(r, 8) << 3;

    s->starts[s->count] = s->size;
    switch (random_below(r, 6)) {
    case 0: put_branch(s, r); break;
    case 1: put_memory(s, r, operation | (random_below(r, 2) ? 1 : 3)); break; /* add .. cmp */
    case 2: put_memory(s, r, random_below(r, 2) ? 0x89 : 0x8b); break;
    case 3: /* the same with registers */
        put_value(s, operation | 1, 1);
        put_value(s, 0xc0 | any_register(r) << 3 | any_register(r), 1);
        break;
    default: put_other(s, r); break;
    }
    s->count++;
}

static void make_sequence(sequence *s, random_source *r)
{
    uint32_t count = 2 + random_below(r, INSTRUCTIONS_MAX - 1);

    memset(s, 0, sizeof *s);
    while (s->count < count) {
        put_instruction(s, r);
    }
    s->starts[s->count] = s->size;
    for (uint32_t i = 0; i < s->branch_count; i++) { /* forward, so that the sequence ends */
        uint32_t from = s->branches[i].from + 1, end = s->branches[i].at + s->branches[i].bytes;
        uint32_t to = s->starts[from + random_below(r, s->count - from + 1)] - end;
        memcpy(s->bytes + s->branches[i].at, &to, s->branches[i].bytes);
    }
}

/* ---- Running it. */

typedef struct outcome {
    cpu_state state;
    uint8_t data[2 * PAGE]; /* and the stack */
} outcome;

static void put_jump(uint32_t at, uint32_t target)
{
    uint32_t distance = target - (at + 5);

    *at_address(at) = 0xe9;
    memcpy(at_address(at + 1), &distance, sizeof distance);
}

static void run_from(const outcome *before, outcome *after)
{
    memcpy(at_address(STATE), &before->state, sizeof before->state);
    memcpy(at_address(DATA), before->data, sizeof before->data);
    cpu_enter();
    memcpy(&after->state, at_address(STATE), sizeof after->state);
    memcpy(after->data, at_address(DATA), sizeof after->data);
}

static void start_randomly(random_source *r, outcome *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < 8; i++) {
        out->state.registers[i] =
            random_below(r, 3) ? random_below(r, UINT32_MAX) : random_below(r, 3);
    }
    out->state.registers[3] = DATA + PAGE / 2;
    out->state.registers[4] = STACK + PAGE / 2;
    out->state.flags = random_below(r, UINT32_MAX) & (FLAGS & ~0x400u);
    out->state.code = CODE;
    out->state.enter = SWITCH;
    out->state.segment = 0x23;
    for (uint32_t i = 0; i < sizeof out->data; i += 4) {
        memcpy(out->data + i, &(uint32_t){ random_below(r, UINT32_MAX) }, 4);
    }
}

static bool is_same_outcome(const outcome *a, const outcome *b)
{
    return memcmp(a->state.registers, b->state.registers, sizeof a->state.registers) == 0 &&
           ((a->state.flags ^ b->state.flags) & FLAGS) == 0 &&
           memcmp(a->data, b->data, sizeof a->data) == 0;
}

/* 1: compared and equal, 0: refused, -1: failed. */
static int check_one(uint64_t seed, uint64_t round)
{
    random_source r = random_seed(seed * 1000003 + round);
    static outcome before, in_place, moved_run;
    uint32_t stub = random_below(&r, 2) ? NEAR : FAR, offset = 0, patch_bytes = 5;
    hfn_moved moved;
    sequence s;
    bool reaches = true;

    make_sequence(&s, &r);
    start_randomly(&r, &before);
    memset(at_address(CODE), 0x90, sizeof s.bytes + TAIL + 5);
    memcpy(at_address(CODE), s.bytes, s.size);
    put_jump(CODE + s.size + TAIL, SWITCH + (uint32_t)(cpu_leave - mode_switch));
    patch_bytes += random_below(&r, 6);
    hfn_move_result result = hfn_arch_x86.move(at_address(CODE), PAGE, CODE, patch_bytes,
                                               HFN_NO_REGISTER, &moved, &offset);
    if (result == HFN_MOVE_TOO_LONG) {
        return 0;
    }
    run_from(&before, &in_place);
    for (uint32_t i = 0; result == HFN_MOVED && i < moved.fixup_count; i++) {
        reaches &= hfn_patching_x86.fix_up(moved.bytes, stub, moved.fixups[i].at,
                                           moved.fixups[i].end, moved.fixups[i].target_rva);
    }
    if (result == HFN_MOVED) {
        memcpy(at_address(stub), moved.bytes, moved.length);
        memset(at_address(CODE), 0xcc, patch_bytes);
        put_jump(CODE, stub);
        run_from(&before, &moved_run);
        if (reaches && is_same_outcome(&in_place, &moved_run)) {
            return 1;
        }
    }
    printf("# seed %" PRIu64 " round %" PRIu64 " patch %u, move returned %d:", seed, round,
           patch_bytes, (int)result);
    for (uint32_t i = 0; i < s.size; i++) {
        printf(" %02x", s.bytes[i]);
    }
    printf("\n");
    return -1;
}

int main(int argc, char **argv)
{
    random_run run = random_parse_run(argc, argv, 50000);
    uint64_t compared = 0, failed = 0;

    if (!make_stage()) {
        return 77; /* these addresses cannot be writable and executable */
    }
    printf("1..1\n");
    for (uint64_t round = 0; round < run.count && failed < 5; round++) {
        int result = check_one(run.seed, round);
        compared += result == 1;
        failed += result < 0;
    }
    printf("# %" PRIu64 " compared\n", compared);
    failed += compared < run.count / 2;
    printf("%sok 1 moved_32_bit_code_computes_what_the_original_did\n", failed ? "not " : "");
    return failed ? 1 : 0;
}
#endif
