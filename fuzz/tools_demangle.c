/* SPDX-License-Identifier: MIT */
/* Any bytes as a mangled name, behind each scheme's first letters. What is tame is read in this
 * very process, so it must not crash, hang or need much memory. */
#include "../tools/hotfn/cli/commands.h"
#include "../tools/hotfn/cli/demangle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 1024 };

/* What is not tame goes to a child. Its limit of memory leaves a sanitizer none: it would die by
 * its first name, and libFuzzer would leave a file for that. */
size_t demangle_apart(const char *mangled, char *out, size_t out_bytes)
{
    (void)mangled, (void)out, (void)out_bytes;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const begins[] = { "", "_Z", "_R", "?", "_D", "__Z" };
    char name[NAME_BYTES + 8], out[4096];

    if (size == 0 || size > NAME_BYTES) {
        return 0;
    }
    strcpy(name, begins[data[0] % 6]);
    size_t begin = strlen(name);
    memcpy(name + begin, data + 1, size - 1);
    name[begin + size - 1] = 0;
    size_t length = hotfn_tool_demangle(NULL, name, out, sizeof out);
    if (length >= sizeof out || (length > 0 && strlen(out) != length)) {
        abort();
    }
    return 0;
}
