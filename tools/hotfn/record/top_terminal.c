/* SPDX-License-Identifier: MIT */
/* The terminal of `hotfn top`: raw keys, an alternate screen, and both restored at the end. */
#include "top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static struct termios terminal_before;
static bool terminal_changed;
static volatile sig_atomic_t must_quit;

void top_restore_terminal(void)
{
    if (terminal_changed) {
        terminal_changed = false;
        fputs("\033[?25h\033[?1049l", stdout);
        fflush(stdout);
        tcsetattr(0, TCSANOW, &terminal_before);
    }
}

static void on_signal(int signal)
{
    must_quit = signal;
}

bool top_prepare_terminal(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    struct termios raw;
    if (!isatty(0) || !isatty(1) || tcgetattr(0, &terminal_before) != 0) {
        fputs("hotfn top: stdin or stdout is not a terminal: use --once\n", stderr);
        return false;
    }
    raw = terminal_before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(0, TCSANOW, &raw);
    terminal_changed = true;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    fputs("\033[?1049h\033[?25l\033[2J", stdout);
    return true;
}

void top_get_terminal_size(uint32_t *columns, uint32_t *lines)
{
    struct winsize size;
    bool known = ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *columns = known ? size.ws_col : 80;
    *lines = known ? size.ws_row : 24;
}

int top_read_key(double seconds)
{
    struct pollfd in = { .fd = 0, .events = POLLIN };
    unsigned char key;
    int ready = poll(&in, 1, (int)(seconds * 1000));

    if (must_quit || (ready < 0 && errno != EINTR)) {
        return TOP_END_OF_KEYS;
    }
    if (ready <= 0) {
        return TOP_NO_KEY;
    }
    return read(0, &key, 1) == 1 ? key : TOP_END_OF_KEYS; /* the terminal may be gone */
}

uint64_t top_read_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void top_sleep(double seconds)
{
    struct timespec wait = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    nanosleep(&wait, NULL);
}
