# SPDX-License-Identifier: MIT
"""Find libhotfn, check its version, and declare every function that it exports.

`lib` is the loaded library with argtypes and restype set.  _errors.py turns statuses into
exceptions.
"""
from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, Iterator, List, Tuple

from . import _structs as s

ABI_VERSION = 1


def _ref(struct: Any) -> Any:
    return POINTER(struct)


# Short names for the table below.  Opaque objects are c_void_p; OUT receives one.
OUT = POINTER(c_void_p)
ERR = _ref(s.Error)
ENV = _ref(s.Env)
STATUS = c_int32
OBJECT = c_void_p
TEXTS = POINTER(c_char_p)
U32S = POINTER(c_uint32)
U64S = POINTER(c_uint64)
U8S = POINTER(c_uint8)

# name: (restype, argtypes).  tests/test_native.py compares them with the headers and src/api.list.
PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    # hotfn/status.h
    "hotfn_status_get_name": (c_char_p, [c_int32]),
    "hotfn_get_abi_version": (c_uint32, []),
    "hotfn_get_version": (c_char_p, []),
    "hotfn_get_struct_bytes": (c_uint32, [c_char_p]),
    # hotfn/env.h
    "hotfn_env_own_memory": (None, [ENV]),
    "hotfn_demangle": (ctypes.c_size_t, [c_char_p, POINTER(ctypes.c_char), ctypes.c_size_t]),
    # hotfn/lowlevel/image.h
    "hotfn_image_open": (STATUS, [OUT, c_char_p, ENV, ERR]),
    "hotfn_image_open_bytes": (STATUS, [OUT, c_void_p, c_uint64, c_char_p, ENV, ERR]),
    "hotfn_image_close": (None, [OBJECT]),
    "hotfn_image_get_info": (STATUS, [OBJECT, _ref(s.ImageInfo)]),
    "hotfn_image_get_section_count": (c_uint32, [OBJECT]),
    "hotfn_image_get_section": (STATUS, [OBJECT, c_uint32, _ref(s.Section)]),
    "hotfn_image_get_bytes": (c_void_p, [OBJECT, c_uint64, U64S]),
    # hotfn/lowlevel/symbols.h
    "hotfn_symbols_load": (STATUS, [OUT, OBJECT, _ref(s.SymbolsOptions), ENV, ERR]),
    "hotfn_symbols_load_pdb": (STATUS, [OUT, c_char_p, OBJECT, _ref(s.SymbolsOptions), ENV, ERR]),
    "hotfn_symbols_pdb_from_bytes": (STATUS, [OUT, c_void_p, c_uint64, c_char_p, OBJECT,
                                              _ref(s.SymbolsOptions), ENV, ERR]),
    "hotfn_symbols_load_map": (STATUS, [OUT, c_char_p, OBJECT, _ref(s.SymbolsOptions), ENV, ERR]),
    "hotfn_symbols_map_from_bytes": (STATUS, [OUT, c_void_p, c_uint64, c_char_p, OBJECT,
                                              _ref(s.SymbolsOptions), ENV, ERR]),
    "hotfn_symbols_destroy": (None, [OBJECT]),
    "hotfn_symbols_get_count": (c_uint32, [OBJECT]),
    "hotfn_symbols_get": (STATUS, [OBJECT, c_uint32, _ref(s.Symbol)]),
    "hotfn_symbols_get_info": (STATUS, [OBJECT, _ref(s.SymbolsInfo)]),
    "hotfn_symbols_find_frame": (STATUS, [OBJECT, c_uint64, c_uint32, _ref(s.SourceFrame)]),
    "hotfn_symbols_find_line": (STATUS, [OBJECT, c_uint64, _ref(s.SourceLine)]),
    "hotfn_exports_load": (STATUS, [OUT, OBJECT, _ref(s.SymbolsOptions), ENV, ERR]),
    "hotfn_exports_destroy": (None, [OBJECT]),
    "hotfn_exports_get_count": (c_uint32, [OBJECT]),
    "hotfn_exports_get": (STATUS, [OBJECT, c_uint32, _ref(s.Exported)]),
    # hotfn/lowlevel/functions.h
    "hotfn_functions_build": (STATUS, [OUT, OBJECT, OBJECT, ENV, ERR]),
    "hotfn_functions_destroy": (None, [OBJECT]),
    "hotfn_functions_get_count": (c_uint32, [OBJECT]),
    "hotfn_functions_get": (STATUS, [OBJECT, c_uint32, _ref(s.Function)]),
    "hotfn_functions_get_name": (c_char_p, [OBJECT, c_uint32, c_uint32]),
    "hotfn_functions_get_coverage": (None, [OBJECT, POINTER(c_uint64), POINTER(c_uint64)]),
    "hotfn_functions_find": (c_uint32, [OBJECT, c_uint64]),
    "hotfn_functions_select": (STATUS, [OBJECT, _ref(s.Selection), U8S, TEXTS, ERR]),
    "hotfn_glob_match": (c_int32, [c_char_p, c_char_p]),
    # hotfn/lowlevel/lists.h
    "hotfn_list_create": (STATUS, [OUT, OBJECT, ENV, ERR]),
    "hotfn_list_add": (STATUS, [OBJECT, _ref(s.ListEntry), ERR]),
    "hotfn_list_save": (STATUS, [OBJECT, c_char_p, c_uint32, ERR]),
    "hotfn_list_open": (STATUS, [OUT, c_char_p, ENV, ERR]),
    "hotfn_list_from_bytes": (STATUS, [OUT, c_void_p, c_uint64, c_char_p, ENV, ERR]),
    "hotfn_list_destroy": (None, [OBJECT]),
    "hotfn_list_get_info": (STATUS, [OBJECT, _ref(s.ListInfo)]),
    "hotfn_list_get": (STATUS, [OBJECT, c_uint32, _ref(s.ListEntry)]),
    # hotfn/lowlevel/verdicts.h
    "hotfn_verdicts_find_functions": (STATUS, [OBJECT, OBJECT, c_uint32, ENV, ERR]),
    "hotfn_verdicts_create": (STATUS, [OUT, OBJECT, OBJECT, _ref(s.VerdictsOptions), ENV, ERR]),
    "hotfn_verdicts_destroy": (None, [OBJECT]),
    "hotfn_verdicts_get_count": (c_uint32, [OBJECT]),
    "hotfn_verdicts_get": (STATUS, [OBJECT, c_uint32, _ref(s.Verdict)]),
    "hotfn_strategy_get_name": (c_char_p, [c_uint32]),
    "hotfn_reason_get_name": (c_char_p, [c_uint32]),
    "hotfn_reason_get_text": (c_char_p, [c_uint32]),
    # hotfn/lowlevel/hooks.h
    "hotfn_plan_build": (STATUS, [OUT, OBJECT, OBJECT, OBJECT, ENV, ERR]),
    "hotfn_plan_open": (STATUS, [OUT, c_void_p, c_uint64, c_uint32, ENV, ERR]),
    "hotfn_plan_destroy": (None, [OBJECT]),
    "hotfn_plan_get_info": (STATUS, [OBJECT, _ref(s.PlanInfo)]),
    "hotfn_plan_get": (STATUS, [OBJECT, c_uint32, _ref(s.PlanEntry)]),
    "hotfn_hooks_create": (STATUS, [OUT, _ref(s.HookOptions), _ref(s.RowAccess), ENV, ERR]),
    "hotfn_hooks_replace": (STATUS, [POINTER(c_void_p), OBJECT, c_void_p, c_void_p,
                                     _ref(s.ReplaceOptions), ERR]),
    "hotfn_hooks_filter": (STATUS, [OBJECT, c_void_p, s.FilterFn, c_void_p, _ref(s.ReplaceOptions),
                                    ERR]),
    "hotfn_hooked_call_get_argument": (c_uint64, [c_void_p, c_uint32]),
    "hotfn_hooked_call_set_result": (None, [c_void_p, c_uint64]),
    "hotfn_hooks_add_module": (STATUS, [OBJECT, OBJECT, c_uint64, U32S, U32S, ERR]),
    "hotfn_hooks_add": (STATUS, [OBJECT, OBJECT, c_uint64, c_uint32, _ref(s.HookAction), U32S,
                                 ERR]),
    "hotfn_hooks_commit": (STATUS, [OBJECT, _ref(s.CommitStats), ERR]),
    "hotfn_hooks_each_refused": (None, [OBJECT, s.RefusedFn, c_void_p]),
    "hotfn_hooks_remove": (STATUS, [OBJECT, ERR]),
    "hotfn_hooks_forget_module": (None, [OBJECT, c_uint32]),
    "hotfn_hooks_destroy": (None, [OBJECT]),
    "hotfn_hooks_find_fde": (c_void_p, [OBJECT, c_uint64, U64S]),
    "hotfn_hooks_find_region": (c_int32, [OBJECT, c_uint64, _ref(s.StubRegion)]),
    "hotfn_hooks_get_region_count": (c_uint32, [OBJECT]),
    "hotfn_hooks_get_region": (STATUS, [OBJECT, c_uint32, _ref(s.StubRegion)]),
    "hotfn_hooks_debug_objects": (c_uint32, [OBJECT, POINTER(c_void_p), U64S, c_uint32]),
    "hotfn_hooks_each_stub": (None, [OBJECT, s.StubFn, c_void_p]),
    # hotfn/lowlevel/counters.h
    "hotfn_counters_create": (STATUS, [OUT, c_uint32, c_uint32, ENV, ERR]),
    "hotfn_counters_destroy": (None, [OBJECT]),
    "hotfn_counters_get_access": (STATUS, [OBJECT, _ref(s.RowAccess)]),
    "hotfn_counters_sum": (STATUS, [OBJECT, c_uint32, c_uint32, U64S]),
    "hotfn_counters_pause": (c_void_p, []),
    "hotfn_counters_resume": (None, [c_void_p]),
    "hotfn_counters_fork_prepare": (None, [OBJECT]),
    "hotfn_counters_fork_parent": (None, [OBJECT]),
    "hotfn_counters_fork_child": (None, [OBJECT]),
    # hotfn/record.h, hotfn/lowlevel/timing.h, hotfn/lowlevel/budget.h
    "hotfn_is_allocator": (c_int32, [c_char_p]),
    "hotfn_record_get_time_info": (STATUS, [OBJECT, _ref(s.RecordTimeInfo)]),
    "hotfn_record_get_timing": (STATUS, [OBJECT, c_uint32, _ref(s.RecordTiming)]),
    "hotfn_record_get_edge": (STATUS, [OBJECT, c_uint32, _ref(s.RecordEdge)]),
    "hotfn_record_get_node": (STATUS, [OBJECT, c_uint32, _ref(s.RecordNode)]),
    "hotfn_record_get_slow_call": (STATUS, [OBJECT, c_uint32, _ref(s.RecordSlowCall)]),
    "hotfn_record_get_event": (STATUS, [OBJECT, c_uint64, _ref(s.RecordEvent)]),
    "hotfn_record_get_thread_timings": (STATUS, [OBJECT, c_uint32, _ref(s.RecordThreadTiming), c_uint32, c_uint32,
                                                 U32S]),
    "hotfn_record_get_histogram": (STATUS, [OBJECT, c_uint32, POINTER(c_uint64)]),
    "hotfn_record_get_bucket_ns": (c_double, [OBJECT, c_uint32]),
    "hotfn_record_get_budget": (STATUS, [OBJECT, _ref(s.RecordBudget)]),
    "hotfn_record_get_change": (STATUS, [OBJECT, c_uint32, _ref(s.RecordChange)]),
    "hotfn_record_get_budget_state": (c_uint32, [OBJECT, c_uint32]),
    "hotfn_record_open": (STATUS, [OUT, c_char_p, ENV, ERR]),
    "hotfn_record_close": (None, [OBJECT]),
    "hotfn_record_get_info": (STATUS, [OBJECT, _ref(s.RecordInfo)]),
    "hotfn_record_get_module": (STATUS, [OBJECT, c_uint32, _ref(s.RecordModule)]),
    "hotfn_record_get_function": (STATUS, [OBJECT, c_uint32, _ref(s.RecordFunction)]),
    "hotfn_record_get_thread": (STATUS, [OBJECT, c_uint32, _ref(s.RecordThread)]),
    "hotfn_record_choose_process": (STATUS, [OBJECT, c_uint32]),
    "hotfn_record_choose_thread": (STATUS, [OBJECT, c_uint32]),
    "hotfn_record_get_display_name": (STATUS, [OBJECT, c_uint32, POINTER(ctypes.c_char), ctypes.c_size_t]),
    "hotfn_record_get_names": (STATUS, [OBJECT, c_uint32, c_uint32, U32S, POINTER(ctypes.c_char), U64S]),
    "hotfn_record_get_array": (STATUS, [OBJECT, c_uint32, c_uint32, c_uint32, c_void_p, c_uint32]),
    "hotfn_record_find_function": (STATUS, [OBJECT, c_char_p, U32S, ERR]),
    "hotfn_record_find_function_at": (STATUS, [OBJECT, c_uint32, c_uint64, U32S]),
    "hotfn_record_get_caller_count": (c_uint32, [OBJECT, c_uint32]),
    "hotfn_record_get_child": (STATUS, [OBJECT, c_uint32, _ref(s.RecordChild)]),
    "hotfn_record_get_caller": (STATUS, [OBJECT, c_uint32, c_uint32, _ref(s.RecordCaller)]),
    "hotfn_record_sort": (STATUS, [OBJECT, c_uint32, U32S, c_uint32]),
    "hotfn_machine_get_name": (c_char_p, [c_uint32]),
    "hotfn_record_get_state_name": (c_char_p, [c_uint32]),
    "hotfn_record_repair": (STATUS, [c_char_p, c_char_p, POINTER(ctypes.c_char), ctypes.c_size_t,
                                     ENV, ERR]),
    "hotfn_record_merge": (STATUS, [TEXTS, c_uint32, c_char_p, c_uint32, ENV, ERR]),
    # hotfn/export.h
    "hotfn_exporter_get_count": (c_uint32, []),
    "hotfn_exporter_get": (STATUS, [c_uint32, _ref(s.ExporterInfo)]),
    "hotfn_exporter_register": (STATUS, [_ref(s.Exporter), ERR]),
    "hotfn_export": (STATUS, [OBJECT, c_char_p, _ref(s.ExportOptions), s.WriteFn, c_void_p, ENV,
                              ERR]),
    "hotfn_fold_name": (None, [c_char_p, c_uint32]),
    # hotfn/lowlevel/scan.h
    "hotfn_scan_open": (STATUS, [OUT, c_char_p, _ref(s.ScanOptions), ENV, ERR]),
    "hotfn_scan_close": (None, [OBJECT]),
    "hotfn_scan_save": (STATUS, [OBJECT, c_char_p, ERR]),
    "hotfn_scan_load": (STATUS, [OUT, c_char_p, c_char_p, ENV, ERR]),
    "hotfn_scan_get_info": (STATUS, [OBJECT, _ref(s.ScanInfo)]),
    "hotfn_scan_get_function": (STATUS, [OBJECT, c_uint32, _ref(s.RecordFunction)]),
    "hotfn_scan_find_listed": (STATUS, [OBJECT, OBJECT, U64S, c_uint32, POINTER(c_uint32), ENV, ERR]),
    # hotfn/zone.h
    "hotfn_zone_begin": (None, [_ref(s.Zone), OBJECT, c_char_p]),
    "hotfn_zone_end": (None, [_ref(s.Zone)]),
    "hotfn_zone_add_message": (STATUS, [OBJECT, c_char_p, ERR]),
    "hotfn_thread_set_name": (STATUS, [c_char_p, ERR]),
    # hotfn/session.h
    "hotfn_session_create": (STATUS, [OUT, _ref(s.SessionOptions), ENV, ERR]),
    "hotfn_session_start": (STATUS, [OBJECT, ERR]),
    "hotfn_session_snapshot": (STATUS, [OUT, OBJECT, ERR]),
    "hotfn_session_save": (STATUS, [OBJECT, c_char_p, ERR]),
    "hotfn_session_stop": (STATUS, [OBJECT, ERR]),
    "hotfn_session_get_stats": (STATUS, [OBJECT, _ref(s.SessionStats)]),
    "hotfn_session_switch_group": (STATUS, [OBJECT, c_char_p, c_uint32, ERR]),
    "hotfn_session_destroy": (None, [OBJECT]),
    "hotfn_session_get_hooks": (c_void_p, [OBJECT]),

    # hotfn/frame.h
    "hotfn_frame_create": (STATUS, [OUT, OBJECT, _ref(s.FrameOptions), ENV, ERR]),
    "hotfn_frame_next": (STATUS, [OBJECT, _ref(s.FrameInfo), ERR]),
    "hotfn_frame_get_function": (STATUS, [OBJECT, c_uint32, _ref(s.RecordFunction), _ref(s.RecordModule)]),
    "hotfn_frame_get_times": (STATUS, [OBJECT, c_uint32, _ref(s.FrameTimes)]),
    "hotfn_frame_get_thread_times": (STATUS, [OBJECT, c_uint32, c_uint32, _ref(s.FrameTimes)]),
    "hotfn_frame_save": (STATUS, [OBJECT, c_char_p, ERR]),
    "hotfn_frame_destroy": (None, [OBJECT]),
    # hotfn/launch.h
    "hotfn_events_open": (STATUS, [_ref(s.EventsHeader), c_void_p, c_uint64]),
    "hotfn_events_next": (STATUS, [_ref(s.EventsItem), POINTER(c_uint64), c_void_p, c_uint64]),
    "hotfn_listener_open": (STATUS, [OUT, c_char_p, c_uint32, ENV, ERR]),
    "hotfn_listener_close": (None, [OBJECT]),
    "hotfn_listener_get_address": (c_char_p, [OBJECT]),
    "hotfn_listener_receive": (STATUS, [OBJECT, c_uint64, s.ListenerFn, c_void_p, ERR]),
    "hotfn_listener_add": (STATUS, [OBJECT, c_void_p, c_uint64, s.ListenerFn, c_void_p]),
    "hotfn_listener_get_stats": (STATUS, [OBJECT, _ref(s.ListenerStats)]),
    "hotfn_listener_save": (STATUS, [OBJECT, c_uint32, c_char_p, ERR]),
    "hotfn_launch_start": (STATUS, [OUT, _ref(s.LaunchOptions), ENV, ERR]),
    "hotfn_launch_attach": (STATUS, [OUT, c_uint32, _ref(s.LaunchOptions), ENV, ERR]),
    "hotfn_launch_check_attach": (STATUS, [c_uint32, s.AttachCheckFn, c_void_p, ENV, ERR]),
    "hotfn_launch_detach": (STATUS, [OBJECT, ERR]),
    "hotfn_launch_release": (STATUS, [c_uint32, c_char_p, POINTER(c_uint64), ENV, ERR]),
    "hotfn_launch_wait": (STATUS, [OBJECT, c_uint64, ERR]),
    "hotfn_launch_get_info": (STATUS, [OBJECT, _ref(s.LaunchInfo)]),
    "hotfn_launch_finish": (STATUS, [OBJECT, ERR]),
    "hotfn_launch_open_record": (STATUS, [OUT, OBJECT, ERR]),
    "hotfn_launch_switch": (STATUS, [OBJECT, _ref(s.SwitchOrder), _ref(s.SwitchResult), ERR]),
    "hotfn_switch_functions": (STATUS, [c_char_p, c_uint32, _ref(s.SwitchOrder), _ref(s.SwitchResult), ENV, ERR]),
    "hotfn_launch_find_remaining": (c_uint32, [U32S, OBJECT, c_uint32]),
    "hotfn_launch_counts_process": (c_int32, [OBJECT, c_uint32]),
    "hotfn_launch_find_family": (c_uint32, [U32S, U64S, c_uint32, c_uint32]),
    "hotfn_launch_destroy": (None, [OBJECT]),
    "hotfn_launch_find_agent": (STATUS, [POINTER(ctypes.c_char), c_uint64, c_uint32, ERR]),
    "hotfn_launch_find_record": (STATUS, [POINTER(ctypes.c_char), c_uint64, c_uint32, ERR]),
    "hotfn_launch_choose_ticker": (c_uint32, []),
    # hotfn/lowlevel/json.h
    "hotfn_json_create_object": (OBJECT, []),
    "hotfn_json_create_array": (OBJECT, []),
    "hotfn_json_create_text": (OBJECT, [c_char_p]),
    "hotfn_json_create_number": (OBJECT, [c_uint64]),
    "hotfn_json_create_signed": (OBJECT, [c_int64]),
    "hotfn_json_create_decimal": (OBJECT, [c_double, c_uint32]),
    "hotfn_json_create_bool": (OBJECT, [c_int32]),
    "hotfn_json_create_raw": (OBJECT, [c_char_p]),
    "hotfn_json_add": (None, [OBJECT, c_char_p, OBJECT]),
    "hotfn_json_destroy": (None, [OBJECT]),
    "hotfn_json_writer_create": (STATUS, [OUT, c_uint32, s.WriteFn, c_void_p]),
    "hotfn_json_writer_destroy": (STATUS, [OBJECT]),
    "hotfn_json_begin_object": (None, [OBJECT, c_char_p]),
    "hotfn_json_begin_array": (None, [OBJECT, c_char_p]),
    "hotfn_json_end": (None, [OBJECT]),
    "hotfn_json_write": (None, [OBJECT, c_char_p, OBJECT]),
}


def library_names() -> Tuple[str, ...]:
    """File names of the library on this system, the most specific one first."""
    if sys.platform == "win32":
        return ("hotfn.dll",)
    return ("libhotfn.so.0", "libhotfn.so")


def candidates() -> Iterator[str]:
    """Paths to try, in order; only HOTFN_LIBRARY if it is set."""
    chosen = os.environ.get("HOTFN_LIBRARY")
    if chosen:
        yield chosen
        return
    folder = os.path.dirname(os.path.abspath(__file__))
    for name in library_names():
        yield os.path.join(folder, name)
    yield library_names()[0]
    found = ctypes.util.find_library("hotfn")
    if found:
        yield found


def check_version(library: ctypes.CDLL) -> None:
    """Raise ImportError unless the library has the ABI version of this package."""
    try:
        version = library.hotfn_get_abi_version()
    except AttributeError:
        raise ImportError("it is not libhotfn: hotfn_get_abi_version is missing") from None
    if version != ABI_VERSION:
        raise ImportError(f"its ABI version is {version}, this package needs {ABI_VERSION}")


def declare(library: ctypes.CDLL) -> None:
    """Set argtypes and restype of every function; raise ImportError if a function is missing."""
    for name, (result, arguments) in PROTOTYPES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"it lacks {name}: it is older than this package") from None
        function.restype = result
        function.argtypes = arguments


def check_sizes(library: ctypes.CDLL) -> None:
    """Raise ImportError if a struct has another size in the library.

    A struct that begins with its size may be larger there, because fields are only appended.
    """
    for name, struct in s.all_structs().items():
        found, expected = library.hotfn_get_struct_bytes(name.encode()), ctypes.sizeof(struct)
        may_grow = issubclass(struct, s.Sized)
        if found != expected and not (may_grow and found > expected):
            raise ImportError(f"its {name} has {found} bytes, this package expects {expected}")


def _load_demangler() -> None:
    """Load the C++ library, whose demangler libhotfn uses; without it names stay mangled.

    libhotfn refers to __cxa_demangle by a weak symbol, which is bound when libhotfn is loaded.
    """
    if sys.platform == "win32":
        return
    try:
        ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        pass


def _open(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    check_version(library)
    declare(library)
    check_sizes(library)
    return library


def _find_libc_problem() -> str:
    """Why the library of a wheel cannot run with this system's libc; "" if it can, and outside a wheel."""
    try:
        from ._built_for import GLIBC  # type: ignore[import-not-found]  # only wheels have it
    except ImportError:
        return ""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        name, version = "", ""
    if name == "glibc" and tuple(int(part) for part in version.split(".")[:2]) >= GLIBC:
        return ""
    found = f"glibc {version}" if name == "glibc" else "another C library"
    return (f"this wheel of hotfn needs glibc {GLIBC[0]}.{GLIBC[1]} or newer, but this system has {found}; "
            "build libhotfn from its source on this system and set HOTFN_LIBRARY to its file")


def load() -> ctypes.CDLL:
    """Load the first suitable candidate; raise ImportError with all paths and reasons if there is none."""
    problem_text = "" if os.environ.get("HOTFN_LIBRARY") else _find_libc_problem()
    if problem_text:
        raise ImportError(problem_text)
    _load_demangler()
    tried = []
    for path in candidates():
        try:
            return _open(path)
        except (OSError, ImportError) as problem:
            tried.append(f"  {path}: {problem}")
    raise ImportError("libhotfn cannot be loaded; set HOTFN_LIBRARY to its file.  Tried:\n"
                      + "\n".join(tried))


lib = load()
