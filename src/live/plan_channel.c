/* SPDX-License-Identifier: MIT */
/* Both ends of the plan channel.
 *
 * One request is under way at a time.  Its state is the request word, a futex word that holds the
 * pid of the requesting process as well:
 *
 *     FREE --(target)--> WRITING --(target)--> ASKED --(launcher)--> ANSWERED --(target)--> FREE
 *
 * - FREE -> WRITING: a thread of the target claims the word by compare-and-swap and fills in
 *   `request`.
 * - WRITING -> ASKED: the target's release publishes `request` to the launcher's acquire load in
 *   hfn_plan_channel_wait.  The target then rings the doorbell.
 * - ASKED -> ANSWERED: the launcher's release publishes `answer_module` to the target's acquire
 *   load in wait_for_answer.
 * - ANSWERED -> FREE: the target has read the answer; other waiting threads are woken.
 *
 * If the process named in the word has ended, whatever the state, the next requesting process
 * claims the word.  The launcher answers by compare-and-swap on the word that it read, so an answer
 * never reaches another process.  Each transition is an exchange with sequential consistency, which
 * includes the release.
 *
 * The launcher sleeps on a separate word, the doorbell, which counts rings.  Only a request or
 * hfn_plan_channel_wake rings it.  A ring between the launcher's load of the request word and its
 * sleep changes the doorbell, so the sleep ends at once. */
#include "live/plan_channel.h"

#include "base/memory.h"
#include "base/status.h"
#include "os/os.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct hfn_plan_channel {
    hotfn_env env;
    hfn_plan_channel_memory *shared;
    hfn_os_file file;
    uint32_t rings;   /* doorbell as last read                              */
    uint32_t pending; /* request word of the request that was returned last */
    uint64_t next;    /* offset of the next plan                            */
    uint32_t starts_taken;
};

#define HEADER_BYTES ((sizeof(hfn_plan_channel_memory) + 4095u) & ~(size_t)4095u)
#define CHECK_ALIVE_NS                                                                             \
    100000000ull /* interval at which a sleeping end checks that the other end is alive */

static uint32_t get_state(uint32_t word)
{
    return word & 3u;
}

static void ring_doorbell(hfn_plan_channel_memory *shared)
{
    atomic_fetch_add(&shared->doorbell, 1);
    hfn_os_wake_waiters(&shared->doorbell);
}

/* ---- The launcher's end. */

hotfn_status hfn_plan_channel_create(hfn_plan_channel **out, const hotfn_env *env, hotfn_error *err)
{
    hotfn_env filled = hfn_env_fill(env);
    hfn_os_file file;
    hfn_os_error error = hfn_os_create_shared(&file, HFN_PLAN_MEMORY_NAME, HFN_CHANNEL_BYTES);

    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no shared memory for plans: %s", hfn_os_get_error_text(error));
    }
    hfn_os_seal_shared(file);
    void *header = NULL;
    error = hfn_os_commit_shared(file, 0, HEADER_BYTES);
    error =
        error != 0 ? error : hfn_os_map_file(&header, file, 0, HEADER_BYTES, HFN_OS_MAP_WRITE, 0);
    hfn_plan_channel *c = error == 0 ? hfn_allocate_zeroed(&filled, sizeof *c) : NULL;
    if (!c) {
        if (header) {
            hfn_os_unmap((uint64_t)(uintptr_t)header, HEADER_BYTES);
        }
        hfn_os_close_file(file);
        return hfn_report_no_memory(err, NULL);
    }
    c->env = filled;
    c->shared = header;
    c->file = file;
    c->next = HFN_CHANNEL_FIRST_PLAN;
    c->shared->launcher_pid = hfn_os_get_process_id();
    c->shared->magic = HFN_CHANNEL_MAGIC;
    *out = c;
    return HOTFN_OK;
}

void hfn_plan_channel_destroy(hfn_plan_channel *c)
{
    if (c) {
        hotfn_env env = c->env;
        hfn_os_unmap((uint64_t)(uintptr_t)c->shared, HEADER_BYTES);
        hfn_os_close_file(c->file);
        hfn_free_memory(&env, c, sizeof *c);
    }
}

int32_t hfn_plan_channel_get_fd(const hfn_plan_channel *c)
{
    return (int32_t)c->file.handle;
}

hotfn_status hfn_plan_channel_add(hfn_plan_channel *c, uint32_t module, const void *plan,
                                  uint64_t plan_bytes, hotfn_error *err)
{
    if (module >= HFN_CHANNEL_PLANS || plan_bytes > HFN_CHANNEL_BYTES - c->next) {
        return hfn_report_error(err, HOTFN_E_LIMIT, NULL, HOTFN_NO_OFFSET,
                                "no room for one more plan: select fewer modules");
    }
    hfn_os_error error = hfn_os_write_at(c->file, c->next, plan, plan_bytes);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no memory for a plan: %s", hfn_os_get_error_text(error));
    }
    c->shared->plans[module] = (hfn_plan_place){ c->next, plan_bytes };
    c->next = (c->next + plan_bytes + 4095u) & ~4095ull;
    return HOTFN_OK;
}

const void *hfn_plan_channel_view_plan(const hfn_plan_channel *c, uint32_t module, uint64_t *bytes)
{
    if (module >= HFN_CHANNEL_PLANS || c->shared->plans[module].bytes == 0) {
        return NULL;
    }
    hfn_plan_place place = c->shared->plans[module];
    void *at = NULL;
    hfn_os_map_file(&at, c->file, place.offset, place.bytes, HFN_OS_MAP_LATEST, 0);
    *bytes = place.bytes;
    return at;
}

void hfn_plan_channel_wait(hfn_plan_channel *c, uint64_t timeout_ns, hfn_plan_request *out)
{
    /* pairs with the exchange to ASKED in hfn_plan_client_request */
    uint32_t word = atomic_load_explicit(&c->shared->request_word, memory_order_acquire);

    if (get_state(word) != HFN_REQUEST_ASKED) {
        hfn_os_wait_word(&c->shared->doorbell, c->rings, timeout_ns);
    }
    /* The request word is read after the doorbell: a request before the ring is seen now, a later
     * ring ends the next wait at once. */
    c->rings = atomic_load(&c->shared->doorbell);
    word = atomic_load_explicit(&c->shared->request_word, memory_order_acquire);
    out->kind = HFN_PLAN_REQUEST_NONE;
    if (get_state(word) == HFN_REQUEST_ASKED) {
        c->pending = word;
        *out = c->shared->request;
        out->path[sizeof out->path - 1] = 0;
    }
}

void hfn_plan_channel_wake(hfn_plan_channel *c)
{
    ring_doorbell(c->shared);
}

hotfn_status hfn_plan_channel_answer(hfn_plan_channel *c, uint32_t module)
{
    uint32_t asked = c->pending, answered = asked - HFN_REQUEST_ASKED + HFN_REQUEST_ANSWERED;

    c->pending = HFN_REQUEST_FREE;
    c->shared->answer_module = module;
    /* pairs with the acquire load in wait_for_answer */
    if (get_state(asked) != HFN_REQUEST_ASKED ||
        !atomic_compare_exchange_strong(&c->shared->request_word, &asked, answered)) {
        return HOTFN_E_STATE;
    }
    hfn_os_wake_waiters(&c->shared->request_word);
    return HOTFN_OK;
}

uint32_t hfn_plan_channel_get_requester(const hfn_plan_channel *c)
{
    return c->pending >> 2;
}

hotfn_status hfn_plan_channel_answer_image(hfn_plan_channel *c, hfn_run_files files)
{
    c->shared->next = files;
    return hfn_plan_channel_answer(c, 0);
}

void hfn_plan_channel_close(hfn_plan_channel *c)
{
    c->shared->launcher_pid = HFN_CHANNEL_CLOSED;
    hfn_os_wake_waiters(&c->shared->request_word);
}

uint32_t hfn_plan_channel_take_start(hfn_plan_channel *c, char *path)
{
    uint32_t count = atomic_load(&c->shared->start_count), pid;

    if (count - c->starts_taken > HFN_CHANNEL_STARTS) {
        c->starts_taken = count - HFN_CHANNEL_STARTS; /* the older ones were overwritten */
    }
    while (c->starts_taken != count) {
        hfn_started_process *s = &c->shared->started[c->starts_taken++ % HFN_CHANNEL_STARTS];

        /* pairs with the release store in hfn_plan_client_report_exec */
        pid = atomic_load_explicit(&s->pid, memory_order_acquire);
        if (pid != 0) {
            memcpy(path, s->path, sizeof s->path);
            path[sizeof s->path - 1] = 0;
            return pid;
        }
    }
    return 0;
}

bool hfn_plan_channel_get_own_exec(const hfn_plan_channel *c, char *path)
{
    hfn_started_process *s = &c->shared->own_exec;

    /* pairs with the release store in hfn_plan_client_report_exec */
    if (atomic_load_explicit(&s->pid, memory_order_acquire) == 0) {
        return false;
    }
    memcpy(path, s->path, sizeof s->path);
    path[sizeof s->path - 1] = 0;
    return true;
}

hotfn_status hfn_plan_channel_get_stats(const hfn_plan_channel *c, hfn_start_stats *out)
{
    /* pairs with the release store in hfn_plan_client_report_stats */
    if (!atomic_load_explicit(&c->shared->has_stats, memory_order_acquire)) {
        return HOTFN_E_STATE;
    }
    *out = c->shared->stats;
    return HOTFN_OK;
}

uint64_t hfn_plan_channel_get_start_ns(const hfn_plan_channel *c, uint32_t pid)
{
    /* pairs with the release store in hfn_plan_client_report_start */
    if (atomic_load_explicit(&c->shared->start_pid, memory_order_acquire) != pid) {
        return 0;
    }
    return UINT64_C(1000) * atomic_load_explicit(&c->shared->start_us, memory_order_relaxed);
}

/* ---- The target's end. */

static hfn_os_error map_range(void **out, const char *path, uint64_t offset, uint64_t bytes,
                              bool writes)
{
    hfn_os_file file;
    hfn_os_error error = hfn_os_open_file(&file, path, HFN_OS_READ | (writes ? HFN_OS_WRITE : 0));

    if (error != 0) {
        return error;
    }
    error = hfn_os_map_file(out, file, offset, bytes,
                            writes ? HFN_OS_MAP_WRITE : HFN_OS_MAP_LATEST | HFN_OS_MAP_PREFAULT, 0);
    hfn_os_close_file(file);
    if (error == 0) {
        hfn_os_exclude_from_dumps(*out, bytes);
    }
    return error;
}

/* The magic number ends with the version of the layout; its other bytes are the same in all
 * versions. */
static hotfn_status refuse_channel(uint64_t magic, const char *path, hotfn_error *err)
{
    const uint64_t name = (UINT64_C(1) << 48) - 1;

    if (((magic ^ HFN_CHANNEL_MAGIC) & name) != 0) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, 0,
                                "this is not a plan channel of hotfn");
    }
    return hfn_report_error(
        err, HOTFN_E_MISMATCH, path, 0,
        "the plan channel has layout version %c, this agent needs version %c: use the "
        "agent of the same hotfn",
        HFN_CHANNEL_VERSION(magic), HFN_CHANNEL_VERSION(HFN_CHANNEL_MAGIC));
}

hotfn_status hfn_plan_client_join(hfn_plan_client *client, const char *path, hotfn_error *err)
{
    void *mapped;
    hfn_os_error error = map_range(&mapped, path, 0, HEADER_BYTES, true);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
                                "the plans cannot be mapped: %s", hfn_os_get_error_text(error));
    }
    hfn_plan_channel_memory *shared = mapped;
    if (shared->magic != HFN_CHANNEL_MAGIC) {
        uint64_t magic = shared->magic;
        hfn_os_unmap((uint64_t)(uintptr_t)shared, HEADER_BYTES);
        return refuse_channel(magic, path, err);
    }
    client->shared = shared;
    client->path = path;
    return HOTFN_OK;
}

void hfn_plan_client_leave(hfn_plan_client *client)
{
    if (client->shared) {
        hfn_os_unmap((uint64_t)(uintptr_t)client->shared, HEADER_BYTES);
        client->shared = NULL;
    }
}

/* Claim the request word for process pid; false when the launcher has ended.  is_new: exec has
 * ended all threads of this process, which may have left a request. */
static bool claim_request_word(hfn_plan_channel_memory *shared, uint32_t pid, bool is_new)
{
    while (!hfn_os_process_is_gone(shared->launcher_pid)) {
        uint32_t word = atomic_load(&shared->request_word);

        if (word != HFN_REQUEST_FREE && !(is_new && word >> 2 == pid) &&
            !hfn_os_process_is_gone(word >> 2)) {
            hfn_os_wait_word(&shared->request_word, word, CHECK_ALIVE_NS);
        } else if (atomic_compare_exchange_strong(&shared->request_word, &word,
                                                  HFN_REQUEST_WORD(pid, HFN_REQUEST_WRITING))) {
            return true;
        }
    }
    return false;
}

/* False when the launcher has ended, or when a process of another pid namespace, to which this pid
 * means nothing, has claimed the word. */
static bool wait_for_answer(hfn_plan_channel_memory *shared, uint32_t pid)
{
    uint32_t asked = HFN_REQUEST_WORD(pid, HFN_REQUEST_ASKED), word;

    /* pairs with the exchange to ANSWERED in hfn_plan_channel_answer */
    while ((word = atomic_load_explicit(&shared->request_word, memory_order_acquire)) == asked &&
           !hfn_os_process_is_gone(shared->launcher_pid)) {
        hfn_os_wait_word(&shared->request_word, asked, CHECK_ALIVE_NS);
    }
    /* A channel may be closed right after the answer. */
    word = atomic_load_explicit(&shared->request_word, memory_order_acquire);
    return word == HFN_REQUEST_WORD(pid, HFN_REQUEST_ANSWERED);
}

static uint32_t request_answer(hfn_plan_channel_memory *shared, const hfn_plan_request *request,
                               hfn_run_files *next)
{
    int saved_errno = errno;
    uint32_t pid = hfn_os_get_process_id(), module = UINT32_MAX;

    if (claim_request_word(shared, pid, next != NULL)) {
        uint32_t word = HFN_REQUEST_WORD(pid, HFN_REQUEST_WRITING);

        shared->request = *request;
        /* pairs with the acquire loads in hfn_plan_channel_wait */
        atomic_compare_exchange_strong(&shared->request_word, &word,
                                       HFN_REQUEST_WORD(pid, HFN_REQUEST_ASKED));
        ring_doorbell(shared);
        if (wait_for_answer(shared, pid)) {
            module = shared->answer_module;
            if (next) {
                *next = shared->next;
            }
            word = HFN_REQUEST_WORD(pid, HFN_REQUEST_ANSWERED);
            atomic_compare_exchange_strong(&shared->request_word, &word, HFN_REQUEST_FREE);
            hfn_os_wake_waiters(&shared->request_word);
        }
    }
    errno = saved_errno;
    return module;
}

uint32_t hfn_plan_client_request(hfn_plan_client *client, const hfn_plan_request *request)
{
    return request_answer(client->shared, request, NULL);
}

bool hfn_plan_client_request_image(hfn_plan_client *client, const hfn_plan_request *request,
                                   hfn_run_files *out)
{
    return request_answer(client->shared, request, out) != UINT32_MAX;
}

static hfn_started_process *find_report(hfn_plan_channel_memory *shared, uint32_t number)
{
    return number == HFN_OWN_EXEC ? &shared->own_exec
                                  : &shared->started[number % HFN_CHANNEL_STARTS];
}

uint32_t hfn_plan_client_report_exec(hfn_plan_client *client, uint32_t pid, const char *path,
                                     bool is_own)
{
    hfn_plan_channel_memory *shared = client->shared;
    uint32_t number = is_own ? HFN_OWN_EXEC : atomic_fetch_add(&shared->start_count, 1);
    hfn_started_process *s = find_report(shared, number);
    size_t length = strlen(path);

    atomic_store(&s->pid, 0);
    length = length < sizeof s->path ? length : sizeof s->path - 1;
    memcpy(s->path, path, length);
    s->path[length] = 0;
    /* pairs with the acquire load in hfn_plan_channel_take_start */
    atomic_store_explicit(&s->pid, pid, memory_order_release);
    return number;
}

void hfn_plan_client_report_exec_failed(hfn_plan_client *client, uint32_t number)
{
    atomic_store(&find_report(client->shared, number)->pid, 0);
}

const void *hfn_plan_client_map_plan(const hfn_plan_client *client, uint32_t module,
                                     uint64_t *bytes)
{
    if (module >= HFN_CHANNEL_PLANS || client->shared->plans[module].bytes == 0) {
        return NULL;
    }
    hfn_plan_place place = client->shared->plans[module];
    if (place.offset > HFN_CHANNEL_BYTES || place.bytes > HFN_CHANNEL_BYTES - place.offset) {
        return NULL;
    }
    *bytes = place.bytes;
    void *at = NULL;
    map_range(&at, client->path, place.offset, place.bytes, false);
    return at;
}

void hfn_plan_client_report_stats(hfn_plan_client *client, const hfn_start_stats *stats)
{
    client->shared->stats = *stats;
    /* pairs with the acquire load in hfn_plan_channel_get_stats */
    atomic_store_explicit(&client->shared->has_stats, 1, memory_order_release);
}

void hfn_plan_client_report_start(hfn_plan_client *client, uint32_t pid, uint64_t cpu_ns)
{
    uint64_t start_us = cpu_ns / 1000;

    atomic_store_explicit(&client->shared->start_us,
                          start_us < UINT32_MAX ? (uint32_t)start_us : UINT32_MAX,
                          memory_order_relaxed);
    /* pairs with the acquire load in hfn_plan_channel_get_start_ns */
    atomic_store_explicit(&client->shared->start_pid, pid, memory_order_release);
}
