/* SPDX-License-Identifier: MIT */
/*
 * Property of functions that the verdicts allow to time: with a timing stub they have the same
 * effect as without one on registers, flags, memory and their caller's frame.  Their stack
 * arguments may change.  Functions are random; some stay within their frames, some do not.  Both
 * runs use the same stack pointer in the body, so that only the bytes above the function's frame
 * differ.  Arguments: seed, number of functions.
 */
#include "cpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#if !defined(__x86_64__)
int main(void)
{
    return 77; /* needs this CPU */
}
#else

#include "arch/stub.h"
#include "counters/timed_row.h"
#include "counters/timing/counter_mode.h"
#include "image/image.h"
#include "verdicts/scene.h"

enum {
    SCENE_FUNCTIONS = 24,
    FRAME_WORDS = 8,
    CALLER_BYTES = 256,
    STUB_FRAME_BYTES = 48,
    STUB_AT = 256,  /* in its page */
    READER_AT = 22, /* after the helper */
    SLOTS = 4,
    NODES = 64
};
enum { RAX = 0, RCX = 1, RBX = 3, RSP = 4, RBP = 5, R12 = 12 };

typedef struct tally {
    uint64_t proven, with_arguments, refused;
    uint64_t broken;     /* refused functions that a stub would break */
    uint64_t tail_exits; /* proven functions with a tail exit */
} tally;

/* ---- A random function. */

typedef struct function {
    uint8_t bytes[512];
    uint32_t size;
    uint32_t pushes, words; /* below the return address */
    bool has_frame, aligned;
    int32_t pointer_at; /* place in the frame to which r12 points, as a distance from rsp */
} function;

static void put_bytes(function *f, const char *bytes, size_t size)
{
    memcpy(f->bytes + f->size, bytes, size);
    f->size += (uint32_t)size;
}
#define PUT_BYTES(f, text) put_bytes(f, text, sizeof(text) - 1)

static void put_byte(function *f, uint32_t value)
{
    f->bytes[f->size++] = (uint8_t)value;
}

static void put_i32(function *f, int32_t value)
{
    memcpy(f->bytes + f->size, &value, 4);
    f->size += 4;
}

/* Any register but rsp, rbx (the data), rbp (a frame), r12 (a pointer). */
static uint32_t any_register(random_source *r)
{
    static const uint8_t numbers[] = { 0, 1, 2, 6, 7, 8, 9, 10, 11, 13, 14, 15 };

    return numbers[random_below(r, sizeof numbers)];
}

/* opcode reg, [base + distance], whole words */
static void put_memory(function *f, uint32_t opcode, uint32_t reg, uint32_t base, int32_t distance)
{
    put_byte(f, 0x48 | (reg & 8) >> 1 | (base & 8) >> 3);
    put_byte(f, opcode);
    put_byte(f, 0x80 | (reg & 7) << 3 | (base & 7));
    if ((base & 7) == 4) {
        put_byte(f, 0x24);
    }
    put_i32(f, distance);
}

/* A distance from rsp, usually of a word of the frame, rarely of one above it. */
static int32_t pick_place(const function *f, random_source *r)
{
    uint32_t own = f->aligned ? f->words : f->words + f->pushes + f->has_frame;

    if (own > 0 && (f->aligned || random_below(r, 16))) { /* then the bytes above the frame are
                                                           * anywhere */
        return 8 * (int32_t)random_below(r, own);
    }
    return 8 * (int32_t)(f->words + f->pushes + random_below(r, 8));
}

static void put_prologue(function *f, random_source *r)
{
    f->has_frame = random_below(r, 2);
    if (f->has_frame) {
        PUT_BYTES(f, "\x55\x48\x89\xE5"); /* push rbp; mov rbp, rsp */
    }
    f->pushes = random_below(r, 3);
    for (uint32_t i = 0; i < f->pushes; i++) {
        put_byte(f, 0x50 | (i == 0 ? 3 : 6)); /* push rbx; push rsi */
    }
    f->aligned = f->has_frame && random_below(r, 4) == 0;
    if (f->aligned) {
        PUT_BYTES(f, "\x48\x83\xE4\xE0"); /* and rsp, -32 */
    }
    f->words = f->aligned + random_below(r, FRAME_WORDS);
    if (f->words > 0) {
        PUT_BYTES(f, "\x48\x83\xEC"), put_byte(f, 8 * f->words);
    }
    for (uint32_t i = 0; i < f->words; i++) { /* initialise it: a stub may have written below rsp */
        put_memory(f, 0x89, any_register(r), RSP, 8 * (int32_t)i);
    }
}

/* jmp or jcc to the reader, READER_AT bytes after the helper, which is `at` bytes before the
 * function. */
static void put_tail_jump(function *f, random_source *r, uint32_t at)
{
    if (random_below(r, 2)) {
        put_byte(f, 0xE9);
    } else {
        put_byte(f, 0x0F), put_byte(f, 0x80 | random_below(r, 16));
    }
    put_i32(f, READER_AT - (int32_t)(at + f->size + 4));
}

static void put_epilogue(function *f, random_source *r, uint32_t at)
{
    bool wrong = random_below(r, 40) == 0;

    if (f->aligned) {
        PUT_BYTES(f, "\x48\x8D\x65"), put_byte(f, 256 - 8 * f->pushes); /* lea rsp, [rbp - x] */
    } else if (f->words > 0) {
        PUT_BYTES(f, "\x48\x83\xC4"), put_byte(f, 8 * (f->words + wrong));
    }
    for (uint32_t i = f->pushes; i-- > 0;) {
        put_byte(f, 0x58 | (i == 0 ? 3 : 6));
    }
    if (f->has_frame) {
        put_byte(f, 0x5D);
    }
    if (random_below(r, 5) == 0) {
        put_tail_jump(f, r, at);
    }
    if (random_below(r, 40) == 0) {
        PUT_BYTES(f, "\xC2\x08\x00");
    }
    put_byte(f, 0xC3);
}

static void put_index(function *f, random_source *r)
{
    int32_t place;

    PUT_BYTES(f, "\x83\xE1\x03"); /* and ecx, 3 */
    put_byte(f, 0x48), put_byte(f, random_below(r, 4) ? 0x8B : 0x8D);
    PUT_BYTES(f, "\x84\xCC"); /* mov or lea rax, [rsp + 8*rcx + x] */
    place = pick_place(f, r) - 8 * (int32_t)random_below(r, 4);
    put_i32(f, place > 0 ? place : 0); /* not below rsp, where a stub may have written */
}

/* Access the frame through r12, computed from rsp and a constant. */
static void put_pointer(function *f, random_source *r)
{
    int32_t to = pick_place(f, r);

    if (random_below(r, 2)) {
        put_memory(f, 0x8D, R12, RSP, to);
    } else {
        PUT_BYTES(f, "\x49\x89\xE4\x49\x81\xC4"); /* mov r12, rsp; add r12, x */
        put_i32(f, to);
    }
    if (random_below(r, 4) == 0) {
        PUT_BYTES(f, "\x4C\x89\x63\x40\x4C\x8B\x63\x40"); /* [rbx+64] = r12; r12 = [rbx+64] */
    }
    put_memory(f, random_below(r, 2) ? 0x8B : 0x89, any_register(r), R12, 0);
    PUT_BYTES(f, "\x45\x31\xE4"); /* xor r12d, r12d */
}

static void put_arithmetic(function *f, random_source *r)
{
    static const uint8_t opcodes[] = { 0x01, 0x29, 0x31, 0x09, 0x21, 0x39, 0x89 };
    uint32_t reg = any_register(r), rm = any_register(r);

    put_byte(f, 0x48 | (reg & 8) >> 1 | (rm & 8) >> 3);
    put_byte(f, opcodes[random_below(r, sizeof opcodes)]);
    put_byte(f, 0xC0 | (reg & 7) << 3 | (rm & 7));
}

/* The helper is the first function of the scene, `at` bytes before this one. */
static void put_instruction(function *f, random_source *r, uint32_t at)
{
    switch (random_below(r, 9)) {
    case 0:
    case 1: put_memory(f, 0x8B, any_register(r), RSP, pick_place(f, r)); break;
    case 2: put_memory(f, 0x89, any_register(r), RSP, pick_place(f, r)); break;
    case 3:
        if (f->has_frame && f->words + f->pushes > 0) {
            put_memory(f, random_below(r, 2) ? 0x8B : 0x89, any_register(r), RBP,
                       random_below(r, 12) && f->pushes
                           ? -8 * (int32_t)(1 + random_below(r, f->pushes))
                           : 8 * (int32_t)random_below(r, 5));
        }
        break;
    case 4:
        if (!f->aligned && random_below(r, 4) == 0) {
            put_index(f, r);
        }
        break;
    case 5: put_pointer(f, r); break;
    case 6:
        put_byte(f, 0xE8);
        put_i32(f, -(int32_t)(at + f->size + 4));
        break;
    default: put_arithmetic(f, r);
    }
}

static void make_function(function *f, random_source *r, uint32_t at)
{
    uint32_t steps = 1 + random_below(r, 8);

    memset(f, 0, sizeof *f);
    PUT_BYTES(f, "\x4D\x39\xC8"); /* cmp r8, r9: flags are undefined at an entry */
    put_prologue(f, r);
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t jump = f->size;
        bool skips = random_below(r, 4) == 0;
        if (skips) {
            put_byte(f, 0x70 | random_below(r, 16)), put_byte(f, 0); /* jcc over the instruction */
        }
        put_instruction(f, r, at);
        if (skips) {
            f->bytes[jump + 1] = (uint8_t)(f->size - (jump + 2));
        }
    }
    put_epilogue(f, r, at);
}

/* ---- Running it. */

static uint64_t get_code_address(void (*code)(void))
{
    uint64_t address;

    memcpy(&address, &code, sizeof address);
    return address;
}

/* volatile: gcc 12 would read only the lower half of the distance, a load that ld cannot relax. */
static int32_t row_displacement(void)
{
    volatile intptr_t distance = (intptr_t)&hfn_thread_row - (intptr_t)__builtin_thread_pointer();

    return (int32_t)distance;
}

/* Write a stub to a page, like hooks/: two gates, the head, a jump to the function. */
static const uint8_t *make_stub(const stage *s, const uint8_t *body, const hotfn_verdict *v)
{
    uint8_t *page = s->moved_near, *head = page + STUB_AT;
    uint32_t flags = HOTFN_VERDICT_ARGUMENTS(v->flags) << HFN_STUB_ARGUMENTS_SHIFT |
                     (v->tail_target ? HFN_STUB_TAIL_EXIT : 0);
    hfn_stub_shape made;
    const hfn_stub_shape *shape = hfn_stub_get_shape(HFN_STUB_TIME, flags, &made);
    hfn_stub_request request = {
        .kind = HFN_STUB_TIME,
        .flags = flags,
        .address = (uint64_t)(uintptr_t)head,
        .gate = (uint64_t)(uintptr_t)page,
        .row_displacement = row_displacement(),
        .slot_displacement = 8,
        .time_enter = (uint64_t)(uintptr_t)page + 64,
        .time_exit = (uint64_t)(uintptr_t)page + 128,
        .slot = 1,
        .tail_target = (uint64_t)(uintptr_t)s->code + READER_AT,
    };
    int32_t distance;

    memset(page, 0xCC, PAGE);
    hfn_stub_emit_time_gate(page + 64, get_code_address(hfn_counter_enter_entry));
    hfn_stub_emit_time_gate(page + 128, get_code_address(hfn_counter_exit_entry));
    hfn_stub_emit(head, &request);
    head[shape->head_bytes] = 0xE9;
    distance = (int32_t)(body - (head + shape->head_bytes + 5));
    memcpy(head + shape->head_bytes + 1, &distance, 4);
    return head + shape->entry_at;
}

/* Run code with the caller's return address and arguments moved up by `above` bytes. */
static void run_with_caller(const stage *s, cpu_state start, outcome *before, const uint8_t *code,
                            uint32_t above, outcome *after)
{
    uint64_t back = get_code_address(cpu_leave);
    uint8_t *middle = before->stack + STACK_BYTES / 2;
    outcome laid = *before;

    memcpy(laid.stack + STACK_BYTES / 2 + above, middle, CALLER_BYTES);
    memcpy(laid.stack + STACK_BYTES / 2 + above - 8, &back, 8);
    start.registers[RSP] = (uint64_t)(uintptr_t)s->stack + above - 8;
    run_from(s, &start, &laid, code, after);
    after->state.registers[RSP] -= above;
    memmove(after->stack + STACK_BYTES / 2, after->stack + STACK_BYTES / 2 + above, CALLER_BYTES);
}

static bool is_same_for_caller(const outcome *a, const outcome *b, uint32_t words)
{
    uint32_t from = STACK_BYTES / 2 + 8 * words;

    return a->signal == b->signal && memcmp(&a->state, &b->state, sizeof a->state) == 0 &&
           memcmp(a->data, b->data, sizeof a->data) == 0 &&
           memcmp(a->stack + from, b->stack + from, CALLER_BYTES - 8 * words) == 0;
}

static void print_difference(const outcome *a, const outcome *b)
{
    printf("# signals %d %d, flags %" PRIx64 " %" PRIx64 "\n", a->signal, b->signal, a->state.flags,
           b->state.flags);
    for (int i = 0; i < 16; i++) {
        if (a->state.registers[i] != b->state.registers[i]) {
            printf("# register %d: %" PRIx64 " bare, %" PRIx64 "\n", i, a->state.registers[i],
                   b->state.registers[i]);
        }
    }
}

/* Redirect the function's jumps to the reader to the tail exit, as a plan does, by the verdicts'
 * sites. */
static void patch_tail_jumps(const stage *s, const hotfn_verdicts *verdicts, const uint8_t *code,
                             uint32_t size, const hotfn_verdict *v)
{
    size_t count;
    const hfn_branch *sites = hfn_verdicts_sites(verdicts, &count);

    for (size_t i = 0; v->tail_target && i < count; i++) {
        uint8_t *field = s->code + (sites[i].field - TEXT);
        int32_t distance = (int32_t)(s->moved_near + STUB_AT - (field + 4));
        if (field > code && field < code + size && sites[i].target == v->tail_target - 1) {
            memcpy(field, &distance, 4);
        }
    }
}

static bool check_one(const stage *s, random_source *r, const hotfn_verdicts *verdicts,
                      const uint8_t *code, uint32_t size, const hotfn_verdict *v, tally *t)
{
    static const sequence none;
    bool proven = v->flags & HOTFN_VERDICT_TIMED;
    uint32_t words = HOTFN_VERDICT_ARGUMENTS(v->flags);
    static outcome before, bare, framed;
    cpu_state start = { { 0 }, 0, 0, 0, 0 };
    bool same;

    start_randomly(s, &none, r, &start, &before);
    start.registers[R12] = 0;
    run_with_caller(s, start, &before, code, 0, &bare);
    timed_use(0);
    patch_tail_jumps(s, verdicts, code, size, v);
    run_with_caller(s, start, &before, make_stub(s, code, v),
                    (STUB_FRAME_BYTES + 8 * (words + words % 2) + 63) / 64 * 64, &framed);
    same = is_same_for_caller(&bare, &framed, words);
    if (proven && bare.signal != 0) {
        return true; /* it fails without a stub too */
    }
    t->proven += proven;
    t->with_arguments += words > 0;
    t->tail_exits += v->tail_target != 0;
    t->refused += !proven;
    t->broken += !proven && !same;
    if (proven && !same) {
        print_difference(&bare, &framed);
    }
    return same || !proven;
}

/* ---- A scene of such functions. */

/* A function that changes what a callee may change and keeps to its frame. */
#define HELPER                                                                                     \
    "\x50\x48\x31\xF0\x48\x01\xC1\x48\xF7\xD2\x4D\x01\xCA\x59\x48\xC7\xC6\x05\x00\x00\x00\xC3"

/* A function that reads its caller's frame and its return address. */
#define READER "\x83\xE1\x07\x48\x8B\x84\xCC\x08\x00\x00\x00\x48\x03\x04\x24\x90\x90\x90\xC3"

/* A scene, its functions and their verdicts. */
typedef struct proven_scene {
    scene scene;
    uint64_t places[SCENE_FUNCTIONS];
    hotfn_verdict verdicts[SCENE_FUNCTIONS];
} proven_scene;

static function functions[SCENE_FUNCTIONS];

static void make_scene(proven_scene *s, random_source *r)
{
    s->scene = scene_begin();
    scene_pointer(&s->scene, RODATA, SCENE_FUNCTION(&s->scene, "helper", HELPER));
    CHECK_EQ_U64(SCENE_FUNCTION(&s->scene, "reader", READER), TEXT + READER_AT);
    for (int i = 0; i < SCENE_FUNCTIONS; i++) {
        make_function(&functions[i], r, (uint32_t)s->scene.text->size);
        s->places[i] =
            scene_function(&s->scene, "f", (char *)functions[i].bytes, functions[i].size);
        scene_pointer(&s->scene, RODATA + 8 * (i % 16), s->places[i]);
    }
    s->scene.options = HOTFN_VERDICTS_TIMING;
}

static bool check_functions(const stage *place, proven_scene *s, random_source *r, bool proven,
                            tally *t)
{
    for (int i = 0; i < SCENE_FUNCTIONS; i++) {
        const hotfn_verdict *v = &s->verdicts[i];
        if (!(v->flags & HOTFN_VERDICT_TIMED) == proven ||
            check_one(place, r, s->scene.verdicts, place->code + (s->places[i] - TEXT),
                      functions[i].size, v, t)) {
            continue;
        }
        printf("# function %d: proven, but broken by a stub\n#  ", i);
        for (uint32_t k = 0; k < functions[i].size; k++) {
            printf(" %02x", functions[i].bytes[k]);
        }
        printf("\n");
        return false;
    }
    return true;
}

/* Run the refused functions in a child, since behind a stub they may run any code; the child
 * counts in shared memory. */
static void check_refused(const stage *place, proven_scene *s, random_source *r, tally *shared)
{
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        alarm(2 * SECONDS_MAX);
        limit_time();
        check_functions(place, s, r, false, shared);
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child) {
        abort();
    }
}

static bool check_scene(const stage *place, uint64_t seed, uint64_t round, tally *t, tally *refused)
{
    random_source r = random_seed(seed * 1000003 + round);
    proven_scene s;
    size_t code_bytes;
    bool ok;

    make_scene(&s, &r);
    code_bytes = s.scene.text->size;
    scene_analyze(&s.scene);
    memset(place->code, 0xCC, 3 * PAGE);
    memcpy(place->code, hfn_image_span(s.scene.image, TEXT).data, code_bytes);
    for (int i = 0; i < SCENE_FUNCTIONS; i++) {
        s.verdicts[i] = scene_verdict(&s.scene, s.places[i]).pub;
    }
    ok = check_functions(place, &s, &r, true, t);
    if (!ok) {
        printf("# seed %" PRIu64 " round %" PRIu64 "\n", seed, round);
    }
    check_refused(place, &s, &r, refused);
    scene_finish(&s.scene);
    return ok;
}

int main(int argc, char **argv)
{
    random_run run = random_parse_run(argc, argv, 40000);
    tally t = { 0, 0, 0, 0, 0 };
    tally *refused =
        mmap(NULL, sizeof *refused, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    stage s;
    int failed = 0;

    if (refused == MAP_FAILED || !make_stage(&s)) {
        return 77; /* no memory that is writable and executable here */
    }
    watch_signals();
    timed.header.slow_ticks = 1; /* so that each call takes every path of the engine */
    timed_start(HOTFN_TIMING_TREE | HOTFN_TIMING_HISTOGRAMS | HOTFN_TIMING_SLOW |
                HOTFN_TIMING_EVENTS);
    timed_use(0);
    printf("1..1\n");
    for (uint64_t round = 0; round < run.count / SCENE_FUNCTIONS && failed < 5; round++) {
        if (round % 64 == 0) {
            limit_time();
        }
        failed += !check_scene(&s, run.seed, round, &t, refused);
    }
    printf("# %" PRIu64 " proven, %" PRIu64 " of them with arguments, %" PRIu64
           " with a tail exit; %" PRIu64 " refused, %" PRIu64 " of these broken by a stub\n",
           t.proven, t.with_arguments, t.tail_exits, refused->refused, refused->broken);
    failed += t.proven < run.count / 8 || t.with_arguments < run.count / 50 ||
              refused->broken < run.count / 200 || t.tail_exits < run.count / 50;
    printf("%sok 1 proven_functions_behave_the_same_behind_a_stub\n", failed ? "not " : "");
    return failed ? 1 : 0;
}
#endif
