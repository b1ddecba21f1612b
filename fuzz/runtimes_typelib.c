/* SPDX-License-Identifier: MIT */
/* Any bytes as a type library, and as a module with one: first in a file, then loaded.  The first
 * byte chooses; an interface of the corpus, or any, is looked up. */
#include "runtimes/com_typelib.h"

#include <stdlib.h>
#include <string.h>

static void find(hfn_span library, const hfn_guid *iid)
{
    hfn_com_interface found;

    memset(&found, 0, sizeof found);
    if (hfn_typelib_find(&found, library, iid) && found.count > HFN_COM_MAX_METHODS) {
        abort();
    }
    for (uint32_t i = 0; i < HFN_COM_MAX_METHODS; i++) {
        for (const char *c = found.methods[i].name; *c; c++) {
            if (*c <= ' ' || *c >= 0x7F) {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const hfn_guid known = { 0x5d1b6f21, 0x1234, 0x4321, { 1, 2, 3, 4, 5, 6, 7, 8 } };
    hfn_span all = { data + 1, size - 1, false };
    hfn_guid iid = known;

    if (size == 0) {
        return 0;
    }
    if (data[0] & 4 && size >= sizeof iid) {
        memcpy(&iid, data + size - sizeof iid, sizeof iid);
    }
    find(data[0] & 1 ? hfn_typelib_in_module(all, data[0] & 2, data[0] >> 4) : all, &iid);
    return 0;
}
