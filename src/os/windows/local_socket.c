/* SPDX-License-Identifier: MIT */
/* Named pipes of whole messages (Microsoft, "Named Pipe Operations").  A pipe has one instance,
 * which serves one connection after the other.  The system lets only its user, administrators and
 * the system itself write to it, and no other machine. */
#include "os/local_socket.h"

#include "os/clock.h"
#include "os/windows/nt.h"

enum { NAME_UNITS = HFN_OS_SOCKET_NAME_BYTES + 16, PIPE_BYTES = 65536, SEND_TIMEOUT_MS = 2000 };
enum { CONNECT_TIMEOUT_MS = 5000, CLOSE_TIMEOUT_MS = 2000, PAUSE_MS = 1 };

static HANDLE get_pipe(int64_t handle)
{
    return (HANDLE)(intptr_t)handle;
}

static bool make_name(wchar_t out[NAME_UNITS], const char *name)
{
    static const wchar_t prefix[] = L"\\\\.\\pipe\\";
    enum { PREFIX_UNITS = sizeof prefix / sizeof *prefix - 1 };

    for (int i = 0; i < PREFIX_UNITS; i++) {
        out[i] = prefix[i];
    }
    return hfn_to_utf16(name, out + PREFIX_UNITS, NAME_UNITS - PREFIX_UNITS);
}

bool hfn_os_has_local_sockets(void)
{
    return true;
}

/* ---- One operation, with a limit of time. */

/* Wait for an operation that was begun, or for the second event, which cancels it. */
static hfn_os_error finish_operation(HANDLE pipe, OVERLAPPED *operation, HANDLE cancel, DWORD limit,
                                     DWORD *done)
{
    HANDLE events[2] = { operation->hEvent, cancel };
    DWORD found = WaitForMultipleObjects(cancel ? 2 : 1, events, FALSE, limit);

    if (found != WAIT_OBJECT_0) {
        CancelIoEx(pipe, operation);
    }
    if (GetOverlappedResult(pipe, operation, done, TRUE)) {
        return 0;
    }
    return found == WAIT_TIMEOUT ? ERROR_TIMEOUT : hfn_get_last_error();
}

static hfn_os_error run_operation(HANDLE pipe, bool writes, void *bytes, size_t count,
                                  DWORD limit_ms, DWORD *done)
{
    OVERLAPPED operation = { .hEvent = CreateEventW(NULL, TRUE, FALSE, NULL) };
    hfn_os_error error;

    *done = 0;
    if (!operation.hEvent) {
        return hfn_get_last_error();
    }
    error = (writes ? WriteFile(pipe, bytes, (DWORD)count, NULL, &operation)
                    : ReadFile(pipe, bytes, (DWORD)count, NULL, &operation))
                ? 0
                : hfn_get_last_error();
    if (error == 0 || error == ERROR_IO_PENDING) {
        error = finish_operation(pipe, &operation, NULL, limit_ms, done);
    } else if (error == ERROR_MORE_DATA) {
        GetOverlappedResult(pipe, &operation, done, TRUE);
    }
    CloseHandle(operation.hEvent);
    return error;
}

/* ---- The end that listens. */

hfn_os_error hfn_os_listen(hfn_os_listener *out, const char *name)
{
    wchar_t wide[NAME_UNITS];
    HANDLE pipe, stop;

    if (!make_name(wide, name)) {
        return ERROR_INVALID_NAME;
    }
    pipe = CreateNamedPipeW(
        wide, PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE,
        PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE | PIPE_REJECT_REMOTE_CLIENTS, 1, PIPE_BYTES,
        PIPE_BYTES, 0, NULL);
    if (pipe == INVALID_HANDLE_VALUE) {
        return hfn_get_last_error();
    }
    stop = CreateEventW(NULL, TRUE, FALSE, NULL);
    if (!stop) {
        hfn_os_error error = hfn_get_last_error();
        CloseHandle(pipe);
        return error;
    }
    *out = (hfn_os_listener){ { (int64_t)(intptr_t)pipe }, { (int64_t)(intptr_t)stop } };
    return 0;
}

/* What the other end has not read yet is lost when it is disconnected. */
static void end_connection(const hfn_os_listener *listener)
{
    HANDLE pipe = get_pipe(listener->file.handle);
    uint32_t waited_ms = 0;

    while (PeekNamedPipe(pipe, NULL, 0, NULL, NULL, NULL) && waited_ms < CLOSE_TIMEOUT_MS &&
           WaitForSingleObject(get_pipe(listener->stop.handle), PAUSE_MS) == WAIT_TIMEOUT) {
        waited_ms += PAUSE_MS;
    }
    DisconnectNamedPipe(pipe);
}

static hfn_os_error wait_for_connection(const hfn_os_listener *listener)
{
    HANDLE pipe = get_pipe(listener->file.handle), stop = get_pipe(listener->stop.handle);
    OVERLAPPED operation = { .hEvent = CreateEventW(NULL, TRUE, FALSE, NULL) };
    hfn_os_error error = operation.hEvent ? 0 : hfn_get_last_error();
    DWORD done;

    if (error == 0 && !ConnectNamedPipe(pipe, &operation)) {
        error = hfn_get_last_error();
    }
    if (error == ERROR_IO_PENDING) {
        error = finish_operation(pipe, &operation, stop, INFINITE, &done);
    }
    if (operation.hEvent) {
        CloseHandle(operation.hEvent);
    }
    return error == ERROR_PIPE_CONNECTED ? 0 : error;
}

hfn_os_error hfn_os_accept(hfn_os_file *out, const hfn_os_listener *listener, bool *is_own)
{
    HANDLE pipe = get_pipe(listener->file.handle), connection;
    hfn_os_error error;

    do {
        if (WaitForSingleObject(get_pipe(listener->stop.handle), 0) == WAIT_OBJECT_0) {
            return ERROR_CANCELLED;
        }
        end_connection(listener);
        error = wait_for_connection(listener);
    } while (error == ERROR_NO_DATA); /* the other end has closed it already */
    if (error == 0 && !DuplicateHandle(HFN_OWN_PROCESS, pipe, HFN_OWN_PROCESS, &connection, 0,
                                       FALSE, DUPLICATE_SAME_ACCESS)) {
        error = hfn_get_last_error();
    }
    if (error == 0) {
        *is_own = true;
        out->handle = (int64_t)(intptr_t)connection;
    }
    return error;
}

void hfn_os_stop_listening(const hfn_os_listener *listener)
{
    SetEvent(get_pipe(listener->stop.handle));
}

void hfn_os_close_listener(hfn_os_listener *listener)
{
    CloseHandle(get_pipe(listener->file.handle));
    CloseHandle(get_pipe(listener->stop.handle));
    *listener = HFN_OS_NO_LISTENER;
}

/* ---- The end that connects. */

/* The other end may be serving another connection, or be about to listen again. */
hfn_os_error hfn_os_connect(hfn_os_file *out, const char *name)
{
    uint64_t until_ns = hfn_os_monotonic_ns() + CONNECT_TIMEOUT_MS * UINT64_C(1000000);
    DWORD mode = PIPE_READMODE_MESSAGE;
    wchar_t wide[NAME_UNITS];
    hfn_os_error error;
    HANDLE pipe;

    if (!make_name(wide, name)) {
        return ERROR_INVALID_NAME;
    }
    do {
        pipe = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING,
                           FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION,
                           NULL);
        error = pipe == INVALID_HANDLE_VALUE ? hfn_get_last_error() : 0;
        if (error == ERROR_PIPE_BUSY) {
            Sleep(PAUSE_MS);
        }
    } while (error == ERROR_PIPE_BUSY && hfn_os_monotonic_ns() < until_ns);
    if (error != 0) {
        return error == ERROR_PIPE_BUSY ? ERROR_TIMEOUT : error;
    }
    if (!SetNamedPipeHandleState(pipe, &mode, NULL, NULL)) {
        error = hfn_get_last_error();
        CloseHandle(pipe);
        return error;
    }
    out->handle = (int64_t)(intptr_t)pipe;
    return 0;
}

/* ---- Messages. */

hfn_os_error hfn_os_send_message(hfn_os_file connection, const void *bytes, size_t count)
{
    DWORD done;

    return run_operation(hfn_get_handle(connection), true, (void *)(uintptr_t)bytes, count,
                         SEND_TIMEOUT_MS, &done);
}

hfn_os_error hfn_os_receive_message(hfn_os_file connection, uint32_t timeout_s, void *out,
                                    size_t capacity, size_t *count)
{
    DWORD done;
    hfn_os_error error =
        run_operation(hfn_get_handle(connection), false, out, capacity, timeout_s * 1000u, &done);

    *count = done;
    return error == ERROR_MORE_DATA || error == ERROR_BROKEN_PIPE ? 0 : error;
}
