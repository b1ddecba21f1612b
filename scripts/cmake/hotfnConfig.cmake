# SPDX-License-Identifier: MIT
# find_package(hotfn) gives the targets hotfn::hotfn (the shared library) and hotfn::static.  What they
# need to be linked is written once, in hotfn.pc, which is installed beside this folder.
include(CMakeFindDependencyMacro)
find_dependency(PkgConfig)

get_filename_component(_hotfn_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(_hotfn_pkg_config_path "$ENV{PKG_CONFIG_PATH}")
set(ENV{PKG_CONFIG_PATH} "${_hotfn_libdir}/pkgconfig:${_hotfn_pkg_config_path}")
pkg_check_modules(hotfn_pc QUIET IMPORTED_TARGET GLOBAL hotfn)
set(ENV{PKG_CONFIG_PATH} "${_hotfn_pkg_config_path}")
if(NOT hotfn_pc_FOUND)
  set(hotfn_FOUND FALSE)
  set(hotfn_NOT_FOUND_MESSAGE "pkg-config cannot read ${_hotfn_libdir}/pkgconfig/hotfn.pc")
  return()
endif()

if(NOT TARGET hotfn::hotfn)
  add_library(hotfn::hotfn ALIAS PkgConfig::hotfn_pc)
  add_library(hotfn::static STATIC IMPORTED GLOBAL)
  set(_hotfn_libraries ${hotfn_pc_STATIC_LIBRARIES})
  list(REMOVE_ITEM _hotfn_libraries hotfn)
  set_target_properties(hotfn::static PROPERTIES
    IMPORTED_LOCATION "${_hotfn_libdir}/libhotfn.a"
    INTERFACE_INCLUDE_DIRECTORIES "${hotfn_pc_INCLUDE_DIRS}"
    INTERFACE_LINK_OPTIONS "-pthread"
    INTERFACE_LINK_LIBRARIES "${_hotfn_libraries}")
endif()
