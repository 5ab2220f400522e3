# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python environment of a checkout, build/.venv: made on first use, extras when needed."""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

from terrace.captured import run_captured, said
from terrace.checkout import Checkout
from terrace.errors import TerraceError
from terrace.messages import say


def environment_python(checkout: Checkout) -> Path:
    return checkout.environment / "bin" / "python3"


def is_running_in(checkout: Checkout) -> bool:
    """Whether this process is the environment's Python."""
    return os.path.realpath(sys.prefix) == os.path.realpath(checkout.environment)


def tool(checkout: Checkout, name: str) -> str:
    """The environment's program where it has one (the system's is too old), else that on $PATH."""
    own = checkout.environment / "bin" / name
    return str(own) if own.exists() else name


def installed_extras(checkout: Checkout) -> frozenset[str]:
    names = (path.stem for path in checkout.requirements.glob("*.txt"))
    return frozenset(name for name in names if has_extra(checkout, name))


def _stamp(checkout: Checkout, extra: str) -> Path:
    return checkout.environment / f"terrace-{extra}.stamp"


def _owner(checkout: Checkout) -> str:
    # The path: programs that pip installed do not survive a move of the checkout.
    return f"Python {sys.version_info.major}.{sys.version_info.minor} in {checkout.environment}\n"


def wanted(checkout: Checkout, extra: str) -> str:
    """What the environment's stamp for this extra says once it is installed."""
    requirements = (checkout.requirements / f"{extra}.txt").read_text(encoding="utf-8")
    return _owner(checkout) + requirements


def has_extra(checkout: Checkout, extra: str) -> bool:
    """Whether the environment holds requirements/EXTRA.txt as it is now, for this Python."""
    try:
        return _stamp(checkout, extra).read_text(encoding="utf-8") == wanted(checkout, extra)
    except OSError:
        return False


def _run(command: list[str], failed: str) -> None:
    done = run_captured(command)
    if done.returncode != 0:
        raise TerraceError(f"{failed}:\n{said(done)}")


def _make(checkout: Checkout) -> None:
    # A venv made from a venv would depend on it; _base_executable is the Python below.
    python = str(getattr(sys, "_base_executable", None) or sys.executable)
    shutil.rmtree(checkout.environment, ignore_errors=True)
    _run(
        [python, "-I", "-m", "venv", str(checkout.environment)],
        "no Python environment could be made in build/.venv "
        f"(on Debian and Ubuntu {python} needs the package python3-venv)",
    )


def _belongs_to_this_python(checkout: Checkout) -> bool:
    stamps = list(checkout.environment.glob("terrace-*.stamp"))
    return (
        environment_python(checkout).exists()
        and bool(stamps)
        and stamps[0].read_text(encoding="utf-8").startswith(_owner(checkout))
    )


def _compile(checkout: Checkout) -> None:
    """Whatever its status: some packages have files for other versions of Python."""
    words = ("compileall", "-qq", "--workers", "0", str(checkout.environment / "lib"))
    run_captured([str(environment_python(checkout)), "-I", "-m", *words])


def _install(checkout: Checkout, extras: list[str]) -> None:
    """By one pip, then byte code on every CPU: pip would use one."""
    pip = [str(environment_python(checkout)), "-I", "-m", "pip", "install", "--quiet"]
    files = [checkout.requirements / f"{extra}.txt" for extra in extras]
    names = " ".join(" ".join(file.read_text(encoding="utf-8").split()) for file in files)
    chosen = (word for file in files for word in ("--requirement", str(file)))
    _run(
        [*pip, "--disable-pip-version-check", "--no-compile", *chosen],
        f"pip could not install {names} into build/.venv (is the network there?)",
    )
    _compile(checkout)


def ensure_extras(checkout: Checkout, extras: tuple[str, ...]) -> bool:
    """Makes the environment if there is none for this Python, then installs what it lacks.

    Returns whether anything changed.
    """
    if all(has_extra(checkout, extra) for extra in extras):
        return False
    say(f"setting up a Python environment in build/.venv ({', '.join(extras)})")
    if not _belongs_to_this_python(checkout):
        _make(checkout)
    missing = [extra for extra in extras if not has_extra(checkout, extra)]
    _install(checkout, missing)
    for extra in missing:
        _stamp(checkout, extra).write_text(wanted(checkout, extra), encoding="utf-8")
    return True


def continue_inside(checkout: Checkout) -> NoReturn:
    """Starts the command again under the environment's Python."""
    python = str(environment_python(checkout))
    main = str(Path(__file__).with_name("__main__.py"))
    os.execv(python, [python, "-I", main, *sys.argv[1:]])
