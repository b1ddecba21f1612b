/* SPDX-License-Identifier: MIT */
/* The table of formats.  Registered exporters are kept for the rest of the process: slots are
 * filled from the first one on and never emptied, so that readers need no lock. */
#include "exporters/registry.h"

#include "base/status.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MAX_REGISTERED = 64, MAX_NAME_BYTES = 32, MAX_ABOUT_BYTES = 128 };

static const hfn_exporter *const built_in[] = {
    &hfn_exporter_table,    &hfn_exporter_json,       &hfn_exporter_csv,
    &hfn_exporter_html,     &hfn_exporter_callgrind,  &hfn_exporter_pprof,
    &hfn_exporter_folded,   &hfn_exporter_speedscope, &hfn_exporter_chrome,
    &hfn_exporter_perfetto, &hfn_exporter_firefox,    &hfn_exporter_traceview,
    &hfn_exporter_gmon,
};

static const hotfn_exporter *_Atomic registered[MAX_REGISTERED];

static const hotfn_exporter *get_registered(uint32_t index)
{
    /* pairs with the compare-and-swap in hotfn_exporter_register: the exporter is whole */
    return index < MAX_REGISTERED ? atomic_load_explicit(&registered[index], memory_order_acquire)
                                  : NULL;
}

bool hfn_format_get(uint32_t index, hfn_format *out)
{
    hotfn_exporter_info info = HOTFN_EXPORTER_INFO_INIT;
    if (index < HFN_COUNT_OF(built_in)) {
        const hfn_exporter *e = built_in[index];
        info.needs = e->needs;
        info.name = e->name;
        info.extension = e->extension;
        info.about = e->about;
        *out = (hfn_format){ .info = info, .built_in = e };
        return true;
    }
    const hotfn_exporter *e = get_registered(index - (uint32_t)HFN_COUNT_OF(built_in));
    if (!e) {
        return false;
    }
    info.needs = e->needs;
    info.name = e->name;
    info.extension = e->extension;
    info.about = e->about;
    *out = (hfn_format){ .info = info, .registered = e };
    return true;
}

uint32_t hotfn_exporter_get_count(void)
{
    uint32_t count = 0;
    while (get_registered(count)) {
        count++;
    }
    return (uint32_t)HFN_COUNT_OF(built_in) + count;
}

hotfn_status hotfn_exporter_get(uint32_t index, hotfn_exporter_info *out)
{
    hfn_format format;
    if (!hfn_format_get(index, &format)) {
        return HOTFN_E_NOT_FOUND;
    }
    return hfn_copy_result(out, &format.info, sizeof format.info);
}

hotfn_status hfn_format_find(const char *name, hfn_format *out, hotfn_error *err)
{
    char names[400] = "";
    size_t used = 0;
    for (uint32_t i = 0; hfn_format_get(i, out); i++) {
        if (strcmp(out->info.name, name) == 0) {
            return HOTFN_OK;
        }
        if (used < sizeof names) {
            int n =
                snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", out->info.name);
            used += n > 0 ? (size_t)n : 0;
        }
    }
    return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                            "no export format '%.60s'; the formats are: %s", name, names);
}

/* ---- Registration. */

static bool is_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");
    return length > 0 && length < MAX_NAME_BYTES && name[length] == 0;
}

static bool is_line(const char *text)
{
    size_t length = strnlen(text, MAX_ABOUT_BYTES);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            return false;
        }
    }
    return length < MAX_ABOUT_BYTES;
}

/* The size is checked after the ABI version: another version may have another struct. */
static hotfn_status check_exporter(const hotfn_exporter *e, hotfn_error *err)
{
    const uint32_t known =
        HOTFN_NEEDS_FLAT | HOTFN_NEEDS_TIMES | HOTFN_NEEDS_TREE | HOTFN_NEEDS_EVENTS;
    const char *wrong = NULL;
    if (e->abi_version != HOTFN_EXPORTER_ABI) {
        return hfn_report_error(
            err, HOTFN_E_MISMATCH, NULL, HOTFN_NO_OFFSET,
            "the exporter was built for exporter ABI version %u, this library has "
            "version %u: build it again with this library's headers",
            (unsigned)e->abi_version, (unsigned)HOTFN_EXPORTER_ABI);
    }
    if (e->size != sizeof *e) {
        wrong = "its size is not that of hotfn_exporter";
    } else if (!e->name || !is_name(e->name)) {
        wrong = "its name is not 1 to 31 of a-z, 0-9, - and _";
    } else if (!e->extension || e->extension[0] != '.' || !is_line(e->extension)) {
        wrong = "its extension does not begin with a dot";
    } else if (!e->about || !is_line(e->about)) {
        wrong = "its about is not one line of at most 127 bytes";
    } else if (!e->write) {
        wrong = "it has no write function";
    } else if (e->needs & ~known || e->reserved) {
        wrong = "it needs something that this version does not know";
    }
    return wrong ? hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                    "the exporter cannot be registered: %s", wrong)
                 : HOTFN_OK;
}

static hotfn_status fail_duplicate(const char *name, hotfn_error *err)
{
    return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                            "there is already an exporter named '%s'", name);
}

hotfn_status hotfn_exporter_register(const hotfn_exporter *exporter, hotfn_error *err)
{
    if (!exporter) {
        return hfn_report_null(err, __func__);
    }
    hotfn_status status = check_exporter(exporter, err);
    if (status != HOTFN_OK) {
        return status;
    }
    for (size_t i = 0; i < HFN_COUNT_OF(built_in); i++) {
        if (strcmp(built_in[i]->name, exporter->name) == 0) {
            return fail_duplicate(exporter->name, err);
        }
    }
    for (size_t i = 0; i < MAX_REGISTERED; i++) {
        const hotfn_exporter *other = NULL;
        /* release pairs with the load in get_registered; acquire shows the other's name */
        if (atomic_compare_exchange_strong_explicit(&registered[i], &other, exporter,
                                                    memory_order_acq_rel, memory_order_acquire)) {
            return HOTFN_OK;
        }
        if (strcmp(other->name, exporter->name) == 0) {
            return fail_duplicate(exporter->name, err);
        }
    }
    return hfn_report_error(err, HOTFN_E_LIMIT, NULL, HOTFN_NO_OFFSET,
                            "at most %d exporters can be registered", MAX_REGISTERED);
}
