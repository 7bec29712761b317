"""Files that appear whole or not at all, as those of the command line do."""
from __future__ import annotations

import os
import pathlib
import shutil
from typing import BinaryIO

from . import errors


def write_whole(path: str | os.PathLike[str], source: BinaryIO) -> None:
    """Writes what `source` still has over what is there, with the rights that any new file gets.
    NoSpace: it cannot be written, and what was there still is."""
    path = pathlib.Path(path)
    try:
        handle, beside = _create_beside(path)
        try:
            with os.fdopen(handle, "wb") as out:
                shutil.copyfileobj(source, out)
                out.flush()
                os.fsync(out.fileno())
            os.replace(beside, path)
        except BaseException:
            os.unlink(beside)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise errors.NoSpace(f"cannot write '{path}': {error.strerror}") from error


def _create_beside(path: pathlib.Path) -> tuple[int, pathlib.Path]:
    number = 0
    while True:
        beside = path.with_name(f"{path.name}.tmp.{os.getpid()}.{number}")
        try:
            return os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), beside
        except FileExistsError:
            number += 1


def _sync_folder(folder: pathlib.Path) -> None:
    """The new name is on disk when its folder is; some file systems cannot do this."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
