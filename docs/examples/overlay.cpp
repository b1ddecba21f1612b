// SPDX-License-Identifier: MIT
// An overlay of Dear ImGui with the hot functions of the last frame.  Check boxes switch groups of
// functions on and off; a slow frame is marked.  Here no window is opened: the program draws a
// hundred frames into memory and prints the rows of the last one.
//
//     c++ -O2 overlay.cpp $(pkg-config --cflags --libs hotfn imgui) -o overlay && ./overlay
#include <hotfn.h>
#include <imgui.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// ---- A game.

namespace game
{

volatile uint64_t result;

__attribute__((noinline)) void compute(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        result = result * 6364136223846793005u + 1442695040888963407u;
    }
}

__attribute__((noinline)) void move_objects(uint64_t count)
{
    compute(1000 * count);
    result = result + 1;
}

__attribute__((noinline)) void mix_sound(uint64_t channels)
{
    compute(200 * channels);
    result = result + 2;
}

__attribute__((noinline)) void update()
{
    move_objects(20);
    mix_sound(8);
    mix_sound(4);
    result = result + 3;
}

} // namespace game

// ---- The overlay: one object for a game, one call for a frame.

class overlay
{
  public:
    overlay()
    {
        static const char *const functions[] = { "game::*" }, *const sound[] = { "*mix_sound*" };
        hotfn_selection selection = HOTFN_SELECTION_INIT, sounds = HOTFN_SELECTION_INIT;
        hotfn_session_options options = HOTFN_SESSION_OPTIONS_INIT;
        hotfn_frame_options wanted = HOTFN_FRAME_OPTIONS_INIT;
        hotfn_group group = HOTFN_GROUP_INIT;

        selection.include = functions;
        sounds.include = sound;
        selection.include_count = sounds.include_count = 1;
        group.name = "sound";
        group.selection = &sounds;
        options.selection = &selection;
        options.groups = &group;
        options.group_count = 1;
        options.mode = HOTFN_SESSION_TIME;
        wanted.flags = HOTFN_FRAME_TIMES;
        wanted.by = HOTFN_BY_SELF;
        wanted.top_count = 10;
        wanted.spike_percent = 300;
        check(hotfn_session_create(&session, &options, nullptr, &err));
        check(hotfn_session_start(session, &err));
        check(hotfn_frame_create(&frame, session, &wanted, nullptr, &err));
    }

    ~overlay()
    {
        hotfn_frame_destroy(frame);
        hotfn_session_destroy(session);
    }

    /* End the frame of the game; afterwards the rows are those of this frame. */
    void end_frame()
    {
        check(hotfn_frame_next(frame, &info, &err));
        rows.clear();
        for (uint32_t i = 0; i < info.top_count; i++) {
            hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
            hotfn_frame_times times = HOTFN_FRAME_TIMES_INIT;
            char name[256];

            check(hotfn_frame_get_function(frame, i, &f, nullptr));
            hotfn_frame_get_times(frame, i, &times);
            rows.push_back({ hotfn_demangle(f.name, name, sizeof name) ? name : f.name, f.calls,
                             double(times.self_ns) / 1e6 });
        }
    }

    void draw()
    {
        ImGui::Begin("hotfn");
        ImGui::Text("frame %llu: %.2f ms%s", static_cast<unsigned long long>(info.number),
                    double(info.duration_ns) / 1e6, info.is_spike ? ", slow" : "");
        if (ImGui::Checkbox("sound", &shows_sound)) {
            show_sound(shows_sound);
        }
        if (ImGui::BeginTable("functions", 3)) {
            for (const row &r : rows) {
                ImGui::TableNextColumn();
                ImGui::Text("%s", r.name.c_str());
                ImGui::TableNextColumn();
                ImGui::Text("%llu", static_cast<unsigned long long>(r.calls));
                ImGui::TableNextColumn();
                ImGui::Text("%.3f ms", r.self_ms);
            }
            ImGui::EndTable();
        }
        ImGui::End();
    }

    void show_sound(bool is_shown)
    {
        shows_sound = is_shown;
        check(hotfn_session_switch_group(session, "sound", is_shown, &err));
    }

    void print() const
    {
        for (const row &r : rows) {
            std::printf("%llu %s\n", static_cast<unsigned long long>(r.calls), r.name.c_str());
        }
    }

  private:
    struct row {
        std::string name;
        uint64_t calls;
        double self_ms;
    };

    void check(hotfn_status status)
    {
        if (status != HOTFN_OK) {
            std::fprintf(stderr, "overlay: %s: %s\n", hotfn_status_get_name(status), err.text);
            std::exit(1);
        }
    }

    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_session *session = nullptr;
    hotfn_frame *frame = nullptr;
    hotfn_frame_info info = HOTFN_FRAME_INFO_INIT;
    std::vector<row> rows;
    bool shows_sound = true;
};

int main()
{
    ImGui::CreateContext();
    {
        ImGuiIO &io = ImGui::GetIO();
        unsigned char *pixels;
        int width, height;
        overlay view;

        io.IniFilename = nullptr;
        io.DisplaySize = ImVec2(800, 600);
        io.Fonts->GetTexDataAsRGBA32(&pixels, &width, &height); // a renderer would upload this
        for (int number = 0; number < 100; number++) {
            game::update();
            view.end_frame();
            io.DeltaTime = 1.0f / 60;
            ImGui::NewFrame();
            view.draw();
            ImGui::Render(); // a renderer would draw ImGui::GetDrawData()
            if (number == 49) {
                std::printf("%d vertices\n", ImGui::GetDrawData()->TotalVtxCount);
                view.print();
                view.show_sound(false);
            }
        }
        std::printf("%d vertices\n", ImGui::GetDrawData()->TotalVtxCount);
        view.print();
    }
    ImGui::DestroyContext();
    return 0;
}
