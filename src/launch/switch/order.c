/* SPDX-License-Identifier: MIT */
/* Writes and reads the messages of order.h.  What was received is not trusted. */
#include "launch/switch/order.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

void hfn_order_get_name(char out[HFN_OS_SOCKET_NAME_BYTES], const uint8_t uuid[16])
{
    int length = snprintf(out, HFN_OS_SOCKET_NAME_BYTES, "hotfn-switch-");

    for (int i = 0; i < 16; i++) {
        length +=
            snprintf(out + length, (size_t)(HFN_OS_SOCKET_NAME_BYTES - length), "%02x", uuid[i]);
    }
}

static size_t put_texts(uint8_t *out, size_t at, const char *const *texts, uint32_t count)
{
    for (uint32_t i = 0; i < count && at != 0; i++) {
        size_t bytes = strlen(texts[i]) + 1;
        if (bytes > HFN_ORDER_MAX_BYTES - at) {
            return 0;
        }
        memcpy(out + at, texts[i], bytes);
        at += bytes;
    }
    return at;
}

size_t hfn_order_write(uint8_t *out, const hotfn_switch_order *order)
{
    static const hotfn_selection all = HOTFN_SELECTION_INIT;
    const hotfn_selection *selection = order->selection ? order->selection : &all;
    hfn_order_message m = { .magic = HFN_ORDER_MAGIC,
                            .mode = order->mode,
                            .include_count = selection->include_count,
                            .exclude_count = selection->exclude_count,
                            .module_count = order->module_count,
                            .min_bytes = selection->min_bytes,
                            .max_bytes = selection->max_bytes };
    size_t at = sizeof m;

    snprintf(m.version, sizeof m.version, "%s", hotfn_get_version());
    memcpy(out, &m, sizeof m);
    at = put_texts(out, at, selection->include, selection->include_count);
    at = put_texts(out, at, selection->exclude, selection->exclude_count);
    return put_texts(out, at, order->modules, order->module_count);
}

static hotfn_status refuse_version(const hfn_order_message *m, hotfn_error *err)
{
    return hfn_report_error(err, HOTFN_E_MISMATCH, NULL, HOTFN_NO_OFFSET,
                            "the order is from hotfn %.31s, but hotfn %s counts the process: use "
                            "hotfn ctl of that version",
                            m->version, hotfn_get_version());
}

/* False if the texts are not complete. */
static bool read_texts(const char **out, size_t count, const uint8_t *message, size_t byte_count)
{
    size_t at = sizeof(hfn_order_message);

    for (size_t i = 0; i < count; i++) {
        const void *end = at < byte_count ? memchr(message + at, 0, byte_count - at) : NULL;
        if (!end) {
            return false;
        }
        out[i] = (const char *)message + at;
        at = (size_t)((const uint8_t *)end - message) + 1;
    }
    return at == byte_count;
}

hotfn_status hfn_order_parse(hfn_order_read *out, const uint8_t *message, size_t count,
                             const hotfn_env *env, hotfn_error *err)
{
    hfn_order_message m;

    *out = (hfn_order_read){ .order = HOTFN_SWITCH_ORDER_INIT, .selection = HOTFN_SELECTION_INIT };
    if (count < sizeof m || (memcpy(&m, message, sizeof m), m.magic != HFN_ORDER_MAGIC)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, NULL, HOTFN_NO_OFFSET,
                                "this is not an order of hotfn ctl");
    }
    m.version[sizeof m.version - 1] = 0;
    if (strcmp(m.version, hotfn_get_version()) != 0) {
        return refuse_version(&m, err);
    }
    out->glob_count = (size_t)m.include_count + m.exclude_count + m.module_count;
    if (out->glob_count > HFN_ORDER_MAX_BYTES) {
        return hfn_report_error(err, HOTFN_E_FORMAT, NULL, HOTFN_NO_OFFSET, "the order is damaged");
    }
    out->globs = hfn_allocate_zeroed(env, (out->glob_count + 1) * sizeof *out->globs);
    if (!out->globs) {
        return hfn_report_no_memory(err, NULL);
    }
    if (!read_texts(out->globs, out->glob_count, message, count)) {
        hfn_order_free(out, env);
        return hfn_report_error(err, HOTFN_E_FORMAT, NULL, HOTFN_NO_OFFSET, "the order is damaged");
    }
    out->selection.include = out->globs;
    out->selection.include_count = m.include_count;
    out->selection.exclude = out->globs + m.include_count;
    out->selection.exclude_count = m.exclude_count;
    out->selection.min_bytes = m.min_bytes;
    out->selection.max_bytes = m.max_bytes;
    out->order.mode = m.mode;
    out->order.modules = out->globs + m.include_count + m.exclude_count;
    out->order.module_count = m.module_count;
    return HOTFN_OK;
}

void hfn_order_free(hfn_order_read *order, const hotfn_env *env)
{
    hfn_free_memory(env, (void *)(uintptr_t)order->globs,
                    (order->glob_count + 1) * sizeof *order->globs);
    order->globs = NULL;
}
