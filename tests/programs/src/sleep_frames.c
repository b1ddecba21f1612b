/* SPDX-License-Identifier: MIT */
/* Preloaded into a released game server.  Its script sleeps 7 us at the end of each frame, which
 * ends a frame here too.  Frames that take longer than SPIKE_NS are reported on stderr. */
#define _GNU_SOURCE
#include <hotfn/optional.h>

#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MARK_NS = 7000, SPIKE_NS = 60000000 };

int nanosleep(const struct timespec *wanted, struct timespec *left);

static hotfn_session *session;
static hotfn_frame *frame;

static void begin_frames(void)
{
    hotfn_frame_options options = HOTFN_FRAME_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;

    options.spike_ns = SPIKE_NS;
    if (hotfn_session_create(&session, NULL, NULL, &err) != HOTFN_OK ||
        hotfn_session_start(session, &err) != HOTFN_OK ||
        hotfn_frame_create(&frame, session, &options, NULL, &err) != HOTFN_OK) {
        fprintf(stderr, "sleep_frames: %s\n", err.text);
        _exit(1);
    }
}

static void end_frame(void)
{
    hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;
    hotfn_record_function top = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;

    if (hotfn_frame_next(frame, &info, &err) != HOTFN_OK) {
        fprintf(stderr, "sleep_frames: %s\n", err.text);
        _exit(1);
    }
    if (info.is_spike) {
        hotfn_frame_get_function(frame, 0, &top, NULL);
        fprintf(stderr, "spike in frame %llu: %llu calls in %llu ms, most of %s\n",
                (unsigned long long)info.number, (unsigned long long)info.calls,
                (unsigned long long)(info.duration_ns / 1000000), top.name);
    }
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    if (wanted->tv_sec == 0 && wanted->tv_nsec == MARK_NS) {
        if (frame) {
            end_frame();
        } else {
            begin_frames();
        }
    }
    return (int)syscall(SYS_nanosleep, wanted, left);
}
