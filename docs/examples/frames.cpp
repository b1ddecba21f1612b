// SPDX-License-Identifier: MIT
// A game that prints the functions with the most calls in a frame.  A hotfn_frame costs a few reads
// per function and thread and allocates nothing, so that a game can end one with every frame.
//
//     c++ -O2 -pthread frames.cpp $(pkg-config --cflags --libs hotfn) -o frames && ./frames
#include <hotfn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace game
{

volatile uint64_t checksum;

__attribute__((noinline)) void move(uint64_t id)
{
    checksum = checksum + id;
}

__attribute__((noinline)) void collide(uint64_t id)
{
    checksum = checksum ^ id;
}

/* Frame n moves 100 objects and tests n of them for collisions. */
__attribute__((noinline)) void frame(uint64_t number)
{
    std::thread mover([] {
        for (uint64_t id = 0; id < 100; id++) {
            move(id);
        }
    });
    mover.join();
    for (uint64_t id = 0; id < number; id++) {
        collide(id);
    }
}

} // namespace game

namespace
{

void check(hotfn_status status, const hotfn_error &err)
{
    if (status == HOTFN_OK) {
        return;
    }
    std::fprintf(stderr, "frames: %s: %s\n", hotfn_status_get_name(status), err.text);
    std::exit(1);
}

void print(const hotfn_frame *window, const hotfn_frame_info &info)
{
    for (uint32_t rank = 0; rank < info.top_count; rank++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_frame_get_function(window, rank, &f, nullptr);
        std::printf("  %6llu  %s\n", static_cast<unsigned long long>(f.calls), f.name);
    }
}

} // namespace

int main()
{
    const char *glob = "game::*"; // matches the readable names
    hotfn_selection selection = HOTFN_SELECTION_INIT;
    selection.include = &glob;
    selection.include_count = 1;
    hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
    options.selection = &selection;

    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session = nullptr;
    hotfn_frame *window = nullptr;
    check(hotfn_session_create(&session, &options, nullptr, &err), err);
    check(hotfn_session_start(session, &err), err);
    hotfn_frame_options wanted = HOTFN_FRAME_OPTIONS_INIT;
    wanted.top_count = 2; // the two most called
    check(hotfn_frame_create(&window, session, &wanted, nullptr, &err), err);
    for (uint64_t number = 50; number <= 200; number += 75) {
        hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;
        game::frame(number);
        check(hotfn_frame_next(window, &info, &err), err);
        std::printf("frame %llu\n", static_cast<unsigned long long>(number));
        print(window, info);
    }
    hotfn_frame_destroy(window);
    hotfn_session_destroy(session);
    return 0;
}
