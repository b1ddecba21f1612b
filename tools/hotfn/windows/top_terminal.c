/* SPDX-License-Identifier: MIT */
/* The console of `hotfn top`, which understands the sequences of a terminal (Windows 10). */
#include "record/top.h"

#include <stdio.h>
#include <windows.h>

static DWORD input_before, output_before;
static bool has_changed;
static volatile LONG must_quit;

static BOOL WINAPI note_event(DWORD event)
{
    (void)event;
    must_quit = 1;
    return TRUE;
}

void top_restore_terminal(void)
{
    if (has_changed) {
        has_changed = false;
        fputs("\033[?25h\033[?1049l", stdout);
        fflush(stdout);
        SetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), input_before);
        SetConsoleMode(GetStdHandle(STD_OUTPUT_HANDLE), output_before);
    }
}

bool top_prepare_terminal(void)
{
    HANDLE in = GetStdHandle(STD_INPUT_HANDLE), out = GetStdHandle(STD_OUTPUT_HANDLE);

    if (!GetConsoleMode(in, &input_before) || !GetConsoleMode(out, &output_before) ||
        !SetConsoleMode(out, output_before | ENABLE_VIRTUAL_TERMINAL_PROCESSING)) {
        fputs("hotfn top: stdin or stdout is not a console: use --once\n", stderr);
        return false;
    }
    SetConsoleMode(in, input_before &
                           ~(DWORD)(ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT | ENABLE_MOUSE_INPUT));
    SetConsoleCtrlHandler(note_event, TRUE);
    has_changed = true;
    fputs("\033[?1049h\033[?25l\033[2J", stdout);
    return true;
}

void top_get_terminal_size(uint32_t *columns, uint32_t *lines)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    bool known = GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &info) != 0;

    *columns = known ? (uint32_t)(info.srWindow.Right - info.srWindow.Left + 1) : 80;
    *lines = known ? (uint32_t)(info.srWindow.Bottom - info.srWindow.Top + 1) : 24;
}

/* Skips events other than keys, and keys without an ASCII character. */
int top_read_key(double seconds)
{
    HANDLE in = GetStdHandle(STD_INPUT_HANDLE);
    uint64_t end = top_read_clock() + (uint64_t)(seconds * 1e9), now;
    INPUT_RECORD event;
    DWORD count;

    while (!must_quit && (now = top_read_clock()) < end) {
        DWORD answer = WaitForSingleObject(in, (DWORD)((end - now) / 1000000 + 1));

        if (answer == WAIT_TIMEOUT) {
            return TOP_NO_KEY;
        }
        if (answer != WAIT_OBJECT_0 || !ReadConsoleInputW(in, &event, 1, &count)) {
            return TOP_END_OF_KEYS;
        }
        if (event.EventType == KEY_EVENT && event.Event.KeyEvent.bKeyDown &&
            event.Event.KeyEvent.uChar.UnicodeChar > 0 &&
            event.Event.KeyEvent.uChar.UnicodeChar < 0x80) {
            return event.Event.KeyEvent.uChar.UnicodeChar;
        }
    }
    return must_quit ? TOP_END_OF_KEYS : TOP_NO_KEY;
}

uint64_t top_read_clock(void)
{
    LARGE_INTEGER now, frequency;

    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (uint64_t)((double)now.QuadPart * 1e9 / (double)frequency.QuadPart);
}

void top_sleep(double seconds)
{
    Sleep((DWORD)(seconds * 1000));
}
