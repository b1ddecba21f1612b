/* SPDX-License-Identifier: MIT */
/* A budget in reports; nothing is put where a run had none. */
#ifndef HFN_EXPORTERS_BUDGET_H
#define HFN_EXPORTERS_BUDGET_H

#include "exporters/exporter.h"

#include <hotfn/lowlevel/budget.h>

const char *hfn_level_name(uint32_t level); /* "timed" ... */
/* Is the function's count a lower bound? */
bool hfn_view_at_least(const hfn_view *view, uint32_t function);
/* Are there any such?  (By the record of one run; a merged one does not say.) */
bool hfn_budget_marks(const hfn_view *view);
/* Hooks' share of the time that the program took without them. */
double hfn_budget_taken(const hotfn_record_budget *budget);

void hfn_budget_json(const hfn_view *view, hfn_sink *sink); /* "budget" of the report */
/* The same inside of a page, where functions go by their number in the record. */
void hfn_budget_json_page(const hfn_view *view, hfn_sink *sink);
void hfn_budget_json_function(const hfn_view *view, hfn_sink *sink, uint32_t function);
void hfn_budget_table(const hfn_view *view, hfn_sink *sink); /* below the table */

#endif
