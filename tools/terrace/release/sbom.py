# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the packages are made of, in the format SPDX 2.3, as JSON."""

import json
import re
import time
import uuid
from pathlib import Path
from typing import Any

from terrace.errors import TerraceError
from terrace.package.making import Source

_VIEWER = "tools/terrace/profile/viewer/LICENSES.txt"
_OURS = "MIT OR Apache-2.0"


def _name(text: str) -> str:
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def _package(name: str, version: str, licence: str, purl: str) -> dict[str, Any]:
    return {
        "SPDXID": _name(name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": purl,
            }
        ],
    }


def bundled(source: Source) -> list[dict[str, Any]]:
    """What lies in the wheel and in terrace-tools, from the list of its licences."""
    text = (source.root / _VIEWER).read_text(encoding="utf-8")
    found = dict(re.findall(r"\b(d3-[\w-]+|internmap) (\d+\.\d+\.\d+)", text))
    if "d3-flame-graph" not in found:
        raise TerraceError(f"{_VIEWER} names no version of d3-flame-graph")
    licences = {"d3-flame-graph": "Apache-2.0", "d3-ease": "BSD-3-Clause"}
    return [
        _package(name, version, licences.get(name, "ISC"), f"pkg:npm/{name}@{version}")
        for name, version in sorted(found.items())
    ]


def required(source: Source) -> list[dict[str, Any]]:
    """What pip installs with the wheel."""
    lines = (source.root / "tools" / "requirements" / "run.txt").read_text().split()
    names = [re.split(r"[<>=;]", line)[0] for line in lines]
    return [_package(name, "", "NOASSERTION", f"pkg:pypi/{name}") for name in names]


def _file(source: Source, name: str, sha256: str) -> dict[str, Any]:
    """Something to download. A package: of a file SPDX wants SHA-1, too."""
    purl = f"pkg:generic/terrace@{source.version}"
    made = _package(name, source.version, f"({_OURS})", purl)
    checksums = [{"algorithm": "SHA256", "checksumValue": sha256}]
    return {**made, "packageFileName": name.rpartition("/")[2], "checksums": checksums}


def _relation(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def document(source: Source, sums: dict[str, str]) -> dict[str, Any]:
    """`sums`: SHA-256 of each packed file."""
    purl = f"pkg:generic/terrace@{source.version}"
    ours = _package("terrace", source.version, f"({_OURS})", purl)
    inside, needed = bundled(source), required(source)
    for package in needed:
        del package["versionInfo"]
    files = [_file(source, name, value) for name, value in sums.items()]
    root = ours["SPDXID"]
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(source.epoch)))
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"terrace-{source.version}",
        "documentNamespace": uuid.uuid5(uuid.NAMESPACE_OID, created + str(files)).urn,
        "creationInfo": {"created": created, "creators": ["Tool: terrace release"]},
        "packages": [ours, *files, *inside, *needed],
        "relationships": [
            _relation("SPDXRef-DOCUMENT", "DESCRIBES", root),
            *(_relation(root, "CONTAINS", p["SPDXID"]) for p in inside),
            *(_relation(root, "DEPENDS_ON", p["SPDXID"]) for p in needed),
            *(_relation(f["SPDXID"], "GENERATED_FROM", root) for f in files),
        ],
    }


def write(source: Source, directory: Path) -> str:
    """terrace-VERSION.spdx.json beside the packages, of the files in SHA256SUMS."""
    lines = (directory / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = {name: value for value, _, name in (line.partition("  ") for line in lines)}
    made = document(source, sums)
    path = directory / f"terrace-{source.version}.spdx.json"
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return f"{path.name}: {len(made['packages'])} packages"
