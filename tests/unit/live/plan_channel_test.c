/* SPDX-License-Identifier: MIT */
/* The plan channel; launcher and target are two threads of one process. */
#include "live/plan_channel.h"

#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both ends of a channel. */
typedef struct ends {
    hfn_plan_channel *launcher;
    hfn_plan_client target;
    char *path; /* kept by the target */
} ends;

enum { PATH_BYTES = 64 };

static hfn_plan_channel *create_channel(void)
{
    hfn_plan_channel *h = NULL;

    CHECK(hfn_plan_channel_create(&h, NULL, NULL) == HOTFN_OK);
    return h;
}

static ends join_channel(hfn_plan_channel *launcher)
{
    ends e = { .launcher = launcher, .path = malloc(PATH_BYTES) };

    snprintf(e.path, PATH_BYTES, "/proc/self/fd/%d", hfn_plan_channel_get_fd(launcher));
    CHECK(hfn_plan_client_join(&e.target, e.path, NULL) == HOTFN_OK);
    return e;
}

static void close_both(ends *e)
{
    hfn_plan_client_leave(&e->target);
    hfn_plan_channel_destroy(e->launcher);
    free(e->path);
}

static hfn_plan_request make_request(void)
{
    hfn_plan_request request = { 0 };

    request.kind = HFN_PLAN_REQUEST_MODULE;
    strcpy(request.path, "/some/lib.so");
    return request;
}

static void *answer_one_request(void *user)
{
    hfn_plan_request request = { 0 };

    for (int i = 0; i < 200; i++) {
        hfn_plan_channel_wait(user, 50000000u, &request);
        if (request.kind != HFN_PLAN_REQUEST_NONE) {
            CHECK_STR(request.path, "/some/lib.so");
            CHECK(hfn_plan_channel_answer(user, 7) == HOTFN_OK);
            return NULL;
        }
    }
    return NULL;
}

static void request_is_answered(void)
{
    ends e = join_channel(create_channel());
    hfn_plan_request request = make_request();
    pthread_t thread;

    pthread_create(&thread, NULL, answer_one_request, e.launcher);
    CHECK_EQ_U64(hfn_plan_client_request(&e.target, &request), 7);
    pthread_join(thread, NULL);
    CHECK_EQ_U64(e.target.shared->request_word, HFN_REQUEST_FREE);
    close_both(&e);
}

static void *wait_long(void *user)
{
    hfn_plan_request request = { 0 };

    hfn_plan_channel_wait(user, UINT64_C(1000000000000), &request);
    CHECK_EQ_U64(request.kind, HFN_PLAN_REQUEST_NONE);
    return NULL;
}

/* Wake before, while and after the other thread begins to wait.  A lost wake would block the test
 * for 1000 s. */
static void wake_ends_a_wait(void)
{
    hfn_plan_channel *h = create_channel();
    pthread_t thread;

    hfn_plan_channel_wake(h);
    wait_long(h);
    for (int i = 0; i < 100; i++) {
        pthread_create(&thread, NULL, wait_long, h);
        if (i % 2) {
            sched_yield();
        }
        hfn_plan_channel_wake(h);
        pthread_join(thread, NULL);
    }
    hfn_plan_channel_destroy(h);
}

static void request_to_an_ended_launcher_returns(void)
{
    ends e = join_channel(create_channel());
    hfn_plan_request request = { 0 };

    e.target.shared->launcher_pid = 0x7ffffff0; /* higher than any pid */
    CHECK_EQ_U64(hfn_plan_client_request(&e.target, &request), UINT32_MAX);
    close_both(&e);
}

/* The pid of a process that has ended. */
static uint32_t get_ended_pid(void)
{
    pid_t child = fork();

    if (child == 0) {
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, NULL, 0) == child);
    return (uint32_t)child;
}

static void request_word_of_an_ended_process_is_claimed(void)
{
    static const uint32_t left[] = { HFN_REQUEST_WRITING, HFN_REQUEST_ANSWERED };
    ends e = join_channel(create_channel());
    hfn_plan_request request = make_request();

    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        e.target.shared->request_word = HFN_REQUEST_WORD(get_ended_pid(), left[i]);
        pthread_create(&thread, NULL, answer_one_request, e.launcher);
        CHECK_EQ_U64(hfn_plan_client_request(&e.target, &request), 7);
        pthread_join(thread, NULL);
        CHECK_EQ_U64(e.target.shared->request_word, HFN_REQUEST_FREE);
    }
    close_both(&e);
}

static void answer_reaches_only_the_process_that_asked(void)
{
    uint32_t first = get_ended_pid(), next = (uint32_t)getpid();
    ends e = join_channel(create_channel());
    hfn_plan_request request = { 0 };

    e.target.shared->request.kind = HFN_PLAN_REQUEST_MODULE;
    e.target.shared->request_word = HFN_REQUEST_WORD(first, HFN_REQUEST_ASKED);
    hfn_plan_channel_wait(e.launcher, 1, &request);
    CHECK_EQ_U64(request.kind, HFN_PLAN_REQUEST_MODULE);
    e.target.shared->request_word =
        HFN_REQUEST_WORD(next, HFN_REQUEST_ASKED); /* it has ended, and another process asks */
    CHECK(hfn_plan_channel_answer(e.launcher, 7) == HOTFN_E_STATE);
    CHECK_EQ_U64(e.target.shared->request_word, HFN_REQUEST_WORD(next, HFN_REQUEST_ASKED));
    hfn_plan_channel_wait(e.launcher, 1, &request);
    CHECK(hfn_plan_channel_answer(e.launcher, 8) == HOTFN_OK);
    CHECK_EQ_U64(e.target.shared->request_word, HFN_REQUEST_WORD(next, HFN_REQUEST_ANSWERED));
    CHECK(hfn_plan_channel_answer(e.launcher, 9) == HOTFN_E_STATE);
    close_both(&e);
}

static void target_maps_the_plan_that_was_added(void)
{
    hfn_plan_channel *h = create_channel();
    uint8_t plan[10000];
    uint64_t bytes = 0;
    ends e;

    for (size_t i = 0; i < sizeof plan; i++) {
        plan[i] = (uint8_t)(i * 7);
    }
    CHECK(hfn_plan_channel_add(h, 3, "x", 1, NULL) == HOTFN_OK);
    CHECK(hfn_plan_channel_add(h, 4, plan, sizeof plan, NULL) == HOTFN_OK);
    e = join_channel(h);
    const void *got = hfn_plan_client_map_plan(&e.target, 4, &bytes);
    CHECK_EQ_U64(bytes, sizeof plan);
    CHECK(got && memcmp(got, plan, sizeof plan) == 0);
    CHECK(hfn_plan_client_map_plan(&e.target, 5, &bytes) == NULL);
    CHECK(hfn_plan_channel_add(h, HFN_CHANNEL_PLANS, plan, 1, NULL) == HOTFN_E_LIMIT);
    CHECK(hfn_plan_channel_add(h, 5, plan, HFN_CHANNEL_BYTES, NULL) == HOTFN_E_LIMIT);
    close_both(&e);
}

static void place_outside_of_the_channel_is_not_mapped(void)
{
    ends e = join_channel(create_channel());
    uint64_t bytes = 0;

    e.target.shared->plans[0] = (hfn_plan_place){ HFN_CHANNEL_BYTES - 1, 4096 };
    CHECK(hfn_plan_client_map_plan(&e.target, 0, &bytes) == NULL);
    e.target.shared->plans[0] = (hfn_plan_place){ UINT64_MAX, UINT64_MAX };
    CHECK(hfn_plan_client_map_plan(&e.target, 0, &bytes) == NULL);
    close_both(&e);
}

static void other_files_are_not_joined(void)
{
    hfn_plan_client client = { 0 };

    CHECK(hfn_plan_client_join(&client, "/proc/self/no-such-file", NULL) == HOTFN_E_IO);
    CHECK(hfn_plan_client_join(&client, "/dev/null", NULL) != HOTFN_OK);
    CHECK(client.shared == NULL);
}

static void another_layout_version_is_refused_with_both_versions(void)
{
    ends e = join_channel(create_channel());
    hfn_plan_client client = { 0 };
    hotfn_error err = HOTFN_ERROR_INIT;

    e.target.shared->magic = HFN_CHANNEL_MAGIC + (UINT64_C(1) << 48);
    CHECK_EQ_I64(hfn_plan_client_join(&client, e.path, &err), HOTFN_E_MISMATCH);
    CHECK(strstr(err.text, "layout version 7, this agent needs version 6") != NULL);
    e.target.shared->magic = 1;
    CHECK_EQ_I64(hfn_plan_client_join(&client, e.path, &err), HOTFN_E_FORMAT);
    CHECK(client.shared == NULL);
    e.target.shared->magic = HFN_CHANNEL_MAGIC;
    close_both(&e);
}

/* A thread that exec ended may have left the request word in any state. */
static void *answer_image(void *user)
{
    hfn_plan_request request = { 0 };

    while (request.kind != HFN_PLAN_REQUEST_IMAGE) {
        hfn_plan_channel_wait(user, 50000000u, &request);
    }
    CHECK_EQ_U64(hfn_plan_channel_get_requester(user), getpid());
    CHECK(hfn_plan_channel_answer_image(user, (hfn_run_files){ 11, 12 }) == HOTFN_OK);
    hfn_plan_channel_close(user);
    return NULL;
}

static void new_program_gets_its_record_although_a_request_was_left(void)
{
    static const uint32_t left[] = { HFN_REQUEST_WRITING, HFN_REQUEST_ANSWERED, HFN_REQUEST_ASKED };

    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        ends e = join_channel(create_channel());
        hfn_plan_request request = { .kind = HFN_PLAN_REQUEST_IMAGE };
        hfn_run_files files = { 0, 0 };
        pthread_t thread;

        e.target.shared->request_word = HFN_REQUEST_WORD(getpid(), left[i]);
        pthread_create(&thread, NULL, answer_image, e.launcher);
        CHECK(hfn_plan_client_request_image(&e.target, &request, &files));
        CHECK(files.live_fd == 11 && files.channel_fd == 12);
        pthread_join(thread, NULL);
        CHECK_EQ_U64(hfn_plan_client_request(&e.target, &request), UINT32_MAX); /* closed */
        close_both(&e);
    }
}

static void execs_are_reported_unless_they_failed(void)
{
    ends e = join_channel(create_channel());
    char path[HFN_PLAN_PATH_BYTES];

    hfn_plan_client_report_exec(&e.target, 5, "/bin/first", false);
    uint32_t failed = hfn_plan_client_report_exec(&e.target, 6, "/bin/failed", false);
    hfn_plan_client_report_exec_failed(&e.target, failed);
    CHECK_EQ_U64(hfn_plan_channel_take_start(e.launcher, path), 5);
    CHECK_STR(path, "/bin/first");
    CHECK_EQ_U64(hfn_plan_channel_take_start(e.launcher, path), 0);
    for (uint32_t i = 0; i < HFN_CHANNEL_STARTS + 3; i++) {
        hfn_plan_client_report_exec(&e.target, 100 + i, "/bin/many", false);
    }
    CHECK_EQ_U64(hfn_plan_channel_take_start(e.launcher, path),
                 103); /* 100 to 102 are overwritten */
    CHECK(!hfn_plan_channel_get_own_exec(e.launcher, path));
    uint32_t own = hfn_plan_client_report_exec(&e.target, 1, "/bin/own", true);
    CHECK(hfn_plan_channel_get_own_exec(e.launcher, path));
    CHECK_STR(path, "/bin/own");
    hfn_plan_client_report_exec_failed(&e.target, own);
    CHECK(!hfn_plan_channel_get_own_exec(e.launcher, path));
    close_both(&e);
}

static const check_test tests[] = {
    CHECK_TEST(new_program_gets_its_record_although_a_request_was_left),
    CHECK_TEST(execs_are_reported_unless_they_failed),
    CHECK_TEST(another_layout_version_is_refused_with_both_versions),
    CHECK_TEST(request_is_answered),
    CHECK_TEST(request_to_an_ended_launcher_returns),
    CHECK_TEST(target_maps_the_plan_that_was_added),
    CHECK_TEST(place_outside_of_the_channel_is_not_mapped),
    CHECK_TEST(other_files_are_not_joined),
    CHECK_TEST(wake_ends_a_wait),
    CHECK_TEST(request_word_of_an_ended_process_is_claimed),
    CHECK_TEST(answer_reaches_only_the_process_that_asked),
};

CHECK_MAIN(tests)
