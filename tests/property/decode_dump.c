/* SPDX-License-Identifier: MIT */
/* Prints one line for each instruction in a file of raw code: "offset length flow target",
 * target in hex or '-'.  Arguments: the file, the address of its first byte, the CPU's name in
 * arch.h.  For decoder_agreement.py. */
#include "arch/arch.h"

#include <hotfn/machine.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;

    if (!file || fseek(file, 0, SEEK_END) != 0) {
        return NULL;
    }
    *size = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(*size + 1);
    if (bytes && fread(bytes, 1, *size, file) != *size) {
        *size = 0;
    }
    fclose(file);
    return bytes;
}

static const hfn_arch *find_arch(const char *name)
{
    for (uint32_t machine = 1; machine <= HOTFN_MACHINE_ARM64; machine++) {
        const hfn_arch *arch = hfn_arch_find(machine);
        if (arch && strcmp(arch->name, name) == 0) {
            return arch;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const char *const flows[] = { "next",    "call",          "call-indirect", "jump",
                                         "jump-if", "jump-indirect", "return",        "stop" };
    size_t size = 0;
    uint8_t *bytes = argc == 4 ? read_whole(argv[1], &size) : NULL;
    uint64_t rva = argc == 4 ? strtoull(argv[2], NULL, 0) : 0;
    const hfn_arch *arch = argc == 4 ? find_arch(argv[3]) : NULL;
    hfn_instruction in;

    if (!bytes || !arch) {
        return 2;
    }
    for (size_t at = 0; at < size; at += in.length) {
        if (!arch->decode(bytes + at, size - at, rva + at, 0, &in)) {
            in.length = 1;
            printf("%zx 1 bad -\n", at);
        } else if (in.relative_bytes) {
            printf("%zx %u %s %" PRIx64 "\n", at, in.length, flows[in.flow], in.target);
        } else {
            printf("%zx %u %s -\n", at, in.length, flows[in.flow]);
        }
    }
    free(bytes);
    return 0;
}
