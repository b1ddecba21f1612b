/* SPDX-License-Identifier: MIT */
/* Any bytes as a function list of either form. */
#include <hotfn/lowlevel/lists.h>
#include <stdlib.h>
#include <string.h>

static void check_entries(const hotfn_list *list)
{
    hotfn_list_info info = HOTFN_LIST_INFO_INIT;
    hotfn_list_entry e = HOTFN_LIST_ENTRY_INIT;

    if (hotfn_list_get_info(list, &info) != HOTFN_OK || info.id_bytes > 32 || !info.module) {
        abort();
    }
    for (uint32_t i = 0; i < info.entry_count; i++) {
        if (hotfn_list_get(list, i, &e) != HOTFN_OK || !e.name || !e.module ||
            strlen(e.name) > 1u << 20) {
            abort();
        }
    }
    if (hotfn_list_get(list, info.entry_count, &e) != HOTFN_E_NOT_FOUND) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_list *list = NULL;

    if (hotfn_list_from_bytes(&list, data, size, "fuzz", NULL, NULL) == HOTFN_OK) {
        check_entries(list);
    }
    hotfn_list_destroy(list);
    return 0;
}
