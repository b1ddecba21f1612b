/* SPDX-License-Identifier: MIT */
/* A datagram has the events of one or more threads.  Names are sent in rounds of two seconds: in
 * each round, the name of a function precedes its first event, so that a listener that starts late
 * receives it.  Events that cannot be sent are counted (skipped_count in each header). */
#include "events/sender.h"

#include "base/status.h"
#include "events/address.h"
#include "events/format.h"
#include "events/rings.h"
#include "os/os.h"
#include "records/methods.h"

#define NAMES_NS UINT64_C(2000000000)   /* length of a round                                     */
#define SILENCE_NS UINT64_C(1000000000) /* after this time, a datagram is sent without events    */
#define MAX_WAIT_NS UINT64_C(5000000)   /* how long to wait for a full queue                     */
#define WAIT_STEP_NS 500000u
#define UDP_BYTES 1400u /* fits into one Ethernet frame */
#define MAX_DEPTH HFN_LOG_CAPACITY
#define END_COUNT 3 /* how often the end of a stream is sent, in case a datagram is lost */

enum { COPY_COUNT = 1024 };

/* A function; the index in the array is its slot. */
typedef struct known_function {
    hotfn_events_item item;
    uint32_t sent_round; /* the latest round in which it was sent; 0: `item` is not set yet */
} known_function;

typedef struct sent_thread {
    hfn_ring ring;
    uint32_t *open; /* the slots of the open calls, outermost first; NULL: not allocated yet */
    uint32_t depth;
} sent_thread;

struct hfn_event_sender {
    hotfn_env env;
    hfn_os_socket socket;
    uint32_t datagram_bytes;
    bool is_blocked; /* the queue was still full after the latest attempt to send */
    /* the stream */
    hfn_live *live; /* NULL: no stream */
    hotfn_events_header header;
    hotfn_events_item run;
    sent_thread *threads;
    size_t thread_count, thread_capacity;
    known_function *functions;
    size_t function_count, function_capacity;
    uint32_t *module_rounds; /* by module: the latest round in which it was sent; 0: none */
    size_t module_count, module_capacity;
    uint32_t round;
    uint64_t names_ns, sent_ns; /* when the round began, and when the latest datagram was sent */
    hfn_events_writer writer;
    hfn_time_event copy[COPY_COUNT];
};

/* ---- Datagrams. */

static void begin_round(hfn_event_sender *s, uint64_t now)
{
    s->round++;
    s->names_ns = now;
    hfn_events_put(&s->writer, &s->run); /* fits, or is the only item already */
}

static hfn_os_sent send_or_wait(hfn_event_sender *s)
{
    uint64_t limit_ns = s->is_blocked ? 0 : MAX_WAIT_NS;
    hfn_os_sent sent = hfn_os_send_datagram(&s->socket, s->writer.bytes, s->writer.used);

    for (uint64_t waited_ns = 0; sent == HFN_OS_QUEUE_FULL && waited_ns < limit_ns;
         waited_ns += WAIT_STEP_NS) {
        hfn_os_sleep(WAIT_STEP_NS);
        sent = hfn_os_send_datagram(&s->socket, s->writer.bytes, s->writer.used);
    }
    s->is_blocked = sent == HFN_OS_QUEUE_FULL;
    return sent;
}

/* Send the datagram, or count its events as skipped, and begin the next one.  Names that were not
 * sent are sent again. */
static void send_datagram(hfn_event_sender *s)
{
    uint64_t now = hfn_os_monotonic_ns();
    uint32_t event_count = s->writer.event_count;

    hfn_events_seal(&s->writer, &s->header);
    hfn_os_sent sent = send_or_wait(s);
    bool has_names = s->writer.has_names;

    hfn_events_begin(&s->writer, s->datagram_bytes);
    if (sent == HFN_OS_SENT) {
        s->header.sequence++;
        s->sent_ns = now;
        return;
    }
    s->header.skipped_count += event_count;
    if (has_names || sent == HFN_OS_NO_RECEIVER) {
        begin_round(s, now);
    }
}

static void put_item(hfn_event_sender *s, const hotfn_events_item *item)
{
    if (!hfn_events_put(&s->writer, item)) {
        send_datagram(s);
        hfn_events_put(&s->writer, item);
    }
}

/* ---- Names. */

static void put_module(hfn_event_sender *s, uint32_t module)
{
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    size_t before = s->module_count;

    if (module >= before) {
        if (!hfn_grow_array(&s->env, (void **)&s->module_rounds, &s->module_capacity, module + 1u,
                            sizeof *s->module_rounds)) {
            return;
        }
        s->module_count = module + 1u;
        memset(s->module_rounds + before, 0, (s->module_count - before) * sizeof(uint32_t));
    }
    if (s->module_rounds[module] == s->round ||
        hfn_live_get_module(s->live, module, &m) != HOTFN_OK) {
        return;
    }
    hotfn_events_item item = { .size = sizeof item,
                               .kind = HOTFN_EVENTS_MODULE,
                               .module = module,
                               .flags = m.flags & HOTFN_MODULE_MAIN,
                               .id_kind = m.id_kind,
                               .id_bytes = m.id_bytes,
                               .id = m.id,
                               .text = m.path,
                               .text_bytes = (uint32_t)strlen(m.path) };
    put_item(s, &item);
    s->module_rounds[module] = s->round;
}

/* Methods of a runtime have no RVA, so their names are used to make one (records/methods.h). */
static void look_up_function(hfn_event_sender *s, uint32_t slot, hotfn_events_item *out)
{
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;

    *out = (hotfn_events_item){
        .size = sizeof *out, .kind = HOTFN_EVENTS_FUNCTION, .function = slot, .text = ""
    };
    if (!hfn_live_find_slot(s->live, slot, &f) ||
        hfn_live_get_module(s->live, f.module, &m) != HOTFN_OK) {
        return;
    }
    bool is_method = (m.flags & HOTFN_MODULE_METHODS) != 0;

    out->module = f.module;
    out->rva = is_method ? hfn_method_get_rva(f.name) : f.rva;
    out->byte_count = is_method ? 0 : f.byte_count;
    out->text = f.name;
    out->text_bytes = (uint32_t)strlen(f.name);
}

/* Send a function with its name, unless it was sent in this round.  False if the record has no such
 * slot, or if there is no memory. */
static bool put_function(hfn_event_sender *s, uint32_t slot)
{
    size_t before = s->function_count;

    if (slot >= before) {
        if (slot >= hfn_live_slots_used(s->live) || slot > HOTFN_EVENTS_MAX_NUMBER ||
            !hfn_grow_array(&s->env, (void **)&s->functions, &s->function_capacity, slot + 1u,
                            sizeof *s->functions)) {
            return false;
        }
        s->function_count = slot + 1u;
        memset(s->functions + before, 0, (s->function_count - before) * sizeof *s->functions);
    }
    known_function *f = &s->functions[slot];

    if (f->sent_round == s->round) {
        return true;
    }
    if (f->sent_round == 0) {
        look_up_function(s, slot, &f->item);
    }
    f->sent_round = s->round;
    put_module(s, f->item.module);
    put_item(s, &f->item);
    return true;
}

/* ---- Events. */

/* Update the open calls.  Calls inside the function that returns were left by a jump or an
 * exception. */
static void follow_event(hfn_event_sender *s, sent_thread *t, const hfn_time_event *e)
{
    if (!t->open) {
        t->open = hfn_allocate_unset(&s->env, MAX_DEPTH * sizeof *t->open);
    }
    if (!t->open) {
        return;
    }
    if (e->kind == HOTFN_EVENTS_ENTRY) {
        if (t->depth < MAX_DEPTH) {
            t->open[t->depth] = e->slot;
        }
        t->depth++;
        return;
    }
    for (uint32_t depth = t->depth; depth-- > 0;) {
        if (depth >= MAX_DEPTH || t->open[depth] == e->slot) {
            t->depth = depth;
            return;
        }
    }
}

static uint64_t convert_to_ns(const hfn_event_sender *s, uint64_t ticks)
{
    uint64_t start = s->live->clock.start_ticks, rate = s->live->clock.ticks_per_second;
    uint64_t passed = ticks > start ? ticks - start : 0;

    return passed / rate * 1000000000u + (uint64_t)((double)(passed % rate) * 1e9 / (double)rate);
}

static void put_event(hfn_event_sender *s, sent_thread *t, const hfn_time_event *e)
{
    hotfn_events_item event = { .size = sizeof event,
                                .kind = e->kind,
                                .function = e->slot,
                                .time_ns = convert_to_ns(s, e->ticks) };

    if (!put_function(s, e->slot)) {
        s->header.skipped_count++;
        return;
    }
    if (!s->writer.has_thread || !hfn_events_put(&s->writer, &event)) {
        hotfn_events_item thread = { .size = sizeof thread,
                                     .kind = HOTFN_EVENTS_THREAD,
                                     .thread = t->ring.thread_id,
                                     .depth = t->depth };
        if (s->writer.limit - s->writer.used < HFN_EVENTS_CALL_ROOM) {
            send_datagram(s);
        }
        put_item(s, &thread);
        put_item(s, &event);
    }
    follow_event(s, t, e);
}

static void send_thread_events(hfn_event_sender *s, uint32_t row, bool is_final)
{
    sent_thread *t = &s->threads[row];
    uint32_t thread_before = t->ring.thread_id, count;
    uint64_t skipped;

    hfn_ring_begin(&t->ring, s->live, row, is_final);
    t->depth = t->ring.thread_id == thread_before ? t->depth : 0;
    s->writer.has_thread = false; /* the events in the datagram are those of another thread */
    do {
        skipped = 0;
        count = hfn_ring_read(&t->ring, s->live, row, s->copy, COPY_COUNT, &skipped);
        if (skipped > 0) {
            s->header.skipped_count += skipped;
            t->depth = 0;
            s->writer.has_thread = false;
        }
        for (uint32_t i = 0; i < count; i++) {
            put_event(s, t, &s->copy[i]);
        }
    } while (count == COPY_COUNT || skipped > 0);
}

static bool make_threads(hfn_event_sender *s, uint32_t count)
{
    if (count > s->thread_count) {
        size_t more = count - s->thread_count;

        if (!hfn_grow_array(&s->env, (void **)&s->threads, &s->thread_capacity, count,
                            sizeof *s->threads)) {
            return false;
        }
        memset(s->threads + s->thread_count, 0, more * sizeof *s->threads);
        s->thread_count = count;
    }
    return true;
}

static void send_events(hfn_event_sender *s, bool is_final)
{
    uint64_t now = hfn_os_monotonic_ns();

    if (now - s->names_ns > NAMES_NS || s->round == 0) {
        begin_round(s, now);
    }
    if (make_threads(s, hfn_rings_count(s->live))) {
        for (uint32_t row = 0; row < s->thread_count; row++) {
            send_thread_events(s, row, is_final);
        }
    }
    if (s->writer.used > HOTFN_EVENTS_HEADER_BYTES || now - s->sent_ns > SILENCE_NS) {
        send_datagram(s);
    }
}

/* ---- The sender. */

hotfn_status hfn_event_sender_create(hfn_event_sender **out, const char *address,
                                     const hotfn_env *env, hotfn_error *err)
{
    hfn_os_address to;
    hotfn_status status = hfn_address_parse(&to, address, err);

    if (status != HOTFN_OK) {
        return status;
    }
    if (!to.path[0] && to.port == 0) {
        return hfn_report_error(err, HOTFN_E_OPTION, NULL, HOTFN_NO_OFFSET,
                                "'%s': events are sent to a port above 0", address);
    }
    hfn_event_sender *s = hfn_allocate_zeroed(env, sizeof *s);
    if (!s) {
        return hfn_report_no_memory(err, NULL);
    }
    s->env = *env;
    s->datagram_bytes = to.path[0] ? HOTFN_EVENTS_MAX_BYTES : UDP_BYTES;
    status = hfn_os_open_sender(&s->socket, &to, err);
    if (status != HOTFN_OK) {
        hfn_free_memory(env, s, sizeof *s);
        return status;
    }
    *out = s;
    return HOTFN_OK;
}

bool hfn_event_sender_begin(hfn_event_sender *s, hfn_live *live, uint32_t pid, const char *command)
{
    s->live = live;
    s->header = (hotfn_events_header)HOTFN_EVENTS_HEADER_INIT;
    s->run = (hotfn_events_item){ .size = sizeof s->run,
                                  .kind = HOTFN_EVENTS_RUN,
                                  .pid = pid,
                                  .time_ns = hfn_read_le64(live->base + HFN_AT_START_NS),
                                  .text = command,
                                  .text_bytes = (uint32_t)strlen(command) };
    s->round = 0;
    s->sent_ns = s->names_ns = hfn_os_monotonic_ns();
    hfn_events_begin(&s->writer, s->datagram_bytes);
    return hfn_os_get_random(&s->header.stream, sizeof s->header.stream) &&
           make_threads(s, hfn_rings_count(live));
}

void hfn_event_sender_poll(hfn_event_sender *s)
{
    send_events(s, false);
}

static void free_stream(hfn_event_sender *s)
{
    for (size_t i = 0; i < s->thread_count; i++) {
        hfn_free_memory(&s->env, s->threads[i].open, MAX_DEPTH * sizeof *s->threads[i].open);
    }
    hfn_free_memory(&s->env, s->threads, s->thread_capacity * sizeof *s->threads);
    hfn_free_memory(&s->env, s->functions, s->function_capacity * sizeof *s->functions);
    hfn_free_memory(&s->env, s->module_rounds, s->module_capacity * sizeof *s->module_rounds);
    s->threads = NULL;
    s->functions = NULL;
    s->module_rounds = NULL;
    s->thread_count = s->thread_capacity = s->function_count = s->function_capacity = 0;
    s->module_count = s->module_capacity = 0;
    s->live = NULL;
}

void hfn_event_sender_end(hfn_event_sender *s, bool is_replaced)
{
    if (!s->live) {
        return;
    }
    send_events(s, true);
    s->header.flags = HOTFN_EVENTS_END | (is_replaced ? HOTFN_EVENTS_REPLACED : 0);
    for (int i = 0; i < END_COUNT; i++) {
        send_datagram(s);
        if (i + 1 < END_COUNT) {
            hfn_os_sleep(MAX_WAIT_NS);
        }
    }
    free_stream(s);
}

void hfn_event_sender_destroy(hfn_event_sender *s)
{
    if (s) {
        hotfn_env env = s->env;

        free_stream(s);
        hfn_os_close_socket(&s->socket);
        hfn_free_memory(&env, s, sizeof *s);
    }
}
