/* SPDX-License-Identifier: MIT */
/*
 * Compares hotfn's A64 decoder with capstone: flow, target and length of every aligned word of the
 * given files, and of random words.  A word that capstone does not know must be neither a branch
 * nor PC-relative, except for the few instructions that are newer than capstone. Arguments: seed
 * (0: the time), number of random words, files.
 */
#include "arch/arch.h"
#include "random.h"

#include <capstone/capstone.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RVA UINT64_C(0x40000000)

typedef struct tally {
    uint64_t compared, unknown, differing;
} tally;

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (strcmp(name, *list) == 0) {
            return true;
        }
    }
    return false;
}

static hfn_flow get_capstone_flow(const char *name)
{
    static const char *const calls[] = { "blr", "blraa", "blraaz", "blrab", "blrabz", NULL };
    static const char *const jumps[] = { "br", "braa", "braaz", "brab", "brabz", NULL };
    static const char *const returns[] = { "ret",    "retaa",  "retab", "eret",
                                           "eretaa", "eretab", "drps",  NULL };
    static const char *const conditions[] = { "cbz", "cbnz", "tbz", "tbnz", NULL };
    static const char *const stops[] = { "brk", "hlt", "udf", NULL };

    if (strcmp(name, "b") == 0) {
        return HFN_FLOW_JUMP;
    }
    if (strcmp(name, "bl") == 0) {
        return HFN_FLOW_CALL;
    }
    if (strncmp(name, "b.", 2) == 0 || is_one_of(name, conditions)) {
        return HFN_FLOW_JUMP_IF;
    }
    if (is_one_of(name, calls)) {
        return HFN_FLOW_CALL_INDIRECT;
    }
    if (is_one_of(name, jumps)) {
        return HFN_FLOW_JUMP_INDIRECT;
    }
    if (is_one_of(name, returns)) {
        return HFN_FLOW_RETURN;
    }
    return is_one_of(name, stops) ? HFN_FLOW_STOP : HFN_FLOW_NEXT;
}

/* The target of a PC-relative form, its last operand "#0x..."; false for other instructions. */
static bool get_capstone_target(const cs_insn *in, hfn_flow flow, uint64_t *target)
{
    const char *last = strrchr(in->op_str, ' ');
    bool direct = flow == HFN_FLOW_JUMP || flow == HFN_FLOW_CALL || flow == HFN_FLOW_JUMP_IF;
    bool address = strcmp(in->mnemonic, "adr") == 0 || strcmp(in->mnemonic, "adrp") == 0;
    bool loads = strcmp(in->mnemonic, "ldr") == 0 || strcmp(in->mnemonic, "ldrsw") == 0 ||
                 strcmp(in->mnemonic, "prfm") == 0;

    last = last ? last + 1 : in->op_str;
    if (!(direct || address || (loads && !strchr(in->op_str, '['))) || last[0] != '#') {
        return false;
    }
    *target = strtoull(last + 1, NULL, 0);
    return true;
}

/* Branches that capstone 4 does not know: bc.cond (FEAT_HBC), braa and similar (FEAT_PAuth). */
static bool is_newer_than_capstone(uint32_t word)
{
    return (word & 0xFF000010) == 0x54000010 || (word & 0xFE1FF800) == 0xD61F0800;
}

static bool is_different(uint32_t word, const cs_insn *capstone)
{
    uint8_t bytes[4] = { (uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16),
                         (uint8_t)(word >> 24) };
    hfn_instruction in = { .length = 0 };
    uint64_t target = 0;
    bool known = hfn_arch_arm64.decode(bytes, sizeof bytes, RVA, 0, &in);

    if (!capstone) {
        return known && !is_newer_than_capstone(word) &&
               ((in.flow != HFN_FLOW_NEXT && in.flow != HFN_FLOW_STOP) || in.relative_bytes);
    }
    hfn_flow flow = get_capstone_flow(capstone->mnemonic);
    bool relative = get_capstone_target(capstone, flow, &target);
    return !known || in.length != capstone->size || in.flow != (uint8_t)flow ||
           (in.relative_bytes != 0) != relative || (relative && in.target != target);
}

static void compare(csh handle, cs_insn *buffer, uint32_t word, tally *t)
{
    const uint8_t bytes[4] = { (uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16),
                               (uint8_t)(word >> 24) };
    const uint8_t *at = bytes;
    size_t size = sizeof bytes;
    uint64_t address = RVA;
    bool known = cs_disasm_iter(handle, &at, &size, &address, buffer);

    *(known ? &t->compared : &t->unknown) += 1;
    if (!is_different(word, known ? buffer : NULL)) {
        return;
    }
    if (t->differing++ < 20) {
        printf("# %08" PRIx32 ": %s %s\n", word, known ? buffer->mnemonic : "(unknown)",
               known ? buffer->op_str : "");
    }
}

static bool compare_file(csh handle, cs_insn *buffer, const char *path, tally *t)
{
    FILE *file = fopen(path, "rb");
    uint8_t b[4];

    if (!file) {
        return false;
    }
    while (fread(b, 1, sizeof b, file) == sizeof b) {
        compare(handle, buffer,
                b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24, t);
    }
    fclose(file);
    return true;
}

static int report(int number, const char *what, const tally *t)
{
    printf("%sok %d %s: %" PRIu64 " words agree, %" PRIu64 " unknown to capstone\n",
           t->differing ? "not " : "", number, what, t->compared - t->differing, t->unknown);
    return t->differing != 0;
}

int main(int argc, char **argv)
{
    random_run run = random_parse_run(argc, argv, 1000000);
    random_source r = random_seed(run.seed);
    tally random_words = { 0, 0, 0 };
    int failed = 0;
    csh handle;

    printf("1..%d\n", 1 + (argc > 3 ? argc - 3 : 0));
    if (cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &handle) != CS_ERR_OK) {
        return 1;
    }
    cs_insn *buffer = cs_malloc(handle);
    for (uint64_t i = 0; i < run.count; i++) {
        compare(handle, buffer, (uint32_t)(random_u64(&r) >> 32), &random_words);
    }
    failed |= report(1, "random words", &random_words);
    for (int i = 3; i < argc; i++) {
        tally t = { 0, 0, 0 };
        if (!compare_file(handle, buffer, argv[i], &t)) {
            printf("ok %d %s # SKIP not installed\n", i - 1, argv[i]);
        } else {
            failed |= report(i - 1, argv[i], &t);
        }
    }
    cs_free(buffer, 1);
    cs_close(&handle);
    return failed;
}
