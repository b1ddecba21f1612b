/* SPDX-License-Identifier: MIT */
/* Any bytes as datagrams of events to one listener: each has its length in two bytes before it.  If
 * bit 0 of the first byte of the input is set, what was received is then written as a record. */
#include <hotfn/lowlevel/events.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint64_t event_count, call_count;

static void check_event(void *user, const hotfn_listener_event *e)
{
    (void)user;
    if (e->stream == 0) {
        abort();
    }
    switch (e->kind) {
    case HOTFN_EVENTS_ENTRY:
        call_count++;
        event_count++;
        break;
    case HOTFN_EVENTS_EXIT: event_count += e->duration_ns == HOTFN_NO_DURATION; break;
    case HOTFN_EVENTS_RUN: break;
    default: return;
    }
    for (const char *c = e->name; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            abort();
        }
    }
}

/* What is accepted can be read to its end. */
static bool read_items(const uint8_t *data, size_t size)
{
    hotfn_events_header header = HOTFN_EVENTS_HEADER_INIT;
    uint64_t offset = 0;

    if (hotfn_events_open(&header, data, size) != HOTFN_OK) {
        return false;
    }
    for (;;) {
        hotfn_events_item item = HOTFN_EVENTS_ITEM_INIT;
        hotfn_status status = hotfn_events_next(&item, &offset, data, size);
        if (status == HOTFN_E_NOT_FOUND && (offset == size || size == HOTFN_EVENTS_HEADER_BYTES)) {
            return true;
        }
        if (status != HOTFN_OK || item.function > HOTFN_EVENTS_MAX_NUMBER ||
            item.text_bytes > HOTFN_EVENTS_MAX_TEXT_BYTES ||
            (item.text_bytes && memchr(item.text, 0, item.text_bytes))) {
            abort();
        }
    }
}

static void add_datagrams(hotfn_listener *listener, const uint8_t *data, size_t size)
{
    uint64_t good = 0, bad = 0;
    hotfn_listener_stats stats = HOTFN_LISTENER_STATS_INIT;

    event_count = call_count = 0;
    while (size >= 2) {
        size_t length = data[0] | (size_t)data[1] << 8;
        length = length < size - 2 ? length : size - 2;
        bool is_good = read_items(data + 2, length);
        good += is_good;
        bad += !is_good;
        if (hotfn_listener_add(listener, data + 2, length, check_event, NULL) != HOTFN_OK) {
            abort();
        }
        data += 2 + length;
        size -= 2 + length;
    }
    hotfn_listener_get_stats(listener, &stats);
    if (stats.malformed_count < bad || stats.malformed_count + stats.datagram_count != good + bad ||
        stats.call_count != call_count || stats.event_count < event_count) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_listener *listener = NULL;

    if (size == 0 ||
        hotfn_listener_open(&listener, NULL, HOTFN_LISTENER_KEEP, NULL, NULL) != HOTFN_OK) {
        return 0;
    }
    add_datagrams(listener, data + 1, size - 1);
    if (data[0] & 1) {
        hotfn_listener_save(listener, 1, "/dev/null", NULL);
    }
    hotfn_listener_close(listener);
    return 0;
}
