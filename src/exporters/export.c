/* SPDX-License-Identifier: MIT */
/* From a record to a format: makes the view once, then hands it to the exporter. */
#include "base/status.h"
#include "exporters/exporter.h"

#include <string.h>

static const hfn_exporter *const exporters[] = { &hfn_exporter_table, &hfn_exporter_json,
                                                 &hfn_exporter_csv };

uint32_t hotfn_exporter_count(void)
{
    return HFN_COUNT_OF(exporters);
}

hotfn_status hotfn_exporter_get(uint32_t index, hotfn_exporter_info *out)
{
    if (index >= HFN_COUNT_OF(exporters)) {
        return HOTFN_E_NOT_FOUND;
    }
    const hfn_exporter *e = exporters[index];
    hotfn_exporter_info info = {
        .needs = e->needs, .name = e->name, .extension = e->extension, .about = e->about
    };
    return hfn_give(out, &info, sizeof info) ? HOTFN_OK : HOTFN_E_OPTION;
}

static const hfn_exporter *find(const char *format)
{
    for (size_t i = 0; i < HFN_COUNT_OF(exporters); i++) {
        if (strcmp(exporters[i]->name, format) == 0) {
            return exporters[i];
        }
    }
    return NULL;
}

static uint64_t total_calls(const hfn_view *view)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < view->info.function_count; i++) {
        hotfn_record_function f;
        hfn_view_function(view, i, &f);
        if (f.counted) {
            total = f.calls > UINT64_MAX - total ? UINT64_MAX : total + f.calls;
        }
    }
    return total;
}

/* Drop from order what the glob does not match; answers how many are left. */
static uint32_t keep_matching(const hfn_view *view, uint32_t *order)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < view->info.function_count; i++) {
        hotfn_record_function f;
        hfn_view_function(view, order[i], &f);
        if (hfn_view_matches(view, &f)) {
            order[kept++] = order[i];
        }
    }
    return kept;
}

static hotfn_status write_view(hfn_view *view, const hfn_exporter *exporter, hotfn_write_fn write,
                               void *user, hotfn_error *err)
{
    size_t order_bytes = (view->info.function_count + 1u) * sizeof(uint32_t);
    uint32_t *order = hfn_alloc(&view->env, order_bytes);
    hfn_sink *sink = hfn_alloc(&view->env, sizeof *sink);
    hotfn_status s = order && sink ? hotfn_record_sort(view->record, order) : HOTFN_E_NO_MEMORY;
    if (s == HOTFN_OK) {
        *sink = (hfn_sink){ .write = write, .user = user };
        view->order = order;
        view->count = keep_matching(view, order);
        view->limit = view->options.limit && view->options.limit < view->count ? view->options.limit
                                                                               : view->count;
        view->total_calls = total_calls(view);
        exporter->write(view, sink);
        hfn_sink_flush(sink);
        s = sink->failed ? HOTFN_E_IO : HOTFN_OK;
    }
    hfn_free(&view->env, sink, sizeof *sink);
    hfn_free(&view->env, order, order_bytes);
    return s == HOTFN_OK ? s
                         : hfn_fail(err, s, NULL, HOTFN_NO_OFFSET,
                                    s == HOTFN_E_IO ? "the output could not be written whole"
                                                    : "no memory for the report");
}

hotfn_status hotfn_export(const hotfn_record *record, const char *format,
                          const hotfn_export_options *options, hotfn_write_fn write, void *user,
                          const hotfn_env *env, hotfn_error *err)
{
    hfn_view view = { .record = record, .env = hfn_env_fill(env) };
    const hfn_exporter *exporter = find(format);
    if (!exporter) {
        return hfn_fail(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                        "no export format '%s'; there are: table, json, csv", format);
    }
    if (!hfn_take_options(&view.options, sizeof view.options, options)) {
        return hfn_fail(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET, "unknown export option");
    }
    if (view.options.match && hotfn_glob_match(view.options.match, "") < 0) {
        return hfn_fail(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                        "'%s' is not a glob: close its [ or quote it with \\", view.options.match);
    }
    view.info.size = sizeof view.info;
    hotfn_status s = hotfn_record_get_info(record, &view.info);
    if (s != HOTFN_OK) {
        return hfn_fail(err, s, NULL, HOTFN_NO_OFFSET, "the record cannot be read");
    }
    return write_view(&view, exporter, write, user, err);
}
