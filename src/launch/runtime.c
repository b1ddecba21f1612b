/* SPDX-License-Identifier: MIT */
/* The pool of functions for a runtime's methods, which the target loads with the agent: it is
 * hooked like any module, and the record lists it under the runtime's name. */
#include "arch/method_pool.h"
#include "base/status.h"
#include "functions/glob.h"
#include "launch/launch.h"
#include "live/run_flags.h"
#include "scan/choice.h"

#include <hotfn/machine.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES_PER_METHOD = 128 };

static const char *const python_libraries[] = { "libpython3*", "python3*", NULL };

static const char *const objc_libraries[] = { "libobjc.so*", NULL };

static const char *const art_libraries[] = { "libart*.so*", "libdvm*.so*", NULL };

/* ntdll.dll has the heap. */
static const char *const com_libraries[] = { "combase.dll", "ntdll.dll", NULL };

static const hfn_runtime_kind kinds[] = {
    { "python", "CPython 3.11", "hotfn-methods.so", AGENT_PYTHON, python_libraries, true, false },
    { "objc", "a runtime of Objective-C (GCC's, libobjc2)", "hotfn-messages.so", AGENT_OBJC,
      objc_libraries, true, true },
    { "art",
      "a virtual machine of Android (libart.so, libdvm.so) with its method trace switched on",
      "hotfn-methods.so", AGENT_ART, art_libraries, false, false },
    { "com", "COM objects (combase.dll)", "hotfn-methods.dll", AGENT_COM, com_libraries, false,
      false },
};

const hfn_runtime_kind *hfn_runtime_find(const char *name)
{
    for (size_t i = 0; name && i < HFN_COUNT_OF(kinds); i++) {
        if (strcmp(name, kinds[i].name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

hotfn_status hfn_runtime_find_pool(hotfn_launch *l, hotfn_error *err)
{
    const char *slash = strrchr(l->agent, '/');
    hfn_os_file_info info;

    l->methods[0] = 0;
    if (!l->options.runtime) {
        return HOTFN_OK;
    }
    if (l->target.machine == HOTFN_MACHINE_X86) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, l->target.file, HOTFN_NO_OFFSET,
                                "methods of a runtime are not counted in 32-bit programs");
    }
    if (snprintf(l->methods, sizeof l->methods, "%.*s/%s", slash ? (int)(slash - l->agent) : 1,
                 slash ? l->agent : ".",
                 hfn_runtime_find(l->options.runtime)->pool) >= (int)sizeof l->methods ||
        hfn_os_get_path_info(l->methods, &info) != 0) {
        return hfn_report_error(
            err, HOTFN_E_IO, l->methods, HOTFN_NO_OFFSET,
            "the library for methods was not found in the folder of the agent "
            "(python, objc and art: Linux on x86-64 and ARM64, com: Windows x64); install all of "
            "libhotfn");
    }
    l->methods_file = (hfn_file_identity){ info.device, info.inode, 0 };
    return HOTFN_OK;
}

bool hfn_runtime_is_pool(const hotfn_launch *l, const hfn_file_identity *file)
{
    return l->methods[0] && file->device == l->methods_file.device &&
           file->inode == l->methods_file.inode;
}

/* ---- In the record. */

/* A function without a name, until it gets a method. */
static void get_row(void *user, uint32_t index, hotfn_record_function *out)
{
    const hfn_function_source *functions = user;

    functions->get(functions->user, index, out);
    out->name = out->names = "";
    out->name_count = 1;
}

/* The rule for watched methods (runtimes/methods.h); NULL if there is none, or no memory. */
static const char *make_watch_rule(hotfn_launch *l)
{
    enum { NUMBER_BYTES = 24 };
    size_t bytes = l->options.watch ? strlen(l->options.watch) + NUMBER_BYTES : 0;
    char *rule = bytes ? hfn_arena_alloc(&l->texts, bytes) : NULL;

    if (rule) {
        snprintf(rule, bytes, "%" PRIu64 " %s", l->options.slow_ns, l->options.watch);
    }
    return rule;
}

static hotfn_status add_to_record(hotfn_launch *l, const hfn_runtime_kind *kind,
                                  hfn_scan_choice *choice, uint32_t *module, hotfn_error *err)
{
    hfn_function_source functions = hfn_scan_choice_source(choice);
    hfn_function_source source = { get_row, &functions };
    const hotfn_selection *selection = &l->selection;
    hfn_method_rules rules = { selection->include, selection->exclude, selection->include_count,
                               selection->exclude_count, make_watch_rule(l) };
    hotfn_record_module *m = &choice->module;
    hotfn_status status;

    m->path = kind->name;
    m->flags = HOTFN_MODULE_METHODS;
    m->id_kind = m->id_bytes = 0; /* methods are identified by name */
    m->code_bytes = m->known_bytes = 0;
    if (l->options.watch && !rules.watch) {
        return hfn_report_no_memory(err, l->methods);
    }
    status = hfn_live_add_module_from(l->live, m, &source, module, err);
    if (status == HOTFN_OK) {
        status = hfn_live_reserve_names(
            l->live, *module, (uint64_t)HFN_POOL_FUNCTIONS * NAME_BYTES_PER_METHOD, &rules, err);
    }
    return status;
}

hotfn_status hfn_runtime_add_pool(hotfn_launch *l, const hotfn_scan *scan, uint32_t *module,
                                  hotfn_error *err)
{
    const hfn_runtime_kind *kind = hfn_runtime_find(l->options.runtime);
    hfn_scan_choice choice;
    hotfn_status status = hfn_scan_choose(&choice, scan, HFN_MODULE_SELECTED, 0, NULL, err);

    if (status != HOTFN_OK) {
        return status;
    }
    if (choice.module.function_count == HFN_POOL_FUNCTIONS) {
        status = add_to_record(l, kind, &choice, module, err);
    } else {
        status = hfn_report_error(err, HOTFN_E_MISMATCH, l->methods, HOTFN_NO_OFFSET,
                                  "this library is not of this hotfn: install all of libhotfn");
    }
    hfn_scan_choice_finish(&choice);
    return status;
}

/* ---- When the program has ended. */

/* Mark the include globs that match the name of a counted method. */
static void mark_globs(hotfn_launch *l, const char *name)
{
    for (uint32_t i = 0; i < l->selection.include_count; i++) {
        if (hfn_glob_match_method(l->selection.include[i], name)) {
            l->matched_includes[i] = 1;
        }
    }
}

static uint32_t count_methods(hotfn_launch *l, uint32_t module, uint32_t function_count)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < function_count; i++) {
        const char *name = hfn_live_get_function_name(l->live, module, i);

        if (name && name[0]) {
            mark_globs(l, name);
            count++;
        }
    }
    return count;
}

void hfn_runtime_check(hotfn_launch *l)
{
    uint32_t count = 0, lost = 0;

    for (uint32_t i = 0; i < hfn_live_get_module_count(l->live); i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

        if (hfn_live_get_module(l->live, i, &m) == HOTFN_OK && m.flags & HOTFN_MODULE_METHODS) {
            count += count_methods(l, i, m.function_count);
            lost += hfn_live_count_lost_methods(l->live, i);
        }
    }
    if (l->options.runtime && count == 0) {
        hfn_log_message(&l->env, HOTFN_LOG_WARNING,
                        "no selected function of the runtime '%s' was called: the counted program "
                        "must contain %s; --follow also counts its children",
                        l->options.runtime, hfn_runtime_find(l->options.runtime)->description);
    }
    if (lost > 0) {
        hfn_log_message(&l->env, HOTFN_LOG_WARNING,
                        "%u functions of the runtime '%s' found no room and are not counted; -f "
                        "selects fewer",
                        lost, l->options.runtime);
    }
}
