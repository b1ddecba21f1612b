/* SPDX-License-Identifier: MIT */
/* Prints what the decoder says of each instruction in a file of raw code, read straight through:
 * "offset length flow target", target in hex or '-'.  For decoder_agreement.py. */
#include "arch/arch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint8_t *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;

    if (!file || fseek(file, 0, SEEK_END) != 0)
        return NULL;
    *size = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(*size + 1);
    if (bytes && fread(bytes, 1, *size, file) != *size)
        *size = 0;
    fclose(file);
    return bytes;
}

int main(int argc, char **argv)
{
    static const char *const flows[] = { "next",    "call",          "call-indirect", "jump",
                                         "jump-if", "jump-indirect", "return",        "stop" };
    size_t size = 0;
    uint8_t *bytes = argc == 3 ? read_whole(argv[1], &size) : NULL;
    uint64_t rva = argc == 3 ? strtoull(argv[2], NULL, 0) : 0;
    hfn_instruction in;

    if (!bytes)
        return 2;
    for (size_t at = 0; at < size; at += in.length) {
        if (!hfn_arch_x86_64.decode(bytes + at, size - at, rva + at, 0, &in)) {
            in.length = 1;
            printf("%zx 1 bad -\n", at);
        } else if (in.relative_at) {
            printf("%zx %u %s %" PRIx64 "\n", at, in.length, flows[in.flow], in.target);
        } else {
            printf("%zx %u %s -\n", at, in.length, flows[in.flow]);
        }
    }
    free(bytes);
    return 0;
}
