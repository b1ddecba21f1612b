/* SPDX-License-Identifier: MIT */
/* Linker maps: each kind is recognised and read completely; missing sizes follow from the limits of
 * sections and objects; broken text is refused with its line. */
#include "base/counting_env.h"
#include "check.h"
#include "symbols/map_samples.h"

#include <hotfn/lowlevel/symbols.h>

typedef struct fixture {
    hotfn_symbols *symbols;
    hotfn_error err;
    hotfn_status status;
    counting c;
    hotfn_env env;
} fixture;

static void open_bytes(fixture *f, const char *text, size_t size, uint32_t flags)
{
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;

    memset(f, 0, sizeof *f);
    f->env = counting_env(&f->c);
    f->err = (hotfn_error)HOTFN_ERROR_INIT;
    options.flags = flags;
    f->status = hotfn_symbols_map_from_bytes(&f->symbols, text, size, "t.map", NULL, &options,
                                             &f->env, &f->err);
}

static void open_text(fixture *f, const char *text)
{
    open_bytes(f, text, strlen(text), HOTFN_SYMBOLS_DATA);
    CHECK_EQ_I64(f->status, HOTFN_OK);
    if (f->status != HOTFN_OK) {
        printf("# %s\n", f->err.text);
    }
}

static void close_fixture(fixture *f)
{
    hotfn_symbols_destroy(f->symbols);
    CHECK_EQ_U64(f->c.live_bytes, 0);
    CHECK_EQ_I64(f->c.size_mismatches, 0);
}

/* The row of that name; all fields are 0 if there is none. */
static hotfn_symbol row_of(const fixture *f, const char *name)
{
    hotfn_symbol s = HOTFN_SYMBOL_INIT;

    for (uint32_t i = 0; f->symbols && hotfn_symbols_get(f->symbols, i, &s) == HOTFN_OK; i++) {
        if (strcmp(s.name, name) == 0) {
            return s;
        }
    }
    return (hotfn_symbol)HOTFN_SYMBOL_INIT;
}

static int is_row(const fixture *f, const char *name, uint64_t rva, uint64_t size, uint32_t kind,
                  const char *module)
{
    hotfn_symbol s = row_of(f, name);
    int held = CHECK_EQ_U64(s.kind, kind) & CHECK_EQ_U64(s.rva, rva) &
               CHECK_EQ_U64(s.byte_count, size) & CHECK_STR(s.module, module);

    if (!held) {
        printf("# the row of %s differs\n", name);
    }
    return held;
}

static uint32_t count(const fixture *f)
{
    return f->symbols ? hotfn_symbols_get_count(f->symbols) : 0;
}

static void a_map_of_msvc_has_flags_statics_and_thunks(void)
{
    fixture f;

    open_text(&f, map_msvc);
    CHECK_EQ_U64(count(&f), 8);
    is_row(&f, "?ChangeState@DIAG_AppManager@@QAAXW4E_DIAG_APP_STATE@@@Z", 0x1000, 0x20,
           HOTFN_SYMBOL_FUNCTION, "a.obj");
    is_row(&f, "helper", 0x1020, 0x20, HOTFN_SYMBOL_FUNCTION, "a.obj");
    is_row(&f, "??_EThing@@UAAPAXI@Z", 0x1040, 0x20, HOTFN_SYMBOL_FUNCTION,
           "CIL library: CIL module");
    is_row(&f, "??_GThing@@UAAPAXI@Z", 0x1040, 0x20, HOTFN_SYMBOL_FUNCTION, "a.obj");
    is_row(&f, "UpdateWindow", 0x1060, 0x10, HOTFN_SYMBOL_THUNK, "coredll:COREDLL.dll");
    is_row(&f, "__gsfailure", 0x1070, 0x390, HOTFN_SYMBOL_LABEL, "corelibc:armsecgs.obj");
    is_row(&f, "??__Ething@@YAXXZ", 0x1410, 0x10, HOTFN_SYMBOL_FUNCTION, "a.obj");
    is_row(&f, "?table@@3PAHA", 0x2010, 0xf0, HOTFN_SYMBOL_DATA, "a.obj");
    CHECK_EQ_U64(row_of(&f, "helper").flags, HOTFN_SYMBOL_SIZE_GUESSED);
    CHECK_EQ_U64(row_of(&f, "UpdateWindow").flags, HOTFN_SYMBOL_SIZE_GUESSED | HOTFN_SYMBOL_GLOBAL);
    CHECK_EQ_I64(f.c.warnings, 0);
    close_fixture(&f);
}

/* Each row is read after a row that gives the address of the code segment. */
static void each_form_of_a_row_of_msvc_is_read(void)
{
    static const struct {
        const char *row, *name;
        uint32_t kind; /* 0: no symbol */
    } rows[] = {
        { "0001:00000010 f 00011010 f a.obj", "f", HOTFN_SYMBOL_FUNCTION },
        { "0001:00000010 f 0000000000011010 f a.obj", "f", HOTFN_SYMBOL_FUNCTION },
        { "0001:00000010 a name 00011010 f a.obj", "a name", HOTFN_SYMBOL_FUNCTION },
        { "0001:00000010 t 00011010 f x:X.DLL", "t", HOTFN_SYMBOL_THUNK },
        { "0001:00000010 t 00011010 f x:X.dll", "t", HOTFN_SYMBOL_THUNK },
        { "0001:00000010 f 00011010 f x:X.dlls", "f", HOTFN_SYMBOL_FUNCTION },
        { "0001:000003ff l 000113ff a.obj", "l", HOTFN_SYMBOL_LABEL },
        { "0001:00000400 d 00011400 a.obj", "d", HOTFN_SYMBOL_DATA }, /* the second group */
        { "0001:00000400 d 00011400 f a.obj", "d", HOTFN_SYMBOL_FUNCTION },
        { "0002:00000010 d 00012010 a.obj", "d", HOTFN_SYMBOL_DATA },
        { "0001:00000010 m 00011010 <linker-defined>", "m", HOTFN_SYMBOL_DATA },
        { "0001:00000010 n 00011010 <absolute>", "n", 0 },
        { "0000:00000010 n 00011010 f a.obj", "n", 0 },
        { "0001:00000010 n 00011011 f a.obj", "n", 0 }, /* contradicts the first row */
        { "0001:00000010 n 0001101 f a.obj", "n", 0 },
        { "0001:00000010 n 0001101g f a.obj", "n", 0 },
        { "0001:100000010 n 00011010 f a.obj", "n", 0 },
        { "001:00000010 n 00011010 f a.obj", "n", 0 },
        { "0001 00000010 n 00011010 f a.obj", "n", 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[1024];
        fixture f;
        snprintf(text, sizeof text,
                 " game\n\n Timestamp is 5ecf2155 (Thu May 28 11:26:29 2020)\n\n"
                 " Preferred load address is 00010000\n\n"
                 " Start         Length     Name                   Class\n"
                 " 0001:00000000 00000400H .text                   CODE\n"
                 " 0001:00000400 00000020H .text$d                 DATA\n"
                 " 0002:00000000 00000100H .rdata                  DATA\n\n"
                 "  Address         Publics by Value              Rva+Base       Lib:Object\n\n"
                 " 0001:00000000       anchor                     00011000 f   a.obj\n"
                 " %s\n",
                 rows[i].row);
        open_text(&f, text);
        hotfn_symbol s = row_of(&f, rows[i].name);
        if (!CHECK_EQ_U64(s.kind, rows[i].kind) ||
            !CHECK_EQ_U64(count(&f), 1 + (rows[i].kind != 0))) {
            printf("# %s\n", rows[i].row);
        }
        close_fixture(&f);
    }
}

static void is_line(const fixture *f, uint64_t rva, uint32_t number, const char *file,
                    uint64_t begin, uint64_t byte_count)
{
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;

    if (!CHECK_EQ_I64(hotfn_symbols_find_line(f->symbols, rva, &line), HOTFN_OK)) {
        return;
    }
    CHECK_EQ_U64(line.line, number);
    CHECK_STR(line.file, file);
    CHECK_EQ_U64(line.rva, begin);
    CHECK_EQ_U64(line.byte_count, byte_count);
}

/* Line tables of /MAPINFO:LINES: a line ends at the next one, and never goes beyond its
 * function. */
static void lines_of_a_map_are_read(void)
{
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;
    hotfn_source_frame frame = HOTFN_SOURCE_FRAME_INIT;
    const char *game = "C:\\Old (x86)\\Game.cpp";
    fixture f;

    open_text(&f, map_msvc_lines);
    CHECK_EQ_U64(count(&f), 3);
    CHECK_EQ_I64(f.c.warnings, 0);
    is_line(&f, 0x1000, 12, game, 0x1000, 6);
    is_line(&f, 0x1007, 13, game, 0x1006, 0x1a);
    is_line(&f, 0x102f, 15, game, 0x1020, 0x10);
    is_line(&f, 0x1030, 7, "C:\\Old (x86)\\inline.h", 0x1030, 4);
    is_line(&f, 0x105f, 22, game, 0x1034, 0x2c);
    for (uint64_t rva = 0xfff; rva < 0x2000; rva += 0x61) { /* 0xfff, 0x1060 ... */
        if (rva < 0x1000 || rva >= 0x1060) {
            CHECK_EQ_I64(hotfn_symbols_find_line(f.symbols, rva, &line), HOTFN_E_NOT_FOUND);
        }
    }
    CHECK_EQ_I64(hotfn_symbols_find_line(f.symbols, UINT64_MAX, &line), HOTFN_E_NOT_FOUND);
    CHECK_EQ_I64(hotfn_symbols_find_frame(f.symbols, 0x1000, 0, &frame), HOTFN_OK);
    CHECK_EQ_U64(frame.line, 12);
    CHECK_STR(frame.function, "");
    CHECK_EQ_I64(hotfn_symbols_find_frame(f.symbols, 0x1000, 1, &frame), HOTFN_E_NOT_FOUND);
    close_fixture(&f);
    open_text(&f, map_msvc);
    CHECK_EQ_I64(hotfn_symbols_find_line(f.symbols, 0x1000, &line), HOTFN_E_NOT_FOUND);
    close_fixture(&f);
}

static void invalid_lines_are_omitted_and_reported(void)
{
    char text[sizeof map_msvc_lines + 200];
    fixture f;

    snprintf(text, sizeof text, "%s%s", map_msvc_lines,
             "Line numbers for nothing at all\n\n    12 0001:00000000\n"
             "Line numbers for a.obj(a.c) segment .text\n\n"
             "    12 0009:00000000\n     0 0001:00000000\n    77 nowhere\n");
    open_text(&f, text);
    CHECK_EQ_I64(f.status, HOTFN_OK);
    CHECK_EQ_I64(f.c.warnings, 2);
    is_line(&f, 0x1000, 12, "C:\\Old (x86)\\Game.cpp", 0x1000, 6);
    close_fixture(&f);
}

static void a_map_of_lld_link_has_no_flags(void)
{
    fixture f;

    open_text(&f, map_lld_link);
    CHECK_EQ_U64(count(&f), 3);
    is_row(&f, "_work", 0x1000, 0xd, HOTFN_SYMBOL_FUNCTION, "f_x86.obj");
    is_row(&f, "_helper", 0x100d, 0x4b, HOTFN_SYMBOL_FUNCTION, "f_x86.obj");
    is_row(&f, "_value", 0x3000, 8, HOTFN_SYMBOL_DATA, "f_x86.obj");
    close_fixture(&f);
    open_text(&f, map_lldmap);
    CHECK_EQ_U64(count(&f), 3);
    is_row(&f, "work", 0x1000, 0x11, HOTFN_SYMBOL_FUNCTION, "f_x64.obj");
    is_row(&f, "helper", 0x1011, 0xf, HOTFN_SYMBOL_FUNCTION, "f_x64.obj");
    is_row(&f, "value", 0x3000, 8, HOTFN_SYMBOL_DATA, "f_x64.obj");
    close_fixture(&f);
}

static void lld_maps_have_sizes_and_mold_maps_have_none(void)
{
    fixture f;

    open_text(&f, map_lld);
    CHECK_EQ_U64(count(&f), 2); /* per_thread is thread-local */
    is_row(&f, "_start", 0x1700, 0x22, HOTFN_SYMBOL_FUNCTION, "a.o");
    is_row(&f, "space::thing::get() const", 0x1730, 0xb9, HOTFN_SYMBOL_FUNCTION, "b.o");
    CHECK_EQ_U64(row_of(&f, "_start").flags, 0);
    close_fixture(&f);
    open_text(&f, map_mold);
    CHECK_EQ_U64(count(&f), 2);
    is_row(&f, "_start", 0x1690, 34, HOTFN_SYMBOL_FUNCTION, "a.o");
    is_row(&f, "value", 0x3a78, 8, HOTFN_SYMBOL_DATA, "b.o");
    close_fixture(&f);
}

static void maps_of_gnu_ld_and_gold_are_read_behind_their_heading(void)
{
    hotfn_symbols_info info = HOTFN_SYMBOLS_INFO_INIT;
    fixture f;

    open_text(&f, map_gnu_ld);
    CHECK_EQ_U64(count(&f), 6);
    is_row(&f, "printf@@GLIBC_2.2.5", 0x1030, 0x10, HOTFN_SYMBOL_THUNK, "crt1.o");
    is_row(&f, "_start", 0x1050, 0x22, HOTFN_SYMBOL_FUNCTION, "a.o");
    is_row(&f, "space::thing::get() const", 0x1080, 3, HOTFN_SYMBOL_FUNCTION, "b.o");
    is_row(&f, "operator new(unsigned long)", 0x1083, 0x1e3 - 0x83, HOTFN_SYMBOL_FUNCTION, "b.o");
    is_row(&f, "value", 0x3008, 8, HOTFN_SYMBOL_DATA, "b.o");
    is_row(&f, "_edata", 0x3010, 0, HOTFN_SYMBOL_DATA, NULL);
    CHECK_EQ_I64(hotfn_symbols_get_info(f.symbols, &info), HOTFN_OK);
    CHECK_STR(info.format, "gnu-ld-map");
    CHECK_EQ_U64(info.machine, HOTFN_MACHINE_X86_64);
    CHECK_EQ_I64(f.c.warnings, 0);
    close_fixture(&f);
    open_text(&f, map_gold);
    CHECK_EQ_U64(count(&f), 1);
    is_row(&f, "_start", 0x5d0, 0x22, HOTFN_SYMBOL_FUNCTION, "a.o");
    close_fixture(&f);
}

static void literals_and_dead_symbols_of_apple_maps_are_skipped(void)
{
    fixture f;

    open_text(&f, map_apple);
    CHECK_EQ_U64(count(&f), 4);
    is_row(&f, "_work", 0x420, 0x10, HOTFN_SYMBOL_FUNCTION, "mo.o");
    is_row(&f, "-[Thing do it]", 0x430, 0x49, HOTFN_SYMBOL_FUNCTION, "mo.o");
    is_row(&f, "_printf", 0x47c, 6, HOTFN_SYMBOL_THUNK, NULL);
    is_row(&f, "_value", 0x2004, 4, HOTFN_SYMBOL_DATA, "mo.o");
    CHECK_EQ_I64(f.c.warnings, 0);
    close_fixture(&f);
}

static void data_is_read_on_request_only(void)
{
    fixture f;

    open_bytes(&f, map_gnu_ld, strlen(map_gnu_ld), 0);
    CHECK_EQ_U64(count(&f), 4);
    CHECK_EQ_U64(row_of(&f, "value").kind, 0);
    close_fixture(&f);
}

/* The same rows are read with \r\n, with a mixture of both, and after a UTF-8 byte order mark. */
static void line_ends_may_be_mixed(void)
{
    const char *from[] = { map_msvc, map_lld, map_gnu_ld, map_apple };
    static char text[3 * sizeof map_gnu_ld + 3 * sizeof map_msvc];

    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        fixture plain, mixed;
        size_t size = 0, lines = 0;
        memcpy(text, "\xef\xbb\xbf", 3);
        size = 3;
        for (const char *at = from[i]; *at; at++) {
            if (*at == '\n' && lines++ % 3) {
                text[size++] = '\r';
            }
            text[size++] = *at;
        }
        open_text(&plain, from[i]);
        open_bytes(&mixed, text, size, HOTFN_SYMBOLS_DATA);
        CHECK_EQ_I64(mixed.status, HOTFN_OK);
        CHECK_EQ_U64(count(&mixed), count(&plain));
        close_fixture(&plain);
        close_fixture(&mixed);
    }
}

static void refused(const char *text, size_t size, uint64_t offset, const char *words)
{
    fixture f;

    open_bytes(&f, text, size, HOTFN_SYMBOLS_DATA);
    CHECK_EQ_I64(f.status, HOTFN_E_FORMAT);
    CHECK_EQ_U64(f.err.offset, offset);
    CHECK_STR(f.err.file, "t.map");
    if (!CHECK(strstr(f.err.text, words) != NULL)) {
        printf("# %s\n", f.err.text);
    }
    CHECK(f.symbols == NULL);
    close_fixture(&f);
}

static void a_file_that_is_not_a_map_is_refused_with_its_offset(void)
{
    static char utf16[2 * sizeof map_apple + 2] = "\xff\xfe";
    size_t cut = (size_t)(strstr(map_gnu_ld, "value") - map_gnu_ld) + 2;

    for (size_t i = 0; i < sizeof map_apple - 1; i++) {
        utf16[2 + 2 * i] = map_apple[i];
    }
    refused("", 0, 0, "empty");
    refused("int main(void) { return 0; }\n", 29, 0, "no linker map");
    refused(utf16, sizeof utf16, 0, "UTF-16");
    refused(utf16 + 2, sizeof utf16 - 2, 0, "UTF-16");
    refused(map_gnu_ld, cut, (uint64_t)(strstr(map_gnu_ld, "value") - map_gnu_ld) - 50,
            "line 34 has no end");
}

static void a_truncated_map_can_be_forced(void)
{
    size_t cut = (size_t)(strstr(map_gnu_ld, "value") - map_gnu_ld) + 2;
    fixture f;

    open_bytes(&f, map_gnu_ld, cut, HOTFN_SYMBOLS_DATA | HOTFN_SYMBOLS_FORCE);
    CHECK_EQ_I64(f.status, HOTFN_OK);
    is_row(&f, "va", 0x3008, 8, HOTFN_SYMBOL_DATA, "b.o");
    close_fixture(&f);
}

static void a_line_beyond_a_mebibyte_is_refused_with_its_number(void)
{
    size_t size = 3u << 20;
    char *text = malloc(size);
    size_t head = strlen(map_lld);

    memset(text, 'x', size);
    memcpy(text, map_lld, head);
    refused(text, size, head, "line 14 is longer than 1 MiB");
    memset(text, 0, size);
    text[0] = text[1] = 'x';
    refused(text, size, 0, "no linker map");
    free(text);
}

static void a_nul_in_a_name_is_refused(void)
{
    char text[sizeof map_lld];
    char *at;

    memcpy(text, map_lld, sizeof map_lld);
    at = strstr(text, "_start");
    at[2] = 0;
    while (*--at != '\n') {
        ;
    }
    refused(text, sizeof map_lld - 1, (uint64_t)(at + 1 - text), "line 6 contains a NUL");
}

/* One warning for each kind of fault, with the line of the first; all other rows are read. */
static void contradictions_are_omitted_and_reported(void)
{
    char text[sizeof map_msvc + 200];
    fixture f;

    snprintf(
        text, sizeof text, "%s%s", map_msvc,
        " 0001:00000030       moved                      00011990 f   a.obj\n"
        " 0001:00000030       \n 0001:00000500       outside                    00011500 f   a.obj\n");
    open_text(&f, text);
    CHECK_EQ_U64(count(&f), 8);
    CHECK_EQ_I64(f.c.warnings, 3);
    CHECK(strstr(f.c.last_log, "contradict") && strstr(f.c.last_log, "line 28"));
    close_fixture(&f);
}

/* Rows may be in any order; a group after a later group is omitted. */
static void backward_rows_are_sorted_and_backward_groups_reported(void)
{
    static const char rows[] =
        "             VMA              LMA     Size Align Out     In      Symbol\n"
        "            1700             1700      193    16 .text\n"
        "            1710             1710       22    16         b.o:(.text)\n"
        "            1710             1710       22     1                 g\n"
        "            1700             1700       10    16         a.o:(.text)\n"
        "            1700             1700       10     1                 f\n";
    char groups[sizeof map_msvc + 100];
    const char *end = strstr(map_msvc, "\n\n  Address");
    fixture f;

    open_text(&f, rows);
    CHECK_EQ_I64(f.c.warnings, 0);
    is_row(&f, "f", 0x700, 0x10, HOTFN_SYMBOL_FUNCTION, "a.o");
    is_row(&f, "g", 0x710, 0x22, HOTFN_SYMBOL_FUNCTION, "b.o");
    close_fixture(&f);
    snprintf(groups, sizeof groups, "%.*s\n 0001:00000010 00000004H .late  CODE%s",
             (int)(end - map_msvc), map_msvc, end);
    open_text(&f, groups);
    CHECK_EQ_I64(f.c.warnings, 1);
    CHECK(strstr(f.c.last_log, "contradict") && strstr(f.c.last_log, "line 11"));
    CHECK_EQ_U64(count(&f), 8);
    close_fixture(&f);
}

static void overlapping_code_is_reported(void)
{
    static const char text[] =
        "             VMA              LMA     Size Align Out     In      Symbol\n"
        "            1700             1700      193    16 .text\n"
        "            1700             1700       22    16         a.o:(.text)\n"
        "            1700             1700       22     1                 f\n"
        "            1710             1710       22    16         b.o:(.text)\n"
        "            1710             1710       22     1                 g\n";
    fixture f;

    open_text(&f, text);
    CHECK_EQ_U64(count(&f), 2);
    CHECK_EQ_I64(f.c.warnings, 1);
    CHECK(strstr(f.c.last_log, "line 5"));
    close_fixture(&f);
}

static const check_test tests[] = {
    CHECK_TEST(a_map_of_msvc_has_flags_statics_and_thunks),
    CHECK_TEST(each_form_of_a_row_of_msvc_is_read),
    CHECK_TEST(lines_of_a_map_are_read),
    CHECK_TEST(invalid_lines_are_omitted_and_reported),
    CHECK_TEST(a_map_of_lld_link_has_no_flags),
    CHECK_TEST(lld_maps_have_sizes_and_mold_maps_have_none),
    CHECK_TEST(maps_of_gnu_ld_and_gold_are_read_behind_their_heading),
    CHECK_TEST(literals_and_dead_symbols_of_apple_maps_are_skipped),
    CHECK_TEST(data_is_read_on_request_only),
    CHECK_TEST(line_ends_may_be_mixed),
    CHECK_TEST(a_file_that_is_not_a_map_is_refused_with_its_offset),
    CHECK_TEST(a_truncated_map_can_be_forced),
    CHECK_TEST(a_line_beyond_a_mebibyte_is_refused_with_its_number),
    CHECK_TEST(a_nul_in_a_name_is_refused),
    CHECK_TEST(contradictions_are_omitted_and_reported),
    CHECK_TEST(backward_rows_are_sorted_and_backward_groups_reported),
    CHECK_TEST(overlapping_code_is_reported),
};

CHECK_MAIN(tests)
