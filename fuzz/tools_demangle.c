/* SPDX-License-Identifier: MIT */
/* Demangles any bytes after the first letters of each scheme.  The tool demangles harmless names in
 * its own process, so that must not crash, hang or need much memory. */
#include "../tools/hotfn/cli/commands.h"
#include "../tools/hotfn/cli/demangle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 1024 };

/* Replaces the child process that demangles all other names.  The child's memory limit is too low
 * for a sanitizer: the child would fail at its first name, and libFuzzer would report that. */
size_t demangle_in_worker(const char *mangled, char *out, size_t out_bytes)
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
