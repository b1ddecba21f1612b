# SPDX-License-Identifier: MIT
"""Replace functions of this process, or decide call by call whether they run."""
from __future__ import annotations

import ctypes
import weakref
from ctypes import c_void_p
from typing import Any, Callable, List, Optional

from . import _structs as s
from ._errors import check
from ._native import lib
from ._text import PathLike, path_or_none, silent_env

REGISTER_UNWIND = 4


class Call:
    """A call that is about to run, as a filter sees it; valid until the filter returns."""

    def __init__(self, handle: Optional[int]) -> None:
        self._handle = handle

    def argument(self, index: int) -> int:
        """An integer or pointer argument, unsigned, by its position among those."""
        return int(lib.hotfn_hooked_call_get_argument(self._handle, index))

    def answer(self, value: int) -> bool:
        """Return `value` to the caller without running the function: `return call.answer(0)`."""
        lib.hotfn_hooked_call_set_result(self._handle, value & 2**64 - 1)
        return False


class Hooks:
    """A set of replaced and filtered functions.  `with hotfn.Hooks() as hooks:` removes them at the end.

        libc = ctypes.CDLL(None)
        hooks.replace(libc.getppid, lambda original: original() + 1)

    A function is given as a ctypes function, or as an address with its `prototype`.  A function that
    cannot be hooked safely raises UnsupportedError with the reason.  The package must not replace what Python
    itself calls while it runs a callback.
    """

    def __init__(self) -> None:
        options = s.HookOptions(flags=REGISTER_UNWIND)
        out, error = c_void_p(), s.Error()
        check(lib.hotfn_hooks_create(ctypes.byref(out), options, None, silent_env(), error), error)
        self._handle = out
        self._callbacks: List[Any] = []  # ctypes callbacks live as long as the code that calls them
        self._finalizer = weakref.finalize(self, lib.hotfn_hooks_destroy, c_void_p(out.value))

    def __enter__(self) -> "Hooks":
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def replace(self, function: Any, replacement: Callable[..., Any], prototype: Optional[Any] = None,
                cache: Optional[PathLike] = None) -> Callable[..., Any]:
        """Calls of `function` run `replacement(original, *arguments)` from now on.

        prototype    the function's type, a ctypes.CFUNCTYPE(result, *arguments); by default it is taken from
                     restype and argtypes of a ctypes function
        cache        a folder where the analysis of the module is kept for the next start

        Returns the original, which stays callable.  Raises NotFoundError, UnsupportedError, MismatchError or
        StateError.
        """
        kind = prototype or _type_of(function)
        original = c_void_p()

        def call_replacement(*arguments: Any) -> Any:
            return replacement(ctypes.cast(original, kind), *arguments)

        callback = kind(call_replacement)
        error = s.Error()
        self._callbacks += [callback, original]
        check(lib.hotfn_hooks_replace(ctypes.byref(original), self._handle, _address(function),
                                      ctypes.cast(callback, c_void_p), _options(cache), error), error)
        return ctypes.cast(original, kind)

    def filter(self, function: Any, decide: Callable[[Call], Any], cache: Optional[PathLike] = None) -> None:
        """`decide(call)` runs before each call of `function`: a false result skips the function.

        Raises as replace() does.
        """
        callback = s.FilterFn(lambda user, call: 1 if decide(Call(call)) else 0)
        error = s.Error()
        self._callbacks.append(callback)
        check(lib.hotfn_hooks_filter(self._handle, _address(function), callback, None, _options(cache), error), error)

    def remove(self) -> None:
        """Remove all hooks of the set and restore the original bytes; the set can be used again."""
        error = s.Error()
        check(lib.hotfn_hooks_remove(self._handle, error), error)


def _options(cache: Optional[PathLike]) -> Any:
    return s.ReplaceOptions(cache_folder=path_or_none(cache))


def _address(function: Any) -> Any:
    return c_void_p(function) if isinstance(function, int) else ctypes.cast(function, c_void_p)


def _type_of(function: Any) -> Any:
    if isinstance(function, int) or function.argtypes is None:
        raise ValueError("set argtypes and restype of the function, or give its prototype: "
                         "ctypes.CFUNCTYPE(result, *arguments)")
    return ctypes.CFUNCTYPE(function.restype, *function.argtypes)
