/* SPDX-License-Identifier: MIT */
/* The words for strategies and reasons: stable names for programs, one sentence for people. */
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
    [HOTFN_REASON_NONE] = { "none", "It can be hooked." },
    [HOTFN_REASON_JUMP_INTO_PATCH] = { "jump-into-patch",
        "A jump, a call or a taken address leads into the bytes that would be patched." },
    [HOTFN_REASON_TOO_SHORT] = { "too-short",
        "It ends before the patch does, and no padding follows." },
    [HOTFN_REASON_CALL_IN_PATCH] = { "call-in-patch",
        "A call stands among the bytes that would move; its return address must stay in place." },
    [HOTFN_REASON_CANNOT_MOVE] = { "cannot-move",
        "An instruction among the bytes that would move cannot mean the same elsewhere." },
    [HOTFN_REASON_UNDECODABLE] = { "undecodable",
        "Its first bytes are no instructions of this machine." },
    [HOTFN_REASON_UNBOUNDED_TABLE] = { "unbounded-table",
        "An indirect jump may land anywhere in it: the code shows neither table nor bound." },
    [HOTFN_REASON_NO_ISLAND] = { "no-island",
        "It is too short for a jump, and no padding is in reach of a short one." },
    [HOTFN_REASON_NOT_CODE] = { "not-code",
        "It lies outside the executable sections, or the file holds no bytes for it." },
    [HOTFN_REASON_PLT] = { "plt", "It is a linker stub, not a function of its own." },
    [HOTFN_REASON_RESOLVER] = { "resolver", "It chooses an implementation while the loader runs." },
    [HOTFN_REASON_GLUE] = { "glue", "The kernel jumps to it with no return address." },
    [HOTFN_REASON_FRAGMENT] = { "fragment",
        "It is a part of another function: nothing calls it, or it begins in a frame." },
    [HOTFN_REASON_RSEQ] = { "rseq",
        "It holds a restartable sequence, whose addresses the kernel knows." },
    [HOTFN_REASON_SIGNAL_RESTORER] = { "signal-restorer",
        "Signal handlers return to it; the kernel and unwinders know its bytes." },
    [HOTFN_REASON_FAULT_KNOWN] = { "fault-known",
        "A fault handler of the program knows the addresses of its instructions." },
    [HOTFN_REASON_MACHINE] = { "machine", "Functions of this machine cannot be judged yet." },
    [HOTFN_REASON_TEXTREL] = { "textrel", "The loader rewrites the code of this image." },
    [HOTFN_REASON_OVERLAP] = { "overlap", "Its patch would overlap the next function's entry." },
    [HOTFN_REASON_EXCLUDED] = { "excluded", "It was left out by the selection." },
    [HOTFN_REASON_RELOCATED] = { "relocated",
        "The loader rewrites an address among the bytes that would be patched or moved." },
    [HOTFN_REASON_READ] = { "read", "Code reads bytes that would be patched as data." },
    [HOTFN_REASON_BYTES_DIFFER] = { "bytes-differ",
        "Memory holds other bytes than the file: a debugger, another hook, or another build." },
    [HOTFN_REASON_NO_NEAR_MEMORY] = { "no-near-memory",
        "No free memory is within reach of a jump." },
    [HOTFN_REASON_NOT_WRITABLE] = { "not-writable", "The system forbids changing its page." },
    [HOTFN_REASON_NO_SLOTS] = { "no-slots", "The record has no room for its counter." },
    [HOTFN_REASON_NOT_LOADED] = { "not-loaded", "Its module never came into the process." },
    [HOTFN_REASON_ENGINE] = { "engine", "It serves hotfn itself, to learn of modules loaded later." },
    [HOTFN_REASON_BUSY] = { "busy", "A thread stood on its first bytes and did not leave them." },
    [HOTFN_REASON_NOT_PROVEN] = { "not-proven", "It was scanned without the proofs for timing." },
    [HOTFN_REASON_STACK_ARGUMENTS] = { "stack-arguments",
        "It takes the address of an argument on the stack, or reaches into its caller's frame by an index or "
        "further than a stub can copy." },
    [HOTFN_REASON_RETURN_ADDRESS] = { "return-address", "It reads or moves its return address." },
    [HOTFN_REASON_STACK_UNKNOWN] = { "stack-unknown",
        "Its stack pointer cannot be followed through all of its code." },
    [HOTFN_REASON_RETURN_POPS] = { "return-pops",
        "A return in it takes more than the return address off the stack." },
    [HOTFN_REASON_TAIL_UNKNOWN] = { "tail-unknown",
        "It ends with a jump to code that is not known beforehand." },
    [HOTFN_REASON_TAIL_UNPROVEN] = { "tail-unproven",
        "It ends with a jump to a function that may not be timed." },
    [HOTFN_REASON_TAIL_CIRCLE] = { "tail-circle",
        "It jumps on to functions that jump back to it, without end." },
    [HOTFN_REASON_ENTRY_JUMPED] = { "entry-jumped",
        "Jumps lead to its entry, from itself or with data below the stack pointer." },
    [HOTFN_REASON_PATCH_INSIDE] = { "patch-inside", "Its patch stands behind its entry." },
    [HOTFN_REASON_OWN_STACK_WALK] = { "own-stack-walk",
        "Its runtime walks the stack itself: V8, a Java machine, or Go." },
    [HOTFN_REASON_OWN_ADDRESS] = { "own-address",
        "It keeps an address in its frame and compares one with what was kept: a later call's may differ." },
};
// clang-format on

static const wording *wording_of(uint32_t reason)
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
    return wording_of(reason)->name;
}

const char *hotfn_reason_get_text(uint32_t reason)
{
    return wording_of(reason)->text;
}
