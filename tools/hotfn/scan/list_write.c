/* SPDX-License-Identifier: MIT */
/* Writes the hookable functions of a selection to a function list, and the refused functions and
 * the fragments to JSON (schema hotfn.refused/1), with the reason and the offset of its byte. */
#include "list_write.h"

#include "cli/cli_options.h"
#include "cli/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

typedef struct writer {
    const listing *l;
    const hotfn_functions *functions;
    const hotfn_verdicts *verdicts;
    const uint8_t *selected;
    uint32_t count;
} writer;

static hotfn_verdict verdict_of(const writer *w, uint32_t i)
{
    hotfn_verdict v = HOTFN_VERDICT_INIT;

    hotfn_verdicts_get(w->verdicts, i, &v);
    return v;
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static hotfn_status write_list(const writer *w, const char *path, uint32_t *count, hotfn_error *err)
{
    hotfn_list *list;
    hotfn_status status = hotfn_list_create(&list, w->l->image, &w->l->env, err);

    *count = 0;
    if (status != HOTFN_OK) {
        return status;
    }
    for (uint32_t i = 0; status == HOTFN_OK && i < w->count; i++) {
        hotfn_function f = HOTFN_FUNCTION_INIT;
        hotfn_list_entry e = HOTFN_LIST_ENTRY_INIT;
        if (!w->selected[i] || verdict_of(w, i).verdict != HOTFN_VERDICT_HOOKABLE) {
            continue;
        }
        hotfn_functions_get(w->functions, i, &f);
        e.index = i;
        e.rva = f.rva;
        e.byte_count = f.byte_count;
        e.name = f.name;
        status = hotfn_list_add(list, &e, err);
        (*count)++;
    }
    if (status == HOTFN_OK) {
        status = hotfn_list_save(list, path, ends_in(path, ".txt") ? HOTFN_LIST_TEXT : 0, err);
    }
    hotfn_list_destroy(list);
    return status;
}

static bool print_refused(FILE *file, const writer *w)
{
    hotfn_json_writer *out = json_open(file);

    hotfn_json_begin_object(out, NULL);
    listing_write_head(out, w->l, "hotfn.refused/1");
    hotfn_json_begin_array(out, "functions");
    for (uint32_t i = 0; i < w->count; i++) {
        hotfn_function f = HOTFN_FUNCTION_INIT;
        hotfn_verdict v = verdict_of(w, i);
        if (!w->selected[i] || v.verdict == HOTFN_VERDICT_HOOKABLE) {
            continue;
        }
        hotfn_json *o = hotfn_json_create_object();
        hotfn_functions_get(w->functions, i, &f);
        json_add_number(o, "index", i);
        json_add_number(o, "rva", f.rva);
        json_add_number(o, "size", f.byte_count);
        json_add_text(o, "name", f.name);
        json_add_text(o, "verdict", v.verdict == HOTFN_VERDICT_FRAGMENT ? "fragment" : "refused");
        if (v.reason) {
            json_add_text(o, "reason", hotfn_reason_get_name(v.reason));
            json_add_number(o, "offset", v.offset);
            json_add_text(o, "reason_text", hotfn_reason_get_text(v.reason));
        }
        hotfn_json_write(out, NULL, o);
    }
    hotfn_json_end(out);
    hotfn_json_end(out);
    return json_close(out);
}

static int write_refused(const char *command, const writer *w, const char *path)
{
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    bool good = out && print_refused(out, w);

    good = good && fflush(out) == 0 && !ferror(out);
    if (out && out != stdout && fclose(out) != 0) {
        good = false;
    }
    if (!good && out != stdout) { /* main reports errors on stdout */
        fprintf(stderr, "hotfn %s: %s: cannot be written: %s\n", command, path, strerror(errno));
    }
    return good ? TOOL_OK : TOOL_FAILED;
}

int list_write(const char *command, const listing *l, const hotfn_functions *functions,
               const uint8_t *selected, const list_outputs *outputs)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_verdicts *verdicts;
    uint32_t hookable = 0;
    if ((outputs->list && cli_would_overwrite(command, outputs->list, l->info.path)) ||
        (outputs->refused && cli_would_overwrite(command, outputs->refused, l->info.path))) {
        return TOOL_FAILED;
    }
    hotfn_status status =
        hotfn_verdicts_create(&verdicts, l->image, functions, NULL, &l->env, &err);
    int answer = TOOL_OK;

    if (status != HOTFN_OK) {
        return hotfn_tool_fail(command, &err);
    }
    writer w = { l, functions, verdicts, selected, hotfn_functions_get_count(functions) };
    if (outputs->list) {
        status = write_list(&w, outputs->list, &hookable, &err);
    }
    if (status != HOTFN_OK) {
        answer = hotfn_tool_fail(command, &err);
    } else if (outputs->list) {
        fprintf(stderr, "hotfn %s: %" PRIu32 " function%s in %s\n", command, hookable,
                cli_plural(hookable), outputs->list);
    }
    if (answer == TOOL_OK && outputs->refused) {
        answer = write_refused(command, &w, outputs->refused);
    }
    hotfn_verdicts_destroy(verdicts);
    return answer;
}
