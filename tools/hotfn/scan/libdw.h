/* SPDX-License-Identifier: MIT */
/* libdw is loaded when a source line is first needed: loading it and the four libraries it depends
 * on would otherwise take a third of the start time of every command. */
#ifndef HOTFN_TOOL_LIBDW_H
#define HOTFN_TOOL_LIBDW_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

/* clang-format off */
#define LIBDW_CALLS(CALL) \
    CALL(dwarf_attr) \
    CALL(dwarf_attr_integrate) \
    CALL(dwarf_child) \
    CALL(dwarf_filesrc) \
    CALL(dwarf_formstring) \
    CALL(dwarf_formudata) \
    CALL(dwarf_getsrc_die) \
    CALL(dwarf_getsrcfiles) \
    CALL(dwarf_haspc) \
    CALL(dwarf_lineno) \
    CALL(dwarf_linesrc) \
    CALL(dwarf_ranges) \
    CALL(dwarf_siblingof) \
    CALL(dwarf_tag) \
    CALL(dwfl_begin) \
    CALL(dwfl_build_id_find_debuginfo) \
    CALL(dwfl_build_id_find_elf) \
    CALL(dwfl_end) \
    CALL(dwfl_module_build_id) \
    CALL(dwfl_module_getdwarf) \
    CALL(dwfl_module_nextcu) \
    CALL(dwfl_offline_section_address) \
    CALL(dwfl_report_end) \
    CALL(dwfl_report_offline)

#define LIBDW_FIELD(name) __typeof__(name) *name;
typedef struct libdw_calls {
    LIBDW_CALLS(LIBDW_FIELD)
} libdw_calls;
#undef LIBDW_FIELD
/* clang-format on */

/* NULL if libdw cannot be loaded or does not have all of these calls. */
const libdw_calls *libdw_load(void);

#endif
