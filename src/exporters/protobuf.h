/* SPDX-License-Identifier: MIT */
/* Messages in the wire format of protocol buffers (protobuf.dev, "Encoding").  A message is built
 * in memory; an inner message is complete before it is added to an outer one. */
#ifndef HFN_EXPORTERS_PROTOBUF_H
#define HFN_EXPORTERS_PROTOBUF_H

#include "exporters/exporter.h"

typedef struct hfn_message {
    hotfn_env env;
    uint8_t *bytes;
    size_t count, capacity;
    bool failed; /* no memory; later fields are dropped */
} hfn_message;

void hfn_message_init(hfn_message *message, const hotfn_env *env);
void hfn_message_finish(hfn_message *message);
void hfn_message_clear(hfn_message *message);
void hfn_message_number(hfn_message *message, uint32_t field, uint64_t value);
void hfn_message_bytes(hfn_message *message, uint32_t field, const void *bytes, size_t count);
/* Add a text; each byte that is not valid UTF-8 becomes U+FFFD. */
void hfn_message_text(hfn_message *message, uint32_t field, const char *text);
void hfn_message_inner(hfn_message *message, uint32_t field, const hfn_message *inner);
/* Write the message to sink as a field of the file's outermost message, then empty it.  False: no
 * memory, and nothing was written. */
bool hfn_message_send(hfn_message *message, uint32_t field, hfn_sink *sink);

#endif
