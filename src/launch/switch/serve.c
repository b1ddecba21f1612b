/* SPDX-License-Identifier: MIT */
/* The thread of a launch that receives orders.  Only processes of the same user, or of root, are
 * answered. */
#include "launch/launch.h"
#include "launch/switch/order.h"

#include "base/status.h"
#include "os/local_socket.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

enum { RECEIVE_TIMEOUT_S = 2 };

static void answer_order(hotfn_launch *l, hfn_order_answer *answer, const uint8_t *message,
                         size_t count)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hfn_order_read read;
    hotfn_status status = hfn_order_parse(&read, message, count, &l->env, &err);

    answer->magic = HFN_ORDER_MAGIC;
    snprintf(answer->version, sizeof answer->version, "%s", hotfn_get_version());
    answer->result = (hotfn_switch_result)HOTFN_SWITCH_RESULT_INIT;
    if (status == HOTFN_OK) {
        read.order.selection = &read.selection;
        status = hotfn_launch_switch(l, &read.order, &answer->result, &err);
        hfn_order_free(&read, &l->env);
    }
    answer->status = status;
    snprintf(answer->text, sizeof answer->text, "%s", status == HOTFN_OK ? "" : err.text);
}

static void serve_connection(hotfn_launch *l, hfn_os_file connection, uint8_t *message)
{
    hfn_order_answer answer = { .reserved = 0 };
    size_t count = 0;

    if (hfn_os_receive_message(connection, RECEIVE_TIMEOUT_S, message, HFN_ORDER_MAX_BYTES,
                               &count) == 0 &&
        count > 0) {
        answer_order(l, &answer, message, count);
        hfn_os_send_message(connection, &answer, sizeof answer);
    }
}

static void serve_orders(void *user)
{
    hotfn_launch *l = user;
    uint8_t *message = hfn_allocate_unset(&l->env, HFN_ORDER_MAX_BYTES);
    hfn_os_file connection;
    bool is_own;

    while (message && hfn_os_accept(&connection, &l->switching.listener, &is_own) == 0) {
        if (is_own) {
            serve_connection(l, connection, message);
        }
        hfn_os_close_file(connection);
    }
    hfn_free_memory(&l->env, message, HFN_ORDER_MAX_BYTES);
}

void hfn_switch_start(hotfn_launch *l)
{
    hfn_switch *s = &l->switching;
    char name[HFN_OS_SOCKET_NAME_BYTES];

    hfn_os_lock_mutex(&s->lock);
    s->live = l->live;
    s->channel = l->channel;
    hfn_os_unlock_mutex(&s->lock);
    if (!hfn_os_can_change_others() || !hfn_os_has_local_sockets()) {
        return;
    }
    hfn_order_get_name(name, l->live->base + HFN_AT_UUID);
    hfn_os_error error = hfn_os_listen(&s->listener, name);
    if (error == 0) {
        s->is_serving = hfn_os_start_thread(&s->thread, serve_orders, l);
    }
    if (!s->is_serving) {
        hfn_log_message(&l->env, HOTFN_LOG_INFO, "hotfn ctl cannot reach this run: %s",
                        error ? hfn_os_get_error_text(error) : "no thread can be started");
    }
}

void hfn_switch_stop(hotfn_launch *l)
{
    hfn_switch *s = &l->switching;

    if (s->is_serving) {
        hfn_os_stop_listening(&s->listener);
        hfn_os_join_thread(&s->thread);
        s->is_serving = false;
    }
    if (hfn_os_is_open(s->listener.file)) {
        hfn_os_close_listener(&s->listener);
    }
    hfn_os_lock_mutex(&s->lock);
    hfn_switch_forget(s, &l->env);
    hfn_os_unlock_mutex(&s->lock);
}
