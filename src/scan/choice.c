/* SPDX-License-Identifier: MIT */
/* Chooses which functions of a scan are hooked, and makes the row of each function for a record. */
#include "scan/choice.h"

#include "base/status.h"
#include "functions/allocators.h"
#include "scan/scan.h"
#include "scan/select.h"

#include <stdlib.h>
#include <string.h>

/* RVAs of the functions that may be selected; NULL: all may. */
typedef struct rva_list {
    const uint64_t *rvas; /* sorted */
    uint32_t count;
} rva_list;

static int compare_rva(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_listed(const rva_list *list, uint64_t rva)
{
    return !list->rvas || bsearch(&rva, list->rvas, list->count, sizeof *list->rvas, compare_rva);
}

static bool select_by_names(hfn_selector *selector, const hotfn_record_function *row)
{
    const char *name = row->name;

    hfn_selector_begin_function(selector);
    for (uint32_t i = 0; i < row->name_count && name[0]; i++, name += strlen(name) + 1) {
        hfn_selector_add_name(selector, name);
    }
    return hfn_selector_is_selected(selector, row->byte_count);
}

static void select_functions(hfn_scan_choice *choice, hfn_selector *selector, const rva_list *list)
{
    hotfn_record_function row = HOTFN_RECORD_FUNCTION_INIT;

    for (uint32_t i = 0; i < choice->module.function_count; i++) {
        hotfn_scan_get_function(choice->scan, i, &row);
        choice->selected[i] = is_listed(list, row.rva) && select_by_names(selector, &row);
    }
}

static hotfn_status fail_without_memory(const hotfn_scan *scan, hotfn_error *err)
{
    return hfn_report_no_memory(err, scan->path);
}

/* Select the functions that the list and the selection both have. */
static hotfn_status apply_rules(hfn_scan_choice *choice, const hfn_function_rules *rules,
                                hotfn_error *err)
{
    const hotfn_scan *scan = choice->scan;
    const hotfn_env *env = &scan->env;
    rva_list list = { rules->only, rules->only_count };
    size_t bytes = (choice->module.function_count + 1u) * sizeof *list.rvas;
    uint64_t *listed = NULL;
    hfn_selector selector;
    hotfn_status status =
        hfn_selector_open(&selector, rules->selection, rules->include_used, env, err);

    if (status != HOTFN_OK) {
        return status;
    }
    if (rules->list) {
        listed = hfn_allocate_zeroed(env, bytes);
        list.rvas = listed;
        status = listed
                     ? hotfn_scan_find_listed(scan, rules->list, listed,
                                              choice->module.function_count, &list.count, env, err)
                     : fail_without_memory(scan, err);
    }
    if (status == HOTFN_OK) {
        select_functions(choice, &selector, &list);
        status = hfn_selector_get_status(&selector, scan->path, err);
    }
    hfn_free_memory(env, listed, bytes);
    hfn_selector_close(&selector);
    return status;
}

static void select_allocators(hfn_scan_choice *choice)
{
    hotfn_record_function row = HOTFN_RECORD_FUNCTION_INIT;

    for (uint32_t i = 0; i < choice->module.function_count; i++) {
        hotfn_scan_get_function(choice->scan, i, &row);
        choice->selected[i] = hfn_has_allocator_name(row.name);
    }
}

static void describe_module(hotfn_record_module *out, const hotfn_scan *scan, uint32_t flags)
{
    const hfn_scan_header *h = &scan->header;

    *out = (hotfn_record_module)HOTFN_RECORD_MODULE_INIT;
    out->flags = flags;
    out->machine = h->machine;
    out->id_kind = h->id_kind;
    out->id_bytes = h->id_bytes;
    memcpy(out->id, h->id, sizeof out->id);
    out->function_count = flags & HOTFN_MODULE_LEFT_OUT ? 0 : h->function_count;
    out->file_device = scan->device;
    out->file_inode = scan->inode;
    out->code_bytes = h->code_bytes;
    out->known_bytes = h->known_bytes;
    out->file_stamp = scan->stamp_is_reliable ? scan->file_stamp : 0;
    out->path = scan->path;
}

hotfn_status hfn_scan_choose(hfn_scan_choice *out, const hotfn_scan *scan, hfn_module_use use,
                             uint32_t module_flags, const hfn_function_rules *rules,
                             hotfn_error *err)
{
    static const hfn_function_rules all = { 0 };
    bool lists_functions = use == HFN_MODULE_SELECTED || use == HFN_MODULE_ALLOCATORS;
    hfn_scan_choice choice = { .scan = scan };
    hotfn_status status = HOTFN_OK;

    describe_module(&choice.module, scan,
                    lists_functions ? module_flags : module_flags | HOTFN_MODULE_LEFT_OUT);
    choice.selected = hfn_allocate_zeroed(&scan->env, scan->header.function_count);
    if (!choice.selected) {
        return fail_without_memory(scan, err);
    }
    if (use == HFN_MODULE_ALLOCATORS) {
        select_allocators(&choice);
    } else {
        status = apply_rules(&choice, rules ? rules : &all, err);
    }
    if (status != HOTFN_OK) {
        hfn_scan_choice_finish(&choice);
        return status;
    }
    *out = choice;
    return HOTFN_OK;
}

void hfn_scan_choice_finish(hfn_scan_choice *choice)
{
    const hotfn_scan *scan = choice->scan;

    hfn_free_memory(&scan->env, choice->selected, scan->header.function_count);
    choice->selected = NULL;
}

static void get_row(void *user, uint32_t index, hotfn_record_function *out)
{
    const hfn_scan_choice *choice = user;

    *out = (hotfn_record_function)HOTFN_RECORD_FUNCTION_INIT;
    hotfn_scan_get_function(choice->scan, index, out);
    if (out->state == HOTFN_STATE_WAITING && !choice->selected[index]) {
        out->state = HOTFN_STATE_EXCLUDED;
        out->reason = hotfn_reason_get_name(HOTFN_REASON_EXCLUDED);
        out->reason_text = hotfn_reason_get_text(HOTFN_REASON_EXCLUDED);
    }
}

hfn_function_source hfn_scan_choice_source(const hfn_scan_choice *choice)
{
    return (hfn_function_source){ get_row, (void *)(uintptr_t)choice };
}
