/* SPDX-License-Identifier: MIT */
/* Property of the abstract domain for the stack (arch/stack_value.h): a function that is followed
 * to its return without an objection accesses nothing at or above its return address but the
 * argument bytes that were reported, and does not write those. Functions are random and copy,
 * spill, compute and index stack addresses in many ways, on paths that part and join; functions
 * that need evidence of an object are omitted. Each accepted
 * function runs in single steps, and the address of every access is computed from the real
 * registers. Arguments: seed, number of functions. */
#include "cpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#if !defined(__x86_64__)
int main(void)
{
    return 77; /* needs this CPU */
}
#else

#include "arch/x86/decode.h"

#include <ucontext.h>

enum { RAX = 0, RBX = 3, RSP = 4, RBP = 5, FRAME = 0x40, STEPS_MAX = 12, TRAP_FLAG = 0x100 };

/* ---- A random function. */

typedef struct function {
    uint8_t bytes[512];
    uint32_t size;
    uint32_t pushed;  /* words below the frame */
    uint32_t derived; /* registers that probably hold a stack address */
    uint32_t numbers; /* registers that probably hold a small number */
    uint32_t joins;   /* conditional jumps over one step */
    struct {
        uint32_t from, to; /* offsets of the next instruction and of the target */
    } join[STEPS_MAX];
} function;

static void put(function *f, uint32_t value)
{
    f->bytes[f->size++] = (uint8_t)value;
}

static void put_i32(function *f, int32_t value)
{
    memcpy(f->bytes + f->size, &value, 4);
    f->size += 4;
}

/* Any register but rsp and rbx, which points to data. */
static uint32_t any_register(random_source *r)
{
    static const uint8_t numbers[] = { 0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

    return numbers[random_below(r, sizeof numbers)];
}

static uint32_t pick_register(uint32_t mask, random_source *r)
{
    for (int i = 0; i < 8; i++) {
        uint32_t reg = any_register(r);
        if (mask >> reg & 1) {
            return reg;
        }
    }
    return any_register(r);
}

static uint32_t derived_register(const function *f, random_source *r)
{
    return pick_register(f->derived, r);
}

/* [0F] opcode reg, rm: both whole registers */
static void put_registers(function *f, uint32_t prefix, uint32_t opcode, uint32_t reg, uint32_t rm)
{
    if (prefix == 0x66) {
        put(f, 0x66);
    }
    put(f, 0x48 | (reg & 8) >> 1 | (rm & 8) >> 3);
    if (prefix) {
        put(f, 0x0F);
    }
    put(f, opcode);
    put(f, 0xC0 | (reg & 7) << 3 | (rm & 7));
}

/* opcode reg, [base + distance] */
static void put_memory(function *f, uint32_t opcode, uint32_t reg, uint32_t base, int32_t distance)
{
    put(f, 0x48 | (reg & 8) >> 1 | (base & 8) >> 3);
    put(f, opcode);
    put(f, 0x80 | (reg & 7) << 3 | (base & 7));
    if ((base & 7) == 4) {
        put(f, 0x24);
    }
    put_i32(f, distance);
}

/* movups xmm, [rsp + distance] or the store */
static void put_vector(function *f, uint32_t opcode, uint32_t xmm, int32_t distance)
{
    put(f, 0x0F);
    put(f, opcode);
    put(f, 0x84 | xmm << 3);
    put(f, 0x24);
    put_i32(f, distance);
}

/* A distance from rsp to a word of the frame or of the red zone. */
static int32_t own_place(const function *f, random_source *r)
{
    return 8 * (int32_t)random_below(r, FRAME / 8 + f->pushed + 8) - 64;
}

static void put_computation(function *f, random_source *r, uint32_t reg)
{
    static const uint8_t unary[] = { 0xD0, 0xD8 }; /* F7 /2 not, /3 neg */
    static const uint8_t binary[] = { 0x01, 0x29, 0x31, 0x09, 0x21, 0x85, 0x39 };
    static const uint8_t constant[] = { 0xC0, 0xC8, 0xE0, 0xE8, 0xF0 }; /* 83: add or and sub xor */

    switch (random_below(r, 6)) {
    case 0:
        put(f, 0x48 | (reg & 8) >> 3), put(f, 0xF7);
        put(f, unary[random_below(r, 2)] | (reg & 7));
        break;
    case 1:
        put_registers(f, 0, binary[random_below(r, sizeof binary)], any_register(r), reg);
        break;
    case 2: /* inc, dec */
        put(f, 0x48 | (reg & 8) >> 3), put(f, 0xFF),
            put(f, 0xC0 | random_below(r, 2) << 3 | (reg & 7));
        break;
    case 3:
        put(f, 0x48 | (reg & 8) >> 3), put(f, 0x0F), put(f, 0xC8 | (reg & 7)); /* bswap */
        break;
    case 4: put_registers(f, 1, 0xC1, any_register(r), reg); break; /* xadd */
    default:
        put(f, 0x48 | (reg & 8) >> 3), put(f, 0x83);
        put(f, constant[random_below(r, sizeof constant)] | (reg & 7));
        put(f, random_below(r, 3) ? 8 * random_below(r, 16) : 0);
    }
}

static void put_copy(function *f, random_source *r)
{
    uint32_t from = derived_register(f, r), to = any_register(r), xmm = random_below(r, 4);
    int32_t place = own_place(f, r);

    f->derived |= 1u << to;
    switch (random_below(r, 8)) {
    case 0: put_registers(f, 0, 0x89, from, to); break;                       /* mov */
    case 1: put_registers(f, 0, 0x87, from, to); break;                       /* xchg */
    case 2: put_registers(f, 1, 0x40 | random_below(r, 16), to, from); break; /* cmov */
    case 3:
        put_registers(f, 0x66, 0x6E, xmm, from); /* movq */
        put_registers(f, 0x66, 0x7E, xmm, to);
        break;
    case 4:
        put_memory(f, 0x89, from, RSP, place);
        put_memory(f, 0x8B, to, RSP, place);
        break;
    case 5:
        put_registers(f, 0x66, 0x6E, xmm, from);
        put_vector(f, 0x11, xmm, place);
        put_vector(f, 0x10, xmm ^ 1, place);
        put_vector(f, 0x11, xmm ^ 1, place);
        put_memory(f, 0x8B, to, RSP, place);
        break;
    case 6:
        put(f, 0x40 | (from & 8) >> 3), put(f, 0x50 | (from & 7)); /* push; pop */
        put(f, 0x40 | (to & 8) >> 3), put(f, 0x58 | (to & 7));
        break;
    default:
        put_memory(f, 0x89, from, RSP, place);
        put_memory(f, 0x01, RAX, RSP, place); /* add [rsp + place], rax */
        put_memory(f, 0x8B, to, RSP, place);
    }
}

/* Make a register a small number, in a way that shows it. */
static void put_number(function *f, random_source *r)
{
    uint32_t from = pick_register(f->numbers, r), to = any_register(r);

    switch (random_below(r, 7)) {
    case 0: put_registers(f, 1, 0xB6, to, from); break; /* movzx of a byte */
    case 1:
        put_registers(f, 0, 0x83, 4, to); /* and */
        put(f, random_below(r, 128));
        break;
    case 2:
        put(f, 0x40 | (to & 8) >> 3), put(f, 0xB8 | (to & 7)); /* mov to, number */
        put_i32(f, (int32_t)random_below(r, 64));
        break;
    case 3:
        put_registers(f, 0, 0xC1, 5, to); /* shr */
        put(f, 56 + random_below(r, 8));
        break;
    case 4:
        put(f, 0x40 | (to & 8) >> 3), put(f, 0xC1), put(f, 0xE8 | (to & 7)); /* shr of 4 bytes */
        put(f, 24 + random_below(r, 8));
        break;
    case 5: put_memory(f, 0x8D, to, from, (int32_t)random_below(r, 16) - 4); break; /* lea */
    default: put_registers(f, 0, 0x8B, to, from);
    }
    f->numbers |= 1u << to;
}

/* mov or lea with [base + index * scale + distance], or add base, index */
static void put_indexed(function *f, random_source *r, uint32_t index)
{
    static const uint8_t opcodes[] = { 0x8B, 0x89, 0x8D };
    uint32_t reg = any_register(r), base = random_below(r, 2) ? RSP : derived_register(f, r);
    uint8_t opcode = opcodes[random_below(r, 3)];

    if (base != RSP && random_below(r, 4) == 0) {
        put_registers(f, 0, 0x01, index, base);
        return;
    }
    put(f, 0x48 | (reg & 8) >> 1 | (index & 8) >> 2 | (base & 8) >> 3);
    put(f, opcode);
    put(f, 0x84 | (reg & 7) << 3);
    put(f, random_below(r, 4) << 6 | (index & 7) << 3 | (base & 7));
    put_i32(f, 8 * (int32_t)random_below(r, FRAME / 8 + 8) - 64);
    f->derived |= opcode == 0x8D ? 1u << reg : 0;
}

/* kinds: 8, or 7 for those that leave rsp unchanged */
static void put_step(function *f, random_source *r, uint32_t kinds)
{
    uint32_t reg = any_register(r);

    switch (random_below(r, kinds)) {
    case 0: /* lea */
        put_memory(f, 0x8D, reg, RSP, own_place(f, r));
        f->derived |= 1u << reg;
        break;
    case 1:
    case 2: put_copy(f, r); break;
    case 3: put_computation(f, r, derived_register(f, r)); break;
    case 4: /* mov to or from memory */
        put_memory(f, random_below(r, 3) ? 0x8B : 0x89, reg, derived_register(f, r),
                   8 * (int32_t)random_below(r, 16) - 8);
        break;
    case 5: put_number(f, r); break;
    case 6: put_indexed(f, r, pick_register(f->numbers, r)); break;
    default: put(f, 0x40 | (reg & 8) >> 3), put(f, 0x50 | (reg & 7)); f->pushed++;
    }
}

/* A conditional jump over one step. */
static void put_choice(function *f, random_source *r)
{
    uint32_t from, reg = pick_register(f->numbers, r);
    bool compares = random_below(r, 2);

    if (compares) {
        put(f, (random_below(r, 2) ? 0x48 : 0x40) | (reg & 8) >> 3); /* cmp reg, number */
        put(f, 0x83), put(f, 0xF8 | (reg & 7)), put(f, random_below(r, 64));
    } else {
        put_registers(f, 0, 0x85, any_register(r), any_register(r)); /* test */
    }
    put(f, 0x70 | random_below(r, 16));
    put(f, 0);
    from = f->size;
    if (compares) {
        put_indexed(f, r, reg);
    } else {
        put_step(f, r, 7);
    }
    f->bytes[from - 1] = (uint8_t)(f->size - from);
    f->join[f->joins].from = from;
    f->join[f->joins++].to = f->size;
}

static void make_function(function *f, random_source *r)
{
    uint32_t steps = 3 + random_below(r, STEPS_MAX - 3);

    memset(f, 0, sizeof *f);
    if (random_below(r, 2)) {
        put(f, 0x55), put(f, 0x48), put(f, 0x89), put(f, 0xE5); /* push rbp; mov rbp, rsp */
        f->pushed = 1;
        f->derived = 1u << RBP;
    }
    put(f, 0x48), put(f, 0x83), put(f, 0xEC), put(f, FRAME); /* sub rsp, FRAME */
    for (uint32_t i = 0; i < steps; i++) {
        if (random_below(r, 4) == 0) {
            put_choice(f, r);
        } else {
            put_step(f, r, 8);
        }
    }
    put(f, 0x48), put(f, 0x81), put(f, 0xC4); /* add rsp, ... */
    put_i32(f, (int32_t)(FRAME + 8 * f->pushed));
    put(f, 0xC3);
}

/* ---- What the analysis promises. */

typedef struct promise {
    bool accepted;
    uint32_t argument_bytes;
} promise;

static bool needs_evidence(const hfn_stack_state *state)
{
    for (uint32_t i = 0; i < state->object_count; i++) {
        if (state->objects[i].indexed) {
            return true;
        }
    }
    return false;
}

static promise follow(const function *f)
{
    hfn_stack_state state, jumped;
    hfn_instruction in = { .length = 1 };
    uint32_t next = 0; /* join */

    hfn_arch_x86_64.begin_stack(&state);
    for (uint32_t at = 0; at < f->size; at += in.length) {
        if (next < f->joins && at == f->join[next].to) {
            hfn_stack_merge(&state, &jumped, false);
            next++;
        }
        if (next < f->joins && at == f->join[next].from) {
            jumped = state;
            hfn_arch_x86_64.apply_condition(f->bytes + at - 2, 2, true, &jumped);
            hfn_arch_x86_64.apply_condition(f->bytes + at - 2, 2, false, &state);
        }
        if (!hfn_arch_x86_64.decode(f->bytes + at, f->size - at, at, 0, &in) ||
            hfn_arch_x86_64.step_stack(f->bytes + at, f->size - at, at, &state) != HFN_STACK_OK ||
            needs_evidence(&state)) {
            return (promise){ false, 0 };
        }
    }
    return (promise){ true, state.argument_bytes };
}

/* ---- What the function does. */

static struct {
    uint64_t code, end, cfa;
    promise promise;
    uint64_t accesses, arguments;
    uint32_t
        broken_at; /* offset of the first instruction that breaks the promise; UINT32_MAX: none */
} run;

static uint64_t get_register(const ucontext_t *context, uint8_t reg)
{
    static const int numbers[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                     REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                     REG_R12, REG_R13, REG_R14, REG_R15 };

    return reg < 16 ? (uint64_t)context->uc_mcontext.gregs[numbers[reg]] : 0;
}

static void check_access(uint64_t address, uint64_t bytes, bool writes, uint64_t rip)
{
    uint64_t return_at = run.cfa - 8, end = address + bytes;

    run.accesses++;
    if (end <= return_at || end < address || address >= run.cfa + STACK_BYTES / 2) {
        return;
    }
    run.arguments++;
    if ((address < run.cfa || end > run.cfa + run.promise.argument_bytes || writes) &&
        run.broken_at == UINT32_MAX) {
        run.broken_at = (uint32_t)(rip - run.code);
    }
}

/* Before each instruction: check the memory operand that it is about to access. */
static void on_step(int number, siginfo_t *info, void *user)
{
    ucontext_t *context = user;
    uint64_t rip = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)rip;
    hfn_x86_effects e;

    (void)number;
    (void)info;
    if (rip < run.code || rip >= run.end || *bytes == 0xC3 ||
        !hfn_x86_decode_effects(HFN_X86_64, bytes, run.end - rip, rip, &e)) {
        if (rip >= run.code && rip < run.end) {
            context->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG; /* the return ends the run */
        }
        return;
    }
    if (e.has_memory && e.memory_bytes > 0) {
        check_access(get_register(context, e.base) + e.scale * get_register(context, e.index) +
                         (uint64_t)e.displacement,
                     e.memory_bytes, e.data.stores, rip);
    }
    if ((bytes[0] & 0xF0) == 0x40 && (bytes[1] & 0xF8) == 0x58) {
        check_access(get_register(context, RSP), 8, false, rip);
    }
}

static void watch_steps(void)
{
    struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_ONSTACK | SA_SIGINFO };

    sigaction(SIGTRAP, &action, NULL);
}

static void run_function(const stage *s, random_source *r, const function *f)
{
    static const sequence none;
    static outcome before, after;
    cpu_state start = { { 0 }, 0, 0, 0, 0 };
    void (*leave)(void) = cpu_leave;

    start_randomly(s, &none, r, &start, &before);
    memcpy(before.stack + STACK_BYTES / 2, &leave, 8);
    start.flags |= TRAP_FLAG;
    run.code = (uint64_t)(uintptr_t)s->code;
    run.end = run.code + f->size;
    run.cfa = (uint64_t)(uintptr_t)s->stack + 8;
    run.broken_at = UINT32_MAX;
    memcpy(s->code, f->bytes, f->size);
    run_from(s, &start, &before, s->code, &after);
}

static bool check_one(const stage *s, random_source *r, uint64_t *accepted)
{
    function f;

    make_function(&f, r);
    run.promise = follow(&f);
    if (!run.promise.accepted) {
        return true;
    }
    (*accepted)++;
    run_function(s, r, &f);
    if (run.broken_at == UINT32_MAX) {
        return true;
    }
    printf("# accepted with %u bytes of arguments, broken at byte %u\n#  ",
           run.promise.argument_bytes, run.broken_at);
    for (uint32_t k = 0; k < f.size; k++) {
        printf(" %02x", f.bytes[k]);
    }
    printf("\n");
    return false;
}

int main(int argc, char **argv)
{
    random_run given = random_parse_run(argc, argv, 20000);
    uint64_t accepted = 0;
    int failed = 0;
    stage s;

    if (!make_stage(&s)) {
        return 77;
    }
    watch_signals();
    watch_steps();
    printf("1..1\n");
    for (uint64_t i = 0; i < given.count && failed < 5; i++) {
        random_source r = random_seed(given.seed * 1000003 + i);
        if (i % 1024 == 0) {
            limit_time();
        }
        failed += !check_one(&s, &r, &accepted);
    }
    printf("# %" PRIu64 " accepted; %" PRIu64 " accesses, %" PRIu64 " of arguments\n", accepted,
           run.accesses, run.arguments);
    failed += accepted < given.count / 20 || run.arguments < given.count / 1000;
    printf("%sok 1 accepted_functions_access_what_was_promised\n", failed ? "not " : "");
    return failed ? 1 : 0;
}
#endif
