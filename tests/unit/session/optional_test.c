/* SPDX-License-Identifier: MIT */
/* Every call of <hotfn/optional.h> without the library: it returns, and says why in the error. */
#include <hotfn/optional.h>

#include "check.h"

static void every_call_refuses_or_does_nothing(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session = NULL;
    hotfn_session_stats stats = HOTFN_SESSION_STATS_INIT;
    hotfn_frame *frame = NULL;
    hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;
    hotfn_frame_times times = HOTFN_FRAME_TIMES_INIT;
    char name[16];

    CHECK(!hotfn_optional_is_present());
    CHECK_EQ_I64(hotfn_session_create(&session, NULL, NULL, &err), HOTFN_E_NOT_FOUND);
    CHECK(!session && err.status == HOTFN_E_NOT_FOUND);
    CHECK(strstr(err.text, "libhotfn is not installed") != NULL);
    CHECK_EQ_I64(hotfn_session_create(&session, NULL, NULL, NULL), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_session_start(session, &err), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_session_stop(session, &err), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_session_get_stats(session, &stats), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_session_save(session, "a.hfr", &err), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_frame_create(&frame, session, NULL, NULL, &err), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_frame_next(frame, &info, &err), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_frame_get_function(frame, 0, NULL, NULL), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_frame_get_times(frame, 0, &times), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_frame_get_thread_times(frame, 0, 0, &times), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_frame_save(frame, "a.hfr", &err), HOTFN_E_NOT_FOUND);
    CHECK_EQ_U64(hotfn_demangle("_Z1fv", name, sizeof name), 0);
    CHECK_STR(hotfn_status_get_name(HOTFN_E_IO), "");
    hotfn_frame_destroy(frame);
    hotfn_session_destroy(session);
}

static const check_test tests[] = {
    CHECK_TEST(every_call_refuses_or_does_nothing),
};
CHECK_MAIN(tests)
