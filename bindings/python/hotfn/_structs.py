# SPDX-License-Identifier: MIT
"""The public structs of include/hotfn/*.h, field by field, in the order of the headers.

They are checked twice: their sizes by hotfn_get_struct_bytes() when the library is loaded, and each
field by tests/test_structs.py, which compiles a C program.
"""
from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char,
    c_char_p,
    c_double,
    c_int32,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Dict, List, Type

NO_OFFSET = 2**64 - 1
NO_INDEX = 2**32 - 1

# Callbacks.  A pointer that Python only passes on is a c_void_p.
ReallocFn = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t, c_size_t)
LogFn = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
DemangleFn = CFUNCTYPE(c_size_t, c_void_p, c_char_p, POINTER(c_char), c_size_t)
DecompressFn = CFUNCTYPE(c_void_p, c_void_p, c_int32, c_void_p, c_size_t, c_size_t, ReallocFn,
                         c_void_p, POINTER(c_size_t))
LineFn = CFUNCTYPE(c_int32, c_void_p, c_char_p, POINTER(c_uint8), c_uint32, c_uint64, POINTER(c_char),
                   c_size_t, POINTER(c_uint32))
InlinedFn = CFUNCTYPE(c_int32, c_void_p, c_char_p, POINTER(c_uint8), c_uint32, c_uint64, c_uint32, POINTER(c_char),
                    c_size_t, POINTER(c_char), c_size_t, POINTER(c_uint32))
WriteFn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_size_t)
ActionFn = CFUNCTYPE(None, c_void_p)
SlowPathFn = CFUNCTYPE(None)
AttachCheckFn = CFUNCTYPE(None, c_void_p, c_char_p, c_int32, c_char_p)
FilterFn = CFUNCTYPE(c_int32, c_void_p, c_void_p)
RefusedFn = CFUNCTYPE(None, c_void_p, c_uint32, c_uint32, c_uint32, c_uint32)
StubFn = CFUNCTYPE(None, c_void_p, c_uint64, c_uint32, c_uint32, c_uint32)

Id = c_uint8 * 32


class Sized(ctypes.Structure):
    """A struct that begins with its size in bytes; all other fields are 0 unless given."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(self), **fields)


# hotfn/status.h
class Error(Sized):
    _fields_ = [("size", c_uint32), ("status", c_int32), ("offset", c_uint64),
                ("file", c_char * 256), ("text", c_char * 512)]

    def __init__(self) -> None:
        super().__init__(offset=NO_OFFSET)


# hotfn/env.h
class Progress(Sized):
    _fields_ = [("size", c_uint32), ("reserved", c_uint32), ("action", c_char_p), ("file", c_char_p),
                ("done", c_uint64), ("total", c_uint64)]


DebugFileFn = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, c_void_p, c_uint32, c_void_p, c_size_t)
ProgressFn = ctypes.CFUNCTYPE(None, c_void_p, ctypes.POINTER(Progress))


class Env(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32),
                ("realloc_fn", ReallocFn), ("realloc_user", c_void_p),
                ("log_fn", LogFn), ("log_user", c_void_p),
                ("demangle_fn", DemangleFn), ("demangle_user", c_void_p),
                ("decompress_fn", DecompressFn), ("decompress_user", c_void_p),
                ("line_fn", LineFn), ("line_user", c_void_p),
                ("inlined_fn", InlinedFn), ("inlined_user", c_void_p),
                ("progress_fn", ProgressFn), ("progress_user", c_void_p),
                ("debug_file_fn", DebugFileFn), ("debug_file_user", c_void_p)]


# hotfn/lowlevel/image.h
class ImageInfo(Sized):
    _fields_ = [("size", c_uint32), ("format", c_uint32), ("machine", c_uint32),
                ("raw_machine", c_uint32), ("bits", c_uint32), ("flags", c_uint32),
                ("link_base", c_uint64), ("loaded_bytes", c_uint64), ("entry_rva", c_uint64),
                ("id_kind", c_uint32), ("id_bytes", c_uint32), ("id", Id),
                ("path", c_char_p), ("interpreter", c_char_p)]


class Section(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("name", c_char_p), ("rva", c_uint64),
                ("byte_count", c_uint64), ("file_offset", c_uint64), ("file_bytes", c_uint64)]


# hotfn/lowlevel/symbols.h
class Symbol(Sized):
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("source", c_uint32), ("flags", c_uint32),
                ("rva", c_uint64), ("byte_count", c_uint64), ("name", c_char_p), ("module", c_char_p)]


class SymbolsOptions(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("symbol_dirs", POINTER(c_char_p)),
                ("symbol_dir_count", c_uint32), ("reserved", c_uint32)]


class SymbolsInfo(Sized):
    _fields_ = [("size", c_uint32), ("source", c_uint32), ("machine", c_uint32),
                ("id_kind", c_uint32), ("id_bytes", c_uint32), ("flags", c_uint32),
                ("id", c_uint8 * 32), ("path", c_char_p), ("format", c_char_p)]


class SourceLine(Sized):
    _fields_ = [("size", c_uint32), ("line", c_uint32), ("rva", c_uint64),
                ("byte_count", c_uint64), ("file", c_char_p)]


class SourceFrame(Sized):
    _fields_ = [("size", c_uint32), ("line", c_uint32), ("function", c_char_p), ("file", c_char_p)]


class Exported(Sized):
    _fields_ = [("size", c_uint32), ("ordinal", c_uint32), ("rva", c_uint64), ("name", c_char_p),
                ("forward", c_char_p), ("target_path", c_char_p), ("target_rva", c_uint64)]


# hotfn/lowlevel/functions.h
class Function(Sized):
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("flags", c_uint32),
                ("name_count", c_uint32), ("rva", c_uint64), ("byte_count", c_uint64),
                ("name", c_char_p), ("fde_cfa_offset", c_int32), ("section", c_uint32)]


class Selection(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("include", POINTER(c_char_p)),
                ("exclude", POINTER(c_char_p)), ("include_count", c_uint32),
                ("exclude_count", c_uint32), ("min_bytes", c_uint64), ("max_bytes", c_uint64)]


# hotfn/lowlevel/lists.h
class ListEntry(Sized):
    _fields_ = [("size", c_uint32), ("index", c_uint32), ("rva", c_uint64),
                ("byte_count", c_uint64), ("name", c_char_p), ("module", c_char_p)]


class ListInfo(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("machine", c_uint32),
                ("id_kind", c_uint32), ("id_bytes", c_uint32), ("entry_count", c_uint32),
                ("id", Id), ("module", c_char_p)]


# hotfn/lowlevel/verdicts.h
class Verdict(Sized):
    _fields_ = [("size", c_uint32), ("verdict", c_uint32), ("strategy", c_uint32),
                ("reason", c_uint32), ("offset", c_uint32), ("flags", c_uint32),
                ("patch_offset", c_uint32), ("patch_bytes", c_uint32),
                ("tail_target", c_uint32), ("owner", c_uint32)]


class VerdictsOptions(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("threads", c_uint32),
                ("reserved", c_uint32)]


# hotfn/lowlevel/hooks.h
class PlanInfo(Sized):
    _fields_ = [("size", c_uint32), ("machine", c_uint32), ("function_count", c_uint32),
                ("entry_count", c_uint32), ("id_kind", c_uint32), ("id_bytes", c_uint32),
                ("id", Id), ("bytes", c_void_p), ("byte_count", c_uint64)]


class PlanEntry(Sized):
    _fields_ = [("size", c_uint32), ("function_index", c_uint32), ("rva", c_uint64),
                ("strategy", c_uint32), ("flags", c_uint32), ("patch_offset", c_uint32),
                ("patch_bytes", c_uint32)]


class RowAccess(Sized):
    _fields_ = [("size", c_uint32), ("displacement", c_int32), ("slow_path", SlowPathFn),
                ("slot_base_bytes", c_uint32), ("reserved", c_uint32),
                ("time_enter", SlowPathFn), ("time_exit", SlowPathFn),
                ("personality", SlowPathFn), ("skip_base_bytes", c_uint32),
                ("reserved2", c_uint32)]


class HookOptions(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("near_range_bytes", c_uint64),
                ("quiesce_ns", c_uint64)]


class HookAction(Sized):
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("slot", c_uint32),
                ("reserved", c_uint32), ("callback", ActionFn), ("user", c_void_p),
                ("replacement", c_void_p), ("original", POINTER(c_void_p)), ("filter", FilterFn)]


class ReplaceOptions(Sized):
    _fields_ = [("size", c_uint32), ("reserved", c_uint32), ("cache_folder", c_char_p)]


class CommitStats(Sized):
    _fields_ = [("size", c_uint32), ("hooked", c_uint32), ("refused", c_uint32),
                ("call_sites", c_uint32), ("stub_bytes", c_uint64), ("unwind_bytes", c_uint64),
                ("table_bytes", c_uint64), ("copied_page_bytes", c_uint64),
                ("total_ns", c_uint64)]


class StubRegion(Sized):
    _fields_ = [("size", c_uint32), ("reserved", c_uint32), ("begin", c_uint64),
                ("end", c_uint64), ("eh_frame", c_void_p), ("eh_frame_hdr", c_void_p)]


# hotfn/lowlevel/timing.h
class AllocCell(ctypes.Structure):
    _fields_ = [("allocated_bytes", c_uint64), ("allocated_blocks", c_uint64),
                ("freed_bytes", c_uint64), ("freed_blocks", c_uint64)]


class RecordTimeInfo(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("clock", c_uint32),
                ("sample_mean", c_uint32), ("ticks_per_second", c_uint64),
                ("resolution_ns", c_double), ("cost_inside_ns", c_double),
                ("cost_outside_ns", c_double), ("count_cost_ns", c_double), ("slow_ns", c_uint64),
                ("busy_ns", c_uint64), ("edge_count", c_uint32), ("node_count", c_uint32),
                ("slow_count", c_uint32), ("nodes_merged", c_uint32),
                ("histograms_lost", c_uint32), ("abandoned_exits", c_uint32),
                ("clock_went_back", c_uint32), ("slow_lost", c_uint64), ("event_count", c_uint64),
                ("events_lost", c_uint64), ("note", c_char_p), ("note_offset", c_uint64),
                ("clock_stopped_ns", c_uint64),
                ("ticker", c_uint32), ("call_stack_bytes", c_uint32), ("ticker_cpu_ns", c_uint64),
                ("tick_ns", c_double), ("tick_error_ns", c_double),
                ("coarse_share", c_double), ("missing_share", c_double), ("waited_ns", c_uint64),
                ("waiting_stopped_ns", c_uint64)]


class RecordTiming(Sized):
    _fields_ = [("size", c_uint32), ("timing", c_uint32), ("timed_calls", c_uint64),
                ("total_ns", c_uint64), ("self_ns", c_uint64), ("total_error_ns", c_uint64),
                ("self_error_ns", c_uint64), ("max_ns", c_uint64),
                ("p50_ns", c_uint64), ("p90_ns", c_uint64), ("p99_ns", c_uint64),
                ("self_alloc", AllocCell), ("total_alloc", AllocCell), ("reason", c_char_p),
                ("reason_text", c_char_p), ("open_calls", c_uint64), ("below", c_uint32),
                ("reserved", c_uint32), ("waited_ns", c_uint64), ("total_waited_ns", c_uint64)]


class RecordEdge(Sized):
    _fields_ = [("size", c_uint32), ("caller", c_uint32), ("callee", c_uint32),
                ("flags", c_uint32), ("calls", c_uint64), ("total_ns", c_uint64),
                ("total_alloc", AllocCell)]


class RecordNode(Sized):
    _fields_ = [("size", c_uint32), ("parent", c_uint32), ("function", c_uint32),
                ("thread", c_uint32), ("flags", c_uint32), ("reserved", c_uint32),
                ("calls", c_uint64), ("total_ns", c_uint64), ("self_ns", c_uint64),
                ("self_alloc", AllocCell), ("waited_ns", c_uint64)]


class RecordSlowCall(Sized):
    _fields_ = [("size", c_uint32), ("function", c_uint32), ("thread", c_uint32),
                ("node", c_uint32), ("start_ns", c_uint64), ("duration_ns", c_uint64)]


class RecordEvent(Sized):
    _fields_ = [("size", c_uint32), ("thread", c_uint32), ("function", c_uint32),
                ("kind", c_uint32), ("time_ns", c_uint64)]


class RecordThreadTiming(Sized):
    _fields_ = [("size", c_uint32), ("function", c_uint32), ("timing", c_uint32), ("reserved", c_uint32),
                ("calls", c_uint64), ("timed_calls", c_uint64), ("total_ns", c_uint64), ("self_ns", c_uint64),
                ("total_error_ns", c_uint64), ("self_error_ns", c_uint64), ("max_ns", c_uint64),
                ("waited_ns", c_uint64), ("total_waited_ns", c_uint64)]


# hotfn/record.h
class RecordFunction(Sized):
    # names is a c_void_p because several strings follow each other there.
    _fields_ = [("size", c_uint32), ("module", c_uint32), ("slot", c_uint32),
                ("state", c_uint32), ("rva", c_uint64), ("byte_count", c_uint64),
                ("calls", c_uint64), ("counted", c_uint32), ("flags", c_uint32),
                ("name_count", c_uint32), ("reason_offset", c_uint32), ("name", c_char_p),
                ("names", c_void_p), ("strategy", c_char_p), ("reason", c_char_p),
                ("reason_text", c_char_p)]


class RecordModule(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("machine", c_uint32),
                ("id_kind", c_uint32), ("id_bytes", c_uint32), ("function_count", c_uint32),
                ("first_function", c_uint32), ("first_slot", c_uint32), ("id", Id),
                ("load_base", c_uint64), ("file_device", c_uint64), ("file_inode", c_uint64),
                ("path", c_char_p), ("file", c_char_p), ("note", c_char_p), ("file_stamp", c_uint64),
                ("code_bytes", c_uint64), ("known_bytes", c_uint64)]


class RecordInfo(Sized):
    _fields_ = [("size", c_uint32), ("state", c_uint32), ("version_major", c_uint32),
                ("version_minor", c_uint32), ("pid", c_uint32), ("exit_code", c_int32),
                ("module_count", c_uint32), ("function_count", c_uint32),
                ("thread_count", c_uint32), ("threads_lost", c_uint32), ("start_ns", c_uint64),
                ("end_ns", c_uint64), ("window_start_ns", c_uint64),
                ("window_end_ns", c_uint64), ("uuid", c_uint8 * 16), ("command", c_char_p),
                ("directory", c_char_p), ("tool", c_char_p), ("path", c_char_p),
                ("repaired", c_char_p), ("checked_ns", c_uint64),
                ("unverified_count", c_uint32), ("overwritten_count", c_uint32),
                ("script", c_char_p), ("became", c_char_p), ("cpu_ns", c_uint64),
                ("child_count", c_uint32), ("reserved", c_uint32), ("preparation_ns", c_uint64)]


class RecordChild(Sized):
    _fields_ = [("size", c_uint32), ("process_count", c_uint32), ("cpu_ns", c_uint64),
                ("path", c_char_p), ("file", c_char_p)]


class RecordThread(Sized):
    _fields_ = [("size", c_uint32), ("tid", c_uint32), ("pid", c_uint32),
                ("thread_count", c_uint32), ("start_ns", c_uint64), ("calls", c_uint64),
                ("name", c_char * 16), ("busy_ns", c_uint64), ("cpu_ns", c_uint64), ("waited_ns", c_uint64)]


class RecordCaller(Sized):
    _fields_ = [("size", c_uint32), ("function", c_uint32), ("calls", c_uint64)]


# hotfn/lowlevel/budget.h
class RecordBudget(Sized):
    _fields_ = [("size", c_uint32), ("share_ppm", c_uint32), ("change_count", c_uint32),
                ("stops", c_uint32), ("failed_stops", c_uint32), ("reserved", c_uint32),
                ("changes_lost", c_uint64), ("cpu_ns", c_uint64), ("cost_ns", c_uint64),
                ("stopped_ns", c_uint64), ("longest_stop_ns", c_uint64),
                ("count_cost_ns", c_double), ("sample_cost_ns", c_double),
                ("time_cost_ns", c_double), ("note", c_char_p),
                ("timing_ns", c_uint64), ("start_ns", c_uint64)]


class RecordChange(Sized):
    _fields_ = [("size", c_uint32), ("function", c_uint32), ("from_", c_uint32),
                ("to", c_uint32), ("why", c_uint32), ("cost_ppm", c_uint32), ("at_ns", c_uint64),
                ("calls_per_second", c_uint64)]


# hotfn/export.h
class ExportOptions(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("limit", c_uint32),
                ("width", c_uint32), ("match", c_char_p),
                ("by", c_uint32), ("name_width", c_uint32)]


class ExporterInfo(Sized):
    _fields_ = [("size", c_uint32), ("needs", c_uint32), ("name", c_char_p),
                ("extension", c_char_p), ("about", c_char_p)]


ExporterWriteFn = CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(ExportOptions), WriteFn, c_void_p, POINTER(Error))


class Exporter(Sized):
    _fields_ = [("size", c_uint32), ("abi_version", c_uint32), ("needs", c_uint32), ("reserved", c_uint32),
                ("name", c_char_p), ("extension", c_char_p), ("about", c_char_p),
                ("write", ExporterWriteFn), ("user", c_void_p)]


# hotfn/lowlevel/scan.h
class ScanOptions(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("threads", c_uint32),
                ("symbol_dir_count", c_uint32), ("symbol_dirs", POINTER(c_char_p)),
                ("cache_folder", c_char_p), ("map_path", c_char_p)]


class ScanInfo(Sized):
    _fields_ = [("size", c_uint32), ("machine", c_uint32), ("image_flags", c_uint32),
                ("function_count", c_uint32), ("hookable_count", c_uint32),
                ("refused_count", c_uint32), ("fragment_count", c_uint32),
                ("from_cache", c_uint32), ("id_kind", c_uint32), ("id_bytes", c_uint32),
                ("id", Id), ("plan", c_void_p), ("plan_bytes", c_uint64),
                ("file_device", c_uint64), ("file_inode", c_uint64), ("path", c_char_p),
                ("file_stamp", c_uint64), ("code_bytes", c_uint64), ("known_bytes", c_uint64)]


# hotfn/switch.h
class SwitchOrder(Sized):
    _fields_ = [("size", c_uint32), ("mode", c_uint32), ("selection", POINTER(Selection)),
                ("modules", POINTER(c_char_p)), ("module_count", c_uint32), ("reserved", c_uint32)]


class SwitchResult(Sized):
    _fields_ = [("size", c_uint32), ("matched_count", c_uint32), ("switched_count", c_uint32),
                ("count_only_count", c_uint32), ("busy_count", c_uint32), ("foreign_count", c_uint32),
                ("process_count", c_uint32), ("failed_process_count", c_uint32), ("stop_ns", c_uint64)]


# hotfn/session.h
class Group(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("name", c_char_p), ("selection", POINTER(Selection))]


class SessionOptions(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("modules", POINTER(c_char_p)),
                ("module_count", c_uint32), ("slot_capacity", c_uint32),
                ("selection", POINTER(Selection)), ("durable_path", c_char_p),
                ("list", c_void_p), ("map_path", c_char_p), ("cache_folder", c_char_p),
                ("mode", c_uint32), ("sample_mean", c_uint32), ("slow_ns", c_uint64),
                ("groups", POINTER(Group)), ("group_count", c_uint32), ("reserved", c_uint32)]


class SessionStats(Sized):
    _fields_ = [("size", c_uint32), ("hooked", c_uint32), ("refused", c_uint32), ("remaining", c_uint32),
                ("remaining_status", c_int32), ("reserved", c_uint32), ("stub_bytes", c_uint64),
                ("unwind_bytes", c_uint64), ("table_bytes", c_uint64), ("copied_page_bytes", c_uint64),
                ("total_ns", c_uint64)]


# hotfn/zone.h
class Zone(ctypes.Structure):
    _fields_ = [("words", c_uint64 * 6)]


# hotfn/frame.h
class FrameOptions(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("top_count", c_uint32), ("by", c_uint32),
                ("spike_ns", c_uint64), ("spike_percent", c_uint32), ("reserved", c_uint32)]


class FrameInfo(Sized):
    _fields_ = [("size", c_uint32), ("top_count", c_uint32), ("called_count", c_uint32),
                ("is_spike", c_uint32), ("calls", c_uint64), ("number", c_uint64),
                ("duration_ns", c_uint64), ("median_ns", c_uint64), ("cpu_ns", c_uint64)]


class FrameTimes(Sized):
    _fields_ = [("size", c_uint32), ("thread_count", c_uint32), ("timed_calls", c_uint64),
                ("total_ns", c_uint64), ("self_ns", c_uint64), ("tid", c_uint32),
                ("name", c_char * 16), ("reserved", c_uint32)]


# hotfn/events.h
class EventsHeader(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("stream", c_uint64), ("sequence", c_uint64),
                ("skipped_count", c_uint64)]


class EventsItem(Sized):
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("function", c_uint32), ("module", c_uint32),
                ("thread", c_uint32), ("depth", c_uint32), ("flags", c_uint32), ("pid", c_uint32),
                ("time_ns", c_uint64), ("rva", c_uint64), ("byte_count", c_uint64), ("id_kind", c_uint32),
                ("id_bytes", c_uint32), ("id", POINTER(c_uint8)), ("text", c_char_p), ("text_bytes", c_uint32),
                ("reserved", c_uint32)]


class ListenerEvent(Sized):
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("stream", c_uint32), ("pid", c_uint32),
                ("thread", c_uint32), ("depth", c_uint32), ("time_ns", c_uint64), ("duration_ns", c_uint64),
                ("count", c_uint64), ("name", c_char_p), ("function", c_uint32), ("reserved", c_uint32)]


class ListenerStats(Sized):
    _fields_ = [("size", c_uint32), ("stream_count", c_uint32), ("running_count", c_uint32),
                ("reserved", c_uint32), ("event_count", c_uint64), ("call_count", c_uint64),
                ("datagram_count", c_uint64), ("lost_count", c_uint64), ("skipped_count", c_uint64),
                ("malformed_count", c_uint64)]


ListenerFn = CFUNCTYPE(None, c_void_p, POINTER(ListenerEvent))


# hotfn/launch.h
class LaunchOptions(Sized):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("command", POINTER(c_char_p)),
                ("record_path", c_char_p), ("modules", POINTER(c_char_p)),
                ("module_count", c_uint32), ("mode", c_uint32),
                ("selection", POINTER(Selection)), ("target_glob", c_char_p),
                ("list_path", c_char_p), ("map_path", c_char_p), ("kit_path", c_char_p),
                ("symbol_dirs", POINTER(c_char_p)), ("symbol_dir_count", c_uint32),
                ("sample_interval", c_uint32), ("slow_ns", c_uint64), ("after_ns", c_uint64),
                ("for_ns", c_uint64), ("budget_ppm", c_uint32), ("clock", c_uint32),
                ("cache_folder", c_char_p), ("agent_path", c_char_p),
                ("max_threads", c_uint32), ("max_places", c_uint32), ("runtime", c_char_p),
                ("send_to", c_char_p), ("watch", c_char_p)]


class LaunchInfo(Sized):
    _fields_ = [("size", c_uint32), ("state", c_uint32), ("pid", c_uint32),
                ("exit_code", c_int32), ("is_joined", c_uint32), ("hooked_count", c_uint32),
                ("refused_count", c_uint32), ("reserved", c_uint32), ("hook_ns", c_uint64),
                ("run_ns", c_uint64), ("record_path", c_char_p),
                ("attach_stop_ns", c_uint64), ("detach_stop_ns", c_uint64),
                ("preparation_ns", c_uint64)]


def c_name(struct: Type[ctypes.Structure]) -> str:
    """ImageInfo -> hotfn_image_info."""
    name = struct.__name__
    return "hotfn" + "".join("_" + c.lower() if c.isupper() else c for c in name)


def all_structs() -> Dict[str, Type[ctypes.Structure]]:
    """All structs of this file by their C names: {"hotfn_error": Error, ...}."""
    found: List[Type[ctypes.Structure]] = [
        value for value in globals().values()
        if isinstance(value, type) and issubclass(value, ctypes.Structure)
        and value is not Sized and value.__module__ == __name__]
    return {c_name(struct): struct for struct in found}
