# SPDX-License-Identifier: MIT
"""Messages of the library arrive at Python's logger "hotfn" with their levels."""
import logging
import os
import shutil
import subprocess

import pytest

import hotfn


@pytest.fixture
def packed_path(target_path, tmp_path):
    """A stripped library with a .gnu_debugdata that nothing can unpack."""
    if not shutil.which("objcopy"):
        pytest.skip("no objcopy")
    path = tmp_path / "packed.so"
    subprocess.run(["objcopy", "--strip-all", "--add-section", f".gnu_debugdata={__file__}", target_path, path], check=True)
    return path


def messages(caplog, path, level):
    caplog.clear()
    with caplog.at_level(level, logger="hotfn"):
        hotfn.scan(path)
    assert all(record.name == "hotfn" for record in caplog.records)
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_messages_have_levels(caplog, packed_path):
    assert messages(caplog, packed_path, logging.WARNING) == []
    infos = messages(caplog, packed_path, logging.INFO)
    assert [level for level, _ in infos] == [logging.INFO], infos
    assert f"{packed_path}: its .gnu_debugdata cannot be unpacked" in infos[0][1]
    details = messages(caplog, packed_path, logging.DEBUG)
    assert infos[0] in details and logging.DEBUG in [level for level, _ in details], details


def test_a_warning_of_a_launch_is_logged_and_given(caplog, tmp_path):
    functions = tmp_path / "empty.txt"
    functions.write_text("")
    with caplog.at_level(logging.WARNING, logger="hotfn"), pytest.warns(UserWarning, match="has no functions"):
        hotfn.run(["/bin/true"], list=functions, record=tmp_path / "r.hfr")
    assert any("has no functions" in record.getMessage() and record.levelno == logging.WARNING
               for record in caplog.records), caplog.records
