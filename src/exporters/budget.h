/* SPDX-License-Identifier: MIT */
/* A budget in reports; nothing is written for a run without one. */
#ifndef HFN_EXPORTERS_BUDGET_H
#define HFN_EXPORTERS_BUDGET_H

#include "exporters/exporter.h"

#include <hotfn/lowlevel/budget.h>
#include <hotfn/lowlevel/json.h>

const char *hfn_level_name(uint32_t level); /* "timed" ... */
/* True if the function's count is a lower bound. */
bool hfn_view_at_least(const hfn_view *view, uint32_t function);
/* True if the run had a budget, so that some counts may be lower bounds; false for a merged
 * record. */
bool hfn_budget_marks(const hfn_view *view);
/* The hooks' cost as a share of the time that the program used without them. */
double hfn_budget_taken(const hotfn_record_budget *budget);

/* Write the member "budget".  In a page, functions are indices of the record. */
void hfn_budget_write(const hfn_view *view, hotfn_json_writer *out, bool in_page);
/* Add the members of a function whose hook the budget changed. */
void hfn_budget_add_function(const hfn_view *view, hotfn_json *object, uint32_t function);
/* Write the lines below the table. */
void hfn_budget_table(const hfn_view *view, hfn_sink *sink);

#endif
