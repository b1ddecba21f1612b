/* SPDX-License-Identifier: MIT */
/* Sends an order to the hotfn that counts a process.  The name of the socket on which that hotfn
 * listens is made from the uuid of the record, and a counted process maps its record. */
#include "base/status.h"
#include "launch/launch.h"
#include "launch/switch/order.h"
#include "os/local_socket.h"
#include "os/os.h"
#include "os/remote.h"

#include <hotfn/record.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_TIMEOUT_S = 300 };

/* ---- The record. */

static hotfn_status check_header(const uint8_t header[HFN_HEADER_BYTES], size_t count,
                                 const char *path, hotfn_error *err)
{
    if (count != HFN_HEADER_BYTES ||
        memcmp(header, HFN_RECORD_MAGIC, sizeof HFN_RECORD_MAGIC - 1) != 0) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, 0, "this is not a record of hotfn");
    }
    if (hfn_read_le32(header + HFN_AT_KIND) != HFN_KIND_LIVE) {
        return hfn_report_error(err, HOTFN_E_STATE, path, HOTFN_NO_OFFSET,
                                "the run of this record has ended: only a program that runs can be "
                                "switched");
    }
    return HOTFN_OK;
}

static hotfn_status read_file(uint8_t header[HFN_HEADER_BYTES], const char *path, hotfn_error *err)
{
    uint64_t count = 0;
    hfn_os_file file;
    hfn_os_error error = hfn_os_open_file(&file, path, HFN_OS_READ | HFN_OS_NO_WAIT);

    if (error == 0) {
        error = hfn_os_read_at(file, 0, header, HFN_HEADER_BYTES, &count);
        hfn_os_close_file(file);
    }
    if (error != 0) {
        return hfn_report_error(
            err, HOTFN_E_IO, path, HOTFN_NO_OFFSET, "the record cannot be read (%s)%s",
            hfn_os_get_error_text(error),
            hfn_os_is_missing(error)
                ? ": hotfn is still starting, the run has ended, or the path is wrong"
                : "");
    }
    return check_header(header, (size_t)count, path, err);
}

static hotfn_status report_uncounted(uint32_t pid, hotfn_error *err)
{
    return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                            "no hotfn counts process %u: start it with hotfn run, or attach to it "
                            "(hotfn attach %u)",
                            pid, pid);
}

/* Read the header of the record that the process maps. */
static hotfn_status read_process(uint8_t header[HFN_HEADER_BYTES], uint32_t pid,
                                 const hotfn_env *env, hotfn_error *err)
{
    hfn_remote remote = { .env = *env, .pid = pid, .memory = HFN_OS_NO_FILE };
    char path[HFN_OS_PATH_BYTES];
    hfn_remote_range at;
    hfn_os_error error;
    bool is_read;

    if (hfn_os_process_is_gone(pid)) {
        return hfn_report_error(err, HOTFN_E_NOT_FOUND, NULL, HOTFN_NO_OFFSET,
                                "there is no process %u (see ps)", pid);
    }
    if (hfn_os_remote_names_record()) {
        return hfn_os_remote_find_record(pid, path, sizeof path) ? read_file(header, path, err)
                                                                 : report_uncounted(pid, err);
    }
    error = hfn_os_remote_open(&remote);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_DENIED, NULL, HOTFN_NO_OFFSET,
                                "process %u cannot be read (%s): run hotfn as its user, or as root",
                                pid, hfn_os_get_error_text(error));
    }
    if (!hfn_os_remote_find_shared(pid, HFN_RECORD_MEMORY_NAME, &at)) {
        hfn_os_remote_close(&remote);
        return report_uncounted(pid, err);
    }
    is_read = hfn_os_remote_read(&remote, at.begin, header, HFN_HEADER_BYTES);
    hfn_os_remote_close(&remote);
    return is_read ? check_header(header, HFN_HEADER_BYTES, NULL, err) : report_uncounted(pid, err);
}

/* ---- The order. */

static hotfn_status report_unreachable(hfn_os_error error, hotfn_error *err)
{
    return hfn_report_error(
        err, hfn_os_is_denied(error) ? HOTFN_E_DENIED : HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
        hfn_os_is_missing(error)
            ? "no hotfn serves this record any more: it was killed, is of an older version, or is "
              "in another network namespace; detach and attach again"
        : hfn_os_is_denied(error)
            ? "the hotfn that serves this record belongs to another user: run "
              "hotfn as that user, or as root"
            : "the hotfn that serves this record did not answer (%s)",
        hfn_os_get_error_text(error));
}

static hotfn_status read_answer(const hfn_order_answer *a, size_t count, hotfn_switch_result *out,
                                hotfn_error *err)
{
    if (count < sizeof *a || a->magic != HFN_ORDER_MAGIC ||
        strncmp(a->version, hotfn_get_version(), sizeof a->version) != 0) {
        return hfn_report_error(err, HOTFN_E_MISMATCH, NULL, HOTFN_NO_OFFSET,
                                "a hotfn of another version counts this process: use hotfn ctl of "
                                "that version");
    }
    if (a->status != HOTFN_OK) {
        return hfn_report_error(err, (hotfn_status)a->status, NULL, HOTFN_NO_OFFSET, "%.*s",
                                HFN_ANSWER_TEXT_BYTES - 1, a->text);
    }
    return out ? hfn_copy_result(out, &a->result, sizeof a->result) : HOTFN_OK;
}

static hotfn_status exchange_messages(const uint8_t uuid[16], const uint8_t *message, size_t count,
                                      hotfn_switch_result *out, hotfn_error *err)
{
    char name[HFN_OS_SOCKET_NAME_BYTES];
    hfn_order_answer answer = { .reserved = 0 };
    size_t received = 0;
    hfn_os_file connection;
    hfn_os_error error;

    hfn_order_get_name(name, uuid);
    error = hfn_os_connect(&connection, name);
    if (error != 0) {
        return report_unreachable(error, err);
    }
    error = hfn_os_send_message(connection, message, count);
    if (error == 0) {
        error =
            hfn_os_receive_message(connection, ANSWER_TIMEOUT_S, &answer, sizeof answer, &received);
    }
    hfn_os_close_file(connection);
    if (error != 0) {
        return report_unreachable(error, err);
    }
    if (received == 0) {
        return hfn_report_error(err, HOTFN_E_STATE, NULL, HOTFN_NO_OFFSET,
                                "the run ended before it carried out the order");
    }
    return read_answer(&answer, received, out, err);
}

hotfn_status hotfn_switch_functions(const char *record_path, uint32_t pid,
                                    const hotfn_switch_order *order, hotfn_switch_result *out,
                                    const hotfn_env *env, hotfn_error *err)
{
    hotfn_env filled = hfn_env_fill(env);
    uint8_t header[HFN_HEADER_BYTES], *message;
    hotfn_switch_order taken;
    hotfn_status status;
    size_t count;

    if (!order) {
        return hfn_report_null(err, __func__);
    }
    if (!hfn_copy_options(&taken, sizeof taken, order)) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "unknown option of the order");
    }
    if (!hfn_os_can_change_others() || !hfn_os_has_local_sockets()) {
        return hfn_report_error(err, HOTFN_E_UNSUPPORTED, NULL, HOTFN_NO_OFFSET,
                                "functions can be switched on Linux only");
    }
    status =
        record_path ? read_file(header, record_path, err) : read_process(header, pid, &filled, err);
    if (status != HOTFN_OK) {
        return status;
    }
    message = hfn_allocate_unset(&filled, HFN_ORDER_MAX_BYTES);
    if (!message) {
        return hfn_report_no_memory(err, NULL);
    }
    count = hfn_order_write(message, &taken);
    status = count ? exchange_messages(header + HFN_AT_UUID, message, count, out, err)
                   : hfn_report_error(err, HOTFN_E_LIMIT, NULL, HOTFN_NO_OFFSET,
                                      "the globs are longer than %u bytes", HFN_ORDER_MAX_BYTES);
    hfn_free_memory(&filled, message, HFN_ORDER_MAX_BYTES);
    return status;
}
