/* SPDX-License-Identifier: MIT */
/* Strategies and reasons as text: stable names for programs, and a sentence for users. */
#include <hotfn/lowlevel/verdicts.h>

#include <stddef.h>

typedef struct wording {
    const char *name;
    const char *text;
} wording;

// clang-format off
static const char *const strategies[] = {
    [HOTFN_STRATEGY_NONE]     = "none",
    [HOTFN_STRATEGY_RETARGET] = "retarget",
    [HOTFN_STRATEGY_JUMP]     = "jump",
    [HOTFN_STRATEGY_JUMP_PAD] = "jump-pad",
    [HOTFN_STRATEGY_ISLAND]   = "island",
    [HOTFN_STRATEGY_PUN]      = "pun",
    [HOTFN_STRATEGY_INT3]     = "int3",
};

static const wording reasons[] = {
    [HOTFN_REASON_NONE] = { "none", "The function can be hooked." },
    [HOTFN_REASON_JUMP_INTO_PATCH] = { "jump-into-patch",
        "A jump, a call or an address in the code refers to the middle of the bytes that would be patched." },
    [HOTFN_REASON_TOO_SHORT] = { "too-short",
        "The function is shorter than the patch, and no padding follows it." },
    [HOTFN_REASON_CALL_IN_PATCH] = { "call-in-patch",
        "A call is among the bytes that would be moved, and its return address must not change." },
    [HOTFN_REASON_CANNOT_MOVE] = { "cannot-move",
        "An instruction among the bytes that would be moved does not work at another address." },
    [HOTFN_REASON_UNDECODABLE] = { "undecodable",
        "The first bytes of the function are not valid instructions of this machine." },
    [HOTFN_REASON_UNBOUNDED_TABLE] = { "unbounded-table",
        "An indirect jump may target any byte of the function, because its jump table or the table's size is not known." },
    [HOTFN_REASON_NO_ISLAND] = { "no-island",
        "The function is too short for a jump, and no padding is within reach of a short jump." },
    [HOTFN_REASON_NOT_CODE] = { "not-code",
        "The function lies outside the executable sections, or the file does not contain its bytes." },
    [HOTFN_REASON_PLT] = { "plt", "This is a PLT entry, which belongs to the linker." },
    [HOTFN_REASON_RESOLVER] = { "resolver",
        "The function chooses an implementation while the program is being loaded." },
    [HOTFN_REASON_GLUE] = { "glue",
        "The kernel jumps to this function, so it has no return address." },
    [HOTFN_REASON_FRAGMENT] = { "fragment",
        "This is part of another function: it is never called, or it begins with a stack frame in place." },
    [HOTFN_REASON_RSEQ] = { "rseq",
        "The function contains a restartable sequence, whose addresses are registered with the kernel." },
    [HOTFN_REASON_SIGNAL_RESTORER] = { "signal-restorer",
        "Signal handlers return through this function; the kernel and unwinders recognise it by its bytes." },
    [HOTFN_REASON_FAULT_KNOWN] = { "fault-known",
        "A fault handler of the program, or an exception table, knows these instructions by their addresses." },
    [HOTFN_REASON_MACHINE] = { "machine", "Functions of this machine are not supported." },
    [HOTFN_REASON_TEXTREL] = { "textrel",
        "The loader modifies the code of this image (text relocations)." },
    [HOTFN_REASON_OVERLAP] = { "overlap",
        "The patch would overlap the entry of the next function." },
    [HOTFN_REASON_EXCLUDED] = { "excluded", "The function is not selected." },
    [HOTFN_REASON_RELOCATED] = { "relocated",
        "The loader relocates an address among the bytes that would be patched or moved." },
    [HOTFN_REASON_READ] = { "read", "Code reads the bytes that would be patched as data." },
    [HOTFN_REASON_RUNTIME_READS] = { "runtime-reads",
        "A runtime reads or patches this code itself (Mono's ahead-of-time images, sleds of XRay)." },
    [HOTFN_REASON_BYTES_DIFFER] = { "bytes-differ",
        "The bytes in memory differ from the file: there is a breakpoint, another hook, or another build." },
    [HOTFN_REASON_NO_NEAR_MEMORY] = { "no-near-memory",
        "There is no free memory within reach of a jump." },
    [HOTFN_REASON_NOT_WRITABLE] = { "not-writable",
        "The system does not allow the page of the function to be changed." },
    [HOTFN_REASON_NO_SLOTS] = { "no-slots", "The record has no counter left for the function." },
    [HOTFN_REASON_NOT_LOADED] = { "not-loaded", "The module was never loaded into the process." },
    [HOTFN_REASON_ENGINE] = { "engine",
        "The function is used by hotfn itself, to detect modules that are loaded later." },
    [HOTFN_REASON_OVERWRITTEN] = { "overwritten",
        "Other code overwrote the hook while the program ran, so the calls after that were not counted." },
    [HOTFN_REASON_BUSY] = { "busy",
        "A thread was executing the bytes that would be patched and could not be moved away." },
    [HOTFN_REASON_NOT_PROVEN] = { "not-proven",
        "The scan did not check whether the function can be timed." },
    [HOTFN_REASON_STACK_ARGUMENTS] = { "stack-arguments",
        "The function changes a stack argument, takes its address, or accesses its caller's frame by an index or farther than a stub can copy." },
    [HOTFN_REASON_RETURN_ADDRESS] = { "return-address",
        "The function reads or moves its return address." },
    [HOTFN_REASON_STACK_UNKNOWN] = { "stack-unknown",
        "The stack pointer, or an address in the stack frame, cannot be followed through all of the function's code." },
    [HOTFN_REASON_RETURN_POPS] = { "return-pops",
        "A return in the function removes more than the return address from the stack." },
    [HOTFN_REASON_TAIL_UNKNOWN] = { "tail-unknown",
        "The function ends with a jump to code that is not known in advance." },
    [HOTFN_REASON_TAIL_UNPROVEN] = { "tail-unproven",
        "The function ends with a jump to a function that cannot be timed." },
    [HOTFN_REASON_TAIL_CYCLE] = { "tail-cycle",
        "The function ends with a jump into a cycle of functions that jump to each other." },
    [HOTFN_REASON_ENTRY_JUMPED] = { "entry-jumped",
        "The entry is reached by jumps: from the function itself, or with data below the stack pointer." },
    [HOTFN_REASON_PATCH_INSIDE] = { "patch-inside",
        "The patch is not at the entry of the function." },
    [HOTFN_REASON_OWN_STACK_WALK] = { "own-stack-walk",
        "The runtime of this code (Go, V8, OCaml, a Java virtual machine or another) finds stack frames by their return addresses." },
    [HOTFN_REASON_OWN_ADDRESS] = { "own-address",
        "The function stores an address of its stack frame and compares one with it, so its frame must not move." },
    [HOTFN_REASON_SYSTEM_CALL] = { "system-call",
        "The function makes a system call that may switch the stack (sigreturn, clone, vfork), or one whose number its code does not show; on Windows, any." },
    [HOTFN_REASON_OWN_THREADS] = { "own-threads",
        "The program sets thread pointers itself (clone with CLONE_SETTLS, arch_prctl), so a thread may have no place for times." },
};
// clang-format on

static const wording *find_wording(uint32_t reason)
{
    static const wording unknown = { "unknown", "This version does not know the reason." };

    if (reason >= sizeof reasons / sizeof reasons[0] || !reasons[reason].name) {
        return &unknown;
    }
    return &reasons[reason];
}

const char *hotfn_strategy_get_name(uint32_t strategy)
{
    if (strategy >= sizeof strategies / sizeof strategies[0]) {
        return "unknown";
    }
    return strategies[strategy];
}

const char *hotfn_reason_get_name(uint32_t reason)
{
    return find_wording(reason)->name;
}

const char *hotfn_reason_get_text(uint32_t reason)
{
    return find_wording(reason)->text;
}
