/* SPDX-License-Identifier: MIT */
/* Both ends of the handover.  The mailbox is one futex word: FREE -> WRITING -> ASKED by the target,
 * ASKED -> ANSWERED by the parent, ANSWERED -> FREE by the target.  It names the process that asks: where
 * that was killed meanwhile, the next one takes the mailbox over, and is not given its answer.  The
 * parent sleeps on a word of its own, the bell, so that it wakes for a question and for
 * hotfn_handover_ring, and for nothing else. */
#include "live/plan_channel.h"

#include "base/memory.h"
#include "base/status.h"
#include "os/os.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct hotfn_handover {
    hotfn_env env;
    hfn_handover_shared *shared;
    hfn_os_file file;
    uint32_t heard; /* rings of the bell */
    uint32_t asked; /* the mail whose question was heard */
    uint64_t next;  /* where the next plan goes */
};

#define HEADER_BYTES ((sizeof(hfn_handover_shared) + 4095u) & ~(size_t)4095u)
#define ASK_STEP_NS 100000000ull /* look every 0.1 s whether the other end still lives */

static uint32_t state_of(uint32_t mail)
{
    return mail & 3u;
}

static void ring(hfn_handover_shared *shared)
{
    atomic_fetch_add(&shared->bell, 1);
    hfn_os_wake_waiters(&shared->bell);
}

/* ---- The parent's end. */

hotfn_status hotfn_handover_create(hotfn_handover **out, const hotfn_env *env, hotfn_error *err)
{
    if (!out) {
        return hfn_report_null(err, __func__);
    }

    hotfn_env filled = hfn_env_fill(env);
    hfn_os_file file;
    hfn_os_error error = hfn_os_create_shared(&file, HFN_PLAN_MEMORY_NAME, HFN_HANDOVER_BYTES);

    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no shared memory for plans: %s", hfn_os_get_error_text(error));
    }
    hfn_os_seal_shared(file);
    void *header = NULL;
    error = hfn_os_map_file(&header, file, 0, HEADER_BYTES, HFN_OS_MAP_WRITE, 0);
    hotfn_handover *h = error == 0 ? hfn_allocate_zeroed(&filled, sizeof *h) : NULL;
    if (!h) {
        if (header) {
            hfn_os_unmap((uint64_t)(uintptr_t)header, HEADER_BYTES);
        }
        hfn_os_close_file(file);
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no memory for plans");
    }
    h->env = filled;
    h->shared = header;
    h->file = file;
    h->heard = 0;
    h->next = HFN_HANDOVER_FIRST;
    h->shared->parent_pid = hfn_os_get_process_id();
    h->shared->magic = HFN_HANDOVER_MAGIC;
    *out = h;
    return HOTFN_OK;
}

void hotfn_handover_destroy(hotfn_handover *h)
{
    if (h) {
        hotfn_env env = h->env;
        hfn_os_unmap((uint64_t)(uintptr_t)h->shared, HEADER_BYTES);
        hfn_os_close_file(h->file);
        hfn_free_memory(&env, h, sizeof *h);
    }
}

int32_t hotfn_handover_fd(const hotfn_handover *h)
{
    if (!h) {
        return -1;
    }
    return (int32_t)h->file.handle;
}

hotfn_status hotfn_handover_add_plan(hotfn_handover *h, uint32_t module, const void *plan,
                                     uint64_t plan_bytes, hotfn_error *err)
{
    if (!h || !plan) {
        return hfn_report_null(err, __func__);
    }
    if (module >= HFN_HANDOVER_PLANS || plan_bytes > HFN_HANDOVER_BYTES - h->next) {
        return hfn_report_error(err, HOTFN_E_LIMIT, NULL, HOTFN_NO_OFFSET,
                                "no room for one more plan: select fewer modules");
    }
    hfn_os_error error = hfn_os_write_at(h->file, h->next, plan, plan_bytes);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                "no memory for a plan: %s", hfn_os_get_error_text(error));
    }
    h->shared->plans[module] = (hfn_plan_place){ h->next, plan_bytes };
    h->next = (h->next + plan_bytes + 4095u) & ~4095ull;
    return HOTFN_OK;
}

const void *hfn_handover_view_plan(const hotfn_handover *h, uint32_t module, uint64_t *bytes)
{
    if (module >= HFN_HANDOVER_PLANS || h->shared->plans[module].bytes == 0) {
        return NULL;
    }
    hfn_plan_place place = h->shared->plans[module];
    void *at = NULL;
    hfn_os_map_file(&at, h->file, place.offset, place.bytes, HFN_OS_MAP_LATEST, 0);
    *bytes = place.bytes;
    return at;
}

hotfn_status hotfn_handover_wait(hotfn_handover *h, uint64_t timeout_ns, hotfn_request *out)
{
    if (!h) {
        return HOTFN_E_OPTION;
    }

    hotfn_request question = { .size = sizeof question };
    /* acquire: pairs with the exchange in hfn_handover_ask */
    uint32_t mail = atomic_load_explicit(&h->shared->mail, memory_order_acquire);
    if (state_of(mail) != HFN_MAIL_ASKED) {
        hfn_os_wait_word(&h->shared->bell, h->heard, timeout_ns);
    }
    /* What is asked before a ring that was heard is seen below; a later one ends the next wait at once. */
    h->heard = atomic_load(&h->shared->bell);
    mail = atomic_load_explicit(&h->shared->mail, memory_order_acquire);
    if (state_of(mail) == HFN_MAIL_ASKED) {
        h->asked = mail;
        question = h->shared->question;
        question.size = sizeof question;
        question.path[sizeof question.path - 1] = 0;
    }
    return hfn_copy_out(out, &question, sizeof question) ? HOTFN_OK : HOTFN_E_OPTION;
}

void hotfn_handover_ring(hotfn_handover *h)
{
    if (!h) {
        return;
    }
    ring(h->shared);
}

hotfn_status hotfn_handover_answer(hotfn_handover *h, uint32_t module)
{
    if (!h) {
        return HOTFN_E_OPTION;
    }

    uint32_t asked = h->asked, answered = asked - HFN_MAIL_ASKED + HFN_MAIL_ANSWERED;
    h->asked = 0;
    h->shared->answer_module = module;
    if (state_of(asked) != HFN_MAIL_ASKED ||
        !atomic_compare_exchange_strong(&h->shared->mail, &asked, answered)) {
        return HOTFN_E_STATE; /* nobody asked, or the asker died and another asks */
    }
    hfn_os_wake_waiters(&h->shared->mail);
    return HOTFN_OK;
}

hotfn_status hotfn_handover_get_stats(const hotfn_handover *h, hotfn_commit_stats *out)
{
    if (!h) {
        return HOTFN_E_OPTION;
    }
    if (!atomic_load_explicit(&h->shared->stats_ready, memory_order_acquire)) {
        return HOTFN_E_STATE;
    }
    hotfn_commit_stats stats = h->shared->stats;
    return hfn_copy_out(out, &stats, sizeof stats) ? HOTFN_OK : HOTFN_E_OPTION;
}

uint64_t hfn_handover_start_ns(const hotfn_handover *h, uint32_t pid)
{
    if (atomic_load_explicit(&h->shared->started_pid, memory_order_acquire) != pid) {
        return 0;
    }
    return UINT64_C(1000) * atomic_load_explicit(&h->shared->start_us, memory_order_relaxed);
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

/* The magic number ends with the version of the layout; the bytes before it are those of any version. */
static hotfn_status refuse_channel(uint64_t magic, const char *path, hotfn_error *err)
{
    const uint64_t name = (UINT64_C(1) << 48) - 1;

    if (((magic ^ HFN_HANDOVER_MAGIC) & name) != 0) {
        return hfn_report_error(err, HOTFN_E_FORMAT, path, 0, "this is not a plan channel of hotfn");
    }
    return hfn_report_error(err, HOTFN_E_MISMATCH, path, 0,
                    "the plan channel has layout version %c, this agent needs version %c: use the "
                    "agent of the same hotfn",
                    HFN_HANDOVER_VERSION(magic), HFN_HANDOVER_VERSION(HFN_HANDOVER_MAGIC));
}

hotfn_status hfn_handover_join(hfn_handover_link *link, const char *path, hotfn_error *err)
{
    void *mapped;
    hfn_os_error error = map_range(&mapped, path, 0, HEADER_BYTES, true);
    if (error != 0) {
        return hfn_report_error(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET,
                                "the plans cannot be mapped: %s", hfn_os_get_error_text(error));
    }
    hfn_handover_shared *shared = mapped;
    if (shared->magic != HFN_HANDOVER_MAGIC) {
        uint64_t magic = shared->magic;
        hfn_os_unmap((uint64_t)(uintptr_t)shared, HEADER_BYTES);
        return refuse_channel(magic, path, err);
    }
    link->shared = shared;
    link->path = path;
    return HOTFN_OK;
}

void hfn_handover_leave(hfn_handover_link *link)
{
    if (link->shared) {
        hfn_os_unmap((uint64_t)(uintptr_t)link->shared, HEADER_BYTES);
        link->shared = NULL;
    }
}

/* False when the parent is gone. */
static bool take_mailbox(hfn_handover_shared *shared, uint32_t pid)
{
    while (!hfn_os_process_is_gone(shared->parent_pid)) {
        uint32_t mail = atomic_load(&shared->mail);
        if (mail != HFN_MAIL_FREE && !hfn_os_process_is_gone(mail >> 2)) {
            hfn_os_wait_word(&shared->mail, mail, ASK_STEP_NS);
        } else if (atomic_compare_exchange_strong(&shared->mail, &mail,
                                                  HFN_MAIL(pid, HFN_MAIL_WRITING))) {
            return true;
        }
    }
    return false;
}

/* False when the parent is gone, or another process, that does not see ours, has taken the mailbox over. */
static bool wait_for_answer(hfn_handover_shared *shared, uint32_t pid)
{
    uint32_t asked = HFN_MAIL(pid, HFN_MAIL_ASKED), mail;
    /* acquire: pairs with the exchange in hotfn_handover_answer */
    while ((mail = atomic_load_explicit(&shared->mail, memory_order_acquire)) == asked &&
           !hfn_os_process_is_gone(shared->parent_pid)) {
        hfn_os_wait_word(&shared->mail, asked, ASK_STEP_NS);
    }
    return mail == HFN_MAIL(pid, HFN_MAIL_ANSWERED);
}

uint32_t hfn_handover_ask(hfn_handover_link *link, const hotfn_request *question)
{
    hfn_handover_shared *shared = link->shared;
    int saved = errno;
    uint32_t pid = hfn_os_get_process_id(), module = UINT32_MAX;
    if (take_mailbox(shared, pid)) {
        uint32_t mail = HFN_MAIL(pid, HFN_MAIL_WRITING);
        shared->question = *question;
        /* pairs with the acquire loads in hotfn_handover_wait */
        atomic_compare_exchange_strong(&shared->mail, &mail, HFN_MAIL(pid, HFN_MAIL_ASKED));
        ring(shared);
        if (wait_for_answer(shared, pid)) {
            module = shared->answer_module;
            mail = HFN_MAIL(pid, HFN_MAIL_ANSWERED);
            atomic_compare_exchange_strong(&shared->mail, &mail, HFN_MAIL_FREE);
            hfn_os_wake_waiters(&shared->mail);
        }
    }
    errno = saved;
    return module;
}

const void *hfn_handover_map_plan(const hfn_handover_link *link, uint32_t module, uint64_t *bytes)
{
    if (module >= HFN_HANDOVER_PLANS || link->shared->plans[module].bytes == 0) {
        return NULL;
    }
    hfn_plan_place place = link->shared->plans[module];
    if (place.offset > HFN_HANDOVER_BYTES || place.bytes > HFN_HANDOVER_BYTES - place.offset) {
        return NULL;
    }
    *bytes = place.bytes;
    void *at = NULL;
    map_range(&at, link->path, place.offset, place.bytes, false);
    return at;
}

void hfn_handover_tell_stats(hfn_handover_link *link, const hotfn_commit_stats *stats)
{
    link->shared->stats = *stats;
    /* pairs with the acquire load in hotfn_handover_get_stats */
    atomic_store_explicit(&link->shared->stats_ready, 1, memory_order_release);
}

void hfn_handover_tell_start(hfn_handover_link *link, uint32_t pid, uint64_t cpu_ns)
{
    uint64_t us = cpu_ns / 1000;
    atomic_store_explicit(&link->shared->start_us, us < UINT32_MAX ? (uint32_t)us : UINT32_MAX,
                          memory_order_relaxed);
    /* pairs with the acquire load in hfn_handover_start_ns */
    atomic_store_explicit(&link->shared->started_pid, pid, memory_order_release);
}
