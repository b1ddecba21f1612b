/* SPDX-License-Identifier: MIT */
#include "runtimes/art_versions.h"

#include "check.h"

/* The exported symbols of each release that concern the trace, and some that resemble them. */
typedef struct release {
    const char *releases; /* of the version that must be found; NULL: none */
    hfn_art_search found;
    const char *symbols[8];
} release;

static const release releases[] = {
    { "2.2 and 2.3 (Dalvik)",
      HFN_ART_FOUND,
      { "JNI_CreateJavaVM", "dvmMethodTraceStart", "dvmMethodTraceAdd", "dvmEmitEmulatorTrace" } },
    { "4.0 to 4.3 (Dalvik)",
      HFN_ART_FOUND,
      { "JNI_CreateJavaVM", "_Z19dvmMethodTraceStartPKciiibbi", "dvmFastMethodTraceEnter",
        "_Z17dvmMethodTraceAddP6ThreadPK6Methodi" } },
    { "4.4 (Dalvik)",
      HFN_ART_FOUND,
      { "JNI_CreateJavaVM", "dvmFastMethodTraceEnter",
        "_Z17dvmMethodTraceAddP6ThreadPK6Methodijj" } },
    { "4.4",
      HFN_ART_FOUND,
      { "JNI_CreateJavaVM", "_ZN3art12PrettyMethodEPKNS_6mirror9ArtMethodEb",
        "_ZN3art12PrettyMethodEjRKNS_7DexFileEb",
        "_ZN3art5Trace19LogMethodTraceEventEPNS_6ThreadEPKNS_6mirror9ArtMethodENS_"
        "15instrumentation15Instrumentation20InstrumentationEventEjj" } },
    { "5.0 and 5.1",
      HFN_ART_FOUND,
      { "JNI_CreateJavaVM", "_ZN3art12PrettyMethodEPNS_6mirror9ArtMethodEb",
        "_ZN3art5Trace19LogMethodTraceEventEPNS_6ThreadEPNS_6mirror9ArtMethodENS_"
        "15instrumentation15Instrumentation20InstrumentationEventEjj" } },
    { "6.0 to 7.1",
      HFN_ART_FOUND,
      { "JNI_CreateJavaVM", "_ZN3art12PrettyMethodEPNS_9ArtMethodEb",
        "_ZN3art5Trace19LogMethodTraceEventEPNS_6ThreadEPNS_9ArtMethodENS_"
        "15instrumentation15Instrumentation20InstrumentationEventEjj" } },
    { "8.0 to 13",
      HFN_ART_FOUND,
      { "JNI_CreateJavaVM", "_ZN3art9ArtMethod12PrettyMethodEPS0_b",
        "_ZN3art9ArtMethod12PrettyMethodEb",
        "_ZN3art5Trace19LogMethodTraceEventEPNS_6ThreadEPNS_9ArtMethodENS_"
        "15instrumentation15Instrumentation20InstrumentationEventEjj" } },
    { "8.0 to 13", /* Debian's build */
      HFN_ART_FOUND,
      { "JNI_CreateJavaVM", "_ZN3art9ArtMethod12PrettyMethodB5cxx11Eb",
        "_ZN3art9ArtMethod12PrettyMethodB5cxx11EPS0_b",
        "_ZN3art5Trace19LogMethodTraceEventEPNS_6ThreadEPNS_9ArtMethodENS_"
        "15instrumentation15Instrumentation20InstrumentationEventEjj" } },
    { "14",
      HFN_ART_FOUND,
      { "JNI_CreateJavaVM", "_ZN3art9ArtMethod12PrettyMethodEb",
        "_ZN3art5Trace19LogMethodTraceEventEPNS_6ThreadEPNS_9ArtMethodENS_11TraceActionEjm" } },
    { NULL, /* the namespace is hidden */
      HFN_ART_UNKNOWN,
      { "JNI_CreateJavaVM", "JNI_GetCreatedJavaVMs" } },
    { NULL, /* a name function that does not belong to the event function */
      HFN_ART_UNKNOWN,
      { "JNI_CreateJavaVM", "_ZN3art12PrettyMethodEPKNS_6mirror9ArtMethodEb",
        "_ZN3art5Trace19LogMethodTraceEventEPNS_6ThreadEPNS_9ArtMethodENS_11TraceActionEjm" } },
    { NULL, /* OpenJDK */
      HFN_ART_NONE,
      { "JNI_CreateJavaVM", "JVM_GetInterfaceVersion" } },
    { NULL, HFN_ART_NONE, { "malloc" } },
};

/* base is the number of a release. */
static void *find_symbol(uint64_t base, const char *name)
{
    const char *const *symbols = releases[base].symbols;

    for (size_t i = 0; i < 8 && symbols[i]; i++) {
        if (strcmp(symbols[i], name) == 0) {
            return (void *)(uintptr_t)symbols[i];
        }
    }
    return NULL;
}

static void each_release_is_recognised_by_its_symbols(void)
{
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
        hfn_art_symbols found = { NULL, NULL, NULL, false };
        const char *wanted = releases[i].releases;

        CHECK_EQ_U64(hfn_art_find_version(&found, find_symbol, i), releases[i].found);
        CHECK_EQ_U64(found.version != NULL, wanted != NULL);
        if (found.version && wanted) {
            CHECK_STR(found.version->releases, wanted);
            CHECK_EQ_U64(found.is_libstdcxx, i == 7);
            CHECK(found.store_event != NULL);
            CHECK_EQ_U64(found.get_name != NULL, strstr(wanted, "Dalvik") == NULL);
        }
    }
}

/* ---- Names. */

typedef struct text {
    uint64_t words[4];
} text;

static const char *name_text;

static text get_short_libcxx(uint64_t method, int has_signature)
{
    text t = { { 0, 0, 0, 0 } };

    (void)method, (void)has_signature;
    ((char *)&t)[0] = (char)(strlen(name_text) << 1);
    strcpy((char *)&t + 1, name_text);
    return t;
}

static text get_long_libcxx(uint64_t method, int has_signature)
{
    (void)method, (void)has_signature;
    return (text){ { 65, strlen(name_text), (uint64_t)(uintptr_t)name_text, 0 } };
}

static text get_libstdcxx(uint64_t method, int has_signature)
{
    text t = { { (uint64_t)(uintptr_t)name_text, strlen(name_text), 0, 0 } };

    (void)method, (void)has_signature;
    if (t.words[1] <= 15) {
        t.words[0] = 1; /* the address that the text had in the callee */
        strcpy((char *)&t.words[2], name_text);
    }
    return t;
}

static void check_name(text (*get)(uint64_t, int), bool is_libstdcxx, const char *from,
                       const char *wanted)
{
    hfn_art_symbols symbols = { NULL, NULL, (void *)(uintptr_t)get, is_libstdcxx };
    char out[256];

    name_text = from;
    hfn_art_write_name(out, sizeof out, &symbols, 0);
    CHECK_STR(out, wanted);
}

static void names_of_both_libraries_are_read(void)
{
    check_name(get_short_libcxx, false, "void a.B.c(int)", "a.B.c (int): void");
    check_name(get_short_libcxx, false, "<runtime method>", "<runtime method>");
    check_name(get_long_libcxx, false, "java.lang.String app.Main.get(int, long[])",
               "app.Main.get (int, long[]): java.lang.String");
    check_name(get_libstdcxx, true, "void a.B.c(int)", "a.B.c (int): void");
    check_name(get_libstdcxx, true, "void app.Main.onCreate(android.os.Bundle)",
               "app.Main.onCreate (android.os.Bundle): void");
}

static const check_test tests[] = {
    CHECK_TEST(each_release_is_recognised_by_its_symbols),
    CHECK_TEST(names_of_both_libraries_are_read),
};

CHECK_MAIN(tests)
