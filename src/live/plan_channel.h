/* SPDX-License-Identifier: MIT */
/* The plan channel: shared memory through which a launcher gives plans to its target, and in which
 * the target requests plans of modules that have no plan yet.  plan_channel.c describes the
 * protocol.  Launcher and agent come from the same build, but each validates the data of the
 * other. */
#ifndef HFN_LIVE_PLAN_CHANNEL_H
#define HFN_LIVE_PLAN_CHANNEL_H

#include <hotfn/env.h>
#include <stdatomic.h>
#include <stdbool.h>

#define HFN_PLAN_MEMORY_NAME "hotfn-plans"
#define HFN_CHANNEL_MAGIC 0x364e48434e4648ull /* "HFNCHN6": 6 is the version of the layout */
#define HFN_CHANNEL_VERSION(magic) ((char)((magic) >> 48))
#define HFN_CHANNEL_PLANS 1024u
#define HFN_CHANNEL_BYTES (4ull << 30) /* sparse */
#define HFN_CHANNEL_FIRST_PLAN (1ull << 20)

/* States of the request word, its two low bits; the pid of the requesting process is above them. */
#define HFN_REQUEST_FREE 0u
#define HFN_REQUEST_WRITING 1u /* a thread of the target fills in the request */
#define HFN_REQUEST_ASKED 2u
#define HFN_REQUEST_ANSWERED 3u
#define HFN_REQUEST_WORD(pid, state)                                                               \
    ((uint32_t)(pid) << 2 | (state)) /* pids have 22 bits (linux/threads.h) */

/* Kinds of a request. */
#define HFN_PLAN_REQUEST_NONE 0u   /* no request arrived                */
#define HFN_PLAN_REQUEST_MODULE 1u /* a module that has no plan         */
#define HFN_PLAN_REQUEST_MAIN 2u   /* the same, and it is the main program */
#define HFN_PLAN_REQUEST_IMAGE 3u  /* exec replaced the target's program: a new record  */

/* launcher_pid of a channel that is no longer served: no process has this id (linux/threads.h). */
#define HFN_CHANNEL_CLOSED 0x7fffffffu

#define HFN_CHANNEL_STARTS 64u
#define HFN_PLAN_PATH_BYTES 252u

/* A module of the target that needs a plan.  Like all structs of the channel it has no padding, so
 * that launchers and targets of different word sizes agree on it. */
typedef struct hfn_plan_request {
    uint64_t load_base;
    uint64_t file_device;
    uint64_t file_inode;
    uint64_t file_stamp; /* a file with another stamp is another file, even at the same inode */
    uint32_t kind;       /* HFN_PLAN_REQUEST_* */
    uint32_t is_script;  /* IMAGE, MAIN: the program is the interpreter of the file `started_as` */
    char path[1024];
    char started_as[1024]; /* MAIN: the path that exec received; "" if it is not known */
} hfn_plan_request;

/* Statistics of the target's installation of hooks; hotfn_session_stats has the same fields. */
typedef struct hfn_start_stats {
    uint32_t hooked, refused;
    uint64_t stub_bytes, unwind_bytes, table_bytes, copied_page_bytes, total_ns;
} hfn_start_stats;

typedef struct hfn_plan_place {
    uint64_t offset; /* in the channel, page aligned */
    uint64_t bytes;  /* 0: no plan                   */
} hfn_plan_place;

/* A forked child of the target that has called exec. */
typedef struct hfn_started_process {
    _Atomic uint32_t pid;           /* 0: unused, or the exec failed; guards path */
    char path[HFN_PLAN_PATH_BYTES]; /* as it was passed to exec                   */
} hfn_started_process;

/* The descriptors of a record and its plan channel in the launcher. */
typedef struct hfn_run_files {
    uint32_t live_fd, channel_fd;
} hfn_run_files;

/* The first bytes of the channel. */
typedef struct hfn_plan_channel_memory {
    uint64_t magic;
    uint32_t launcher_pid;
    _Atomic uint32_t request_word; /* HFN_REQUEST_WORD; guards request and answer_module */
    uint32_t answer_module;
    _Atomic uint32_t has_stats;   /* guards stats                                        */
    _Atomic uint32_t doorbell;    /* number of rings; only the launcher sleeps on it     */
    _Atomic uint32_t start_pid;   /* process that installed its hooks last; guards start_us */
    _Atomic uint32_t start_us;    /* processor time that it needed for that              */
    _Atomic uint32_t start_count; /* reports in `started`, a ring buffer                  */
    hfn_run_files next;           /* answer to HFN_PLAN_REQUEST_IMAGE                     */
    hfn_plan_request request;
    hfn_start_stats stats;
    hfn_started_process own_exec; /* of the target itself */
    hfn_started_process started[HFN_CHANNEL_STARTS];
    hfn_plan_place plans[HFN_CHANNEL_PLANS]; /* by module number of the live record */
} hfn_plan_channel_memory;

_Static_assert(sizeof(hfn_plan_request) == 4 * 8 + 2 * 4 + 2 * 1024, "no padding");
_Static_assert(sizeof(hfn_start_stats) == 2 * 4 + 5 * 8, "no padding");
_Static_assert(sizeof(hfn_plan_channel_memory) ==
                   8 + 10 * 4 + sizeof(hfn_plan_request) + sizeof(hfn_start_stats) +
                       (HFN_CHANNEL_STARTS + 1) * 256 + HFN_CHANNEL_PLANS * sizeof(hfn_plan_place),
               "no padding");

/* ---- Calls of the launcher: one thread at a time, except for hfn_plan_channel_wake. */

typedef struct hfn_plan_channel hfn_plan_channel;

/* Create a channel without plans, owned by the caller.  HOTFN_OK, HOTFN_E_NO_MEMORY. */
hotfn_status hfn_plan_channel_create(hfn_plan_channel **out, const hotfn_env *env,
                                     hotfn_error *err);
/* NULL is fine. */
void hfn_plan_channel_destroy(hfn_plan_channel *channel);
/* The descriptor of the shared memory, which the channel owns and the target inherits. */
int32_t hfn_plan_channel_get_fd(const hfn_plan_channel *channel);
/* Copy the plan of module number `module` of the live record into the channel.  HOTFN_OK,
 * HOTFN_E_LIMIT (no place for it), HOTFN_E_NO_MEMORY. */
hotfn_status hfn_plan_channel_add(hfn_plan_channel *channel, uint32_t module, const void *plan,
                                  uint64_t plan_bytes, hotfn_error *err);
/* Map the plan of a module for the caller; NULL if it has none. */
const void *hfn_plan_channel_view_plan(const hfn_plan_channel *channel, uint32_t module,
                                       uint64_t *bytes);
/* Wait until a request arrives, hfn_plan_channel_wake is called, or the timeout ends.  out->kind is
 * HFN_PLAN_REQUEST_NONE if there is no request.  A request is returned again until it is answered.
 */
void hfn_plan_channel_wait(hfn_plan_channel *channel, uint64_t timeout_ns, hfn_plan_request *out);
/* End the wait of another thread, or the next wait if none is under way.  Any thread. */
void hfn_plan_channel_wake(hfn_plan_channel *channel);
/* Answer the request that was returned last: the number of the module in the live record, or
 * UINT32_MAX if the target must not hook it.  HOTFN_E_STATE if that request is no longer pending.
 */
hotfn_status hfn_plan_channel_answer(hfn_plan_channel *channel, uint32_t module);
/* The id of the process whose request was returned last; 0 if there is none. */
uint32_t hfn_plan_channel_get_requester(const hfn_plan_channel *channel);
/* Answer a request of kind IMAGE: the record and the channel that the new program joins. */
hotfn_status hfn_plan_channel_answer_image(hfn_plan_channel *channel, hfn_run_files files);
/* Stop answering requests; processes that wait for an answer continue without it. */
void hfn_plan_channel_close(hfn_plan_channel *channel);
/* Remove the next report of a child that called exec.  Returns the child's id, and in `path`
 * (HFN_PLAN_PATH_BYTES) the path of its new program; 0 if there is no report. */
uint32_t hfn_plan_channel_take_start(hfn_plan_channel *channel, char *path);
/* The path (HFN_PLAN_PATH_BYTES) of the program that the target started by exec and that made no
 * request of kind IMAGE; false if there is none. */
bool hfn_plan_channel_get_own_exec(const hfn_plan_channel *channel, char *path);
/* The target's statistics; HOTFN_E_STATE until it has installed its hooks. */
hotfn_status hfn_plan_channel_get_stats(const hfn_plan_channel *channel, hfn_start_stats *out);
/* The processor time that process pid needed to install its hooks; 0 if it is not known yet. */
uint64_t hfn_plan_channel_get_start_ns(const hfn_plan_channel *channel, uint32_t pid);

/* ---- Calls of the target, which keeps no file descriptor and maps ranges by path. */

typedef struct hfn_plan_client {
    hfn_plan_channel_memory *shared;
    const char *path; /* kept */
} hfn_plan_client;

/* HOTFN_OK, HOTFN_E_IO, HOTFN_E_FORMAT (not a plan channel),
 * HOTFN_E_MISMATCH (another version of the layout). */
hotfn_status hfn_plan_client_join(hfn_plan_client *client, const char *path, hotfn_error *err);
void hfn_plan_client_leave(hfn_plan_client *client);
/* Request the plan of a module and wait for the answer: its number in the live record, or
 * UINT32_MAX if it must not be hooked or the launcher has ended. */
uint32_t hfn_plan_client_request(hfn_plan_client *client, const hfn_plan_request *request);
/* In the first thread of a new program of the target's process: request the record to join.  False
 * if the launcher has none for it. */
bool hfn_plan_client_request_image(hfn_plan_client *client, const hfn_plan_request *request,
                                   hfn_run_files *out);
/* Report that process pid calls exec for the file at path, or that this exec failed; is_own: the
 * process is the target itself.  Async-signal-safe; also called after vfork. */
#define HFN_OWN_EXEC (UINT32_MAX - 1u)
uint32_t hfn_plan_client_report_exec(hfn_plan_client *client, uint32_t pid, const char *path,
                                     bool is_own);
void hfn_plan_client_report_exec_failed(hfn_plan_client *client, uint32_t number);
/* Map the plan of a module; NULL if it has none or cannot be mapped. */
const void *hfn_plan_client_map_plan(const hfn_plan_client *client, uint32_t module,
                                     uint64_t *bytes);
void hfn_plan_client_report_stats(hfn_plan_client *client, const hfn_start_stats *stats);
void hfn_plan_client_report_start(hfn_plan_client *client, uint32_t pid, uint64_t cpu_ns);

#endif
