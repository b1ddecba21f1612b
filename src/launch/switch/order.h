/* SPDX-License-Identifier: MIT */
/* The order that hotfn ctl sends to the hotfn that counts a process, and its answer.  Both ends
 * are of the same version; magic and version stay where they are. */
#ifndef HFN_LAUNCH_ORDER_H
#define HFN_LAUNCH_ORDER_H

#include "base/memory.h"
#include "os/local_socket.h"

#include <hotfn/switch.h>

#define HFN_ORDER_MAGIC UINT64_C(0x31726564726f6668) /* "hforder1" */
enum { HFN_ORDER_VERSION_BYTES = 32, HFN_ORDER_MAX_BYTES = 60000, HFN_ANSWER_TEXT_BYTES = 512 };

typedef struct hfn_order_message {
    uint64_t magic;
    char version[HFN_ORDER_VERSION_BYTES];
    uint32_t mode;
    uint32_t include_count, exclude_count, module_count;
    uint64_t min_bytes, max_bytes;
    /* the globs, each with a NUL */
} hfn_order_message;

typedef struct hfn_order_answer {
    uint64_t magic;
    char version[HFN_ORDER_VERSION_BYTES]; /* of the hotfn that answers */
    int32_t status;
    uint32_t reserved;
    hotfn_switch_result result; /* if the status is HOTFN_OK */
    char text[HFN_ANSWER_TEXT_BYTES];
} hfn_order_answer;

/* order.c: the name of the socket of a record. */
void hfn_order_get_name(char out[HFN_OS_SOCKET_NAME_BYTES], const uint8_t uuid[16]);
/* Write an order to `out` [HFN_ORDER_MAX_BYTES]; returns its size, 0: it is too long. */
size_t hfn_order_write(uint8_t *out, const hotfn_switch_order *order);
/* An order that was read; its texts are in the message. */
typedef struct hfn_order_read {
    hotfn_switch_order order;
    hotfn_selection selection;
    const char **globs;
    size_t glob_count;
} hfn_order_read;
/* HOTFN_OK; HOTFN_E_MISMATCH: of another version; HOTFN_E_FORMAT, HOTFN_E_NO_MEMORY.  An order that
 * was read must be freed. */
hotfn_status hfn_order_parse(hfn_order_read *out, const uint8_t *message, size_t count,
                             const hotfn_env *env, hotfn_error *err);
void hfn_order_free(hfn_order_read *order, const hotfn_env *env);

#endif
