/* SPDX-License-Identifier: MIT */
/* Writes the budget of a run in reports; for a run without a budget, nothing. */
#ifndef HFN_EXPORTERS_BUDGET_H
#define HFN_EXPORTERS_BUDGET_H

#include "exporters/exporter.h"

#include <hotfn/lowlevel/budget.h>
#include <hotfn/lowlevel/json.h>

const char *hfn_level_name(uint32_t level); /* "timed" ... */
/* True if the function's count is a lower bound. */
bool hfn_view_is_lower_bound(const hfn_view *view, uint32_t function);
/* True if the run had a budget, so that some counts may be lower bounds; false for a merged
 * record. */
bool hfn_view_has_budget(const hfn_view *view);
/* The hooks' cost as a share of the time that the program used without them. */
double hfn_budget_compute_cost(const hotfn_record_budget *budget);

/* Write the member "budget".  In a page, functions are indices of the record. */
void hfn_budget_write(const hfn_view *view, hotfn_json_writer *out, bool in_page);
/* Add the members of a function whose hook the budget changed. */
void hfn_budget_add_function(const hfn_view *view, hotfn_json *object, uint32_t function);
/* Write the lines below the table. */
void hfn_budget_write_table(const hfn_view *view, hfn_sink *sink);

#endif
