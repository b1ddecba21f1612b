/* SPDX-License-Identifier: MIT */
/*
 * Recognises runtimes by marks that they leave in an image.  Two kinds matter: a runtime that finds
 * stack frames by return address has no entry for a stub in its tables, so its code must not be
 * timed; a runtime that reads or patches its own code must find the original bytes, so its code
 * must not be hooked.  A mark is matched in the whole image, because code of the runtime and code
 * that it walks are linked together.
 */
#include "verdicts/analysis.h"

#include <string.h>

typedef enum mark_kind {
    MARK_SECTION, /* the name of a section                                                  */
    MARK_NAME,    /* a defined symbol, of code or data, that begins with `text` and ends with
                   * `end`                                                                  */
    MARK_STRING,  /* a string in read-only data, `text` followed by `end`: survives `strip`.
                   * In two parts, so that libhotfn itself does not contain the mark        */
} mark_kind;

typedef struct mark {
    mark_kind kind;
    uint32_t runtime; /* HFN_RUNTIME_* */
    const char *text;
    const char *end; /* of a MARK_NAME, NULL: the name is exactly `text` */
} mark;

// clang-format off
static const mark marks[] = {
    /* Go */
    { MARK_SECTION, HFN_RUNTIME_WALKS_STACK | HFN_RUNTIME_GO, ".gopclntab", NULL },
    { MARK_SECTION, HFN_RUNTIME_WALKS_STACK | HFN_RUNTIME_GO, ".data.rel.ro.gopclntab", NULL },
    { MARK_SECTION, HFN_RUNTIME_WALKS_STACK, ".note.go.buildid", NULL },
    /* The C library and the loader; Go with C code, whose threads are the C library's */
    { MARK_NAME, HFN_RUNTIME_OWNS_THREADS, "__libc_start_main", NULL },
    { MARK_NAME, HFN_RUNTIME_OWNS_THREADS, "__tls_get_addr", NULL },
    { MARK_NAME, HFN_RUNTIME_OWNS_THREADS, "pthread_create", NULL },
    { MARK_SECTION, HFN_RUNTIME_OWNS_THREADS, ".gopclntab", NULL },
    { MARK_SECTION, HFN_RUNTIME_OWNS_THREADS, ".data.rel.ro.gopclntab", NULL },
    /* V8; a Java virtual machine */
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "_ZN2v88internal", "" },
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "JNI_CreateJavaVM", NULL },
    /* OCaml native code: frame tables, keyed by return address */
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "caml", "frametable" },
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "caml_call_gc", NULL },
    { MARK_STRING, HFN_RUNTIME_WALKS_STACK, "OCAML", "RUNPARAM" },
    /* Chez Scheme; MLton */
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "Sbuild_heap", NULL },
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "MLton_", "" },
    /* Dart compiled ahead of time; Android's ART, the same */
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "_kDart", "SnapshotInstructions" },
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "oatexec", NULL },
    /* GraalVM native-image */
    { MARK_SECTION, HFN_RUNTIME_WALKS_STACK, ".svm_heap", NULL },
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "__svm_code_section", NULL },
    /* .NET NativeAOT, in ELF and in PE; the .NET virtual machine */
    { MARK_SECTION, HFN_RUNTIME_WALKS_STACK, "__managedcode", NULL },
    { MARK_SECTION, HFN_RUNTIME_WALKS_STACK, ".managed", NULL },
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "DotNetRuntimeDebugHeader", NULL },
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "coreclr_initialize", NULL },
    /* any compiler that uses LLVM's stack maps or statepoints */
    { MARK_SECTION, HFN_RUNTIME_WALKS_STACK, ".llvm_stackmaps", NULL },
    { MARK_NAME, HFN_RUNTIME_WALKS_STACK, "__LLVM_StackMaps", NULL },
    /* Mono's ahead-of-time images: mono decodes and patches the code of its plt_* entries */
    { MARK_NAME, HFN_RUNTIME_READS_CODE, "mono_aot_file_info", NULL },
    { MARK_NAME, HFN_RUNTIME_READS_CODE, "mono_aot_module_", "_info" },
};
// clang-format on

#define MARK_COUNT (sizeof marks / sizeof marks[0])

static bool matches_name(const mark *m, const char *name)
{
    size_t begin = strlen(m->text), size, end;

    if (strncmp(name, m->text, begin) != 0) {
        return false;
    }
    size = strlen(name);
    end = m->end ? strlen(m->end) : 0;
    return m->end ? size >= begin + end && strcmp(name + size - end, m->end) == 0 : size == begin;
}

static void match_name(void *user, const char *name)
{
    uint32_t *found = user;

    for (size_t i = 0; i < MARK_COUNT; i++) {
        if (marks[i].kind == MARK_NAME && matches_name(&marks[i], name)) {
            *found |= marks[i].runtime;
        }
    }
}

/* Whether the bytes contain the string of the mark with its final NUL. */
static bool contains_string(hfn_span bytes, const mark *m)
{
    size_t begin = strlen(m->text), size = begin + strlen(m->end) + 1;
    const uint8_t *at = bytes.data, *end = bytes.data + bytes.size;

    while (at && (size_t)(end - at) >= size) {
        at = memchr(at, m->text[0], (size_t)(end - at) - size + 1);
        if (at && memcmp(at, m->text, begin) == 0 &&
            memcmp(at + begin, m->end, size - begin) == 0) {
            return true;
        }
        at = at ? at + 1 : NULL;
    }
    return false;
}

static bool has_string(const hotfn_image *image, const mark *m)
{
    static const char *const sections[] = { ".rodata", ".rdata" };

    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        const hfn_elf_section *section = hfn_elf_section_named(image, sections[i]);
        if (section && contains_string(hfn_elf_section_bytes(image, section), m)) {
            return true;
        }
    }
    return false;
}

/* Windows x86 has no tables for unwinding: exceptions of C++ compiled by gcc are thrown by libgcc,
 * which finds frames by return address and knows no stub. */
static bool throws_by_address(const hotfn_image *image, const hotfn_functions *functions)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;

    hotfn_image_get_info(image, &info);
    if (info.format != HOTFN_FORMAT_PE || info.machine != HOTFN_MACHINE_X86) {
        return false;
    }
    for (uint32_t i = 0; i < hotfn_functions_get_count(functions); i++) {
        if (hfn_functions_at(functions, i)->flags & HOTFN_FUNCTION_HAS_LSDA) {
            return true;
        }
    }
    return false;
}

uint32_t hfn_runtimes_find(const hotfn_image *image, const hotfn_functions *functions)
{
    uint32_t found = 0;
    const char *name;

    for (size_t i = 0; i < MARK_COUNT; i++) {
        if ((marks[i].kind == MARK_SECTION && hfn_elf_section_named(image, marks[i].text)) ||
            (marks[i].kind == MARK_STRING && has_string(image, &marks[i]))) {
            found |= marks[i].runtime;
        }
    }
    if (throws_by_address(image, functions)) {
        found |= HFN_RUNTIME_WALKS_STACK;
    }
    hfn_image_each_defined_name(image, match_name, &found);
    /* names of a separate debug file, a PDB or a linker map */
    for (uint32_t i = 0; i < hotfn_functions_get_count(functions); i++) {
        for (uint32_t k = 0; (name = hotfn_functions_get_name(functions, i, k)) != NULL; k++) {
            match_name(&found, name);
        }
    }
    return found;
}
