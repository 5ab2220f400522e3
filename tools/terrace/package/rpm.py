# SPDX-License-Identifier: MIT OR Apache-2.0
"""RPM packages, compiled by rpmbuild from the files that git knows; rpmlint looks at them."""

import shutil
import time
from pathlib import Path

from terrace.build import available_cpus
from terrace.package import tree
from terrace.package.making import Source, call, fresh


def _spec(source: Source) -> str:
    """With one change: what has changed is in CHANGELOG.md."""
    date = time.strftime("%a %b %d %Y", time.gmtime(int(source.epoch)))
    text = (source.recipes / "rpm" / "terrace.spec").read_text(encoding="utf-8")
    change = f"* {date} {tree.maintainer(source)} - {source.version}-1\n- See CHANGELOG.md.\n"
    return f"{text}%changelog\n{change}"


def make(source: Source, directory: Path) -> list[Path]:
    """Without a source package."""
    sources = fresh(directory) / f"terrace-{source.version}"
    tree.copy(source, sources, sources / "share")
    spec = sources / "terrace.spec"
    spec.write_text(_spec(source), encoding="utf-8")
    values = {
        "_topdir": str(directory / "top"),
        "_lib": "lib64",  # Debian's rpm would take lib
        "_libdir": "/usr/lib64",
        "_smp_mflags": f"-j{available_cpus()}",
        "terrace_version": source.version,
    }
    defined = [word for key, value in values.items() for word in ("--define", f"{key} {value}")]
    # Distributions other than RPM's own have no list of what is installed.
    build = ["rpmbuild", "-bb", "--build-in-place", "--nodeps", *defined, str(spec)]
    call(build, sources, SOURCE_DATE_EPOCH=source.epoch)
    made = sorted((directory / "top" / "RPMS").glob("*/*.rpm"))
    moved = [Path(shutil.move(path, directory / path.name)) for path in made]
    rules = source.recipes / "rpm" / "rpmlint.toml"
    call(["rpmlint", "--config", str(rules), *map(str, moved)], directory)
    return moved
