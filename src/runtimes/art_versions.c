/* SPDX-License-Identifier: MIT */
/* Names and layouts are those of AOSP's sources, which were compared between these tags:
 * platform/art: runtime/trace.h, runtime/instrumentation.h, runtime/art_method.h,
 *   runtime/mirror/art_method.h, runtime/mirror/class.h, runtime/utils.h of android-4.4.3_r1,
 *   android-5.0.0_r5, android-5.1.0_r1, android-6.0.1_r22, android-7.1.2_r2,
 *   android-security-8.1.0_r86, android-9.0.0_r46, android-10.0.0_r37, android-11.0.0_r38, and of
 *   the branches of 12.1, 13 and 14 (the change of the signature is commit f5c70744a6).
 * platform/dalvik: vm/Profile.h, vm/oo/Object.h of android-2.2_r1, android-2.3.7_r1,
 *   android-4.0.1_r1, android-4.1.2_r1, android-4.2.2_r1, android-4.3_r1 and android-4.4.4_r1. */
#include "runtimes/art_versions.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

#define LOG_EVENT "_ZN3art5Trace19LogMethodTraceEventEPNS_6ThreadE"
#define EVENT "NS_15instrumentation15Instrumentation20InstrumentationEventE"

#define MEMBER "_ZN3art9ArtMethod12PrettyMethod"
#define FREE "_ZN3art12PrettyMethod"

static const hfn_art_version versions[] = {
    { "14", LOG_EVENT "PNS_9ArtMethodENS_11TraceActionEjm", MEMBER, "Eb", 0, 0 },
    { "8.0 to 13", LOG_EVENT "PNS_9ArtMethodE" EVENT "jj", MEMBER, "Eb", 1, 0 },
    { "6.0 to 7.1", LOG_EVENT "PNS_9ArtMethodE" EVENT "jj", FREE, "EPNS_9ArtMethodEb", 1, 0 },
    { "5.0 and 5.1", LOG_EVENT "PNS_6mirror9ArtMethodE" EVENT "jj", FREE,
      "EPNS_6mirror9ArtMethodEb", 1, 8 },
    { "4.4", LOG_EVENT "PKNS_6mirror9ArtMethodE" EVENT "jj", FREE, "EPKNS_6mirror9ArtMethodEb", 1,
      8 },
    { "4.4 (Dalvik)", "_Z17dvmMethodTraceAddP6ThreadPK6Methodijj", NULL, NULL, 0, 0 },
    { "4.0 to 4.3 (Dalvik)", "_Z17dvmMethodTraceAddP6ThreadPK6Methodi", NULL, NULL, 0, 0 },
    { "2.2 and 2.3 (Dalvik)", "dvmMethodTraceAdd", NULL, NULL, 0, 0 },
};

/* ---- Search. */

/* A build with libstdc++ marks functions that return std::string. */
static void find_name_function(hfn_art_symbols *out, hfn_find_symbol_fn *find_symbol, uint64_t base)
{
    static const char *const marks[] = { "", "B5cxx11" };
    const hfn_art_version *version = out->version;
    char symbol[128];

    for (uint32_t i = 0; i < HFN_COUNT_OF(marks) && !out->get_name; i++) {
        snprintf(symbol, sizeof symbol, "%s%s%s", version->name_symbol, marks[i],
                 version->name_types);
        out->get_name = find_symbol(base, symbol);
        out->is_libstdcxx = i == 1;
    }
}

static bool find_symbols(hfn_art_symbols *out, const hfn_art_version *version,
                         hfn_find_symbol_fn *find_symbol, uint64_t base)
{
    hfn_art_symbols found = { version, find_symbol(base, version->event_symbol), NULL, false };

    if (found.store_event && version->name_symbol) {
        find_name_function(&found, find_symbol, base);
    }
    if (!found.store_event || (version->name_symbol && !found.get_name)) {
        return false;
    }
    *out = found;
    return true;
}

hfn_art_search hfn_art_find_version(hfn_art_symbols *out, hfn_find_symbol_fn *find_symbol,
                                    uint64_t base)
{
    for (size_t i = 0; i < HFN_COUNT_OF(versions); i++) {
        if (find_symbols(out, &versions[i], find_symbol, base)) {
            return HFN_ART_FOUND;
        }
    }
    /* Other virtual machines that export this call have JVM_GetInterfaceVersion too. */
    return find_symbol(base, "JNI_CreateJavaVM") && !find_symbol(base, "JVM_GetInterfaceVersion")
               ? HFN_ART_UNKNOWN
               : HFN_ART_NONE;
}

/* ---- Methods. */

typedef struct dalvik_class { /* vm/oo/Object.h: ClassObject */
    const struct dalvik_class *class;
    uint32_t lock, instance_data[4];
    const char *descriptor;
    char *allocated_descriptor;
    uint32_t access_flags, serial_number;
    const void *dex;
    int status;
    const struct dalvik_class *error_class;
    uint32_t thread_id;
    size_t object_bytes;
    const struct dalvik_class *element_class;
    int array_dimension, primitive_type;
    const struct dalvik_class *super;
    const void *class_loader;
} dalvik_class;

typedef struct dalvik_method { /* vm/oo/Object.h: Method */
    const dalvik_class *class;
    uint32_t access_flags;
    uint16_t sizes[4];
    const char *name;
    const void *dex; /* DexProto */
    uint32_t prototype;
    const char *shorty;
} dalvik_method;

/* References to objects have 32 bits in ART.  The class loader is the first field of a class, after
 * the two words that each object has. */
enum { CLASS_LOADER_OFFSET = 8 };

static uint32_t read_reference(uint64_t address)
{
    return *(const uint32_t *)(uintptr_t)address;
}

uint64_t hfn_art_get_class(const hfn_art_version *version, uint64_t method)
{
    return version->name_symbol
               ? read_reference(method + version->class_offset)
               : (uint64_t)(uintptr_t)((const dalvik_method *)(uintptr_t)method)->class;
}

bool hfn_art_is_system(const hfn_art_version *version, uint64_t method)
{
    uint64_t class = hfn_art_get_class(version, method);

    if (class == 0) {
        return true; /* a method of the runtime itself, such as a trampoline */
    }
    return version->name_symbol ? read_reference(class + CLASS_LOADER_OFFSET) == 0
                                : !((const dalvik_class *)(uintptr_t) class)->class_loader;
}

/* ---- Names. */

/* A std::string, returned in memory of the caller.  libstdc++: address and length of the text,
 * which is in the third and fourth word if it is short.  libc++, three words: a text of up to
 * 22 bytes follows a first byte that is even; else the third word is the address. */
typedef struct returned_text {
    uint64_t words[4];
} returned_text;

typedef returned_text get_name_fn(uint64_t method, int has_signature);

enum { SHORT_BYTES = 15 }; /* of libstdc++ */

static const char *get_text(const returned_text *text, bool is_libstdcxx)
{
    const uint64_t *words = text->words;

    if (is_libstdcxx) {
        return words[1] <= SHORT_BYTES ? (const char *)&words[2]
                                       : (const char *)(uintptr_t)words[0];
    }
    return words[0] & 1 ? (const char *)(uintptr_t)words[2] : (const char *)words + 1;
}

/* "type package.Class.method(types)" to "package.Class.method (types): type" */
static void write_art_name(char *out, size_t out_bytes, const char *text)
{
    const char *types = strchr(text, '('), *name = text;

    for (const char *at = text; types && at < types; at++) {
        name = *at == ' ' ? at + 1 : name;
    }
    if (types && name > text) {
        snprintf(out, out_bytes, "%.*s %.300s: %.*s", (int)(types - name), name, types,
                 (int)(name - 1 - text), text);
    } else {
        snprintf(out, out_bytes, "%s", text);
    }
}

/* "Lpackage/Class;" to "package.Class" */
static void write_dalvik_name(char *out, size_t out_bytes, const dalvik_method *method)
{
    const char *class = method->class->descriptor;
    size_t length = strlen(class);

    if (class[0] == 'L' && class[length - 1] == ';') {
        class ++;
        length -= 2;
    }
    snprintf(out, out_bytes, "%.*s.%.200s (%.200s)", (int)(length < 500 ? length : 500), class,
             method->name, method->shorty);
    for (char *at = out; *at && *at != ' '; at++) {
        *at = *at == '/' ? '.' : *at;
    }
}

/* A long text is not freed, because the C++ library that allocated it is not known.  Each method is
 * named once. */
void hfn_art_write_name(char *out, size_t out_bytes, const hfn_art_symbols *symbols,
                        uint64_t method)
{
    if (symbols->get_name) {
        returned_text text =
            ((get_name_fn *)(hotfn_code)(uintptr_t)symbols->get_name)(method, true);

        write_art_name(out, out_bytes, get_text(&text, symbols->is_libstdcxx));
    } else {
        write_dalvik_name(out, out_bytes, (const dalvik_method *)(uintptr_t)method);
    }
}
