/* SPDX-License-Identifier: MIT */
/* Flags that this version does not know are rejected before anything is done, because the caller
 * may rely on them. */
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include "records/sample.h"
#include "session/joined.h"

#define UNKNOWN 0x40000000u

static void sessions_reject_unknown_flags(void)
{
    const char *nothing = "no-such-module";
    hotfn_selection pick = HOTFN_SELECTION_INIT;
    hotfn_session_options o = HOTFN_SESSION_OPTIONS_INIT;
    hfn_join_options join = { 0 };
    hotfn_session *session = NULL;

    o.modules = &nothing;
    o.module_count = 1;
    o.selection = &pick;
    o.flags = HOTFN_SESSION_NO_FOLLOW_DLOPEN | HOTFN_SESSION_SINGLE_THREADED;
    CHECK_EQ_I64(hotfn_session_create(&session, &o, NULL, NULL), HOTFN_OK);
    hotfn_session_destroy(session);
    o.flags = UNKNOWN;
    CHECK_EQ_I64(hotfn_session_create(&session, &o, NULL, NULL), HOTFN_E_OPTION);
    o.flags = 0;
    pick.flags = UNKNOWN;
    CHECK_EQ_I64(hotfn_session_create(&session, &o, NULL, NULL), HOTFN_E_OPTION);
    join.live_path = join.channel_path = "/nowhere";
    join.flags = UNKNOWN;
    CHECK_EQ_I64(hfn_session_join(&session, &join, NULL, NULL), HOTFN_E_OPTION);
}

/* This program is linked with libhotfn.a. */
static void a_selected_module_with_a_static_hotfn_is_refused(void)
{
    static const char *const globs[] = { "session_options_test*", "*" };
    hotfn_session_options o = HOTFN_SESSION_OPTIONS_INIT;
    hotfn_session *session = NULL;

    for (uint32_t i = 0; i <= HFN_COUNT_OF(globs); i++) {
        hotfn_error err = HOTFN_ERROR_INIT;

        o.modules = i < HFN_COUNT_OF(globs) ? &globs[i] : NULL; /* NULL: the program */
        o.module_count = o.modules ? 1 : 0;
        CHECK_EQ_I64(hotfn_session_create(&session, &o, NULL, &err), HOTFN_E_UNSUPPORTED);
        CHECK(strstr(err.text, "linked statically") != NULL);
    }
    CHECK(!session);
}

static void scans_reject_unknown_flags(void)
{
    hotfn_scan_options o = HOTFN_SCAN_OPTIONS_INIT;
    hotfn_scan *scan = NULL;

    o.flags = UNKNOWN;
    CHECK_EQ_I64(hotfn_scan_open(&scan, "/proc/self/exe", &o, NULL, NULL), HOTFN_E_OPTION);
    o.flags = HOTFN_SYMBOLS_NO_SEPARATE | HOTFN_SYMBOLS_FORCE | HOTFN_SCAN_TIMING;
    CHECK_EQ_I64(hotfn_scan_open(&scan, "/proc/self/exe", &o, NULL, NULL), HOTFN_OK);
    hotfn_scan_close(scan);
}

static int32_t discard_bytes(void *user, const void *bytes, size_t byte_count)
{
    (void)user, (void)bytes, (void)byte_count;
    return 0;
}

static void exports_reject_unknown_flags(void)
{
    hfn_live *live = sample_live(NULL);
    const char *path = sample_path("r.hfr");
    hotfn_export_options o = HOTFN_EXPORT_OPTIONS_INIT;
    hotfn_record *record = NULL;

    CHECK_EQ_I64(hfn_live_finish(live, path, HOTFN_RECORD_FINISHED, 0, NULL, NULL, NULL), HOTFN_OK);
    CHECK_EQ_I64(hotfn_record_open(&record, path, NULL, NULL), HOTFN_OK);
    o.flags = 31; /* all known flags */
    CHECK_EQ_I64(hotfn_export(record, "table", &o, discard_bytes, NULL, NULL, NULL), HOTFN_OK);
    o.flags = UNKNOWN;
    CHECK_EQ_I64(hotfn_export(record, "table", &o, discard_bytes, NULL, NULL, NULL),
                 HOTFN_E_OPTION);
    hotfn_record_close(record);
    hfn_live_close(live);
}

static const check_test tests[] = {
    CHECK_TEST(sessions_reject_unknown_flags),
    CHECK_TEST(a_selected_module_with_a_static_hotfn_is_refused),
    CHECK_TEST(scans_reject_unknown_flags),
    CHECK_TEST(exports_reject_unknown_flags),
};
CHECK_MAIN(tests)
