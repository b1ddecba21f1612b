/* SPDX-License-Identifier: MIT */
/* The handover between a parent and its target: here two threads of one process. */
#include "live/plan_channel.h"

#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both ends of one handover. */
typedef struct ends {
    hotfn_handover *parent;
    hfn_handover_link target;
    char *path; /* the target's, as long as it joins */
} ends;

enum { PATH_BYTES = 64 };

static hotfn_handover *make(void)
{
    hotfn_handover *h = NULL;

    CHECK(hotfn_handover_create(&h, NULL, NULL) == HOTFN_OK);
    return h;
}

/* The target comes when the parent has done what it does first. */
static ends join(hotfn_handover *parent)
{
    ends e = { .parent = parent, .path = malloc(PATH_BYTES) };

    snprintf(e.path, PATH_BYTES, "/proc/self/fd/%d", hotfn_handover_fd(parent));
    CHECK(hfn_handover_join(&e.target, e.path, NULL) == HOTFN_OK);
    return e;
}

static void part(ends *e)
{
    hfn_handover_leave(&e->target);
    hotfn_handover_destroy(e->parent);
    free(e->path);
}

static hotfn_request question_of_a_module(void)
{
    hotfn_request question = HOTFN_REQUEST_INIT;

    question.kind = HOTFN_REQUEST_MODULE;
    strcpy(question.path, "/some/lib.so");
    return question;
}

static void *serve_one(void *user)
{
    hotfn_request request = HOTFN_REQUEST_INIT;

    for (int i = 0; i < 200; i++) {
        CHECK(hotfn_handover_wait(user, 50000000u, &request) == HOTFN_OK);
        if (request.kind != HOTFN_REQUEST_NONE) {
            CHECK_STR(request.path, "/some/lib.so");
            CHECK(hotfn_handover_answer(user, 7) == HOTFN_OK);
            return NULL;
        }
    }
    return NULL;
}

static void an_asked_question_is_answered(void)
{
    ends e = join(make());
    hotfn_request question = question_of_a_module();
    pthread_t thread;

    pthread_create(&thread, NULL, serve_one, e.parent);
    CHECK_EQ_U64(hfn_handover_ask(&e.target, &question), 7);
    pthread_join(thread, NULL);
    CHECK_EQ_U64(e.target.shared->mail, HFN_MAIL_FREE);
    part(&e);
}

static void *wait_long(void *user)
{
    hotfn_request request = HOTFN_REQUEST_INIT;

    CHECK(hotfn_handover_wait(user, UINT64_C(1000000000000), &request) == HOTFN_OK);
    CHECK_EQ_U64(request.kind, HOTFN_REQUEST_NONE);
    return NULL;
}

/* Whether it sleeps by then or not; without, this test would take a quarter of an hour. */
static void a_ring_ends_a_wait(void)
{
    hotfn_handover *h = make();
    pthread_t thread;

    hotfn_handover_ring(h);
    wait_long(h);
    for (int i = 0; i < 100; i++) {
        pthread_create(&thread, NULL, wait_long, h);
        if (i % 2) {
            sched_yield();
        }
        hotfn_handover_ring(h);
        pthread_join(thread, NULL);
    }
    hotfn_handover_destroy(h);
}

static void a_dead_parent_is_not_waited_for(void)
{
    ends e = join(make());
    hotfn_request question = HOTFN_REQUEST_INIT;

    e.target.shared->parent_pid = 0x7ffffff0; /* above any pid */
    CHECK_EQ_U64(hfn_handover_ask(&e.target, &question), UINT32_MAX);
    part(&e);
}

/* The pid of a process that was. */
static uint32_t dead_pid(void)
{
    pid_t child = fork();

    if (child == 0) {
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, NULL, 0) == child);
    return (uint32_t)child;
}

static void who_dies_while_it_asks_blocks_nobody(void)
{
    static const uint32_t left[] = { HFN_MAIL_WRITING, HFN_MAIL_ANSWERED };
    ends e = join(make());
    hotfn_request question = question_of_a_module();

    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        e.target.shared->mail = HFN_MAIL(dead_pid(), left[i]);
        pthread_create(&thread, NULL, serve_one, e.parent);
        CHECK_EQ_U64(hfn_handover_ask(&e.target, &question), 7);
        pthread_join(thread, NULL);
        CHECK_EQ_U64(e.target.shared->mail, HFN_MAIL_FREE);
    }
    part(&e);
}

static void an_answer_is_for_who_asked(void)
{
    uint32_t first = dead_pid(), next = (uint32_t)getpid();
    ends e = join(make());
    hotfn_request question = HOTFN_REQUEST_INIT;

    e.target.shared->question.kind = HOTFN_REQUEST_MODULE;
    e.target.shared->mail = HFN_MAIL(first, HFN_MAIL_ASKED);
    CHECK(hotfn_handover_wait(e.parent, 1, &question) == HOTFN_OK);
    CHECK_EQ_U64(question.kind, HOTFN_REQUEST_MODULE);
    e.target.shared->mail = HFN_MAIL(next, HFN_MAIL_ASKED); /* it died, and another asks */
    CHECK(hotfn_handover_answer(e.parent, 7) == HOTFN_E_STATE);
    CHECK_EQ_U64(e.target.shared->mail, HFN_MAIL(next, HFN_MAIL_ASKED));
    CHECK(hotfn_handover_wait(e.parent, 1, &question) == HOTFN_OK);
    CHECK(hotfn_handover_answer(e.parent, 8) == HOTFN_OK);
    CHECK_EQ_U64(e.target.shared->mail, HFN_MAIL(next, HFN_MAIL_ANSWERED));
    CHECK(hotfn_handover_answer(e.parent, 9) == HOTFN_E_STATE);
    part(&e);
}

static void a_plan_arrives_whole(void)
{
    hotfn_handover *h = make();
    uint8_t plan[10000];
    uint64_t bytes = 0;
    ends e;

    for (size_t i = 0; i < sizeof plan; i++) {
        plan[i] = (uint8_t)(i * 7);
    }
    CHECK(hotfn_handover_add_plan(h, 3, "x", 1, NULL) == HOTFN_OK);
    CHECK(hotfn_handover_add_plan(h, 4, plan, sizeof plan, NULL) == HOTFN_OK);
    e = join(h);
    const void *got = hfn_handover_map_plan(&e.target, 4, &bytes);
    CHECK_EQ_U64(bytes, sizeof plan);
    CHECK(got && memcmp(got, plan, sizeof plan) == 0);
    CHECK(hfn_handover_map_plan(&e.target, 5, &bytes) == NULL);
    CHECK(hotfn_handover_add_plan(h, HFN_HANDOVER_PLANS, plan, 1, NULL) == HOTFN_E_LIMIT);
    CHECK(hotfn_handover_add_plan(h, 5, plan, HFN_HANDOVER_BYTES, NULL) == HOTFN_E_LIMIT);
    part(&e);
}

static void a_lying_place_is_not_mapped(void)
{
    ends e = join(make());
    uint64_t bytes = 0;

    e.target.shared->plans[0] = (hfn_plan_place){ HFN_HANDOVER_BYTES - 1, 4096 };
    CHECK(hfn_handover_map_plan(&e.target, 0, &bytes) == NULL);
    e.target.shared->plans[0] = (hfn_plan_place){ UINT64_MAX, UINT64_MAX };
    CHECK(hfn_handover_map_plan(&e.target, 0, &bytes) == NULL);
    part(&e);
}

static void something_else_is_not_joined(void)
{
    hfn_handover_link link = { 0 };

    CHECK(hfn_handover_join(&link, "/proc/self/no-such-file", NULL) == HOTFN_E_IO);
    CHECK(hfn_handover_join(&link, "/dev/null", NULL) != HOTFN_OK);
    CHECK(link.shared == NULL);
}

static void another_layout_version_is_refused_with_both_versions(void)
{
    ends e = join(make());
    hfn_handover_link link = { 0 };
    hotfn_error err = HOTFN_ERROR_INIT;

    e.target.shared->magic = HFN_HANDOVER_MAGIC + (UINT64_C(1) << 48);
    CHECK_EQ_I64(hfn_handover_join(&link, e.path, &err), HOTFN_E_MISMATCH);
    CHECK(strstr(err.text, "layout version 4, this agent needs version 3") != NULL);
    e.target.shared->magic = 1;
    CHECK_EQ_I64(hfn_handover_join(&link, e.path, &err), HOTFN_E_FORMAT);
    CHECK(link.shared == NULL);
    e.target.shared->magic = HFN_HANDOVER_MAGIC;
    part(&e);
}

static const check_test tests[] = {
    CHECK_TEST(an_asked_question_is_answered),
    CHECK_TEST(a_dead_parent_is_not_waited_for),
    CHECK_TEST(a_plan_arrives_whole),
    CHECK_TEST(a_lying_place_is_not_mapped),
    CHECK_TEST(something_else_is_not_joined),
    CHECK_TEST(another_layout_version_is_refused_with_both_versions),
    CHECK_TEST(a_ring_ends_a_wait),
    CHECK_TEST(who_dies_while_it_asks_blocks_nobody),
    CHECK_TEST(an_answer_is_for_who_asked),
};

CHECK_MAIN(tests)
