/* SPDX-License-Identifier: MIT */
/*
 * Functions that may fault, and a signal handler that knows them by the addresses of their
 * instructions, in the ways that programs use: ranges between labels or functions, tables of
 * ranges, sizes, sections, single addresses.  Prints which way found each fault.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __clang__
#define IN_ORDER __attribute__((noinline, used))
#else
#define IN_ORDER __attribute__((noipa, used, no_reorder))
#endif

#if defined(__x86_64__)
#define PC(uc) (uintptr_t)(uc)->uc_mcontext.gregs[REG_RIP]
#define CALL
#define LOAD "mov (%rdi), %rax\n ret\n"
#elif defined(__i386__)
#define PC(uc) (uintptr_t)(uc)->uc_mcontext.gregs[REG_EIP]
#define CALL __attribute__((regparm(1)))
#define LOAD "mov (%eax), %eax\n ret\n"
#else
#define PC(uc) (uintptr_t)(uc)->uc_mcontext.pc
#define CALL
#define LOAD "ldr x0, [x0]\n ret\n"
#endif

typedef CALL long load_fn(const long *from);

#define ASSEMBLY(name, section)                                                                    \
    __asm__(".pushsection " section "\n.p2align 4\n.globl " #name "\n.type " #name ", %function\n" \
            "" #name ": " LOAD ".size " #name ", . - " #name "\n.globl " #name "_end\n" #name      \
            "_end: nop\n.popsection\n");                                                           \
    extern load_fn name;                                                                           \
    extern char name##_end[]

ASSEMBLY(by_label, ".text");
ASSEMBLY(by_table, ".text");
ASSEMBLY(by_size, ".text");
ASSEMBLY(by_address, ".text");
ASSEMBLY(by_exception_table, ".text");
ASSEMBLY(by_section, "safe_text, \"ax\", %progbits");
ASSEMBLY(by_stored_range, ".text");
ASSEMBLY(by_stored_size, ".text");
ASSEMBLY(by_helper, ".text");

/* As in a kernel's exception table, each word is relative to itself. */
__asm__(".pushsection fault_table, \"a\", %progbits\n.p2align 2\n"
        ".long by_exception_table - ., by_exception_table_end - .\n.popsection\n");

extern const int32_t __start_fault_table[], __stop_fault_table[];
extern char __start_safe_text[], __stop_safe_text[];

static void *volatile own_label;

IN_ORDER CALL long by_next(const long *from)
{
    return *from;
}
IN_ORDER void next(void)
{
}
IN_ORDER void begin_many(void)
{
}
IN_ORDER CALL long by_many(const long *from)
{
    return *from;
}
IN_ORDER CALL long by_many_2(const long *from)
{
    return from[0];
}
IN_ORDER void end_many(void)
{
}
IN_ORDER CALL long by_own_label(const long *from)
{
    long value = *(const volatile long *)from;

    own_label = &&done;
    if (value == 8) {
        goto *own_label;
    }
    value++;
done:
    __asm__ volatile("");
    return value;
}
IN_ORDER void last(void)
{
}

static struct {
    uintptr_t from, to;
} table[] = { { (uintptr_t)by_table, (uintptr_t)by_table_end } };
static volatile uintptr_t stored_from, stored_to, stored_at, stored_bytes;

IN_ORDER int is_between(uintptr_t pc, uintptr_t from, uintptr_t to)
{
    return pc >= from && pc < to;
}

/* Inlined into the handler of the signal at each level of optimisation. */
static inline __attribute__((always_inline)) const char *find_way(const ucontext_t *context)
{
    uintptr_t pc = PC(context);

    for (const int32_t *word = __start_fault_table; word < __stop_fault_table; word += 2) {
        if (pc == (uintptr_t)word + (uintptr_t)(intptr_t)*word) {
            return "exception table";
        }
    }
    if (pc >= (uintptr_t)by_label && pc < (uintptr_t)by_label_end) {
        return "label";
    }
    if (pc >= table[0].from && pc < table[0].to) {
        return "table";
    }
    if (pc - (uintptr_t)by_size < 16) {
        return "size";
    }
    if (pc == (uintptr_t)by_address) {
        return "address";
    }
    if (pc >= (uintptr_t)__start_safe_text && pc < (uintptr_t)__stop_safe_text) {
        return "section";
    }
    if (pc >= stored_from && pc < stored_to) {
        return "stored range";
    }
    if (pc >= stored_at && pc - stored_at < stored_bytes) {
        return "stored size";
    }
    if (is_between(pc, (uintptr_t)by_helper, (uintptr_t)by_helper_end)) {
        return "helper";
    }
    if (pc >= (uintptr_t)by_next && pc < (uintptr_t)next) {
        return "next function";
    }
    if (pc >= (uintptr_t)begin_many && pc < (uintptr_t)end_many) {
        return "many functions";
    }
    return pc >= (uintptr_t)by_own_label && pc < (uintptr_t)own_label ? "own label" : "unknown";
}

static sigjmp_buf back;
static const char *volatile way;

static void handle(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    way = find_way(context);
    siglongjmp(back, 1);
}

static load_fn *volatile functions[] = {
    by_label,   by_table,        by_size,        by_address, by_exception_table,
    by_section, by_stored_range, by_stored_size, by_helper,  by_next,
    by_many,    by_many_2,       by_own_label
};

int main(void)
{
    const struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
    const long seven = 7;

    sigaction(SIGSEGV, &action, NULL);
    stored_from = (uintptr_t)by_stored_range;
    stored_to = (uintptr_t)by_stored_range_end;
    stored_at = (uintptr_t)by_stored_size;
    stored_bytes = (uintptr_t)by_stored_size_end - (uintptr_t)by_stored_size;
    by_own_label(&seven); /* sets the label */
    for (unsigned i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        long value = functions[i](&seven);
        if (sigsetjmp(back, 1) == 0) {
            functions[i](NULL);
            way = "no fault";
        }
        printf("%u: %ld, then a fault, found by: %s\n", i, value, way);
    }
    return 0;
}
