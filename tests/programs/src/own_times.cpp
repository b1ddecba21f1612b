// SPDX-License-Identifier: MIT
// A program that times itself and throws exceptions through timed functions.  With "noclock" it
// first forbids itself to read the TSC.
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <sys/prctl.h>

extern "C" __attribute__((noinline)) void t_thrower(int depth)
{
    if (depth > 0)
        t_thrower(depth - 1);
    else
        throw std::runtime_error("out");
    std::puts("never");
}

int main(int argc, char **argv)
{
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session = nullptr;
    int caught = 0;

    if (argc > 2 && std::strcmp(argv[2], "noclock") == 0)
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    options.mode = HOTFN_SESSION_TIME;
    if (hotfn_session_create(&session, &options, nullptr, &err) != HOTFN_OK) {
        std::printf("%s: %s\n", hotfn_status_get_name(err.status), err.text);
        return 0;
    }
    if (hotfn_session_start(session, &err) != HOTFN_OK)
        return 3;
    for (int i = 0; i < 20; i++) {
        try {
            t_thrower(4);
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    std::printf("%d caught\n", caught);
    if (hotfn_session_stop(session, &err) != HOTFN_OK || hotfn_session_save(session, argv[1], &err) != HOTFN_OK)
        return 4;
    hotfn_session_destroy(session);
    return 0;
}
