# SPDX-License-Identifier: MIT OR Apache-2.0
"""The Python environment of a checkout: made once, and filled again when the requirements change."""

import pytest
from terrace import venv
from terrace.checkout import Checkout


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    checkout = Checkout(tmp_path)
    checkout.requirements.mkdir(parents=True)
    (checkout.requirements / "run.txt").write_text("rich\n", encoding="utf-8")

    def make(made):
        venv.environment_python(made).parent.mkdir(parents=True)
        venv.environment_python(made).touch()

    monkeypatch.setattr(venv, "_make", make)
    monkeypatch.setattr(venv, "_compile", lambda _checkout: None)
    return checkout


def test_what_was_installed_is_remembered(checkout, monkeypatch):
    commands = []
    monkeypatch.setattr(venv, "_run", lambda command, _failed: commands.append(command))
    assert venv.ensure_extras(checkout, ("run",))
    assert venv.has_extra(checkout, "run")
    assert not venv.ensure_extras(checkout, ("run",))
    assert len(commands) == 1

    (checkout.requirements / "run.txt").write_text("rich>=13\n", encoding="utf-8")
    assert venv.ensure_extras(checkout, ("run",))
    assert len(commands) == 2
