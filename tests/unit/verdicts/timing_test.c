/* SPDX-License-Identifier: MIT */
/* The proofs of timing: functions that stay in their own frame are timed; each kind of code that
 * leaves it, or may leave it, is refused with its own reason. */
#include "timed.h"

#define LEAF "\x55\x48\x89\xE5\x5D\xC3"           /* push rbp; mov rbp, rsp; pop rbp; ret */
#define TAKES_ARGUMENT "\x48\x8D\x44\x24\x08\xC3" /* lea rax, [rsp+8]; ret */

#define FLAGS_OF(text) flags_of(scene_begin(), text, sizeof(text) - 1)
#define REASON_OF(text) HOTFN_VERDICT_TIMING_REASON(FLAGS_OF(text))
/* The number of argument words that a stub copies for the function. */
#define WORDS_OF(text) HOTFN_VERDICT_ARGUMENTS(FLAGS_OF(text))

static void a_function_that_stays_in_its_frame_is_timed(void)
{
    CHECK_EQ_U64(REASON_OF(LEAF), 0);
    CHECK_EQ_U64(REASON_OF("\x53\x48\x83\xEC\x20\x48\x89\x7C\x24\x08\x48\x8B\x44\x24\x08"
                           "\x48\x83\xC4\x20\x5B\xC3"),
                 0); /* push rbx; sub rsp, 32; [rsp+8] = rdi; rax = [rsp+8]; ... */
    CHECK_EQ_U64(REASON_OF("\x48\x89\x7C\x24\xF8\x48\x8B\x44\x24\xF8\xC3"), 0); /* red zone */
    CHECK_EQ_U64(
        REASON_OF("\x55\x48\x89\xE5\x48\x83\xE4\xC0\x48\x83\xEC\x40\x0F\x29\x04\x24\xC9\xC3"),
        0); /* realigned */
}

/* A pointer that was in memory may be indexed if its object is passed to a callee too. */
static void indexed_pointers_need_an_object(void)
{
    /* sub rsp, 0x48; lea rdi, [rsp+16] or [rsp+8]; call rsi or nop; lea rax, [rsp+16]; mov [rsp],
     * rax; mov rax, [rsp]; mov al, [rax+rbx]; add rsp, 0x48 */
#define INDEXES(place, call)                                                                       \
    "\x48\x83\xEC\x48\x48\x8D\x7C\x24" place call                                                  \
    "\x48\x8D\x44\x24\x10\x48\x89\x04\x24\x48\x8B\x04\x24\x8A\x04\x18\x48\x83\xC4\x48\xC3"
    CHECK_EQ_U64(REASON_OF(INDEXES("\x10", "\xFF\xD6")), 0);
    CHECK_EQ_U64(REASON_OF(INDEXES("\x08", "\xFF\xD6")), HOTFN_REASON_STACK_ARGUMENTS);
    CHECK_EQ_U64(REASON_OF(INDEXES("\x10", "\x66\x90")), HOTFN_REASON_STACK_ARGUMENTS);
#undef INDEXES
    /* sub rsp, 0x48; lea rdi, [rsp+16]; call rsi or nop; lea rax, [rsp+16]; mov al, [rax+rbx];
     * add rsp, 0x48 */
#define INDEXES_ITS_OWN(call)                                                                      \
    "\x48\x83\xEC\x48\x48\x8D\x7C\x24\x10" call                                                    \
    "\x48\x8D\x44\x24\x10\x8A\x04\x18\x48\x83\xC4\x48\xC3"
    CHECK_EQ_U64(REASON_OF(INDEXES_ITS_OWN("\xFF\xD6")), 0);
    CHECK_EQ_U64(REASON_OF(INDEXES_ITS_OWN("\x66\x90")), HOTFN_REASON_STACK_ARGUMENTS);
#undef INDEXES_ITS_OWN
}

static void code_that_may_leave_the_frame_is_refused_with_its_reason(void)
{
    CHECK_EQ_U64(REASON_OF(TAKES_ARGUMENT), HOTFN_REASON_STACK_ARGUMENTS);
    CHECK_EQ_U64(REASON_OF("\x48\x8B\x44\x24\x58\xC3"),
                 HOTFN_REASON_STACK_ARGUMENTS); /* the eleventh word */
    CHECK_EQ_U64(REASON_OF("\x0F\x10\x44\x24\x50\xC3"),
                 HOTFN_REASON_STACK_ARGUMENTS); /* the tenth and the eleventh */
    CHECK_EQ_U64(REASON_OF("\x53\x8F\x44\x24\x10\xC3"),
                 HOTFN_REASON_STACK_ARGUMENTS); /* push rbx; pop [rsp+16] */
    CHECK_EQ_U64(REASON_OF("\x48\x8B\x44\xC4\xF0\xC3"), HOTFN_REASON_STACK_ARGUMENTS); /* index */
    CHECK_EQ_U64(REASON_OF("\x55\x48\x89\xE5\x48\x8D\x45\x10\x5D\xC3"),
                 HOTFN_REASON_STACK_ARGUMENTS);
    CHECK_EQ_U64(REASON_OF("\x48\x8B\x04\x24\x90\xC3"), HOTFN_REASON_RETURN_ADDRESS);
    CHECK_EQ_U64(REASON_OF("\x58\x48\x89\xC1\x50\xC3"),
                 HOTFN_REASON_RETURN_ADDRESS); /* pop; push */
    CHECK_EQ_U64(REASON_OF("\x48\x89\xE0\x48\x89\x07\xC3"), HOTFN_REASON_RETURN_ADDRESS);
    CHECK_EQ_U64(REASON_OF("\x48\x89\xF8\x48\xFF\xC0\xC2\x08\x00"), HOTFN_REASON_RETURN_POPS);
    CHECK_EQ_U64(REASON_OF("\x48\x89\xFC\x5B\x5D\xC3"), HOTFN_REASON_STACK_UNKNOWN); /* rsp = rdi */
    CHECK_EQ_U64(REASON_OF("\x53\x48\x89\xF8\x90\xC3"),
                 HOTFN_REASON_STACK_UNKNOWN); /* push rbx; ret */
    CHECK_EQ_U64(REASON_OF("\x48\x89\xF8\x48\x83\xC0\x01\xFF\xE0"), HOTFN_REASON_STACK_UNKNOWN);
    CHECK_EQ_U64(REASON_OF("\x48\x89\xF8\xFF\x25\x00\x00\x00\x00"), HOTFN_REASON_TAIL_UNKNOWN);
    CHECK_EQ_U64(REASON_OF("\x53\x48\x89\xF8\x90\xFF\xE0"), HOTFN_REASON_STACK_UNKNOWN);
    /* a jump to the function's own entry; a call at the first byte */
    CHECK_EQ_U64(REASON_OF("\x48\x8D\x7F\xFF\x48\x85\xFF\x75\xF7\xC3"), HOTFN_REASON_ENTRY_JUMPED);
    CHECK_EQ_U64(REASON_OF("\xE8\x11\x00\x00\x00\xC3"), HOTFN_REASON_PATCH_INSIDE);
    /* a retpoline: call 2f; 1: jmp 1b; 2: mov [rsp], rax; ret */
    CHECK_EQ_U64(REASON_OF("\x48\x89\xF8\x66\x90\xE8\x02\x00\x00\x00\xEB\xFE\x48\x89\x04\x24\xC3"),
                 HOTFN_REASON_STACK_UNKNOWN);
}

/* A call runs with or without a frame of hotfn, so the addresses of its variables differ from those
 * of other calls at the same depth. */
static void a_function_that_compares_frame_addresses_of_calls_is_refused(void)
{
#define OWN "\x48\x8D\x44\x24\xF0" /* lea rax, [rsp-16] */
    CHECK_EQ_U64(REASON_OF(OWN "\x48\x3B\x07\x74\x03\x48\x89\x07\xC3"), HOTFN_REASON_OWN_ADDRESS);
    CHECK_EQ_U64(REASON_OF("\x48\x85\xFF\x74\x09" OWN "\x48\x89\x07\xC3" OWN "\x48\x3B\x07\xC3"),
                 HOTFN_REASON_OWN_ADDRESS);                                 /* on different paths */
    CHECK_EQ_U64(REASON_OF(OWN "\x48\x3B\x07\x74\x03\x48\x89\x0F\xC3"), 0); /* [rdi] = rcx */
    CHECK_EQ_U64(REASON_OF(OWN "\x48\x3B\x0F\x74\x03\x48\x89\x07\xC3"), 0); /* cmp rcx, [rdi] */
#undef OWN
}

static void arguments_at_known_offsets_are_copied(void)
{
    CHECK_EQ_U64(WORDS_OF(LEAF), 0);
    CHECK_EQ_U64(WORDS_OF("\x48\x8B\x44\x24\x08\xC3"), 1);  /* mov rax, [rsp+8] */
    CHECK_EQ_U64(WORDS_OF("\x8B\x44\x24\x14\x90\xC3"), 2);  /* mov eax, [rsp+20] */
    CHECK_EQ_U64(WORDS_OF("\x48\x8B\x7C\x24\x18\xC3"), 3);  /* mov rdi, [rsp+24] */
    CHECK_EQ_U64(WORDS_OF("\x0F\x10\x44\x24\x48\xC3"), 10); /* movups xmm0, [rsp+72] */
    CHECK_EQ_U64(WORDS_OF("\x55\x48\x89\xE5\xFF\x75\x28\xFF\x55\x10\xC9\xC3"),
                 4); /* push rbp; mov rbp, rsp; push [rbp+40]; call [rbp+16]; leave */
}

/* f: push rbp; mov rbp, rsp; nop; call piece; pop rbp; ret.  piece: mov rax, [rbp+32]; nop; ret. */
static void arguments_that_only_outlined_code_reads_are_copied(void)
{
    scene s = scene_begin();
    uint64_t piece = refer_to(&s, SCENE_FUNCTION(&s, "piece", "\x48\x8B\x45\x20\x90\xC3"));
    uint64_t f = SCENE_CODE(&s, "\x55\x48\x89\xE5\x90");

    scene_branch(&s, 0xE8, piece);
    SCENE_CODE(&s, "\x5D\xC3");
    scene_symbol(&s, "f", refer_to(&s, refer_to(&s, f)), 12, FUNC); /* two words may be a range */
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, f) | reason_at(&s, piece), 0);
    CHECK_EQ_U64(HOTFN_VERDICT_ARGUMENTS(scene_verdict(&s, f).pub.flags), 3);
    CHECK_EQ_U64(HOTFN_VERDICT_ARGUMENTS(scene_verdict(&s, piece).pub.flags), 0);
    scene_finish(&s);
}

typedef enum piece_end { RETURNS, TO_OTHER, TO_ITSELF } piece_end;

/* The flags of a caller of outlined code.  The piece consists of `code` and its end: a return, a
 * jump to itself, or a jump to another piece (mov rax, [rbp+40]; nop; ret). */
static uint32_t flags_of_piece(const char *code, piece_end end)
{
    scene s = scene_begin();
    uint64_t piece = scene_code(&s, code, strlen(code)), f, other = piece + 32;
    uint32_t flags;

    if (end != RETURNS) {
        scene_branch(&s, 0xE9, end == TO_OTHER ? other : piece);
    }
    SCENE_CODE(&s, "\xC3");
    scene_symbol(&s, "piece", refer_to(&s, piece), scene_here(&s) - piece, FUNC);
    scene_nops(&s, other - scene_here(&s));
    SCENE_FUNCTION(&s, "other", "\x48\x8B\x45\x28\x90\xC3");
    refer_to(&s, other);
    f = SCENE_CODE(&s, "\x55\x48\x89\xE5\x31\xC0");
    scene_branch(&s, 0xE8, piece);
    SCENE_CODE(&s, "\x5D\xC3");
    scene_symbol(&s, "f", refer_to(&s, f), 13, FUNC);
    prove_scene(&s);
    flags = flags_at(&s, f);
    scene_finish(&s);
    return flags;
}
#define REASON_OF_PIECE(code, end) HOTFN_VERDICT_TIMING_REASON(flags_of_piece(code, end))

static void accesses_of_outlined_code_belong_to_its_caller(void)
{
    static const char reads[] = "\x48\x8B\x45\x20\x90"; /* mov rax, [rbp+32]; nop */

    CHECK_EQ_U64(REASON_OF_PIECE("\x48\x8B\x45\x08\x90", RETURNS), HOTFN_REASON_RETURN_ADDRESS);
    CHECK_EQ_U64(REASON_OF_PIECE("\x48\x89\xF8\x48\x8B\x45\x08", RETURNS),
                 HOTFN_REASON_RETURN_ADDRESS); /* mov rax, rdi; mov rax, [rbp+8] */
    CHECK_EQ_U64(REASON_OF_PIECE("\x48\x8B\x45\x20\x48\x8D\x45\x10", RETURNS),
                 HOTFN_REASON_STACK_ARGUMENTS); /* mov rax, [rbp+32]; lea rax, [rbp+16] */
    /* a piece that ends with a return, with a jump to another piece, with a jump to itself */
    CHECK_EQ_U64(HOTFN_VERDICT_ARGUMENTS(flags_of_piece(reads, RETURNS)), 3);
    CHECK_EQ_U64(HOTFN_VERDICT_ARGUMENTS(flags_of_piece(reads, TO_OTHER)), 4);
    CHECK_EQ_U64(REASON_OF_PIECE(reads, TO_ITSELF), HOTFN_REASON_STACK_UNKNOWN);
}

/* `takes` reads five argument words, `by` tail-jumps to `takes`, and `twice` tail-jumps to `by`. */
static void arguments_of_a_tail_target_are_copied(void)
{
    scene s = scene_begin();
    uint64_t takes = SCENE_FUNCTION(&s, "takes", "\x48\x8B\x44\x24\x28\xC3"), by, twice;

    by = SCENE_CODE(&s, "\x31\xC0\x0F\x1F\x00");
    scene_branch(&s, 0xE9, takes);
    scene_symbol(&s, "by", by, 10, FUNC);
    twice = SCENE_CODE(&s, "\x48\x8B\x44\x24\x08");
    scene_branch(&s, 0xE9, by);
    scene_symbol(&s, "twice", twice, 10, FUNC);
    refer_to(&s, takes), refer_to(&s, by), refer_to(&s, twice);
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, by) | reason_at(&s, twice), 0);
    CHECK_EQ_U64(HOTFN_VERDICT_ARGUMENTS(scene_verdict(&s, takes).pub.flags), 5);
    CHECK_EQ_U64(HOTFN_VERDICT_ARGUMENTS(scene_verdict(&s, by).pub.flags), 5);
    CHECK_EQ_U64(HOTFN_VERDICT_ARGUMENTS(scene_verdict(&s, twice).pub.flags), 5);
    scene_finish(&s);
}

/* The target of the tail exits of the function at rva; 0 if it has none. */
static uint64_t tail_target(const scene *s, uint64_t rva)
{
    uint32_t to = scene_verdict(s, rva).pub.tail_target;
    hotfn_function f = HOTFN_FUNCTION_INIT;

    return to != 0 && hotfn_functions_get(s->functions, to - 1, &f) == HOTFN_OK ? f.rva : 0;
}

static void tail_jumps_need_proven_targets(void)
{
    scene s = scene_begin();
    uint64_t good = SCENE_FUNCTION(&s, "good", LEAF),
             bad = SCENE_FUNCTION(&s, "bad", TAKES_ARGUMENT);
    uint64_t to_good = scene_here(&s), to_bad, twice;

    SCENE_CODE(&s, "\x31\xC0\x0F\x1F\x00"), scene_branch(&s, 0xE9, good);
    scene_symbol(&s, "to_good", to_good, 10, FUNC);
    to_bad = SCENE_CODE(&s, "\x31\xC0"); /* the jump moves into the stub */
    scene_branch(&s, 0xE9, bad);
    SCENE_CODE(&s, "\x0F\x1F\x00");
    scene_symbol(&s, "to_bad", to_bad, 10, FUNC);
    twice = SCENE_CODE(&s, "\x31\xC0\x0F\x1F\x00");
    scene_branch(&s, 0xE9, to_bad);
    scene_symbol(&s, "twice", twice, 10, FUNC);
    refer_to(&s, good), refer_to(&s, bad), refer_to(&s, to_good), refer_to(&s, to_bad),
        refer_to(&s, twice);
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, good), 0);
    CHECK_EQ_U64(reason_at(&s, bad), HOTFN_REASON_STACK_ARGUMENTS);
    CHECK_EQ_U64(reason_at(&s, to_good), 0);
    CHECK_EQ_U64(reason_at(&s, to_bad), HOTFN_REASON_TAIL_UNPROVEN);
    CHECK_EQ_U64(reason_at(&s, twice), 0); /* its jump is a call site with a tail exit */
    scene_finish(&s);
}

/* Add a function: code, then a jump to `to` (E9, or 0F and the opcode), then a return. */
static uint64_t ends_at(scene *s, const char *name, const char *code, size_t size, uint8_t opcode,
                        uint64_t to)
{
    uint64_t at = scene_code(s, code, size);

    if (opcode != 0xE9) {
        SCENE_CODE(s, "\x0F");
    }
    scene_branch(s, opcode, to);
    SCENE_CODE(s, "\xC3");
    scene_symbol(s, name, refer_to(s, at), scene_here(s) - at, FUNC);
    return at;
}
#define ENDS_AT(s, name, text, opcode, to) ends_at(s, name, text, sizeof(text) - 1, opcode, to)

/* Add a function: test rdi, rdi; je 1f; jmp first; 1: test rsi, rsi; je 2f; jmp second; 2: ret */
static uint64_t ends_at_two(scene *s, const char *name, uint64_t first, uint64_t second)
{
    uint64_t at = SCENE_CODE(s, "\x48\x85\xFF\x74\x05");

    scene_branch(s, 0xE9, first);
    SCENE_CODE(s, "\x48\x85\xF6\x74\x05");
    scene_branch(s, 0xE9, second);
    SCENE_CODE(s, "\xC3");
    scene_symbol(s, name, refer_to(s, at), scene_here(s) - at, FUNC);
    return at;
}

/* test rdi, rdi; je the return */
#define OR_RETURNS "\x48\x85\xFF\x74\x05"

static void a_timed_call_ends_at_its_tail_exit(void)
{
    scene s = scene_begin();
    uint64_t bad = SCENE_FUNCTION(&s, "bad", TAKES_ARGUMENT), good, jump, branch, chain, both, same,
             mixed;
    uint64_t takes, touches, local[2], to_local[2]; /* [1]: data in the red zone are passed */

    for (int i = 0; i < 2; i++) { /* mov rax, [rsp-8]; targets of jumps only */
        local[i] = SCENE_FUNCTION(&s, "local", "\x48\x8B\x44\x24\xF8" TAKES_ARGUMENT);
    }
    to_local[0] = ENDS_AT(&s, "a", "\x48\x89\x78\xF8\x90" OR_RETURNS, 0xE9, local[0]);
    to_local[1] = ENDS_AT(&s, "b", "\x48\x89\x7C\x24\xF8" OR_RETURNS, 0xE9, local[1]);
    good = SCENE_FUNCTION(&s, "good", LEAF);
    takes = SCENE_FUNCTION(&s, "takes", "\x48\x8B\x44\x24\x10\xC3"); /* mov rax, [rsp+16] */
    jump = ENDS_AT(&s, "jump", OR_RETURNS, 0xE9, bad);
    branch = ENDS_AT(&s, "branch", "\x48\x85\xFF\x66\x90", 0x85, bad);
    chain = ENDS_AT(&s, "chain", OR_RETURNS, 0xE9, jump);
    both = ends_at_two(&s, "both", bad, chain); /* a stub has one tail target */
    same = ends_at_two(&s, "same", bad, bad);
    mixed = ends_at_two(&s, "mixed", bad, takes);
    touches = ENDS_AT(&s, "touches", "\x48\x8B\x74\x24\x08\x48\x85\xFF\x74\x05", 0xE9, bad);
    refer_to(&s, bad), refer_to(&s, good), refer_to(&s, takes);
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, jump) | reason_at(&s, branch) | reason_at(&s, chain), 0);
    CHECK_EQ_U64(tail_target(&s, jump), bad);
    CHECK_EQ_U64(tail_target(&s, to_local[0]), local[0]);
    CHECK_EQ_U64(reason_at(&s, to_local[1]), HOTFN_REASON_TAIL_UNPROVEN);
    CHECK_EQ_U64(tail_target(&s, branch), bad);
    CHECK_EQ_U64(tail_target(&s, chain), jump);
    CHECK_EQ_U64(tail_target(&s, good), 0);
    CHECK_EQ_U64(reason_at(&s, both), HOTFN_REASON_TAIL_UNPROVEN);
    CHECK_EQ_U64(reason_at(&s, same), 0);
    CHECK_EQ_U64(tail_target(&s, same), bad);
    CHECK_EQ_U64(reason_at(&s, mixed), 0); /* the arguments of takes are copied */
    CHECK_EQ_U64(tail_target(&s, mixed), bad);
    CHECK_EQ_U64(HOTFN_VERDICT_ARGUMENTS(scene_verdict(&s, mixed).pub.flags), 2);
    CHECK_EQ_U64(reason_at(&s, touches), HOTFN_REASON_TAIL_UNPROVEN);
    scene_finish(&s);
}

/* A tail target that cannot be timed itself still leaves the caller's frame alone.  But its jumps
 * must not lead back to the timed function, which would add a frame each time. */
static void a_tail_target_may_be_proven_without_being_timed(void)
{
    scene s = scene_begin();
    uint64_t loops = SCENE_CODE(&s, "\x48\x83\xEF\x01\x0F"), f, back, g; /* sub rdi, 1 */

    scene_branch(&s, 0x85, loops); /* 0F 85: jne */
    SCENE_CODE(&s, "\xC3");
    scene_symbol(&s, "loops", loops, scene_here(&s) - loops, FUNC);
    f = SCENE_CODE(&s, "\x31\xC0\x0F\x1F\x00");
    scene_branch(&s, 0xE9, loops);
    scene_symbol(&s, "f", f, 10, FUNC);
    back = SCENE_CODE(&s, "\x48\x83\xEF\x01\x0F");
    scene_branch(&s, 0x85, back);
    g = scene_here(&s) + 5;
    scene_branch(&s, 0xE9, g);
    scene_symbol(&s, "back", back, g - back, FUNC);
    SCENE_CODE(&s, "\x31\xC0\x0F\x1F\x00");
    scene_branch(&s, 0xE9, back);
    scene_symbol(&s, "g", g, 10, FUNC);
    refer_to(&s, loops), refer_to(&s, f), refer_to(&s, back), refer_to(&s, g);
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, loops), HOTFN_REASON_ENTRY_JUMPED);
    CHECK_EQ_U64(reason_at(&s, f), 0);
    CHECK_EQ_U64(reason_at(&s, back), HOTFN_REASON_ENTRY_JUMPED);
    CHECK_EQ_U64(reason_at(&s, g), 0); /* the call ends at the jump to back */
    CHECK_EQ_U64(tail_target(&s, g), back);
    scene_finish(&s);
}

/* Without tail exits each jump of the cycle would add a frame. */
static void functions_in_a_cycle_of_tail_jumps_get_tail_exits(void)
{
    scene s = scene_begin();
    uint64_t a = TEXT, b = a + 11, c = b + 11;
    const uint64_t to[] = { b, a, a };
    const char *names[] = { "a", "b", "c" };

    for (int i = 0; i < 3; i++) {
        uint64_t at = SCENE_CODE(&s, "\x48\x85\xFF\x74\x05"); /* test rdi, rdi; je the ret */
        scene_branch(&s, 0xE9, to[i]);
        SCENE_CODE(&s, "\xC3");
        scene_symbol(&s, names[i], refer_to(&s, at), 11, FUNC);
    }
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, a) | reason_at(&s, b) | reason_at(&s, c), 0);
    CHECK_EQ_U64(tail_target(&s, a), b);
    CHECK_EQ_U64(tail_target(&s, b), a);
    CHECK_EQ_U64(tail_target(&s, c), a);
    scene_finish(&s);
}

static void a_call_at_the_end_may_never_return(void)
{
    scene s = scene_begin();
    uint64_t leaf = SCENE_FUNCTION(&s, "leaf", LEAF), f = SCENE_CODE(&s, "\x53\x48\x89\xF8\x90"), g;

    scene_branch(&s, 0xE8, leaf); /* push rbx; ...; call leaf as the last instruction */
    scene_symbol(&s, "f", refer_to(&s, f), 10, FUNC);
    g = SCENE_CODE(&s, "\x53\x48\x89\xF8\x90");
    scene_branch(&s, 0xE8, leaf);
    SCENE_CODE(&s,
               "\x48\x89\xC7"); /* code after the call: it may return and fall through into next */
    scene_symbol(&s, "g", refer_to(&s, g), 13, FUNC);
    SCENE_FUNCTION(&s, "next", TAKES_ARGUMENT);
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, f), 0);
    CHECK(reason_at(&s, g) != 0);
    scene_finish(&s);
}

/* test edi, edi; je 1f; call leaf; jmp 2f; 1: push rax; call leaf; jmp 2f; 2: mov rdi, rax; ud2 */
static void paths_after_calls_must_meet_at_one_stack_depth(void)
{
    scene s = scene_begin();
    uint64_t leaf = SCENE_FUNCTION(&s, "leaf", LEAF);
    uint64_t f = SCENE_CODE(&s, "\x85\xFF\x90\x74\x07");

    scene_branch(&s, 0xE8, leaf);
    SCENE_CODE(&s, "\xEB\x08\x50");
    scene_branch(&s, 0xE8, leaf);
    SCENE_CODE(&s, "\xEB\x00\x48\x89\xC7\x0F\x0B");
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    prove_scene(&s);
    CHECK_EQ_U64(reason_at(&s, f), HOTFN_REASON_STACK_UNKNOWN);
    scene_finish(&s);
}

/* The reason of a function with a switch whose case 1 is in a fragment that only the table
 * targets. */
static uint32_t reason_of_case_in_fragment(const char *part, size_t size)
{
    scene s = scene_begin();
    uint64_t f = SCENE_CODE(&s, "\x48\x89\xF8\x66\x90\x83\xFF\x01\x77\x10"), cold;
    uint32_t offset, reason;

    SCENE_CODE(&s, "\x48\x8D\x0D"); /* lea rcx, the table */
    put(s.text, RODATA - (scene_here(&s) + 4), 4);
    SCENE_CODE(&s, "\x48\x63\x04\xB9\x48\x01\xC8\xFF\xE0\xC3"); /* dispatch; ret */
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    scene_nops(&s, 16);
    scene_filler(&s, 32);
    cold = scene_code(&s, part, size);
    scene_symbol(&s, "f.cold", cold, size, FUNC);
    s.fdes[s.fde_count++] = (scene_fde){ .begin = cold, .size = (uint32_t)size, .inner = true };
    offset = (uint32_t)(f + 26 - RODATA), memcpy(s.rodata, &offset, 4);
    offset = (uint32_t)(cold - RODATA), memcpy(s.rodata + 4, &offset, 4);
    prove_scene(&s);
    CHECK_EQ_U64(scene_verdict(&s, cold).pub.verdict, HOTFN_VERDICT_FRAGMENT);
    reason = reason_at(&s, f);
    scene_finish(&s);
    return reason;
}

/* The flags of a function that consists of `before` and a switch; case 1 is the function
 * `other`. */
static uint32_t flags_of_case_in_function(const char *before, const char *other, size_t size)
{
    scene s = scene_begin();
    uint64_t f = scene_code(&s, before, strlen(before)), at, end;
    uint32_t offset, flags;

    SCENE_CODE(&s,
               "\x83\xFF\x01\x77\x10\x48\x8D\x0D"); /* cmp edi, 1; ja the end; lea rcx, the table */
    put(s.text, RODATA - (scene_here(&s) + 4), 4);
    end = SCENE_CODE(&s, "\x48\x63\x04\xB9\x48\x01\xC8\xFF\xE0\xC3") + 9; /* dispatch; ret */
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    scene_nops(&s, 16);
    at = refer_to(&s, scene_function(&s, "other", other, size));
    offset = (uint32_t)(end - RODATA), memcpy(s.rodata, &offset, 4);
    offset = (uint32_t)(at - RODATA), memcpy(s.rodata + 4, &offset, 4);
    prove_scene(&s);
    flags = flags_at(&s, f);
    scene_finish(&s);
    return flags;
}
#define CASE_IN(before, other) flags_of_case_in_function(before, other, sizeof(other) - 1)

static void a_case_that_is_a_function_is_a_tail_target(void)
{
    static const char plain[] = "\x48\x89\xF8\x66\x90";

    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(CASE_IN(plain, "\x31\xC0\x90\x90\x90\xC3")), 0);
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(CASE_IN(plain, TAKES_ARGUMENT)),
                 HOTFN_REASON_TAIL_UNPROVEN);
    /* mov rax, [rsp+24]; nop; ret */
    CHECK_EQ_U64(HOTFN_VERDICT_ARGUMENTS(CASE_IN(plain, "\x48\x8B\x44\x24\x18\x90\xC3")), 3);
    /* after push rbx the jump is no tail jump */
    CHECK_EQ_U64(
        HOTFN_VERDICT_TIMING_REASON(CASE_IN("\x53\x48\x89\xF8\x90", "\x31\xC0\x90\x90\x90\xC3")),
        HOTFN_REASON_STACK_UNKNOWN);
}

/* A function f: xor eax, eax; a loop, which marks jump targets in f; the bound; a jump through a
 * table of two addresses. */
typedef struct table_of_functions {
    const char *bound;  /* cmp edi, 1; ja the ret; or empty                */
    const char *second; /* code of the second entry's function; NULL: entry 0 */
    size_t second_size;
    bool switches; /* the first entry is a place in f, not a function */
} table_of_functions;

static uint32_t flags_of_table(table_of_functions c)
{
    scene s = scene_begin();
    uint64_t first = refer_to(&s, SCENE_FUNCTION(&s, "first", LEAF)), second = 0, f, word;
    uint32_t flags;

    if (c.second) {
        second = refer_to(&s, scene_function(&s, "second", c.second, c.second_size));
    }
    scene_nops(&s, 16);
    f = SCENE_CODE(
        &s, "\x31\xC0\x66\x90\xFF\xC0\x83\xF8\x08\x75\xF9"); /* 1: inc eax; cmp eax, 8; jne 1b */
    scene_code(&s, c.bound, strlen(c.bound));
    SCENE_CODE(&s, "\xFF\x24\xFD"); /* jmp [table + rdi*8] */
    put(s.text, s.b->base + RODATA, 4);
    if (c.switches) {
        first = scene_here(&s);
    }
    SCENE_CODE(&s, "\xC3");
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    word = s.b->base + first, memcpy(s.rodata, &word, 8);
    word = second ? s.b->base + second : 0, memcpy(s.rodata + 8, &word, 8);
    prove_scene(&s);
    flags = flags_at(&s, f);
    scene_finish(&s);
    return flags;
}
#define FLAGS_OF_TABLE(...) flags_of_table((table_of_functions){ __VA_ARGS__ })
#define SECOND(code) .second = code, .second_size = sizeof(code) - 1
#define BOUND .bound = "\x83\xFF\x01\x77\x07"

/* `return table[k](...)`: the target receives the stack of the call. */
static void a_jump_through_a_table_of_functions_is_a_tail_jump(void)
{
#define READS_THREE "\x48\x8B\x44\x24\x18\x90\xC3" /* mov rax, [rsp+24] */
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(FLAGS_OF_TABLE(BOUND, SECOND(LEAF))), 0);
    CHECK_EQ_U64(HOTFN_VERDICT_ARGUMENTS(FLAGS_OF_TABLE(BOUND, SECOND(READS_THREE))), 3);
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(FLAGS_OF_TABLE(BOUND, SECOND(TAKES_ARGUMENT))),
                 HOTFN_REASON_TAIL_UNPROVEN);
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(FLAGS_OF_TABLE(BOUND)), HOTFN_REASON_TAIL_UNKNOWN);
    CHECK_EQ_U64(HOTFN_VERDICT_TIMING_REASON(FLAGS_OF_TABLE(.bound = "", SECOND(LEAF))),
                 HOTFN_REASON_TAIL_UNKNOWN);
    CHECK_EQ_U64(
        HOTFN_VERDICT_TIMING_REASON(FLAGS_OF_TABLE(.bound = "", SECOND(LEAF), .switches = true)),
        0);
    CHECK_EQ_U64(
        HOTFN_VERDICT_ARGUMENTS(FLAGS_OF_TABLE(.bound = "", SECOND(READS_THREE), .switches = true)),
        3);
}

static void cases_in_a_fragment_are_followed(void)
{
    CHECK_EQ_U64(reason_of_case_in_fragment("\x31\xC0\x90\x90\x90\xC3", 6), 0);
    CHECK_EQ_U64(reason_of_case_in_fragment(TAKES_ARGUMENT, 6), HOTFN_REASON_STACK_ARGUMENTS);
}

/* The reason of f.  A fragment of f (own) or of g lies apart from both and jumps to f. */
static uint32_t reason_with_jump_from_fragment(bool own)
{
    scene s = scene_begin();
    uint64_t f = SCENE_CODE(&s, "\x48\x83\xEF\x01\x0F"), g, cold = f + 64; /* sub rdi, 1; je */
    uint32_t reason;

    scene_branch(&s, 0x84, own ? cold : f + 10); /* 0F 84 */
    SCENE_CODE(&s, "\xC3");
    scene_symbol(&s, "f", refer_to(&s, f), scene_here(&s) - f, FUNC);
    g = SCENE_CODE(&s, "\x48\x83\xEF\x01\x0F");
    scene_branch(&s, 0x84, own ? g + 10 : cold);
    SCENE_CODE(&s, "\xC3");
    scene_symbol(&s, "g", refer_to(&s, g), scene_here(&s) - g, FUNC);
    scene_nops(&s, cold - scene_here(&s));
    scene_branch(&s, 0xE9, f);
    scene_symbol(&s, "g.cold", cold, 5, FUNC);
    s.fdes[s.fde_count++] = (scene_fde){ .begin = cold, .size = 5, .inner = true };
    prove_scene(&s);
    CHECK_EQ_U64(scene_verdict(&s, cold).pub.verdict, HOTFN_VERDICT_FRAGMENT);
    CHECK_EQ_U64(scene_verdict(&s, f).pub.flags & HOTFN_VERDICT_ENTRY_LOOP,
                 own ? HOTFN_VERDICT_ENTRY_LOOP : 0);
    CHECK_EQ_U64(reason_at(&s, g), 0);
    CHECK_EQ_U64(scene_verdict(&s, cold).pub.owner,
                 hotfn_functions_find(s.functions, own ? f : g) + 1);
    reason = reason_at(&s, f);
    scene_finish(&s);
    return reason;
}

/* The scan flags the target of any fragment's jump as a loop; the proof finds the fragment's
 * owner. */
static void a_fragment_that_jumps_to_an_entry_is_followed(void)
{
    CHECK_EQ_U64(reason_with_jump_from_fragment(false), 0);
    CHECK_EQ_U64(reason_with_jump_from_fragment(true), HOTFN_REASON_ENTRY_JUMPED);
}

/* Each of f and g: sub rdi, 1; je f.cold; ret. */
static void a_fragment_that_two_functions_jump_to_has_no_owner(void)
{
    scene s = scene_begin();
    uint64_t f = scene_here(&s), g = f + 16, cold = f + 32;

    for (uint64_t at = f; at <= g; at += g - f) {
        SCENE_CODE(&s, "\x48\x83\xEF\x01\x0F");
        scene_branch(&s, 0x84, cold);
        SCENE_CODE(&s, "\xC3");
        scene_symbol(&s, at == f ? "f" : "g", refer_to(&s, at), scene_here(&s) - at, FUNC);
        scene_nops(&s, at + 16 - scene_here(&s));
    }
    SCENE_CODE(&s, "\x31\xC0\x90\x90\x90\xC3");
    scene_symbol(&s, "f.cold", cold, 6, FUNC);
    s.fdes[s.fde_count++] = (scene_fde){ .begin = cold, .size = 6, .inner = true };
    prove_scene(&s);
    CHECK_EQ_U64(scene_verdict(&s, cold).pub.verdict, HOTFN_VERDICT_FRAGMENT);
    CHECK_EQ_U64(scene_verdict(&s, cold).pub.owner, 0);
    scene_finish(&s);
}

/* A function with an exception table: 5 bytes `before`; call leaf; call rax; `behind`; `pad`, the
 * landing pad of the calls in [site, site + site_bytes).  cfi: instructions of its unwind table.
 * The codes contain no zero byte; reason_of_pad has defaults for members that are NULL or 0. */
typedef struct pad_case {
    const char *pad, *cfi, *before, *behind;
    uint8_t site, site_bytes;
    bool truncated; /* the exception table ends within a call site */
} pad_case;

#define PAD_RETURNS "\x48\x83\xC4\x10\x5B\xC3" /* add rsp, 16; pop rbx; ret */

static uint32_t reason_of_pad(pad_case c)
{
    const char *before = c.before ? c.before : "\x53\x48\x83\xEC\x10"; /* push rbx; sub rsp, 16 */
    const char *behind = c.behind ? c.behind : PAD_RETURNS;
    uint8_t at = c.site ? c.site : 5, size = c.site ? c.site_bytes : 5;
    /* no @LPStart, no @TType, call sites in uleb: one */
    uint8_t lsda[] = {
        0xFF, 0xFF, 0x01, c.truncated ? 200 : 4, at, size, (uint8_t)(12 + strlen(behind)), 0
    };
    scene s = scene_begin();
    uint64_t leaf = SCENE_FUNCTION(&s, "leaf", LEAF), f = scene_code(&s, before, 5);
    uint32_t reason;

    scene_branch(&s, 0xE8, leaf);
    SCENE_CODE(&s, "\xFF\xD0");
    scene_code(&s, behind, strlen(behind));
    scene_code(&s, c.pad, strlen(c.pad));
    s.fdes[s.fde_count++] = (scene_fde){
        .begin = f, .size = (uint32_t)(scene_here(&s) - f), .lsda = true, .cfi = c.cfi
    };
    scene_symbol(&s, "f", refer_to(&s, f), s.fdes[0].size, FUNC);
    memcpy(s.rodata, lsda, sizeof lsda);
    if (c.truncated) { /* a number without an end */
        memset(s.rodata + 8, 0x80, sizeof s.rodata - 8);
    }
    prove_scene(&s);
    reason = reason_at(&s, f);
    scene_finish(&s);
    return reason;
}
#define REASON_OF_PAD(...) reason_of_pad((pad_case){ .pad = __VA_ARGS__ })

#define TAKES(bytes) "\x45\x2E" bytes "\x45\x2E\x7F" /* GNU_args_size of the first call; then 127 */

static void exceptions_are_followed_to_their_pads(void)
{
    static const char reaches_out[] = "\x48\x8D\x44\x24\x20" PAD_RETURNS; /* lea rax, [rsp+32] */

    CHECK_EQ_U64(REASON_OF_PAD(PAD_RETURNS), 0);
    CHECK_EQ_U64(REASON_OF_PAD(reaches_out), HOTFN_REASON_STACK_ARGUMENTS);
    CHECK_EQ_U64(REASON_OF_PAD("\x31\xC0\xC3"), HOTFN_REASON_STACK_UNKNOWN);
    /* the pad belongs to call rax only; then to bytes between, before and after the calls */
    CHECK_EQ_U64(REASON_OF_PAD(reaches_out, .site = 10, .site_bytes = 2),
                 HOTFN_REASON_STACK_ARGUMENTS);
    CHECK_EQ_U64(REASON_OF_PAD(reaches_out, .site = 6, .site_bytes = 4), 0);
    CHECK_EQ_U64(REASON_OF_PAD(reaches_out, .site = 1, .site_bytes = 4), 0);
    CHECK_EQ_U64(REASON_OF_PAD(reaches_out, .site = 12, .site_bytes = 2), 0);
}

/* push rbp; mov rbp, rsp; nop; ...; leave; ret.  A pad has the values that registers had
 * at the call and that callees preserve. */
static void pads_have_the_preserved_registers_of_the_call(void)
{
    CHECK_EQ_U64(REASON_OF_PAD("\xC9\xC3", .before = "\x55\x48\x89\xE5\x90", .behind = "\xC9\xC3"),
                 0);
    CHECK_EQ_U64(REASON_OF_PAD("\x48\x89\xDC\x5B\xC3", .before = "\x53\x48\x89\xE3\x90",
                               .behind = "\x48\x89\xDC\x5B\xC3"), /* with rbx in place of rbp */
                 0);
    CHECK_EQ_U64(REASON_OF_PAD("\x48\x89\xCC\x5B\xC3", .before = "\x53\x48\x89\xE3\x90",
                               .behind = "\x48\x89\xDC\x5B\xC3"), /* mov rsp, rcx: not preserved */
                 HOTFN_REASON_STACK_UNKNOWN);
}

static void exceptions_remove_the_arguments_of_their_calls(void)
{
    CHECK_EQ_U64(REASON_OF_PAD("\x5B\xC3", .cfi = TAKES("\x10")), 0);
    CHECK_EQ_U64(REASON_OF_PAD(PAD_RETURNS, .cfi = TAKES("\x10")), HOTFN_REASON_RETURN_ADDRESS);
    CHECK_EQ_U64(REASON_OF_PAD("\x5B\xC3", .cfi = TAKES("\x08")), HOTFN_REASON_STACK_UNKNOWN);
}

static void unreadable_landing_pad_tables_are_refused(void)
{
    CHECK_EQ_U64(REASON_OF_PAD("\x0F\x0B", .cfi = TAKES("\x80\x80\x04")),
                 HOTFN_REASON_STACK_UNKNOWN);
    CHECK_EQ_U64(REASON_OF_PAD("\x0F\x0B", .cfi = "\x3F"),
                 HOTFN_REASON_STACK_UNKNOWN); /* an unknown instruction */
    /* The function begins with jmp +0: no byte that the table may cover is moved. */
    CHECK_EQ_U64(REASON_OF_PAD("\xC3", .before = "\xE9\0\0\0\0", .behind = "\xC3"), 0);
    CHECK_EQ_U64(
        REASON_OF_PAD("\xC3", .before = "\xE9\0\0\0\0", .behind = "\xC3", .truncated = true),
        HOTFN_REASON_STACK_UNKNOWN);
}

/* The reason of a function in an image with another section, symbol or string. */
static uint32_t reason_in_runtime(const char *section, const char *name, uint8_t type,
                                  const char *string)
{
    scene s = scene_begin();
    uint64_t f = refer_to(&s, SCENE_FUNCTION(&s, "f", LEAF));
    uint64_t other = scene_code(&s, LEAF, sizeof LEAF - 1);
    uint32_t reason;

    scene_symbol(&s, name, type == FUNC ? other : RODATA, 8, type);
    memcpy(s.rodata + 1, string, strlen(string) + 1);
    s.extra_name = section;
    prove_scene(&s);
    reason = reason_at(&s, f);
    scene_finish(&s);
    return reason;
}

static void images_with_sections_of_stack_walkers_are_counted_only(void)
{
    static const char *const sections[] = { ".gopclntab",       ".data.rel.ro.gopclntab",
                                            ".note.go.buildid", ".svm_heap",
                                            "__managedcode",    ".managed",
                                            ".llvm_stackmaps" };

    CHECK_EQ_U64(reason_in_runtime(NULL, "g", FUNC, ""), 0);
    CHECK_EQ_U64(reason_in_runtime(".gopclnta", "g", FUNC, ""), 0);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        CHECK_EQ_U64(reason_in_runtime(sections[i], "g", FUNC, ""), HOTFN_REASON_OWN_STACK_WALK);
    }
}

static void images_with_symbols_of_stack_walkers_are_counted_only(void)
{
    static const struct {
        const char *name;
        uint8_t type;
    } symbols[] = {
        { "_ZN2v88internal7Isolate3NewEv", FUNC },
        { "JNI_CreateJavaVM", FUNC },
        { "caml_frametable", OBJECT },
        { "camlStdlib__List__frametable", OBJECT },
        { "camlStdlib__List.frametable", OBJECT },
        { "caml_call_gc", FUNC },
        { "Sbuild_heap", FUNC },
        { "MLton_gcState", FUNC },
        { "_kDartVmSnapshotInstructions", OBJECT },
        { "_kDartIsolateSnapshotInstructions", OBJECT },
        { "oatexec", OBJECT },
        { "__svm_code_section", OBJECT },
        { "DotNetRuntimeDebugHeader", OBJECT },
        { "coreclr_initialize", FUNC },
        { "__LLVM_StackMaps", OBJECT },
    };

    CHECK_EQ_U64(reason_in_runtime(NULL, "caml_frametables", OBJECT, ""), 0);
    CHECK_EQ_U64(reason_in_runtime(NULL, "my_caml_frametable", OBJECT, ""), 0);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        CHECK_EQ_U64(reason_in_runtime(NULL, symbols[i].name, symbols[i].type, ""),
                     HOTFN_REASON_OWN_STACK_WALK);
    }
}

static void a_stripped_stack_walker_is_found_by_its_strings(void)
{
    CHECK_EQ_U64(reason_in_runtime(NULL, "g", FUNC, "OCAMLRUNPARAM"), HOTFN_REASON_OWN_STACK_WALK);
    CHECK_EQ_U64(reason_in_runtime(NULL, "g", FUNC, "OOCAMLRUNPARAM"), HOTFN_REASON_OWN_STACK_WALK);
    CHECK_EQ_U64(reason_in_runtime(NULL, "g", FUNC, "OCAMLRUNPARAMS"), 0);
}

static uint64_t disables_tsc(uint32_t flags)
{
    static const char disabling_code[] =
        "\xb8\x9d\x00\x00\x00\xbf\x1a\x00\x00\x00\xbe\x02\x00\x00\x00\x0f\x05\xc3";
    scene s = scene_begin();
    uint64_t f = scene_function(&s, "f", disabling_code, sizeof disabling_code - 1);

    s.options = flags;
    scene_analyze(&s);
    uint64_t at = hfn_verdicts_get_tsc_disable_rva(s.verdicts);
    scene_finish(&s);
    return at ? at - f : 0;
}

static void a_system_call_that_disables_the_tsc_is_reported(void)
{
    CHECK_EQ_U64(disables_tsc(HOTFN_VERDICTS_TIMING), 15);
    CHECK_EQ_U64(disables_tsc(0), 0);
}

static void without_the_option_no_function_is_timed(void)
{
    scene s = scene_begin();
    uint64_t f = refer_to(&s, SCENE_FUNCTION(&s, "f", LEAF));

    scene_analyze(&s);
    CHECK(!(scene_verdict(&s, f).pub.flags & HOTFN_VERDICT_TIMED));
    scene_finish(&s);
}

static const check_test tests[] = {
    CHECK_TEST(a_function_that_stays_in_its_frame_is_timed),
    CHECK_TEST(code_that_may_leave_the_frame_is_refused_with_its_reason),
    CHECK_TEST(a_function_that_compares_frame_addresses_of_calls_is_refused),
    CHECK_TEST(indexed_pointers_need_an_object),
    CHECK_TEST(arguments_at_known_offsets_are_copied),
    CHECK_TEST(arguments_that_only_outlined_code_reads_are_copied),
    CHECK_TEST(accesses_of_outlined_code_belong_to_its_caller),
    CHECK_TEST(arguments_of_a_tail_target_are_copied),
    CHECK_TEST(tail_jumps_need_proven_targets),
    CHECK_TEST(a_tail_target_may_be_proven_without_being_timed),
    CHECK_TEST(a_timed_call_ends_at_its_tail_exit),
    CHECK_TEST(functions_in_a_cycle_of_tail_jumps_get_tail_exits),
    CHECK_TEST(a_call_at_the_end_may_never_return),
    CHECK_TEST(paths_after_calls_must_meet_at_one_stack_depth),
    CHECK_TEST(a_case_that_is_a_function_is_a_tail_target),
    CHECK_TEST(a_jump_through_a_table_of_functions_is_a_tail_jump),
    CHECK_TEST(cases_in_a_fragment_are_followed),
    CHECK_TEST(a_fragment_that_jumps_to_an_entry_is_followed),
    CHECK_TEST(a_fragment_that_two_functions_jump_to_has_no_owner),
    CHECK_TEST(exceptions_are_followed_to_their_pads),
    CHECK_TEST(pads_have_the_preserved_registers_of_the_call),
    CHECK_TEST(exceptions_remove_the_arguments_of_their_calls),
    CHECK_TEST(unreadable_landing_pad_tables_are_refused),
    CHECK_TEST(images_with_sections_of_stack_walkers_are_counted_only),
    CHECK_TEST(images_with_symbols_of_stack_walkers_are_counted_only),
    CHECK_TEST(a_stripped_stack_walker_is_found_by_its_strings),
    CHECK_TEST(a_system_call_that_disables_the_tsc_is_reported),
    CHECK_TEST(without_the_option_no_function_is_timed),
};
CHECK_MAIN(tests)
