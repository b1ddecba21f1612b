/* SPDX-License-Identifier: MIT */
/* All folders linked with src/os/none in the place of a system: nothing else in src/ needs one, and
 * each public call then fails with a status. */
#include "check.h"
#include "live/live.h"

#include <hotfn.h>
#include <hotfn/lowlevel.h>

static void an_image_cannot_be_opened(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image = NULL;

    CHECK_EQ_I64(hotfn_image_open(&image, "/bin/true", NULL, &err), HOTFN_E_IO);
    CHECK_STR(err.text, "cannot open it: not available on this system");
    CHECK(image == NULL);
}

static void a_scan_cannot_be_made(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_scan *scan = NULL;

    CHECK_EQ_I64(hotfn_scan_open(&scan, "/bin/true", NULL, NULL, &err), HOTFN_E_IO);
    CHECK(scan == NULL);
}

static void a_record_cannot_be_opened_or_created(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_record *record = NULL;
    hfn_live *live = NULL;

    CHECK_EQ_I64(hotfn_record_open(&record, "/tmp/run.hfr", NULL, &err), HOTFN_E_IO);
    CHECK_EQ_I64(hfn_live_create(&live, NULL, NULL, &err), HOTFN_E_NO_MEMORY);
    CHECK(record == NULL && live == NULL);
}

static void a_session_cannot_start(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session = NULL;

    CHECK(hotfn_session_create(&session, NULL, NULL, &err) != HOTFN_OK);
    CHECK(session == NULL);
}

static const check_test tests[] = {
    CHECK_TEST(an_image_cannot_be_opened),
    CHECK_TEST(a_scan_cannot_be_made),
    CHECK_TEST(a_record_cannot_be_opened_or_created),
    CHECK_TEST(a_session_cannot_start),
};
CHECK_MAIN(tests)
