/* SPDX-License-Identifier: MIT */
/* A small map of each kind, in the form in which the linker writes it. */
#ifndef HFN_TESTS_MAP_SAMPLES_H
#define HFN_TESTS_MAP_SAMPLES_H

static const char map_msvc[] =
    " game\n\n Timestamp is 5ecf2155 (Thu May 28 11:26:29 2020)\n\n"
    " Preferred load address is 00010000\n\n"
    " Start         Length     Name                   Class\n"
    " 0001:00000000 00000400H .text                   CODE\n"
    " 0001:00000400 00000020H .text$yc                CODE\n"
    " 0002:00000000 00000100H .rdata                  DATA\n\n"
    "  Address         Publics by Value              Rva+Base       Lib:Object\n\n"
    " 0000:00000000       ___safe_se_handler_count   00000000     <absolute>\n"
    " 0001:00000000       ?ChangeState@DIAG_AppManager@@QAAXW4E_DIAG_APP_STATE@@@Z 00011000 f   a.obj\n"
    " 0001:00000040       ??_EThing@@UAAPAXI@Z       00011040 f i  CIL library: CIL module\n"
    " 0001:00000040       ??_GThing@@UAAPAXI@Z       00011040 f i  a.obj\n"
    " 0001:00000060       UpdateWindow               00011060 f   coredll:COREDLL.dll\n"
    " 0001:00000070       __gsfailure                00011070     corelibc:armsecgs.obj\n"
    " 0001:00000410       ??__Ething@@YAXXZ          00011410 f   a.obj\n"
    " 0002:00000010       ?table@@3PAHA              00012010     a.obj\n\n"
    " entry point at        0001:00000070\n\n"
    " Static symbols\n\n"
    " 0001:00000020       helper                     00011020 f   a.obj\n";

/* A map of an old linker, with /MAPINFO:LINES. */
static const char map_msvc_lines[] =
    " Game\n\n Timestamp is 3b9f1c00 (Wed Sep 12 10:24:32 2001)\n\n"
    " Preferred load address is 00400000\n\n"
    " Start         Length     Name                   Class\n"
    " 0001:00000000 00000100H .text                   CODE\n\n"
    "  Address         Publics by Value              Rva+Base     Lib:Object\n\n"
    " 0001:00000000       ?first@@YAHH@Z             00401000 f   Game.obj\n"
    " 0001:00000030       ?second@@YAHH@Z            00401030 f   Game.obj\n"
    " 0001:00000060       _without                   00401060 f   other.obj\n\n"
    " entry point at        0001:00000000\n\n"
    "Line numbers for .\\Release\\Game.obj(C:\\Old (x86)\\Game.cpp) segment .text\n\n"
    "    12 0001:00000000    13 0001:00000006    15 0001:00000020    14 0001:00000006\n"
    "    22 0001:00000034\n\n"
    "Line numbers for .\\Release\\Game.obj(C:\\Old (x86)\\inline.h) segment .text\n\n"
    "     7 0001:00000030\n\n"
    " FIXUPS: 401004 3 9 12\n";

static const char map_lld_link[] =
    " f_x86\n\n Timestamp is 6b018bbd (Sat Nov 21 12:17:01 2026)\n\n"
    " Preferred load address is 0000000000400000\n\n"
    " Start         Length     Name                   Class\n"
    " 0001:00000000 00000058H .text                   CODE\n"
    " 0003:00000000 00000008H .data                   DATA\n\n"
    "  Address         Publics by Value              Rva+Base               Lib:Object\n\n"
    " 0001:00000000       _work                      0000000000401000     f_x86.obj\n"
    " 0003:00000000       _value                     0000000000403000     f_x86.obj\n\n"
    " entry point at         0001:00000027\n\n Static symbols\n\n"
    " 0001:0000000d       _helper                    000000000040100d     f_x86.obj\n";

static const char map_lldmap[] = "Address  Size     Align Out     In      Symbol\n"
                                 "00001000 00000063  4096 .text\n"
                                 "00001000 00000011     1         f_x64.obj:(.text)\n"
                                 "00001000 00000000     0                 work\n"
                                 "00001011 0000000f     1         f_x64.obj:(.text)\n"
                                 "00001011 00000000     0                 helper\n"
                                 "00003000 00000038  4096 .data\n"
                                 "00003000 00000008     4         f_x64.obj:(.data)\n"
                                 "00003000 00000000     0                 value\n";

static const char map_lld[] =
    "             VMA              LMA     Size Align Out     In      Symbol\n"
    "          2002a8           2002a8       1c     1 .interp\n"
    "          2002a8           2002a8       1c     1         <internal>:(.interp)\n"
    "          201700           201700      193    16 .text\n"
    "          201700           201700       22    16         a.o:(.text)\n"
    "          201700           201700       22     1                 _start\n"
    "          201730           201730       b9    16         b.o:(.text)\n"
    "          201730           201730        0     1                 space::thing::get() const\n"
    "          203000           203000        8     8 .tdata\n"
    "          203000           203000        8     8         a.o:(.tdata)\n"
    "          203000           203000        8     1                 per_thread\n"
    "               0                0       45     1 .comment\n"
    "               0                0       45     1         <internal>:(.comment)\n";

static const char map_mold[] = "               VMA       Size Align Out     In      Symbol\n"
                               "                 0         64     8 EHDR\n"
                               "            0x1690        403    16 .text\n"
                               "            0x1690         34    16         a.o:(.text)\n"
                               "            0x1690          0     0                 _start\n"
                               "            0x3a68         24     8 .data\n"
                               "            0x3a78          8     4         b.o:(.data)\n"
                               "            0x3a78          0     0                 value\n";

static const char map_gnu_ld[] =
    "Archive member included to satisfy reference by file (symbol)\n\n"
    "libm.a(s_atan.o)              a.o (atan)\n\n"
    "Discarded input sections\n\n"
    " .text          0x0000000000000000       0x10 gone.o\n"
    "                0x0000000000000000                gone\n\n"
    "Linker script and memory map\n\n"
    "LOAD a.o\n"
    "                [!provide]                        PROVIDE (__executable_start = .)\n"
    "                0x0000000000400270                . = (SEGMENT_START (\"text-segment\", "
    "0x400000) + SIZEOF_HEADERS)\n\n"
    ".plt            0x0000000000401020       0x20\n"
    " .plt           0x0000000000401020       0x20 crt1.o\n"
    "                0x0000000000401030                printf@@GLIBC_2.2.5\n\n"
    ".text           0x0000000000401050      0x193\n"
    " *(.text.unlikely .text.*_unlikely)\n"
    " .text          0x0000000000401050       0x22 a.o\n"
    "                0x0000000000401050                _start\n"
    " *fill*         0x0000000000401072        0xe \n"
    " .text._ZNK5space5thing3getEv\n"
    "                0x0000000000401080        0x3 b.o\n"
    "                0x0000000000401080                space::thing::get() const\n"
    "                0x0000000000401083                operator new(unsigned long)\n"
    "                [!provide]                        PROVIDE (etext = .)\n\n"
    ".data           0x0000000000403000       0x10\n"
    "                0x0000000000403000        0x4 LONG 0x0\n"
    " .data          0x0000000000403008        0x8 b.o\n"
    "                0x0000000000403008                value\n"
    "                0x0000000000403010                _edata = .\n"
    "                0x0000000000001000                __stack_size = 0x1000\n\n"
    ".comment        0x0000000000000000       0x27\n"
    " .comment       0x0000000000000000       0x27 a.o\n"
    "OUTPUT(game elf64-x86-64)\n\n"
    "Cross Reference Table\n\nSymbol                                            File\n"
    "printf                                            libc.so.6\n";

static const char map_gold[] = "Discarded input sections\n\nMemory map\n\n"
                               " ** file header\n"
                               "                0x0000000000000000       0x40\n\n"
                               ".text           0x00000000000005d0      0x193\n"
                               " .text          0x00000000000005d0       0x22 a.o\n"
                               "                0x00000000000005d0                _start\n"
                               " ** fill        0x00000000000005f2        0xe\n";

static const char map_apple[] = "# Path: m.exe\n# Arch: x86_64\n# Object files:\n"
                                "[  0] linker synthesized\n[  1] mo.o\n"
                                "# Sections:\n# Address\tSize    \tSegment\tSection\n"
                                "0x100000420\t0x00000059\t__TEXT\t__text\n"
                                "0x10000047C\t0x00000006\t__TEXT\t__stubs\n"
                                "0x100000482\t0x00000020\t__TEXT\t__cstring\n"
                                "0x100002000\t0x00000008\t__DATA\t__data\n"
                                "# Symbols:\n# Address\tSize    \tFile  Name\n"
                                "0x100000420\t0x00000010\t[  1] _work\n"
                                "0x100000430\t0x00000049\t[  1] -[Thing do it]\n"
                                "0x10000047C\t0x00000006\t[  0] _printf\n"
                                "0x100000482\t0x00000006\t[  1] literal string: hello\n"
                                "0x100002004\t0x00000004\t[  1] _value\n\n"
                                "# Dead Stripped Symbols:\n#        \tSize    \tFile  Name\n"
                                "<<dead>> \t0x00000008\t[  1] _gone\n";

static const struct map_sample {
    const char *name, *text;
} map_samples[] = {
    { "msvc", map_msvc },         { "msvc_lines", map_msvc_lines },
    { "lld_link", map_lld_link }, { "lldmap", map_lldmap },
    { "lld", map_lld },           { "mold", map_mold },
    { "gnu_ld", map_gnu_ld },     { "gold", map_gold },
    { "apple", map_apple },
};

#endif
