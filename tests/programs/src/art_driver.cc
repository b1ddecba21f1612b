// SPDX-License-Identifier: MIT
// Drives the method trace of the real libart.so (Debian's android-libart) without a virtual
// machine, for which there is no boot class path.  Classes, methods and threads are made by hand in
// memory, with the layouts of Android 11 (runtime/mirror/class.h, runtime/mirror/dex_cache.h,
// runtime/art_method.h); names come from a DEX file, and the trace object, its events, its buffer
// and its lines of methods are libart's.
//
//   art_driver DEX TRACE events COUNT PERCENT SEED
//       Three threads; PERCENT of the calls are of system methods.
//   art_driver DEX TRACE frames COUNT SLOW MS
//       Frames with calls; number SLOW takes MS milliseconds longer.
//
// Writes the trace, and for each method: its number, calls, and libart's name of it.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

enum {
    ENTERED = 1,
    EXITED = 2,
    UNWOUND = 4,
    BUFFER = 64 << 20,
    HEADER = 32,
    RECORD = 14,
    OBJECT = 1 << 16,
    THREADS = 3
};

// In a thread (runtime/thread.h): its number, and its pthread_t.
enum { ID = 0x10, PTHREAD = 0x168 };

static void *library;

template <class Function> static Function *find(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        printf("skipped: libart.so has no %s\n", name);
        exit(77);
    }
    return (Function *)found;
}

static void load()
{
    for (const char *name :
         { "libbase", "liblog", "libziparchive", "libbacktrace", "libdexfile_support",
           "libnativebridge", "libnativeloader", "libsigchain", "libart" }) {
        std::string path = std::string("/usr/lib/x86_64-linux-gnu/android/") + name + ".so.0";
        if (strcmp(name, "libart") == 0) {
            dlopen("libz.so.1", RTLD_LAZY | RTLD_GLOBAL);
            dlopen("liblz4.so.1", RTLD_LAZY | RTLD_GLOBAL);
        }
        library = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
    }
    if (!library) {
        printf("skipped: %s (package android-libart)\n", dlerror());
        exit(77);
    }
}

// ---- Objects.

static uint8_t *allocate(size_t bytes) // below 4 GiB, because references have 32 bits
{
    static uint8_t *at, *end;
    if (at + bytes > end) {
        at = (uint8_t *)mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
        end = at + (1 << 20);
    }
    at += bytes;
    return at - bytes;
}

static uint32_t refer(const void *object)
{
    return (uint32_t)(uintptr_t)object;
}
static uint32_t &word(void *object, size_t offset)
{
    return *(uint32_t *)((uint8_t *)object + offset);
}

static std::vector<uint8_t> dex;
static std::vector<uint8_t *> methods, app, system_methods;
static std::vector<long> calls;
static uint8_t *watched;

static uint32_t header(size_t offset)
{
    return word(dex.data(), offset);
}
static const char *get_text(uint32_t index)
{
    return (const char *)&dex[word(dex.data(), header(0x3c) + 4 * index)] + 1;
}

static void *open_dex(const char *path)
{
    std::ifstream file(path, std::ios::binary);
    std::string location = path, problem;
    void *opened = nullptr, *container = nullptr;
    dex.assign(std::istreambuf_iterator<char>(file), {});
    find<void(void **, const void *, size_t, const void *, size_t, std::string *, uint32_t, void *,
              bool, bool, std::string *, void **, void *)>(
        "_ZN3art13DexFileLoader10OpenCommonEPKhmS2_mRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEjPKNS_"
        "10OatDexFileEbbPS8_St10unique_ptrINS_16DexFileContainerESt14default_deleteISG_EEPNS0_12VerifyResultE")(
        &opened, dex.data(), dex.size(), nullptr, 0, &location, 0, nullptr, false, false, &problem,
        &container, nullptr);
    if (!opened) {
        printf("%s\n", problem.c_str());
        exit(1);
    }
    return opened;
}

static void make_methods(void *dex_file)
{
    uint8_t *cache = allocate(256), *loader = allocate(64);
    std::vector<uint8_t *> classes(header(0x40));
    memcpy(cache + 16, &dex_file, sizeof dex_file);
    for (uint32_t i = 0; i < header(0x58); i++) {
        uint8_t *at = &dex[header(0x5c) + 8 * i], *method = allocate(40);
        uint16_t type = *(uint16_t *)at;
        const char *name = get_text(word(dex.data(), header(0x44) + 4 * type));
        bool is_app = strncmp(name, "Lapp/", 5) == 0;
        if (!classes[type]) {
            classes[type] = allocate(256);
            word(classes[type], 8) = is_app ? refer(loader) : 0;
            word(classes[type], 16) = refer(cache);
            word(classes[type], 80) = 0xFFFF; // no class definition, so no source file
        }
        word(method, 0) = refer(classes[type]);
        word(method, 12) = i;
        methods.push_back(method);
        if (strcmp(get_text(word(at, 4)), "doFrame") == 0) {
            watched = method;
        } else {
            (is_app ? app : system_methods).push_back(method);
        }
    }
    calls.resize(methods.size());
}

// ---- The trace.

using LogEvent = void(void *, void *, void *, int, uint32_t, uint32_t);
static LogEvent *log_event;
static void *trace;

static uint8_t *make_trace()
{
    trace = calloc(1, OBJECT);
    find<void(void *, void *, size_t, int, int, int)>(
        "_ZN3art5TraceC1EPN9unix_file6FdFileEmiNS0_15TraceOutputModeENS0_9TraceModeE")(
        trace, nullptr, BUFFER, 0, 1, 0); // DDMS: the trace stays in memory
    uint8_t *buffer = *(uint8_t **)((uint8_t *)trace + 16);
    if (memcmp(buffer, "SLOW", 4) != 0) {
        printf("not the layout of Android 11\n");
        exit(1);
    }
    return buffer;
}

// What libart takes for the thread that runs.  It measures its clock with the pthread_t.
static void set_self(uint8_t *thread)
{
    pthread_t self = pthread_self();
    memcpy(thread + PTHREAD, &self, sizeof self);
    *find<bool>("_ZN3art6Thread11is_started_E") = true;
    *find<void *>("_ZN3art6Thread9self_tls_E") = thread;
}

// PrettyMethod reads the size of pointers from an object of the runtime, and does not use it here.
static void make_runtime()
{
    void **runtime = (void **)malloc(OBJECT), *part = calloc(1, OBJECT);
    for (size_t i = 0; i < OBJECT / sizeof part; i++) {
        runtime[i] = part;
    }
    *find<void *>("_ZN3art7Runtime9instance_E") = runtime;
}

static uint8_t *make_thread(uint32_t id)
{
    uint8_t *thread = (uint8_t *)calloc(1, OBJECT);
    word(thread, ID) = id;
    return thread;
}

// ---- Scenarios.

struct Walk {
    uint8_t *thread;
    uint32_t clock = 0;
    std::vector<uint8_t *> stack;
    std::vector<long> calls = std::vector<long>(methods.size());
    std::mt19937 random;
    long count = 0, percent = 0;

    void enter(uint8_t *method)
    {
        calls[word(method, 12)]++;
        stack.push_back(method);
        clock += 1 + random() % 5;
        log_event(trace, thread, method, ENTERED, clock / 2, clock);
    }
    void leave()
    {
        clock += 1 + random() % 5;
        log_event(trace, thread, stack.back(), random() % 16 ? EXITED : UNWOUND, clock / 2, clock);
        stack.pop_back();
    }
    void run()
    {
        for (long left = count / 2; left > 0 || !stack.empty();) {
            if (left > 0 && stack.size() < 12 && random() % 2) {
                const auto &among = (long)(random() % 100) < percent ? system_methods : app;
                enter(among[random() % among.size()]);
                left--;
            } else if (!stack.empty()) {
                leave();
            }
        }
    }
};

static void *run_walk(void *walk)
{
    set_self(((Walk *)walk)->thread);
    ((Walk *)walk)->run();
    return nullptr;
}

static void run_events(long count, long percent, long seed)
{
    Walk walks[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        walks[i].thread = make_thread((uint32_t)(101 + i));
        walks[i].random.seed((uint32_t)(seed * THREADS + i));
        walks[i].count = count / THREADS;
        walks[i].percent = percent;
        pthread_create(&threads[i], nullptr, run_walk, &walks[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], nullptr);
        for (size_t m = 0; m < methods.size(); m++) {
            calls[m] += walks[i].calls[m];
        }
    }
}

// Each frame is a call of the watched method; calls between frames belong to none.
static void run_frames(long count, long slow, long milliseconds)
{
    Walk walk;
    walk.thread = make_thread(101);
    walk.percent = 50;
    for (long i = 0; i < count; i++) {
        walk.count = 6;
        walk.run();
        walk.enter(watched);
        for (int call = 0; call < 8; call++) {
            walk.enter(app[(size_t)(i + call) % app.size()]);
            walk.enter(system_methods[(size_t)call % system_methods.size()]);
            if (i == slow && call == 4) {
                timespec pause = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
                nanosleep(&pause, nullptr);
                walk.clock += (uint32_t)milliseconds * 1000;
            }
            walk.leave();
            walk.leave();
        }
        walk.leave();
    }
    calls = walk.calls;
}

// ---- Output.

static void write_trace(const char *path, const uint8_t *buffer)
{
    auto get_line = find<void(std::string *, void *, void *)>(
        "_ZN3art5Trace13GetMethodLineB5cxx11EPNS_9ArtMethodE");
    size_t end = HEADER;
    while (*(const uint16_t *)(buffer + end) != 0) {
        end += RECORD;
    }
    std::ofstream out(path, std::ios::binary);
    out << "*version\n3\ndata-file-overflow=false\nclock=dual\nelapsed-time-usec=1000000\nnum-method-calls="
        << (end - HEADER) / RECORD
        << "\nclock-call-overhead-nsec=100\nvm=art\npid=1\n*threads\n101\tmain\n102\tb\n103\tc\n*methods\n";
    for (uint8_t *method : methods) {
        alignas(std::string) char memory[sizeof(std::string)];
        get_line((std::string *)memory, trace, method);
        out << *(std::string *)memory;
        ((std::string *)memory)->~basic_string();
    }
    out << "*end\n";
    out.write((const char *)buffer, (std::streamsize)end);
}

static void print_calls()
{
    auto get_name =
        find<void(std::string *, void *, bool)>("_ZN3art9ArtMethod12PrettyMethodB5cxx11Eb");
    for (size_t i = 0; i < methods.size(); i++) {
        alignas(std::string) char memory[sizeof(std::string)];
        get_name((std::string *)memory, methods[i], true);
        printf("%zu\t%ld\t%s\n", i, calls[i], ((std::string *)memory)->c_str());
        ((std::string *)memory)->~basic_string();
    }
}

int main(int, char **argv)
{
    load();
    find<void()>("_ZN3art5Locks4InitEv")();
    set_self((uint8_t *)calloc(1, OBJECT));
    make_runtime();
    log_event = find<LogEvent>(
        "_ZN3art5Trace19LogMethodTraceEventEPNS_6ThreadEPNS_9ArtMethodENS_15instrumentation15Instrumentation20Instr"
        "umentationEventEjj");
    make_methods(open_dex(argv[1]));
    uint8_t *buffer = make_trace();
    timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    if (strcmp(argv[3], "events") == 0) {
        run_events(atol(argv[4]), atol(argv[5]), atol(argv[6]));
    } else {
        run_frames(atol(argv[4]), atol(argv[5]), atol(argv[6]));
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    fprintf(stderr, "%ld microseconds of processor time\n",
            (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000);
    write_trace(argv[2], buffer);
    print_calls();
    return 0;
}
