/* SPDX-License-Identifier: MIT */
/* Both ends of the handover.  The mailbox is one futex word: FREE -> WRITING -> ASKED by the target,
 * ASKED -> ANSWERED by the parent, ANSWERED -> FREE by the target.  It names the process that asks: where
 * that was killed meanwhile, the next one takes the mailbox over, and is not given its answer.  The
 * parent sleeps on a word of its own, the bell, so that it wakes for a question and for
 * hotfn_handover_ring, and for nothing else. */
#include "live/plan_channel.h"

#include "base/memory.h"
#include "base/status.h"
#include "os/linux/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct hotfn_handover {
    hotfn_env env;
    hfn_handover_shared *shared;
    int fd;
    uint32_t heard; /* rings of the bell */
    uint32_t asked; /* the mail whose question was heard */
    uint64_t next;  /* where the next plan goes */
};

#define HEADER_BYTES ((sizeof(hfn_handover_shared) + 4095u) & ~(size_t)4095u)
#define ASK_STEP_NS 100000000ull /* look every 0.1 s whether the other end still lives */

static void futex_wait(_Atomic uint32_t *word, uint32_t while_is, uint64_t timeout_ns)
{
    struct timespec t = { (time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u) };
    hfn_raw6(SYS_futex, hfn_raw_pointer(word), FUTEX_WAIT, while_is, hfn_raw_pointer(&t), 0, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    hfn_raw6(SYS_futex, hfn_raw_pointer(word), FUTEX_WAKE, 1 << 30, 0, 0, 0);
}

static uint32_t state_of(uint32_t mail)
{
    return mail & 3u;
}

static void ring(hfn_handover_shared *shared)
{
    atomic_fetch_add(&shared->bell, 1);
    futex_wake(&shared->bell);
}

/* ---- The parent's end. */

hotfn_status hotfn_handover_create(hotfn_handover **out, const hotfn_env *env, hotfn_error *err)
{
    if (!out) {
        return hfn_fail_null(err, __func__);
    }

    hotfn_env filled = hfn_env_fill(env);
    int fd = memfd_create("hotfn-handover", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)HFN_HANDOVER_BYTES) != 0) {
        hotfn_status s = hfn_fail(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                                  "no shared memory for plans: %s", strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return s;
    }
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    void *header = mmap(NULL, HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    hotfn_handover *h = header == MAP_FAILED ? NULL : hfn_alloc(&filled, sizeof *h);
    if (!h) {
        if (header != MAP_FAILED) {
            munmap(header, HEADER_BYTES);
        }
        close(fd);
        return hfn_fail(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET, "no memory for plans");
    }
    h->env = filled;
    h->shared = header;
    h->fd = fd;
    h->heard = 0;
    h->next = HFN_HANDOVER_FIRST;
    h->shared->parent_pid = (uint32_t)getpid();
    h->shared->magic = HFN_HANDOVER_MAGIC;
    *out = h;
    return HOTFN_OK;
}

void hotfn_handover_destroy(hotfn_handover *h)
{
    if (h) {
        hotfn_env env = h->env;
        munmap(h->shared, HEADER_BYTES);
        close(h->fd);
        hfn_free(&env, h, sizeof *h);
    }
}

int32_t hotfn_handover_fd(const hotfn_handover *h)
{
    if (!h) {
        return -1;
    }
    return h->fd;
}

hotfn_status hotfn_handover_add_plan(hotfn_handover *h, uint32_t module, const void *plan,
                                     uint64_t plan_bytes, hotfn_error *err)
{
    if (!h || !plan) {
        return hfn_fail_null(err, __func__);
    }
    if (module >= HFN_HANDOVER_PLANS || plan_bytes > HFN_HANDOVER_BYTES - h->next) {
        return hfn_fail(err, HOTFN_E_LIMIT, NULL, HOTFN_NO_OFFSET,
                        "no room for one more plan: select fewer modules");
    }
    const uint8_t *at = plan;
    uint64_t done = 0;
    while (done < plan_bytes) {
        ssize_t n = pwrite(h->fd, at + done, plan_bytes - done, (off_t)(h->next + done));
        if (n <= 0 && errno != EINTR) {
            return hfn_fail(err, HOTFN_E_NO_MEMORY, NULL, HOTFN_NO_OFFSET,
                            "no memory for a plan: %s", strerror(errno));
        }
        done += n > 0 ? (uint64_t)n : 0;
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
    void *at = mmap(NULL, place.bytes, PROT_READ, MAP_SHARED, h->fd, (off_t)place.offset);
    *bytes = place.bytes;
    return at == MAP_FAILED ? NULL : at;
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
        futex_wait(&h->shared->bell, h->heard, timeout_ns);
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
    return hfn_give(out, &question, sizeof question) ? HOTFN_OK : HOTFN_E_OPTION;
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
    futex_wake(&h->shared->mail);
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
    return hfn_give(out, &stats, sizeof stats) ? HOTFN_OK : HOTFN_E_OPTION;
}

uint64_t hfn_handover_start_ns(const hotfn_handover *h, uint32_t pid)
{
    if (atomic_load_explicit(&h->shared->started_pid, memory_order_acquire) != pid) {
        return 0;
    }
    return UINT64_C(1000) * atomic_load_explicit(&h->shared->start_us, memory_order_relaxed);
}

/* ---- The target's end. */

static void *map_range(const char *path, uint64_t offset, uint64_t bytes, int protection)
{
    int fd = open(path, (protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0 || bytes > SIZE_MAX) {
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    int populate = protection & PROT_WRITE ? 0 : MAP_POPULATE;
    void *at = mmap(NULL, bytes, protection, MAP_SHARED | populate, fd, (off_t)offset);
    close(fd);
    if (at == MAP_FAILED) {
        return NULL;
    }
    madvise(at, bytes, MADV_DONTDUMP); /* a core is the program's */
    return at;
}

hotfn_status hfn_handover_join(hfn_handover_link *link, const char *path, hotfn_error *err)
{
    hfn_handover_shared *shared = map_range(path, 0, HEADER_BYTES, PROT_READ | PROT_WRITE);
    if (!shared) {
        return hfn_fail(err, HOTFN_E_IO, path, HOTFN_NO_OFFSET, "the plans cannot be mapped: %s",
                        strerror(errno));
    }
    if (shared->magic != HFN_HANDOVER_MAGIC) {
        munmap(shared, HEADER_BYTES);
        return hfn_fail(err, HOTFN_E_MISMATCH, path, 0, "no handover of this version of hotfn");
    }
    link->shared = shared;
    link->path = path;
    return HOTFN_OK;
}

void hfn_handover_leave(hfn_handover_link *link)
{
    if (link->shared) {
        munmap(link->shared, HEADER_BYTES);
        link->shared = NULL;
    }
}

static bool is_gone(uint32_t pid)
{
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* False when the parent is gone. */
static bool take_mailbox(hfn_handover_shared *shared, uint32_t pid)
{
    while (!is_gone(shared->parent_pid)) {
        uint32_t mail = atomic_load(&shared->mail);
        if (mail != HFN_MAIL_FREE && !is_gone(mail >> 2)) {
            futex_wait(&shared->mail, mail, ASK_STEP_NS);
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
           !is_gone(shared->parent_pid)) {
        futex_wait(&shared->mail, asked, ASK_STEP_NS);
    }
    return mail == HFN_MAIL(pid, HFN_MAIL_ANSWERED);
}

uint32_t hfn_handover_ask(hfn_handover_link *link, const hotfn_request *question)
{
    hfn_handover_shared *shared = link->shared;
    int saved = errno;
    uint32_t pid = (uint32_t)hfn_raw3(SYS_getpid, 0, 0, 0), module = UINT32_MAX;
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
            futex_wake(&shared->mail);
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
    return map_range(link->path, place.offset, place.bytes, PROT_READ);
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
