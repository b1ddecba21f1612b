/* SPDX-License-Identifier: MIT */
/* A scanned file appended to a live record. */
#include "base/status.h"
#include "live/live.h"
#include "scan/choice.h"

hotfn_status hotfn_scan_add_to(const hotfn_scan *scan, hotfn_live *live, uint32_t module_flags,
                               const hotfn_selection *selection, const uint64_t *only,
                               uint32_t only_count, uint8_t *include_used, uint32_t *module,
                               hotfn_error *err)
{
    if (!scan || !live || !module) {
        return hfn_report_null(err, __func__);
    }

    hfn_function_rules rules = { selection, include_used, NULL, only, only_count };
    hfn_module_use use =
        module_flags & HOTFN_MODULE_LEFT_OUT ? HFN_MODULE_LOADER : HFN_MODULE_SELECTED;
    hfn_scan_choice choice;
    hotfn_status status = hfn_scan_choose(&choice, scan, use, module_flags, &rules, err);
    if (status != HOTFN_OK) {
        return status;
    }
    hfn_function_source source = hfn_scan_choice_source(&choice);
    status = hfn_live_add_module(live, &choice.module, &source, module, err);
    hfn_scan_choice_finish(&choice);
    return status;
}
