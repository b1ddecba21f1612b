/* SPDX-License-Identifier: MIT */
/* Protocol buffers' wire format (protobuf.dev, encoding): messages built in memory, innermost
 * first. */
#ifndef HFN_EXPORTERS_PROTOBUF_H
#define HFN_EXPORTERS_PROTOBUF_H

#include "exporters/exporter.h"

typedef struct hfn_message {
    hotfn_env env;
    uint8_t *bytes;
    size_t count, capacity;
    bool failed; /* no memory; what is put afterwards is swallowed */
} hfn_message;

void hfn_message_init(hfn_message *message, const hotfn_env *env);
void hfn_message_finish(hfn_message *message);
void hfn_message_clear(hfn_message *message);
void hfn_message_number(hfn_message *message, uint32_t field, uint64_t value);
void hfn_message_bytes(hfn_message *message, uint32_t field, const void *bytes, size_t count);
/* What is not UTF-8 becomes U+FFFD. */
void hfn_message_text(hfn_message *message, uint32_t field, const char *text);
void hfn_message_inner(hfn_message *message, uint32_t field, const hfn_message *inner);
/* As a field of the outermost message, straight out; the message is empty afterwards. */
bool hfn_message_send(hfn_message *message, uint32_t field, hfn_sink *sink);

#endif
